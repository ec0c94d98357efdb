"""NaN and infinity: their places in an array, the op that made them, the remedy, and the blocks that allow them."""

from __future__ import annotations

import re
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from glassgrad.base import provenance
from glassgrad.engine.node import Node, next_sequence
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import REGISTRY, Array
from glassgrad.ops.vmap.batched import Batched

# The remedy if an op makes a NaN: from such operands in the forward pass, at its poles in the backward pass.
ADVICE = {
    "log": "log(x.clamp(min=eps)), or log_softmax instead of log(softmax)",
    "log_softmax": "keep an open entry in each row: a row of -inf has no softmax",
    "softmax": "keep an open entry in each row, or torch.finfo(x.dtype).min, not -inf: a row of -inf has no softmax",
    "log2": "log2(x.clamp(min=eps))",
    "log10": "log10(x.clamp(min=eps))",
    "log1p": "log1p(x.clamp(min=-1 + eps))",
    "sqrt": "sqrt(x.clamp(min=eps)): its slope at 0 is infinite, and it is NaN below 0",
    "rsqrt": "rsqrt(x.clamp(min=eps))",
    "divide": "x / y.clamp(min=eps), or x / (y + eps), for y that can be 0",
    "reciprocal": "1 / (x + eps), for x that can be 0",
    "power": "x.clamp(min=eps) ** y, for x that can be 0 or negative",
    "norm": "norm(x + eps): the norm has no slope at 0",
    "var": "x.var(dim, correction=0), or more than one element: with one, n - 1 is 0",
    "atan2": "atan2(y, x + eps), for a point at the origin",
    "logsumexp": "keep a finite entry in each row: the result for a row of -inf is -inf",
    "acos": "acos(x.clamp(-1 + eps, 1 - eps))",
    "asin": "asin(x.clamp(-1 + eps, 1 - eps))",
    "exp": "exp(x.clamp(max=80)), or softmax or logsumexp, which do not overflow",
    "exp2": "exp2(x.clamp(max=100))",
    "expm1": "expm1(x.clamp(max=80))",
    "sinh": "sinh(x.clamp(-80, 80))",
    "cosh": "cosh(x.clamp(-80, 80))",
    "atanh": "atanh(x.clamp(-1 + eps, 1 - eps))",
    "linear": "use smaller weights or inputs: the products overflow",
    "matmul": "use smaller operands: their products overflow",
    "subtract": "bound both operands: the difference of two infinities is NaN",
    "multiply": "bound both operands: 0 times infinity is NaN",
}
# Functions that consist of several ops; a report names the function instead of the op inside it.
COMPOSED = {
    "std": "x.std(dim, correction=0), or more than one element: with one, n - 1 is 0",
    "logit": "logit(x, eps=1e-6): it is infinite at 0 and 1",
    "masked_fill": "torch.finfo(x.dtype).min instead of -inf",
}
# The same if the op that made the operand is known.
INSTEAD = {
    ("log", "softmax"): "F.log_softmax(x, dim) instead of log(softmax(x, dim))",
    ("log", "sigmoid"): "F.logsigmoid(x) instead of log(sigmoid(x))",
    ("log", "exp"): "x instead of log(exp(x))",
    ("log", "sum"): "logsumexp(x, dim) instead of log(sum(exp(x))), or a clamp(min=eps) before the log",
    ("divide", "norm"): "F.normalize(x, dim), or x / x.norm().clamp(min=eps): the norm of zeros is 0",
    ("divide", "root"): "x / (x.std() + eps): the deviation of equal numbers is 0",
    ("divide", "std"): "x / (x.std() + eps): the deviation of equal numbers is 0",
    ("divide", "sum"): "x / x.sum().clamp(min=eps): a sum may be 0",
    ("divide", "exp"): "softmax(x, dim) instead of exp(x) / exp(x).sum()",
    ("sqrt", "var"): "sqrt(x.var() + eps)",
    ("sqrt", "sum"): "sqrt(x.sum() + eps): the slope of a root is infinite at 0",
    ("sqrt", "power"): "x.abs() instead of sqrt(x ** 2), or sqrt(x ** 2 + eps)",
    ("sqrt", "square"): "x.abs() instead of sqrt(x.square()), or sqrt(x.square() + eps)",
}
_AXIS = re.compile(r"[-\d(][-\d, ()]*")
_LONGEST = 40
"""The largest number of characters of an operand's source text that is shown beside its value."""


def plain(value: Array) -> Array:
    """Return the numbers of an array or tensor; inside `vmap`, those of all examples along the first axes."""
    value = value.array if isinstance(value, Tensor) else value
    while type(value) is Batched:
        value = value.value
    return np.float64(value) if isinstance(value, float) else value


def beside(array: Array, result: Array) -> Array:
    """Return the numbers of an operand so that they broadcast to those of a result, examples of `vmap` included."""
    numbers = plain(array)
    missing = result.ndim - array.ndim if type(array) is Batched and type(result) is Batched else 0
    lead = numbers.ndim - array.ndim if missing > 0 else 0
    return numbers.reshape(*numbers.shape[:lead], *(1,) * missing, *numbers.shape[lead:]) if missing > 0 else numbers


def shown_op(op: str, place: provenance.Place) -> str:
    """Return the function that the user called, if the op is a part of it, else the op."""
    return place.call if place.call != op and (place.call in COMPOSED or place.call in REGISTRY) else op


def advice(op: str, otherwise: str = "") -> str:
    """Return the remedy for an op or function."""
    return COMPOSED.get(op) or ADVICE.get(op, otherwise)


def is_bad(array: Array, inf: bool = False) -> Array:
    """Return where an array is NaN, or with `inf` not finite."""
    return ~np.isfinite(array) if inf else np.isnan(array)


def has_bad(value: Array, inf: bool = False) -> bool:
    """Tell whether an array, a Tensor or a number holds a NaN, or with `inf` an infinity."""
    array = plain(value)
    return isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "fcV" and bool(is_bad(array, inf).any())


def first_bad(array: Array, inf: bool = False) -> tuple[tuple[int, ...], int]:
    """Return the index of an array's first NaN (with `inf`, first non-finite element), and their number."""
    bad = np.asarray(is_bad(array, inf))
    where = np.unravel_index(int(np.argmax(bad)), bad.shape) if bad.ndim else ()
    return tuple(int(part) for part in where), int(bad.sum())


def element(array: Array, index: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Return the element of an operand that was broadcast to `shape`, None if it was not."""
    try:
        return np.broadcast_to(array, shape)[index].item()
    except (ValueError, IndexError, TypeError, AttributeError):
        return None


def place_in(index: tuple[int, ...]) -> str:
    """Describe an index as a place in an array."""
    return f"[{', '.join(map(str, index))}]" if index else "the only element"


def named(place: provenance.Place, values: tuple[Array, ...]) -> str:
    """Write operands as "x[0] = -2.0" if their source is known and short, else as their values."""
    texts = place.operands
    if len(texts) == len(values) + 1:  # `x.std(0)`: the last is an axis; `gg.divide(a, b)`: the first is the module
        texts = texts[:-1] if _AXIS.fullmatch(texts[-1]) else texts[1:]
    if len(texts) != len(values) or place.call.startswith("masked_fill"):  # its operands have another order
        texts = ("",) * len(values)
    told = zip(texts, values, strict=True)
    return ", ".join(
        str(value) if not text or len(text) > _LONGEST or text == str(value) else f"{' '.join(text.split())} = {value}"
        for text, value in told
        if value is not None
    )


@dataclass(frozen=True)
class Birth:
    """A NaN (or an infinity) that an op made from numbers: where, how many, and the operands at the first one."""

    op: str
    place: provenance.Place
    count: int
    size: int
    index: tuple[int, ...]
    operands: tuple[Array, ...]
    kind: str = "NaN"
    module: str = ""
    node: Node | None = None

    @classmethod
    def of(
        cls,
        op: str,
        place: provenance.Place,
        value: Array,
        arrays: tuple[Array, ...],
        *,
        inf: bool = False,
        module: str = "",
        node: Node | None = None,
    ) -> Birth:
        """Describe the bad elements in the result of an op."""
        arrays = tuple(beside(array, value) for array in arrays)
        value = np.asarray(plain(value))
        index, count = first_bad(value, inf)
        operands = tuple(element(array, index, value.shape) for array in arrays)
        kind = "NaN" if np.isnan(value[index]) else "infinite"
        if (shown := shown_op(op, place)) != op:
            op, operands = shown, operands[:1]
        return cls(op, place, count, value.size, index, operands, kind, module, node)

    def __str__(self) -> str:
        given = named(self.place, self.operands)
        inside = f" in {self.module}" if self.module else ""
        made = f" of '{self.place.variable}'" if self.place.variable else ""
        return (
            f"{self.op} at {self.place.quoted()}{inside} made {self.count} of {self.size} elements{made} "
            f"{self.kind}, the first at {place_in(self.index)}" + (f", of {given}" if given else "")
        )


# --- intended NaN and infinity ---


class Scaler(Protocol):
    """A gradient scaler, which skips steps with infinite gradients."""

    enabled: bool


SCALERS: weakref.WeakSet[Scaler] = weakref.WeakSet()
"""All scalers: while one is active, gradients that are not finite are expected."""


def is_scaled() -> bool:
    """Tell whether a gradient scaler looks after infinite gradients."""
    return any(scaler.enabled for scaler in SCALERS)


_MOST_SPANS = 10_000  # remembered blocks: more than the layers or time steps of one forward pass


class _Allowed(threading.local):
    """The blocks of this thread that allow NaN: the nesting depth, and the nodes made in them."""

    def __init__(self) -> None:
        self.depth = 0
        self.spans: deque[tuple[int, int]] = deque(maxlen=_MOST_SPANS)


ALLOWED = _Allowed()


class allow_nonfinite:  # noqa: N801 - named as `no_grad` is
    """Ops inside make NaN or infinity on purpose, such as a mask of -inf: searches for its origin ignore them.

    A context manager for the current thread, for `doctor.watch`, `doctor.nan_origin` and `autograd.detect_anomaly`.

    Example:
        >>> import glassgrad as gg
        >>> scores = gg.zeros(2, 2, requires_grad=True)
        >>> with gg.autograd.detect_anomaly(check_inf=True):
        ...     with gg.doctor.allow_nonfinite():
        ...         masked = scores + gg.tensor([[0.0, float("-inf")], [0.0, 0.0]])
        ...     (gg.softmax(masked, 1) ** 2).sum().backward()
    """

    def __init__(self) -> None:
        self._since: list[int] = []  # one object may be entered again while it is open

    def __enter__(self) -> Self:
        ALLOWED.depth += 1
        self._since.append(next_sequence())
        return self

    def __exit__(self, *_exception: object) -> None:
        ALLOWED.depth -= 1
        ALLOWED.spans.append((self._since.pop(), next_sequence()))


def is_allowed(node: Node) -> bool:
    """Tell whether a node was made in a block that allows NaN and infinity."""
    return any(first < node.seq < last for first, last in ALLOWED.spans)


__all__ = ["ADVICE", "INSTEAD", "Birth", "allow_nonfinite", "first_bad", "has_bad"]
