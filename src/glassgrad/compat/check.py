"""`python -m glassgrad.compat --check script.py`: which of PyTorch's names a program uses that lack or differ here.

The program is read, not run. Each name is looked up as the running program would look it up, so what is said of it is
what the error would say.
"""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

from glassgrad.compat import as_torch, differences, find_twin
from glassgrad.compat.reading import Program, Use


@dataclass(frozen=True)
class Finding:
    """A name that lacks or differs.

    Attributes:
        file: the file, as it was found.
        line: its line, from 1.
        name: the name, with PyTorch's module.
        kind: "lacks" or "differs".
        message: what the error says.
        remedy: what to do instead; empty if nothing is known.
        guarded: whether the program catches the error, or never comes here without a GPU.
    """

    file: str
    line: int
    name: str
    kind: str
    message: str
    remedy: str
    guarded: bool

    def __str__(self) -> str:
        guarded = " (guarded: the program continues without it)" if self.guarded else ""
        remedy = f"\n    {self.remedy}" if self.remedy else ""
        return f"{self.file}:{self.line}: {self.name} {self.kind}{guarded}: {self.message}{remedy}"


def check(script: str | Path) -> list[Finding]:
    """Return what lacks or differs in a program, and in the modules beside it that it imports.

    Args:
        script: the file.

    Returns:
        The findings, in the order of the lines; a name once for each file.

    Raises:
        OSError: the file cannot be read.
        SyntaxError: it is not Python.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from glassgrad.compat.check import check
        >>> script = Path(tempfile.mkdtemp()) / "train.py"
        >>> _ = script.write_text("import torch; torch.fx.symbolic_trace")
        >>> for found in check(script):
        ...     print(found.line, found.name, found.kind, "-", found.remedy)
        1 torch.fx lacks - Next: compiled.graph is the traced program of a compiled function.
    """
    first = Path(script)
    waiting, seen = [first], {first.resolve()}
    findings: list[Finding] = []
    with as_torch(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while waiting:
            path = waiting.pop(0)
            program = Program(ast.parse(path.read_text(encoding="utf-8"), str(path)))
            local = {name: file for name in program.modules if (file := _beside(first.parent, name)) is not None}
            findings += _of_file(str(path), program, local)
            fresh = [file for file in local.values() if file.resolve() not in seen]
            seen |= {file.resolve() for file in fresh}
            waiting += fresh
    return findings


def _beside(folder: Path, module: str) -> Path | None:
    """Return the file of a module beside the program."""
    place = folder.joinpath(*module.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _of_file(file: str, program: Program, local: Iterable[str]) -> Iterator[Finding]:
    beside = {name.partition(".")[0] for name in local}
    said: set[tuple[str, bool]] = set()
    for use in sorted(program.uses, key=lambda use: use.line):
        for name, kind, message, remedy in _found(use, beside):
            if (name, use.guarded) not in said:
                said.add((name, use.guarded))
                yield Finding(file, use.line, name, kind, message, remedy, use.guarded)


def _found(use: Use, beside: set[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield (name, kind, message, remedy) for a use: nothing for most."""
    top = use.path.partition(".")[0]
    if top in differences.PACKAGES and top not in beside:
        yield top, "lacks", f"{top} uses internals of PyTorch.", f"Next: {differences.PACKAGES[top]}"
    if top != "torch":
        return
    lacks = _missing(use.path)
    if lacks is not None:
        name, text = lacks
        message, _, remedy = text.partition("\n")
        yield name, "lacks", message, remedy
    elif use.path in differences.DIFFERENT:
        yield use.path, "differs", differences.DIFFERENT[use.path], ""


def _missing(path: str) -> tuple[str, str] | None:
    """Return the part of a dotted path that lacks, and what the error says; None if all is there."""
    found: object = find_twin("torch")
    done = "torch"
    for part in path.split(".")[1:]:
        if not isinstance(found, ModuleType | SimpleNamespace | type):
            return None  # an attribute of a value, which only the running program knows
        done = f"{done}.{part}"
        try:
            found = _next(found, part, done)
        except (AttributeError, ImportError) as error:
            return done, str(error)
    refused = getattr(found, "__doc__", None) or ""
    if isinstance(found, type) and refused.startswith("Not here: "):  # it can be imported, and raises when it is called
        return done, f"{done} raises when it is called.\nNext: {refused.removeprefix('Not here: ')}"
    return None


def _next(owner: object, name: str, path: str) -> object:
    try:
        return getattr(owner, name)
    except AttributeError:
        if not isinstance(owner, ModuleType) or not name.islower():  # no module's name
            raise
        with suppress(ImportError):
            return cast("object", find_twin(path))  # a module that nothing has imported yet
        raise


def main(arguments: list[str]) -> int:
    """Print the findings, as text or with ``--json``; return 1 if a name lacks that is not guarded, else 0."""
    as_json = "--json" in arguments
    scripts = [one for one in arguments if one != "--json"]
    if not scripts:
        raise SystemExit("usage: python -m glassgrad.compat --check [--json] SCRIPT ...")
    try:
        findings = [finding for script in scripts for finding in check(script)]
    except (OSError, SyntaxError) as error:
        sys.stdout.write(f"cannot read the program: {error}\n")
        return 2
    lacking = sum(finding.kind == "lacks" and not finding.guarded for finding in findings)
    if as_json:
        text = json.dumps({"lacks": lacking, "findings": [asdict(finding) for finding in findings]}, indent=1)
    else:
        differing = sum(finding.kind == "differs" for finding in findings)
        text = "\n".join([*map(str, findings), f"{lacking} names lack, {differing} differ"])
    sys.stdout.write(text + "\n")
    return int(lacking > 0)


__all__ = ["Finding", "check", "main"]
