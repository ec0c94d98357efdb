"""`torch.nn.parallel` on the one device there is: the wrapper calls the module it holds."""

from __future__ import annotations

from typing import Any

from glassgrad.errors.missing import lister, missing
from glassgrad.nn.module import Module


class DataParallel(Module):
    """Calls the module it holds, whose names in `state_dict` begin with "module.", as PyTorch's do.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.DataParallel(gg.nn.Linear(2, 1))
        >>> sorted(model.state_dict())
        ['module.bias', 'module.weight']
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids = list(device_ids or [])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """Return ``module(*inputs)``, computed on the one device.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.parallel.data_parallel(gg.nn.Linear(2, 1), gg.zeros(3, 2)).shape
        (3, 1)
    """
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Can be named and asked for by isinstance; raises when it is made, as there is one process.

    Example:
        >>> import glassgrad as gg
        >>> isinstance(gg.nn.Linear(2, 1), gg.nn.parallel.DistributedDataParallel)
        False
    """

    def __init__(self, module: Module, *_options: Any, **_named: Any) -> None:
        raise missing("glassgrad.nn.parallel", "DistributedDataParallel", (), _INSTEAD)


_INSTEAD = {"DistributedDataParallel": "one process computes here; DataParallel calls the module it holds."}

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
__dir__ = lister(__name__)
