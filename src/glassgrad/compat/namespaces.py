"""Modules made from tables, and functions that return False, do nothing, or return their argument."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from glassgrad.base.tables import pairs
from glassgrad.errors.missing import missing

# PyTorch's modules -> the module here with their names; a name ending in a dot covers all submodules.
HOMES: dict[str, Any] = {}


class Namespace(ModuleType):
    """A module made from a table; other names are looked up in a second module, or raise with advice (`otherwise`)."""

    def __init__(self, name: str, names: dict[str, Any], home: str = "", otherwise: str = "") -> None:
        # `from torch.a import b` next imports torch.a.b, by the name set here.
        super().__init__(f"torch.{name}", f"What programs look for in torch.{name}.")
        self.__path__: list[str] = []
        self._home, self._otherwise = home, otherwise
        self._function: Any = None
        self.__dict__.update(names)

    def stand_for(self, function: Any) -> None:
        """Act as the function of this name when called, because importing the module hides the function."""
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise TypeError(f"module {self.__name__!r} is not callable")
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        home = self.__dict__.get("_home")
        if not home or name.startswith("__"):
            otherwise = self.__dict__.get("_otherwise")
            instead = {name: otherwise} if otherwise and not name.startswith("_") else None
            known = [one for one in vars(self) if not one.startswith("_")]
            raise missing(self.__name__.replace("torch", "glassgrad", 1), name, known, instead)
        inner = HOMES.get(f"{self.__name__.removeprefix('torch.')}.{name}")
        if isinstance(inner, Namespace):
            return inner
        if name in _BASES and home == "glassgrad.nn":
            file, _, base = _BASES[name].partition(":")
            return getattr(importlib.import_module(f"glassgrad.nn.layers.{file}"), base)
        try:
            return getattr(importlib.import_module(home), name)
        except AttributeError:
            if name.islower() and f"{self.__name__.removeprefix('torch.')}." in HOMES:
                return Namespace(f"{self.__name__.removeprefix('torch.')}.{name}", {}, home)
            raise


# Base classes of layers that programs use in isinstance, and their modules here.
_BASES = pairs(
    """
    _BatchNorm=norm:_BatchNorm _NormBase=norm:_Tracked _InstanceNorm=norm:_InstanceNorm _ConvNd=conv:_Conv
    _ConvTransposeNd=conv:_ConvTranspose _Loss=losses:_Loss _WeightedLoss=losses:_Weighted
    _DropoutNd=dropout:_Dropout RNNBase=recurrent:_Recurrent
    """
)


def no(*_args: object, **_kwargs: object) -> bool:
    """Return False."""
    return False


def nothing(*_args: object, **_kwargs: object) -> None:
    """Do nothing: the switch has no effect here."""


def same(thing: Any = None, *_args: object, **_kwargs: object) -> Any:
    """Return a function or module unchanged, or a decorator that does so."""
    return (lambda function: function) if thing is None else thing


__all__ = ["HOMES", "Namespace", "no", "nothing", "same"]
