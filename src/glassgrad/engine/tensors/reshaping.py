"""Methods that give a tensor another shape in place: `x.unsqueeze_(0)`, `x.t_()`.

Nothing is written: the tensor becomes a view of its old self, which lives on behind it. So older views stay views of
the old shape, and a write to any of them reaches all.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from glassgrad.engine.inplace import check_leaf
from glassgrad.engine.mode import MODE, RECORDING, enable_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops import names


def _become(x: Tensor, function: Callable[..., Any], args: tuple[Any, ...]) -> Tensor:
    """Let `x` be ``function(x, *args)``, a view; return it."""
    if MODE.flags & RECORDING:
        check_leaf(x)
    old = make(x.lifted(), x.node, x._tracks)
    rest = dict(x._extra or {})
    before: dict[str, Any] = {key: rest.pop(key) for key in ("view", "views", "limit") if key in rest}
    if x.node is None or MODE.flags & RECORDING:
        y = function(old, *args)
    else:  # its node on the tape has the old shape
        with enable_grad():
            y = function(old, *args)
    if y is old:
        return x
    if x.node is None and x._tracks:  # a leaf without recording: its views are never rebased
        x.array = y.array
        return x
    _stand_in(x, old, before)
    if x.node is not None or y.node is not None:
        x.node, x._tracks = y.node, y._tracks
    x.array = y.array
    link = (y._extra or {}).get("view")
    if link is not None:
        rest["view"] = link
        known = (old._extra or {}).get("views", [])
        known[:] = [weakref.ref(x) if one() is y else one for one in known]
    x._extra = rest or None
    return x


def _stand_in(x: Tensor, old: Tensor, links: dict[str, Any]) -> None:
    """Let `old` replace `x` in its links: as a view, and as the base of other views."""
    made = (old._extra or {}).get("views", [])  # the view that was just made
    old._extra = {**(old._extra or {}), **links, "views": [*links.get("views", ()), *made]}
    old._extra.setdefault("limit", 64)
    for reference in links.get("views", ()):
        view = reference()
        if view is not None and view._extra is not None and "view" in view._extra:
            view._extra["view"] = (old, *view._extra["view"][1:])
    if "view" in links:
        known = (links["view"][0]._extra or {}).get("views", [])
        known[:] = [weakref.ref(old) if one() is x else one for one in known]


def _method(name: str) -> Callable[..., Tensor]:
    function = names.PUBLIC[name]

    def call(x: Tensor, *args: object, **kwargs: object) -> Tensor:
        return _become(x, lambda old, *given: function(old, *given, **kwargs), args)

    call.__name__ = call.__qualname__ = f"{name}_"
    vars(call)["__wrapped__"] = function  # `call` has its signature
    call.__doc__ = f"`{name}` of the tensor itself, which has another shape from then on; return it."
    return call


METHODS = ("as_strided", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze")

for _name in METHODS:
    setattr(Tensor, f"{_name}_", _method(_name))
