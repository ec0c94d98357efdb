"""PyTorch's functions called with our tensors, as by a distance or an activation from a module that imports torch.

PyTorch hands such a call to `Tensor.__torch_function__`, and it becomes a call of our function of the same name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from glassgrad.engine import tree


def torch_function(
    func: Callable[..., Any],
    _types: Iterable[type],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> object:
    """Call our function of the same name; NotImplemented where there is none, or beside tensors of PyTorch's.

    Args:
        func: the function of PyTorch's.
        args: its arguments.
        kwargs: its arguments by name.
    """
    theirs = sys.modules["torch"]
    ours = counterpart(theirs.overrides.resolve_name(func) or "")
    given = tree.flatten([list(args), dict(kwargs or {})])[0]
    if ours is None or any(isinstance(one, theirs.Tensor) for one in given):
        return NotImplemented
    return ours(*args, **(kwargs or {}))


def counterpart(name: str) -> Callable[..., Any] | None:
    """Return what stands here under a dotted name of PyTorch's; None if nothing does."""
    found: object = importlib.import_module("glassgrad")
    for part in name.replace("torch.functional.", "torch.").split(".")[1:]:
        found = getattr(found, part, None)
    return found if callable(found) else None


__all__ = ["counterpart", "torch_function"]
