"""One table of the public names: which function, under which names, as function and as method.

`PUBLIC` maps a name to its function (a primitive, or a function composed of some). `ALIASES` gives the
other libraries' names for the same thing, `KEYWORDS` their spelling of arguments. A name in
`NOT_METHODS` is a function only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from glassgrad.ops import elementwise, index, linalg, reduce, shape
from glassgrad.ops.core import Primitive

KEYWORDS = {"axis": "dim", "axes": "dim", "keepdims": "keepdim", "ddof": "correction", "a_min": "min", "a_max": "max"}

ALIASES = {
    "neg": "negative",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "true_divide": "divide",
    "pow": "power",
    "absolute": "abs",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "clamp": "clip",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
    "concat": "cat",
    "concatenate": "cat",
    "permute_dims": "permute",
    "swapaxes": "transpose",
    "moveaxis": "movedim",
    "expand_dims": "unsqueeze",
    "type": "astype",
    "take": "index_select",
    "copy": "clone",
    "ravel": "flatten",
    "norm": "vector_norm",
    "special_expit": "sigmoid",
}

_MODULES: tuple[ModuleType, ...] = (elementwise, shape, reduce, index, linalg)

# Helpers of the op files that are no ops of the user's.
_PRIVATE = {
    "canonical_axes", "canonical_axis", "custom", "elementwise", "fused", "linear", "select", "reals", "distinct",
    "integers", "positive", "flags", "kept_shape", "reduced_shape", "restore", "full_shape", "split_index",
    "join_index", "scatter_rows", "swap_last", "Any", "NamedTuple", "Sequence", "S", "Slice", "Extreme", "Shape",
    "Axes", "Pairs", "Array", "Spec", "ARRAY", "math", "np", "ew", "annotations", "booleans", "ew_nonzero",
}  # fmt: skip

# Functions whose first argument is not the tensor they belong to.
NOT_METHODS = {"where", "embedding", "cat", "concat", "concatenate", "stack", "one_hot", "full_shape"}


def with_keywords(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function take NumPy's names for its arguments as well."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {KEYWORDS.get(name, name): value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return call


def _collect() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for module in _MODULES:
        for name, value in vars(module).items():
            if name.startswith("_") or name.endswith("_p") or name in _PRIVATE or isinstance(value, ModuleType):
                continue
            if isinstance(value, Primitive):
                table[name] = value
            elif callable(value) and getattr(value, "__module__", "") == module.__name__:
                table[name] = with_keywords(value)
    for alias, name in ALIASES.items():
        if name in table:
            table[alias] = table[name]
    return table


PUBLIC: dict[str, Any] = _collect()


def methods() -> dict[str, Any]:
    """Return what `Tensor` gets as methods."""
    return {name: function for name, function in PUBLIC.items() if name not in NOT_METHODS}
