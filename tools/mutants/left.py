"""The survivors that are neither killed nor explained yet: left.toml, so that nobody has to search for them again.

Entries have the form of those in explained.toml, without a reason, and stand below the name of their file.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from tools.mutants.making import Mutant, identities, identity

LEFT = Path(__file__).with_name("left.toml")
_HEAD = """\
# Survivors that wait for a test, for simpler code or for an entry in explained.toml. `--keep-left` writes them and
# `--left` tries them again. `was` and `becomes` are the lines that differ, `below` the line above where that is needed.
# Whoever changes a line that stands here takes its entries out, or tries the file again.
"""


def read(path: Path = LEFT) -> list[dict[str, str]]:
    """Return the entries: `file`, the line as it `was`, what it `becomes`, and for some `below`."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [{"file": file, **entry} for file, entries in tomllib.loads(text).items() for entry in entries]


def write(entries: Iterable[dict[str, str]], path: Path = LEFT) -> None:
    """Write entries, those of a file together."""
    lines = [_HEAD]
    for file, of_file in groupby(sorted(entries, key=itemgetter("file")), itemgetter("file")):
        for entry in of_file:
            lines += [f'[["{file}"]]', *(f"{name} = {_quoted(entry[name])}" for name in entry if name != "file"), ""]
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def keep(made: Sequence[Mutant], tried: Iterable[Mutant], survivors: Iterable[Mutant], path: Path = LEFT) -> None:
    """Note what is left of the mutants of a piece that were tried; the entries of others stay while there are such."""
    made = sorted(made, key=lambda mutant: (mutant.file, mutant.span))
    order = {key: number for number, mutant in reversed([*enumerate(made)]) for key in identities(mutant)}
    alike = Counter((mutant.file, *mutant.lines()) for mutant in made)
    done = {key for mutant in tried for key in identities(mutant)}
    entries = {identity(one): one for one in read(path) if identity(one) not in done}
    for mutant in survivors:
        was, becomes = mutant.lines()
        entry = {"file": mutant.file, "was": was, "becomes": becomes}
        if alike[mutant.file, was, becomes] > 1:
            entry["below"] = mutant.above()
        entries[identity(entry)] = entry
    files = {mutant.file for mutant in made}
    others = [one for one in entries.values() if one["file"] not in files]
    own = sorted((order[key], key) for key in entries if key in order)
    write([*others, *(entries[key] for _, key in own)], path)


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text and "'" not in text else json.dumps(text, ensure_ascii=False)
