"""`torch.nn.parallel` on the one device there is: the wrapper calls the module it holds."""

from __future__ import annotations

from typing import Any

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


__all__ = ["DataParallel"]
