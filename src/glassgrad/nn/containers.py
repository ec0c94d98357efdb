"""Modules that hold modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from glassgrad.nn.module import Module


class Sequential(Module):
    """Calls its modules one after another; takes modules or one OrderedDict of named ones.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(2, 3), gg.nn.Tanh())
        >>> model[0]
        Linear(in_features=2, out_features=3, bias=True)
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = modules[0] if len(modules) == 1 and isinstance(modules[0], dict) else OrderedDict(
            (str(position), module) for position, module in enumerate(modules)
        )
        for name, module in named.items():
            self.add_module(name, module)

    def forward(self, x: Any) -> Any:
        for module in self.children():
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(list(self.children()))

    def __iter__(self) -> Iterator[Module]:
        return iter(list(self.children()))

    def __getitem__(self, key: Any) -> Any:
        named = list(self.named_children())
        if isinstance(key, slice):
            return Sequential(OrderedDict(named[key]))
        return named[key][1]

    def append(self, module: Module) -> Sequential:
        """Add a module at the end; return self."""
        self.add_module(str(len(self)), module)
        return self
