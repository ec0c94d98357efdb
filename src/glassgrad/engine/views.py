"""Views: which tensor looks into the memory of which other one.

A view keeps what it was made from and how; the other holds weak references to its views. Nobody reads this
until one of them is written to in place: then `inplace.py` gives all of them their new place on the tape.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.ops.core import Aval, Primitive

_ref = weakref.ref
_ndarray = np.ndarray


def link(view: Any, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Let `view`, the result of a view primitive, and the tensor it views know of each other; return it."""
    base, array = args[0], view.array
    if (
        len(args) > 1  # integer arrays as indices make copies
        or (type(array) is _ndarray and array.base is None and array is not getattr(base, "array", None))
        or array.dtype.kind not in "fcV"  # integers are never on the tape
        or not hasattr(base, "_extra")
    ):
        return view
    return bind(view, base, prim, params)


def bind(view: Any, base: Any, prim: Primitive, params: dict[str, Any]) -> Any:
    """Let `view` be a view of `base`, made from it by `prim`; return it."""
    view._extra = {"view": (base, prim, params)}
    if base.node is None and base._tracks:
        return view  # such a leaf is never rewritten on the tape, so its views never are
    extra = base._extra
    if extra is None:
        base._extra = {"views": [_ref(view)], "limit": 64}
        return view
    views = extra.setdefault("views", [])
    if len(views) >= extra.setdefault("limit", 64):
        # Forget the views that are gone, rarely enough that it costs nothing on average.
        views[:] = [known for known in views if known() is not None]
        extra["limit"] = max(64, 2 * len(views))
    views.append(_ref(view))
    return view


def placeholders(start: int, arrays: list[Any], parents: Sequence[Any], stop: int | None = None) -> list[Any]:
    """Keep the arrays from position `start` on, or in front of `stop`; of the others only shapes and dtypes."""
    if stop is not None:
        last = zip(arrays[stop:], parents[stop:], strict=True)
        return arrays[:stop] + [_hollow(array) if parent is None else parent for array, parent in last]
    first = zip(arrays[:start], parents, strict=False)
    return [_hollow(array) if parent is None else parent for array, parent in first] + arrays[start:]


def _hollow(array: Any) -> Aval:
    if hasattr(array, "dtype"):
        return Aval(tuple(array.shape), array.dtype)
    return Aval((), np.result_type(array))
