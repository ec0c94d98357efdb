"""Name the two layers whose shapes do not fit together: the layer that raised, and the one before it.

This runs only after a layer has failed. The tape shows the layer before: it owns the parameter that was last used to
compute the input.
"""

from __future__ import annotations

from typing import Any

from glassgrad import errors
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor
from glassgrad.errors.kinds import ShapeError

_OWN = f"{__package__}."


def name_layers(model: Any, args: tuple[Any, ...], error: ShapeError) -> None:
    """Add the names of the two layers to a message, as named by the outermost model that contains them.

    Every module that the error passes through on its way out calls this, the innermost first.
    """
    known = error.__dict__.setdefault("between", (str(error), model, args))
    text, layer, given = known
    x = next((one for one in given if isinstance(one, Tensor)), None)
    if not type(layer).__module__.startswith(_OWN) or layer is model or x is None:
        return
    names = {id(module): name for name, module in model.named_modules(remove_duplicate=False)}
    if id(layer) not in names:  # made within the call
        return
    before = _before(model, x) or _in_row(model, layer)
    source = "" if before is None else f", which it got from {_named(*before)}"
    shape = tuple(x.shape)
    error.args = (text + errors.BETWEEN_LAYERS.text(layer=_named(names[id(layer)], layer), shape=shape, source=source),)


def _named(name: str, layer: Any) -> str:
    return f"{name}, {layer!r}" if "\n" not in repr(layer) else f"{name}, a {type(layer).__name__}"


def _before(model: Any, x: Tensor) -> tuple[str, Any] | None:
    """Return (name, layer) of the parameters that were last used to make `x`."""
    owners = {
        id(parameter): (name, module)
        for name, module in model.named_modules()
        for parameter in module.parameters(recurse=False)
    }
    waiting = [x.node] if x.node is not None else []
    seen: set[int] = set()
    while waiting:
        waiting.sort(key=lambda node: node.seq)
        node = waiting.pop()
        for parent in node.parents:
            if id(parent) in owners:
                return owners[id(parent)]
            if isinstance(parent, Node) and id(parent) not in seen:
                seen.add(id(parent))
                waiting.append(parent)
    return None


def _in_row(model: Any, layer: Any) -> tuple[str, Any] | None:
    """Return (name, layer) of the layer before another within a Sequential, for when the tape recorded nothing."""
    for path, module in model.named_modules():
        children = list(module.named_children())
        at = next((at for at, (_, child) in enumerate(children) if child is layer), 0)
        if at and type(module).__name__ == "Sequential":
            name, before = children[at - 1]
            return f"{path}.{name}".lstrip("."), before
    return None
