"""Attributes of a module that are computed when they are read: reparametrised weights.

The module's class becomes a subclass with a property for each such attribute. So `self.weight` in an unchanged
`forward` is computed in every call, and copies, pickles and compiled steps work without special code.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_HELD = "_computed"


class Rule:
    """How one attribute is computed from others of its module."""

    def read(self, module: Any) -> Any:
        """Return the value."""
        raise NotImplementedError  # each kind of computed value reads its own

    def write(self, module: Any, name: str, value: Any) -> None:
        """Accept a value; by default it is ignored, because the attribute is computed again."""


def rules_of(module: Any) -> dict[str, Rule]:
    """Return the rules of a module by the names of their attributes."""
    rules: dict[str, Rule] = module.__dict__.get(_HELD, {})
    return rules


@lru_cache(maxsize=256)
def _class_with(base: type, names: tuple[str, ...], prefix: str) -> type:
    """Return a subclass of `base` in which the names are computed."""

    def reduce(self: Any, _protocol: Any) -> Any:
        return _new, (base, names, prefix), self.__dict__

    body: dict[str, Any] = {name: _property(name) for name in names}
    body |= {"__reduce_ex__": reduce, "__module__": base.__module__, "__doc__": base.__doc__, "_computes": base}
    made = type(prefix + base.__name__, (base,), body)
    made.__qualname__ = prefix + base.__qualname__
    return made


def _new(base: type, names: tuple[str, ...], prefix: str) -> Any:
    return object.__new__(_class_with(base, names, prefix))


def _property(name: str) -> property:
    def read(self: Any) -> Any:
        return self.__dict__[_HELD][name].read(self)

    def write(self: Any, value: Any) -> None:
        self.__dict__[_HELD][name].write(self, name, value)

    return property(read, write)


def base_of(module: Any) -> type:
    """Return the class that a module had before."""
    kind: type = getattr(type(module), "_computes", type(module))
    return kind


def compute(module: Any, name: str, rule: Rule, prefix: str = "") -> None:
    """Let a rule compute an attribute that was removed from a module."""
    held = module.__dict__.setdefault(_HELD, {})
    held[name] = rule
    _reclass(module, prefix)


class _Method(Rule):
    """A method of the class that shares its name with a layer or parameter in the module's state."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, module: Any) -> Any:
        return getattr(super(type(module), module), self.name)

    def write(self, module: Any, name: str, value: Any) -> None:
        module.__dict__[name] = value


def keep_method(module: Any, name: str) -> None:
    """Let a name still give the method of the class; an assigned value is stored in the module's state."""
    module.__dict__.pop(name, None)  # a non-state value would hide the method; state is stored separately
    compute(module, name, _Method(name))


def settle(module: Any, name: str) -> Rule:
    """Undo `compute`; return the rule. The attribute is missing afterwards."""
    held = module.__dict__[_HELD]
    rule: Rule = held.pop(name)
    shown = type(module).__name__
    _reclass(module, "Parametrized" if shown.startswith("Parametrized") else "")
    if not held:
        del module.__dict__[_HELD]
    return rule


def _reclass(module: Any, prefix: str) -> None:
    base, names = base_of(module), tuple(module.__dict__[_HELD])
    object.__setattr__(module, "__class__", _class_with(base, names, prefix) if names else base)


__all__ = ["Rule", "base_of", "compute", "keep_method", "rules_of", "settle"]
