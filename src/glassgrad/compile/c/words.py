"""Words of C: types, numbers and identifiers."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable

import numpy as np

from glassgrad.compile.llvm.module.ir import is_float

WIDTH = 110
"""Characters of a line of comments and of numbers."""

TYPES = {
    "f32": "float",
    "f64": "double",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "b1": "bool",
}
"""Element kind -> the type of C. Halves and bfloat16 have none in C11."""

# Words that an identifier of the written program may not be.
_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false
    s step main arena arrays model count words turn turns i j k l m n a b c d e g o p q r u v bordered strips columns
    turned shape first left given at_step at_row from_h later earlier before input forget cell output memory state
    tiles_of_x tiles_of_y band points products kernels part last
    squashed dc dh inner reset update dnew dupdate dreset exp log sin cos tan tanh sqrt pow floor ceil round trunc erf
    gamma lgamma index time remove rename exit abs labs div free malloc read write open close link
    signal j0 j1 jn y0 y1 yn NAN INFINITY NULL EOF FILE x0 x1 x2 x3 is0 is1 is2 is3
"""
_RESERVED = frozenset(_WORDS.split())


def literal(value: float, kind: str) -> str:
    """Return a number as C writes it; floats in the fewest digits that give the same number."""
    if kind == "b1":
        return "true" if value else "false"
    if is_float(kind):
        return _float(float(value), kind)
    return _integer(int(value), kind)


def _float(value: float, kind: str) -> str:
    number = np.float32(value) if kind == "f32" else np.float64(value)
    if math.isnan(number):
        return "NAN" if kind == "f32" else "(double)NAN"
    if math.isinf(number):
        word = "INFINITY" if kind == "f32" else "(double)INFINITY"
        return word if number > 0 else f"(-{word})"
    text = str(number)
    if not any(sign in text for sign in ".e"):
        text += ".0"
    text += "f" if kind == "f32" else ""
    return f"({text})" if text.startswith("-") else text


def _integer(value: int, kind: str) -> str:
    bits = int(kind[1:])
    value &= (1 << bits) - 1
    if kind[0] == "i" and value >> (bits - 1):
        value -= 1 << bits
    if kind == "u64":
        return f"UINT64_C({value})" if value >= 1 << 31 else f"{value}u"
    if kind == "u32":
        return f"{value}u"
    if value == -(1 << 63):
        return "INT64_MIN"
    if value == -(1 << 31):
        return "INT32_MIN" if kind == "i32" else "(-INT64_C(2147483648))"
    text = f"INT64_C({abs(value)})" if abs(value) >= 1 << 31 else str(abs(value))
    return f"(-{text})" if value < 0 else text


def identifier(text: str) -> str:
    """Return an identifier of C that resembles a name or a path of the user's: ``model.0.weight``, ``é``."""
    plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if not plain or plain[0].isdigit():
        plain = f"v{plain}"
    return plain


_OURS = re.compile(r"(t|sum|total|largest|smallest|part|part_of_\w+|kept|each|block|end|new)\d*(_at)?")  # of loops


class Names:
    """Hands out identifiers, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = {*_RESERVED, *taken}

    def take(self, wanted: str) -> str:
        """Return the wanted name, with a number if it is taken."""
        plain, number = identifier(wanted), 1
        name = plain
        while name in self.taken or name.startswith(("gg_", "step_", "GG_")) or _OURS.fullmatch(name):
            number += 1
            name = f"{plain.removeprefix('gg_').removeprefix('step_').removeprefix('GG_')}_{number}"
        self.taken.add(name)
        return name


def comment(text: str) -> str:
    """Return a text that may stand inside a comment of C."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "\\ ").rstrip()


def filled(texts: Iterable[str]) -> str:
    """Return the numbers of an array, several a line."""
    joined, indent = ", ".join(texts) + ",", "    "
    return textwrap.fill(joined, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
