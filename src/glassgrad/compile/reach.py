"""What a function can reach: the tensors that are its state, and the Python values that steer it.

A walk over closures, globals, bound objects, containers and attributes, starting at the function and its
arguments. An attribute counts only when some code that can be called reads a name like it, so a model's layers
are found and the trainer around it is not. Every step of the walk is an `Edge`: "this holder has that thing in
this place", which is what the guards of a compiled function check before each call.
"""

from __future__ import annotations

import enum
import functools
import random
import re
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from glassgrad import provenance
from glassgrad.random import Generator
from glassgrad.tensor import Tensor

_LONG = 64  # containers longer than this are compared by length and by what else was found in them
_OTHERS = sys.stdlib_module_names | {
    "numpy", "scipy", "torch", "jax", "jaxlib", "matplotlib", "rich", "llvmlite", "pytest", "_pytest", "hypothesis",
}  # fmt: skip
_CONSTANTS = (
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic, np.dtype, enum.Enum, slice, range,
)  # fmt: skip
_OWN = "glassgrad"
_LATER, _KEY = "<tensor {}>", re.compile(r"<tensor (\d+)>")
_AS_USER = ("glassgrad.models", "glassgrad.train", "glassgrad.cli")


class Edge(NamedTuple):
    """One place that was looked at: `kind` tells how (cell, item, attribute), `key` where in `holder`."""

    path: str
    kind: str
    holder: Any
    key: Any
    value: Any

    def now(self) -> Any:
        """Return what is there now; raises `LookupError` or `AttributeError` when nothing is."""
        if self.kind == "cell":
            try:
                return self.holder.cell_contents
            except ValueError:
                raise LookupError from None
        if self.kind == "attribute":
            return getattr(self.holder, self.key)
        if self.kind == "length":
            return len(self.holder)
        return self.holder[self.key]

    def holds(self) -> bool:
        """Tell whether the place still holds what it held."""
        try:
            return same(self.now(), self.value)
        except (LookupError, AttributeError):
            return False


def is_constant(value: Any) -> bool:
    """Tell whether a value is a Python constant, compared by value."""
    if isinstance(value, _CONSTANTS):
        return True
    if isinstance(value, tuple | frozenset):
        return len(value) <= _LONG and all(is_constant(part) for part in value)
    return False


def same(now: Any, before: Any) -> bool:
    """Compare a place's content with what it was: constants by value, everything else by identity."""
    if now is before:
        return True
    if type(now) is not type(before) or not is_constant(before):
        return False
    if isinstance(before, tuple):
        return len(now) == len(before) and all(map(same, now, before))
    return bool(now == before) or repr(now) == repr(before) == "nan"


@dataclass
class Reach:
    """The result of the walk.

    Attributes:
        tensors: every tensor found, with the path that a user would write to it.
        edges: every place on the way, and every constant that steers the code.
        streams: random streams that are not ours to replay, with their paths.
        arrays: NumPy arrays, which are constants of a trace.
    """

    tensors: dict[int, tuple[Tensor, str]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    streams: list[tuple[str, Any]] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)


def reach(function: Any, arguments: Mapping[str, Any]) -> Reach:
    """Walk from a function and those of its arguments that are not data."""
    names: frozenset[str] = frozenset()
    while True:
        walk = _Walk(names)
        walk.start(function, arguments)
        if walk.names == names:
            return walk.found
        names = frozenset(walk.names)


class _Walk:
    def __init__(self, names: frozenset[str]) -> None:
        self.known = names  # of the round before: what decides which attributes are followed
        self.names = set(names)
        self.found = Reach()
        self.seen: dict[int, Any] = {}
        self.queue: deque[tuple[str, Any]] = deque()

    def start(self, function: Any, arguments: Mapping[str, Any]) -> None:
        plain = isinstance(function, types.FunctionType | types.MethodType | functools.partial)
        self.queue.append(("" if plain else type(function).__name__, function))
        self.queue.extend(arguments.items())
        while self.queue:
            path, value = self.queue.popleft()
            self.look(path, value)
        self.found.edges[:] = [edge._replace(path=self.settled(edge.path)) for edge in self.found.edges]
        for key, (tensor, path) in self.found.tensors.items():
            self.found.tensors[key] = tensor, self.settled(path)

    def settled(self, path: str) -> str:
        """Put the paths of tensors in the place of the tensors that are keys of a dictionary."""
        if "<tensor " not in path:
            return path
        return _KEY.sub(lambda match: self.found.tensors.get(int(match[1]), (None, "tensor"))[1], path)

    def edge(self, path: str, kind: str, holder: Any, key: Any, value: Any) -> None:
        """Note a place and what to look at next."""
        self.found.edges.append(Edge(path, kind, holder, key, value))
        if not is_constant(value):
            self.queue.append((path, value))

    def look(self, path: str, value: Any) -> None:
        if id(value) in self.seen or is_constant(value):
            return
        self.seen[id(value)] = value
        for kinds, looker in _LOOKERS:
            if isinstance(value, kinds):
                looker(self, path, value)
                return
        self.instance(path, value)

    def tensor(self, path: str, value: Tensor) -> None:
        self.found.tensors[id(value)] = (value, path)

    def bound(self, path: str, value: types.MethodType) -> None:
        self.queue.append((path, value.__func__))
        self.queue.append((path or "self", value.__self__))

    def partial(self, path: str, value: functools.partial[Any]) -> None:
        self.queue.extend((path, part) for part in (value.func, *value.args, *value.keywords.values()))

    def stream(self, path: str, value: Any) -> None:
        self.found.streams.append((path, value))

    def array(self, path: str, value: Any) -> None:
        self.found.arrays.append(value)

    def nothing(self, path: str, value: Any) -> None:
        """Neither state nor a way to some."""

    # --- code -----------------------------------------------------------------------------------------

    def function(self, path: str, function: types.FunctionType) -> None:
        module = function.__module__ or ""
        if module.split(".")[0] in _OTHERS:
            return
        inner = getattr(function, "__wrapped__", None)
        if inner is not None:
            self.queue.append((path, inner))
        codes = list(_nested(function.__code__))
        for code in codes:
            self.names.update(code.co_names)
            self.names.update(constant for constant in code.co_consts if isinstance(constant, str))
        if provenance.is_internal(function.__code__.co_filename):
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            self.edge(name, "cell", cell, None, content)
        # In the order of the code, in every process: the order of a step's inputs is part of its name in the cache.
        for name in dict.fromkeys(name for code in codes for name in _globals_read(code)):
            if name in function.__globals__:
                self.global_value(name, function.__globals__)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.queue.append((path, default))

    def global_value(self, name: str, space: dict[str, Any]) -> None:
        value = space[name]
        if isinstance(value, type) or (isinstance(value, types.ModuleType) and not _is_users(value)):
            return
        self.edge(name, "item", space, name, value)

    def module(self, path: str, module: types.ModuleType) -> None:
        if not _is_users(module):
            return
        space = vars(module)
        for name in sorted(self.known & space.keys()):
            if not name.startswith("__"):
                self.global_value(name, space) if path == "" else self._module_value(path, name, space)

    def _module_value(self, path: str, name: str, space: dict[str, Any]) -> None:
        value = space[name]
        if not isinstance(value, type | types.ModuleType):
            self.edge(f"{path}.{name}", "item", space, name, value)

    # --- objects --------------------------------------------------------------------------------------

    def instance(self, path: str, value: Any) -> None:
        kind = type(value)
        if kind.__module__.split(".")[0] in _OTHERS:
            return
        inner = getattr(value, "__compiled_function__", None)
        if inner is not None:
            self.queue.append((path, inner))
            return
        whole = hasattr(kind, "named_parameters")  # a Module: its children are found by iteration, not by name
        state = getattr(value, "__dict__", {})
        # What an optimizer of ours keeps to itself is scratch memory; its state lies in public attributes.
        scratch = is_engine(kind.__module__) and not whole
        for name in list(state):
            if scratch and name.startswith("_"):
                continue
            if name in self.known or (whole and not is_constant(state[name])):
                self.edge(f"{path}.{name}", "item", state, name, state[name])
        self.class_of(path, kind, value, state)

    def class_of(self, path: str, kind: type, value: Any, state: Mapping[str, Any]) -> None:
        """Follow the methods that the code may call, and defaults that live on the class."""
        wanted = self.known | {"forward", "__call__"}
        for base in kind.__mro__[:-1]:
            if base.__module__.split(".")[0] in _OTHERS:
                continue
            space = vars(base)
            for name in sorted(wanted & space.keys()):
                part = space[name]
                part = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
                if isinstance(part, types.FunctionType):
                    self.queue.append((path, part))
                elif is_constant(part) and name not in state and not name.startswith("__"):
                    self.found.edges.append(Edge(f"{path}.{name}", "attribute", value, name, getattr(value, name)))
                elif isinstance(part, types.MemberDescriptorType) and hasattr(value, name):
                    self.edge(f"{path}.{name}", "attribute", value, name, getattr(value, name))

    # --- containers -----------------------------------------------------------------------------------

    def mapping(self, path: str, items: dict[Any, Any]) -> None:
        if len(items) > _LONG and all(is_constant(value) for value in items.values()):
            self.found.edges.append(Edge(f"len({path})", "length", items, None, len(items)))
            return
        for key, value in list(items.items()):
            steers = not isinstance(key, str) or key in self.known
            if steers or not is_constant(value):
                self.edge(f"{path}[{self.key_text(key)}]", "item", items, key, value)

    def key_text(self, key: Any) -> str:
        """Write a key as the user would; a tensor by where it was found, as in the state of an optimizer."""
        if isinstance(key, Tensor) and id(key) in self.found.tensors:
            return self.found.tensors[id(key)][1]
        if isinstance(key, Tensor):  # it may be found later
            return _LATER.format(id(key))
        return repr(key) if is_constant(key) else type(key).__name__

    def sequence(self, path: str, items: Any) -> None:
        self.found.edges.append(Edge(f"len({path})", "length", items, None, len(items)))
        ordered = isinstance(items, list | tuple)
        constant = len(items) > _LONG and all(is_constant(value) for value in items)
        if constant:
            return
        for position, value in enumerate(list(items)):
            if ordered:
                self.edge(f"{path}[{position}]", "item", items, position, value)
            else:
                self.queue.append((f"{path}[{position}]", value))


_LOOKERS: tuple[tuple[Any, Any], ...] = (
    (Tensor, _Walk.tensor),
    (types.FunctionType, _Walk.function),
    (types.MethodType, _Walk.bound),
    (functools.partial, _Walk.partial),
    (types.ModuleType, _Walk.module),
    (np.ndarray, _Walk.array),
    ((type, types.BuiltinFunctionType, types.CodeType), _Walk.nothing),
    ((Generator, np.random.Generator, np.random.RandomState, random.Random), _Walk.stream),
    (dict, _Walk.mapping),
    ((list, tuple, set, frozenset, deque), _Walk.sequence),
)


def is_engine(module: str) -> bool:
    """Tell whether a module is part of the library itself rather than a model or a training loop in it."""
    return module.split(".", maxsplit=1)[0] == _OWN and not module.startswith(_AS_USER)


def _is_users(module: types.ModuleType) -> bool:
    name = module.__name__
    return name.split(".")[0] not in _OTHERS and not is_engine(name)


@functools.lru_cache(maxsize=4096)
def _globals_read(code: types.CodeType) -> tuple[str, ...]:
    """Return the globals that code reads, in its order.

    `co_names` holds attributes too: a loop counter called `step` is not what `optimizer.step()` reads.
    """
    import dis

    reading = {"LOAD_GLOBAL", "LOAD_NAME"}
    read = (instruction.argval for instruction in dis.get_instructions(code) if instruction.opname in reading)
    return tuple(dict.fromkeys(read))


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
