"""Names for numbers that come from a shape: `n` for the size of the batch, `n - 1` for one less."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from glassgrad.compile.numpy.text import Text
from glassgrad.compile.source.lines import Code, Line
from glassgrad.ops.core import Array

_NAMES = ("n", "rows", "count")


def name_batch(
    lines: Sequence[Line], data: Mapping[str, Array], parameters: Iterable[str], taken: Iterable[str]
) -> str:
    """Write the size of the batch as a name in all lines; return the statement that defines it, or "".

    It is the first dimension that all inputs except the parameters share. If another dimension is as long, or one
    shorter, a number could mean either of them, so all numbers stay.

    Args:
        lines: the program; their code is replaced.
        data: the inputs by name.
        parameters: the names of those that have gradients.
        taken: names that are in use.
    """
    own = set(parameters)
    arrays = {name: value for name, value in data.items() if isinstance(value, np.ndarray) and value.ndim}
    examples = {name: value for name, value in arrays.items() if name not in own}
    sizes = {value.shape[0] for value in examples.values()}
    if len(sizes) != 1:
        return ""
    (size,) = sizes
    others = {one for name, value in arrays.items() for one in value.shape[1 if name in examples else 0 :]}
    if size < 3 or others & {size, size - 1}:
        return ""
    name = next((one for one in _NAMES if one not in {*taken, *data}), None)
    if name is None:
        return ""
    changed = [_renamed(line, size, name) for line in lines]
    return f"{name} = {next(iter(examples))}.shape[0]" if any(changed) else ""


def _renamed(line: Line, size: int, name: str) -> bool:
    code = [Code(_with_name(one.left, size, name), one.sign, _with_name(one.right, size, name)) for one in line.code]
    changed = any(one.left != new.left or one.right != new.right for one, new in zip(line.code, code, strict=True))
    line.code = code
    return changed


def _with_name(text: Text, size: int, name: str) -> Text:
    pieces = tuple(
        re.sub(rf"(?<![\w.]){size}(?![\w.])", name, re.sub(rf"(?<![\w.]){size - 1}(?![\w.])", f"({name} - 1)", piece))
        for piece in text.pieces
    )
    return text if pieces == text.pieces else Text.woven(pieces, map(Text.token, text.tokens), text.level)
