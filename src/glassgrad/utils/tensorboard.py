"""PyTorch's `torch.utils.tensorboard`: the writer of the package tensorboardX, which accepts our tensors here."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from glassgrad.engine import tree
from glassgrad.engine.tensor import Tensor
from glassgrad.errors.missing import lister, missing
from glassgrad.errors.packages import needed


def _as_array(value: Any, _path: tree.Path) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


def _taking(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that takes tensors wherever the package's method takes arrays."""

    @functools.wraps(method)
    def taking(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree.map_tree(_as_array, (args, kwargs))
        return method(self, *args, **kwargs)

    return taking


@functools.cache
def _writer() -> type[Any]:
    """Return the class, derived from that of the package."""
    with needed("tensorboardX", "SummaryWriter", extra="tensorboard"):
        base = importlib.import_module("tensorboardX").SummaryWriter
    methods = {name: _taking(method) for name, method in vars(base).items() if name.startswith("add_")}
    return type("SummaryWriter", (base,), {**methods, "__module__": __name__, "__doc__": base.__doc__})


def __getattr__(name: str) -> Any:
    if name == "SummaryWriter":
        return _writer()
    raise missing("glassgrad.utils.tensorboard", name, ["SummaryWriter"])


SummaryWriter: type  # made on first use

__all__ = ["SummaryWriter"]
__dir__ = lister(__name__)
