"""The text of tensors, shapes and nodes under the name torch: PyTorch's, to the letter.

One layout of numbers serves a whole tensor: whole numbers are followed by a point, others have four digits, and where
the largest is more than 1,000 times the smallest, or one is very large or small, all are in scientific notation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from glassgrad.compat.grad_names import backward_name
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Size, Tensor
from glassgrad.engine.tensors import creation
from glassgrad.ops.core import bad_option

# --- options --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """What `set_printoptions` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {"default": Options(), "short": Options(precision=2, edgeitems=2), "full": Options(threshold=math.inf)}
_now = Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed under the name torch; a `profile` (default, short, full) sets all that are not given.

    Without `sci_mode` the numbers themselves decide again whether they are in scientific notation.
    """
    global _now
    if profile is not None and profile.lower() not in PROFILES:
        raise bad_option("set_printoptions", "profile", profile, ", ".join(PROFILES))
    start = _now if profile is None else PROFILES[profile.lower()]
    _now = Options(
        precision=start.precision if precision is None else precision,
        threshold=start.threshold if threshold is None else threshold,
        edgeitems=start.edgeitems if edgeitems is None else edgeitems,
        linewidth=start.linewidth if linewidth is None else linewidth,
        sci_mode=sci_mode,
    )


def forget_options() -> None:
    """Return to the options that there are at first."""
    set_printoptions(profile="default")


# --- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """How each number of a tensor is written: by `write`, and how many characters lines count for it."""

    write: Callable[..., str]
    width: int
    padded: bool = True

    def text(self, value: object) -> str:
        return self.write(value).rjust(self.width) if self.padded else self.write(value)


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else str(value)


def layout_of(values: np.ndarray, options: Options) -> Layout:
    """Choose the layout of a tensor from its numbers, of those left out of a summary none."""
    flat = values.reshape(-1)
    if flat.dtype.kind != "f":
        return Layout(str, max((len(str(value)) for value in flat.tolist()), default=0))
    wide = flat.astype(np.float64)
    counted = wide[np.isfinite(wide) & (wide != 0)]

    def digits(value: float) -> str:
        return f"{value:.{options.precision}f}"

    def scientific(value: float) -> str:
        return f"{value:.{options.precision}e}"

    if not counted.size:
        return Layout(_whole, 1)  # whatever the options say, as in PyTorch
    sizes = np.abs(counted)
    low, high = float(sizes.min()), float(sizes.max())
    whole = bool((counted == np.ceil(counted)).all())
    spread = high / low > 1000.0 or high > 1.0e8 or (not whole and low < 1.0e-4)
    chosen = spread if options.sci_mode is None else options.sci_mode
    write = scientific if chosen else _whole if whole else digits
    width = max(len(write(value)) for value in counted.tolist())
    return Layout(write, width)


def _layout(values: np.ndarray, options: Options) -> Layout:
    if values.dtype.kind != "c":
        return layout_of(values, options)
    real, imaginary = layout_of(values.real, options), layout_of(values.imag, options)

    def both(value: complex) -> str:
        second = imaginary.text(value.imag).lstrip() + "j"
        return real.text(value.real) + (second if second[0] in "+-" else "+" + second)

    return Layout(both, real.width + imaginary.width + 1, padded=False)


# --- nested lists ---------------------------------------------------------------------------------


def _ends(values: np.ndarray, options: Options, cut: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the entries that are shown before and after the dots; None where all are shown."""
    edge = options.edgeitems
    if not cut or len(values) <= 2 * edge:
        return values, None
    return values[:edge], values[len(values) - edge :]


def _shown(values: np.ndarray, options: Options) -> np.ndarray:
    """Return the corners of an array that a summary shows."""
    for axis, n in enumerate(values.shape):
        if n > 2 * options.edgeitems:
            places = [*range(options.edgeitems), *range(n - options.edgeitems, n)]
            values = values.take(places, axis)
    return values


def _row(values: np.ndarray, indent: int, options: Options, cut: bool, layout: Layout) -> str:
    first, last = _ends(values, options, cut)
    words = [layout.text(value) for value in first.tolist()]
    if last is not None:
        words = [*words, " ...", *(layout.text(value) for value in last.tolist())]
    a_line = max(1, (options.linewidth - indent) // (layout.width + 2))
    lines = [", ".join(words[at : at + a_line]) for at in range(0, len(words), a_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(values: np.ndarray, indent: int, options: Options, cut: bool, layout: Layout) -> str:
    if values.ndim == 0:
        return layout.text(values.item())
    if values.ndim == 1:
        return _row(values, indent, options, cut, layout)
    first, last = _ends(values, options, cut)
    parts = [_nested(part, indent + 1, options, cut, layout) for part in first]
    if last is not None:
        parts = [*parts, "...", *(_nested(part, indent + 1, options, cut, layout) for part in last)]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def numbers(array: np.ndarray, indent: int) -> str:
    """Return the numbers of an array as nested lists, the lines after the first indented."""
    options = _now
    values = array.astype(np.float32) if array.dtype.kind == "V" or array.dtype == np.float16 else array
    cut = array.size > options.threshold
    return _nested(values, indent, options, cut, _layout(_shown(values, options) if cut else values, options))


# --- tensors --------------------------------------------------------------------------------------


def _remarks(x: Tensor) -> Iterator[str]:
    """Say what the numbers do not: the shape of nothing, the dtype, and what made it."""
    array = x.array
    usual: list[np.dtype] = [creation.DEFAULT]
    if array.size:
        usual += [np.dtype(np.int64), np.dtype(np.bool_), creation._complex_default()]
    elif array.ndim != 1:
        yield f"size={tuple(array.shape)}"
    if array.dtype not in usual:
        yield f"dtype=torch.{array.dtype}"
    if x.node is not None:
        yield f"grad_fn=<{backward_name(x.node)}>"
    elif x.requires_grad:
        yield "requires_grad=True"


def _followed(text: str, remarks: Iterable[str], indent: int, new_line: bool = False) -> str:
    """Return a text with remarks behind it, on new lines where they do not fit."""
    length = len(text) - text.rfind("\n") + 1
    for remark in remarks:
        if new_line or length + len(remark) + 2 > _now.linewidth:
            text += ",\n" + " " * indent + remark
            length, new_line = indent + len(remark), False
        else:
            text += ", " + remark
            length += len(remark) + 2
    return text + ")"


_tensor_here = Tensor.__repr__


def tensor(x: Tensor) -> str:
    """Return the text of a tensor."""
    from glassgrad.nn.parameter import Buffer, Parameter

    array = x.array
    if not isinstance(array, np.ndarray):  # inside a transformation there are no numbers
        return _tensor_here(x)
    lead = "tensor(" if type(x) in {Tensor, Parameter, Buffer} else f"{type(x).__name__}("
    body = numbers(array, len(lead)) if array.size else "[]"
    return _followed(lead + body, _remarks(x), len(lead))


def size(x: Size) -> str:
    """Return the text of a shape."""
    return f"torch.Size([{', '.join(map(str, x))}])"


def node(x: Node) -> str:
    """Return the text of a node, as Python's objects have it."""
    return f"<{backward_name(x)} object at {id(x):#x}>"


def _no_html(_x: Tensor) -> None:
    """Let notebooks show the text."""


PATCHES: tuple[tuple[type, str, Callable[..., str | None]], ...] = (
    (Tensor, "__repr__", tensor),
    (Tensor, "_repr_html_", _no_html),
    (Size, "__repr__", size),
    (Node, "__repr__", node),
)
