"""Modules that hold modules or parameters: a chain, a list, a dictionary."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from glassgrad.engine.tensor import Tensor
from glassgrad.nn.module import Module, check_entry
from glassgrad.nn.parameter import Parameter


class _Numbered(Module):
    """A list whose entries are attributes named "0", "1", ...; so they have these names in `state_dict`."""

    holds: tuple[type[Any], ...] = (Module,)

    def _named(self) -> dict[str, Any]:
        """Return the entries by name; None is also an entry, an empty place."""
        holds = self.holds
        return {
            name: value
            for name, value in self.__dict__.items()
            if isinstance(value, holds) or (value is None and name.isdigit())
        }

    def _entries(self) -> list[Any]:
        return list(self._named().values())

    def _replace(self, entries: Iterable[Any]) -> None:
        """Hold these entries instead."""
        for name in self._named():
            del self.__dict__[name]
        for position, entry in enumerate(entries):
            self._put(str(position), entry)

    def _put(self, name: str, entry: Any) -> None:
        check_entry(self, name, entry, *self.holds)
        self.__dict__[name] = entry

    def __len__(self) -> int:
        return len(self._entries())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries())

    def __contains__(self, entry: object) -> bool:
        return any(entry is one for one in self._entries())

    def _place(self, index: int) -> int:
        """Return a position counted from the front."""
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"index {index} is out of range for {type(self).__name__} with {count} entries")
        return index % count

    def __getitem__(self, index: Any) -> Any:
        entries = self._entries()
        if isinstance(index, slice):
            return type(self)._of(entries[index])
        return entries[self._place(index.__index__())]

    @classmethod
    def _of(cls, entries: list[Any]) -> Any:
        make: Callable[[list[Any]], Any] = cls  # lists take their entries
        return make(entries)

    def __setitem__(self, index: Any, entry: Any) -> None:
        entries = self._entries()
        entries[index if isinstance(index, slice) else self._place(index)] = entry
        self._replace(entries)

    def __delitem__(self, index: Any) -> None:
        entries = self._entries()
        del entries[index]
        self._replace(entries)

    def append(self, entry: Any) -> Self:
        """Add an entry at the end; return self."""
        self._put(str(len(self)), entry)
        return self

    def extend(self, entries: Iterable[Any]) -> Self:
        """Add entries at the end; return self."""
        for entry in entries:
            self.append(entry)
        return self

    def insert(self, index: int, entry: Any) -> None:
        """Add an entry before `index`."""
        entries = self._entries()
        entries.insert(index, entry)
        self._replace(entries)

    def pop(self, index: int = -1) -> Any:
        """Take out an entry and return it."""
        entry = self[index]
        del self[index]
        return entry

    def __iadd__(self, entries: Iterable[Any]) -> Self:
        return self.extend(entries)

    def __add__(self, other: Iterable[Any]) -> Any:
        return type(self)._of([*self, *other])


class Sequential(_Numbered):
    """Calls its modules one after another; takes modules or one OrderedDict of named ones.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(2, 3), gg.nn.Tanh())
        >>> model[0]
        Linear(in_features=2, out_features=3, bias=True)
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = modules[0].items() if len(modules) == 1 and isinstance(modules[0], dict) else enumerate(modules)
        for name, module in named:
            self._put(str(name), module)

    def forward(self, input: Any) -> Any:
        for name, module in tuple(self.__dict__.items()):  # as `_named`, but without building a dictionary
            is_entry = isinstance(module, Module) or (module is None and name.isdigit())
            if is_entry:  # calling an empty place raises Python's own error
                input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):  # names stay
            return Sequential(OrderedDict(list(self._named().items())[index]))
        return super().__getitem__(index)

    @classmethod
    def _of(cls, entries: list[Any]) -> Sequential:
        return Sequential(*entries)

    def __setitem__(self, index: Any, entry: Any) -> None:
        if isinstance(index, slice):
            super().__setitem__(index, entry)
            return
        self._put(list(self._named())[self._place(index)], entry)


class ModuleList(_Numbered):
    """A list of modules that are found by `parameters()` and the rest; None leaves a place empty.

    Example:
        >>> import glassgrad as gg
        >>> layers = gg.nn.ModuleList(gg.nn.Linear(2, 2) for _ in range(3))
        >>> len(list(layers.parameters()))
        6
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(() if modules is None else modules)

    def __repr__(self) -> str:
        # Equal neighbours are printed once, as PyTorch does: models repeat their blocks.
        groups: list[tuple[int, int, str]] = []
        for position, text in enumerate(map(repr, self)):
            if groups and groups[-1][2] == text:
                groups[-1] = (groups[-1][0], position, text)
            else:
                groups.append((position, position, text))
        if not groups:
            return f"{self._get_name()}()"
        lines = [
            f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in groups
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(line.replace("\n", "\n  ") for line in lines) + "\n)"


class ParameterList(_Numbered):
    """A list of parameters, or of further lists of them; tensors in it become parameters.

    Example:
        >>> import glassgrad as gg
        >>> biases = gg.nn.ParameterList([gg.zeros(2), gg.zeros(3)])
        >>> [name for name, _ in biases.named_parameters()]
        ['0', '1']
    """

    holds = (Parameter, Module)

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if values is None else values)

    def _put(self, name: str, entry: Any) -> None:
        super()._put(name, as_parameter(entry))

    def extra_repr(self) -> str:
        lines = [
            f"({name}): Parameter containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"
            for name, value in self.__dict__.items()
            if isinstance(value, Parameter)
        ]
        return "\n  " + "\n  ".join(lines) + "\n" if lines else ""


def as_parameter(value: Any) -> Any:
    """Return a plain tensor as a parameter, anything else as it is."""
    return Parameter(value.array) if type(value) is Tensor else value


class _Named(Module):
    """A dictionary whose entries are attributes."""

    holds: tuple[type[Any], ...] = (Module,)

    def _entries(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if isinstance(value, self.holds)}

    def __getitem__(self, key: str) -> Any:
        return self._entries()[key]

    def __setitem__(self, key: str, entry: Any) -> None:
        check_entry(self, key, entry, *self.holds)
        self.__dict__[key] = entry

    def __delitem__(self, key: str) -> None:
        del self.__dict__[key]

    def __len__(self) -> int:
        return len(self._entries())

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __contains__(self, key: object) -> bool:
        return key in self._entries()

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._entries().keys()

    def values(self) -> Iterable[Any]:
        """Return the entries."""
        return self._entries().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return names and entries."""
        return self._entries().items()

    def update(self, entries: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Set several entries."""
        for key, entry in entries.items() if isinstance(entries, Mapping) else entries:
            self[key] = entry

    def pop(self, key: str) -> Any:
        """Take out an entry and return it."""
        entry = self[key]
        del self[key]
        return entry

    def clear(self) -> None:
        """Take out all entries."""
        for key in list(self):
            del self[key]


class ModuleDict(_Named):
    """A dictionary of modules that are found by `parameters()` and the rest.

    Example:
        >>> import glassgrad as gg
        >>> heads = gg.nn.ModuleDict({"class": gg.nn.Linear(4, 10), "box": gg.nn.Linear(4, 2)})
        >>> heads["box"](gg.zeros(1, 4)).shape
        (1, 2)
        >>> sorted(heads.state_dict())
        ['box.bias', 'box.weight', 'class.bias', 'class.weight']
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update({} if modules is None else modules)


class ParameterDict(_Named):
    """A dictionary of parameters, or of lists of them; tensors in it become parameters.

    Example:
        >>> import glassgrad as gg
        >>> scales = gg.nn.ParameterDict({"in": gg.ones(2), "out": gg.ones(3)})
        >>> [parameter.shape for parameter in scales.parameters()]
        [(2,), (3,)]
    """

    holds = (Parameter, Module)

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.update({} if parameters is None else parameters)

    def __setitem__(self, key: str, entry: Any) -> None:
        super().__setitem__(key, as_parameter(entry))


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
