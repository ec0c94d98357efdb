"""Views: tensors that share the memory of another tensor.

A view keeps its base and the op that made it; the base holds weak references to its views. This is read only after an
in-place write to one of them: then `inplace.py` gives all of them their new node on the tape.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from glassgrad.engine.mode import MODE, RECORDING
from glassgrad.ops.core import Array, Aval, Custom, Primitive
from glassgrad.ops.index import getitem_p
from glassgrad.ops.places import has_masks
from glassgrad.ops.shape import reshape_p
from glassgrad.ops.vmap.batched import Batched

_ref = weakref.ref
_ndarray = np.ndarray
_View = TypeVar("_View", bound=Any)


def link(view: Array, prim: Primitive, args: tuple[Array, ...], params: dict[str, Any]) -> Array:
    """Let `view`, the result of a view primitive, and its base refer to each other; return it."""
    base, array = args[0], view.array
    if (
        len(args) > 1  # integer arrays as indices make copies
        or (
            array.base is None and array is not getattr(base, "array", None)
            if type(array) is _ndarray
            else _is_copy(array, base, prim, params)
        )
        or array.dtype.kind not in "fcV"  # integers are never on the tape
        or not hasattr(base, "_extra")
    ):
        return view
    return bind(view, base, prim, params)


def _is_copy(array: Array, base: Array, prim: Primitive, params: dict[str, Any]) -> bool:
    """Tell whether a traced or batched result has its own memory: a reshape of memory in another order, or an index
    with a mask of no dimensions.
    """
    if type(array) is Batched:
        if prim is reshape_p:
            return not base.array.looks_from(params["shape"])
        return has_masks(params.get("spec", ()))
    return getattr(array, "view", array) is None


# The result of .detach() inside vmap, where tensors share no memory, so writes must be passed on explicitly.
detached_p = Custom(
    "detached",
    lambda xp, x: x,
    vjp=(None,),
    jvp=(None,),
    batch=lambda prim, size, values, batched, params: values[0],
    write_back=lambda x, view, assign: view,
    register=False,
)
detached_p.describe("x", "none")


def detached(view: _View, base: Array) -> _View:
    """Let `view`, the same array as `base` without its place on the tape, follow writes to it; return it."""
    if type(view.array) is Batched:
        bind(view, base, detached_p, {})
    return view


def rows(x: _View, make: Callable[[Array, None, bool], _View]) -> list[_View]:
    """Return the rows as views; where no op is recorded, `make` makes them without one, in a tenth of the time."""
    array = x.array
    if x._tracks or type(array) is not _ndarray or MODE.flags > RECORDING:
        return [getitem_p(x, spec=(position,)) for position in range(array.shape[0])]
    made = [make(array[position, ...], None, False) for position in range(len(array))]
    if array.dtype.kind in "fcV":  # integers are never on the tape
        for position, row in enumerate(made):
            bind(row, x, getitem_p, {"spec": (position,)})
    return made


def bind(view: Array, base: Array, prim: Primitive, params: dict[str, Any]) -> Array:
    """Let `view` be a view of `base`, made from it by `prim`; return it."""
    view._extra = {"view": (base, prim, params)}
    if base.node is None and base._tracks:
        return view  # a write to such a leaf is never on the tape, so neither are its views
    extra = base._extra
    if extra is None:
        base._extra = {"views": [_ref(view)], "limit": 64}
        return view
    views = extra.setdefault("views", [])
    if len(views) >= extra.setdefault("limit", 64):
        # Drop views that no longer exist, rarely enough that it costs nothing on average.
        views[:] = [known for known in views if known() is not None]
        extra["limit"] = max(64, 2 * len(views))
    views.append(_ref(view))
    return view


def placeholders(part: tuple[int, int | None], arrays: list[Array], parents: Sequence[Any]) -> list[Array]:
    """Keep the arrays from one position on, or in front of another; for the others only shapes and dtypes."""
    start, stop = part
    if stop is not None:
        last = zip(arrays[stop:], parents[stop:], strict=True)
        return arrays[:stop] + [_hollow(array) if parent is None else parent for array, parent in last]
    kept = arrays.copy()
    for at in range(min(start, len(kept))):
        parent = parents[at]
        kept[at] = _hollow(arrays[at]) if parent is None else parent
    return kept


def _hollow(array: Array) -> Aval:
    if hasattr(array, "dtype"):
        return Aval(tuple(array.shape), array.dtype)
    return Aval((), np.result_type(array))
