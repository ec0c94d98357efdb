"""Names for the values of a readable program: the user's if there are any."""

from __future__ import annotations

import itertools
import keyword
import unicodedata
from collections.abc import Collection, Iterable

from glassgrad.compile.source.functions import NAMES

# Functions of Python that a program calls, or that a reader would take for Python's own.
_BUILTINS = """
    abs all any bool complex dict enumerate float int len list max min pow print range reversed round slice str sum
    tuple zip
"""
_CALLED = frozenset(_BUILTINS.split())
# Names that no value of a program may have.
RESERVED = {"np", "math", "main", "data", "gradients", *NAMES, *_CALLED} | set(keyword.kwlist)


class Namer:
    """Hands out identifiers, each once.

    Attributes:
        base: name -> the requested name, without the distinguishing number.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = RESERVED | set(taken)
        self.base: dict[str, str] = {}
        self._tried: dict[str, int] = {}  # all numbers below are taken

    def take(self, wanted: str, base: str | None = None, free: Collection[str | None] = ()) -> str:
        """Return the wanted name, with a number if it is taken; a name in `free` may be used again."""
        plain = identifier(wanted)
        base = base or plain
        begin = 1 if free else self._tried.get(plain, 1)
        tries = ((number, f"{plain}_{number}" if number > 1 else plain) for number in itertools.count(begin))
        self._tried[plain], name = next(one for one in tries if one[1] not in self.taken or one[1] in free)
        self.taken.add(name)
        self.base[name] = base
        return name

    def free(self, wanted: str) -> bool:
        """Tell whether a name is available."""
        return wanted.isidentifier() and wanted not in self.taken


def identifier(text: str) -> str:
    """Return an identifier that resembles a path such as ``state['exp_avg']`` or ``blocks.0.weight``."""
    normal = unicodedata.normalize("NFKC", text)  # Python normalises identifiers like this; two signs may be one
    words = "".join(sign if f"_{sign}".isidentifier() else " " for sign in normal).split()
    name = "_".join(words).strip("_")
    return name if name.isidentifier() else f"v{name}"


def cut_at_numbers(name: str) -> list[str]:
    """Split a name into numbers and the parts between them: ``["layers_", "3", "_weight"]``."""
    return ["".join(signs) for _, signs in itertools.groupby(name, str.isdecimal)]


def without_numbers(text: str) -> str:
    """Take numbers out of names, and the underscores in front of them."""
    parts = [*cut_at_numbers(text), ""]
    pairs = itertools.pairwise(parts)
    return "".join(a.removesuffix("_") if b.isdecimal() else a for a, b in pairs if not a.isdecimal())


def input_names(paths: list[str]) -> list[str]:
    """Return identifiers for paths to state, without their common prefix.

    ``model.hidden.weight`` becomes ``hidden_weight``; a path that would begin with a digit keeps its root.
    """
    roots = {path.split(".")[0] for path in paths if "." in path}
    namer = Namer()
    names = []
    for path in paths:
        rest = path.partition(".")[2]
        short = rest if len(roots) == 1 and rest and not rest[0].isdecimal() else path
        names.append(namer.take(short))
    return names
