"""Find everything that a function can reach: the tensors of its state, and the Python values that control it.

The walk visits closures, globals, classes, bound objects, containers and attributes, starting at the function and its
arguments. It follows an attribute only if some callable code reads its name, and an entry of a dictionary only if code
may read it. So it finds a model's layers but not the trainer around the model. Every step of the walk is an `Edge`
("this holder has that object in this place"), which the guards of a compiled function check before each call.
"""

from __future__ import annotations

import argparse
import array
import contextvars
import functools
import importlib.util
import random
import re
import sys
import types
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front.state.bytecode_reads import Names, nested
from glassgrad.compile.front.state.edges import LONG, Edge, is_constant
from glassgrad.compile.front.state.kinds import (
    OTHERS,
    Parts,
    code_in,
    is_engine,
    is_read_by_user,
    is_users,
    is_users_class,
    parts_of,
    says_what_it_is,
)
from glassgrad.compile.front.state.places import Holder
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array

_HUGE = 1024  # containers of more constants are compared by length; comparing contents would take longer than a call
_MOST_CODES = 4096  # most functions that are analysed; more would take longer than any program is worth
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)  # the user's, though their class is not
_GROUP = re.compile(r"\.param_groups\[\d+\]$")  # the options of an optimizer
_LATER, _KEY = "<tensor {}>", re.compile(r"<tensor (\d+)>")


@dataclass
class Reach:
    """The result of the walk.

    Attributes:
        tensors: every tensor found, with the path that a user would write.
        edges: every place on the way, and every constant that controls the code.
        streams: random streams that we cannot replay, with their paths.
        arrays: NumPy arrays, each with the path that a user would write.
        tables: those of the arrays that belong to the library and never change.
        names: all names that the code reads, for reuse by a later walk.
        sizes: containers of the library's own objects, and their keys or length; optimizers keep their state there.
        holders: objects with places that the function may change.
        codes: the user's code.
        paths: all paths to lists, dictionaries and sets, by their ids.
        rounds: the number of walks.
    """

    tensors: dict[int, tuple[Tensor, str]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    streams: list[tuple[str, Any]] = field(default_factory=list)
    arrays: list[tuple[str, Array]] = field(default_factory=list)
    tables: set[int] = field(default_factory=set)
    names: Names = field(default_factory=Names)
    sizes: list[tuple[Any, Any]] = field(default_factory=list)
    holders: list[Holder] = field(default_factory=list)
    paths: dict[int, list[str]] = field(default_factory=dict)
    codes: list[types.CodeType] = field(default_factory=list)
    rounds: int = 0


def reach(function: object, arguments: Mapping[str, object], earlier: Reach | None = None) -> Reach:
    """Walk from a function and those of its arguments that are not data.

    The names in the code decide what the walk follows, and following finds more code. So the walk is repeated until it
    finds no new names. `earlier` is the result of an earlier walk from the same function.
    """
    names = Names() if earlier is None else earlier.names
    rounds = 0
    while True:
        rounds += 1
        walk = _Walk(names)
        walk.start(function, arguments)
        if walk.known == names:  # the names did not change during the walk
            walk.settle()
            walk.found.rounds = rounds
            return walk.found
        names = walk.known


class _Walk:
    def __init__(self, names: Names) -> None:
        self.known = names.copy()  # they decide which attributes are followed; the walk adds the names that it finds
        self.found = Reach()
        self.seen: dict[int, object] = {}
        self.inside: set[int] = set()  # containers that belong to the library's own objects
        self.queue: deque[tuple[str, object]] = deque()
        # Results that depend only on the class: a network has many objects of few classes.
        self.lookers: dict[type, Any] = {}
        self.by_user: dict[type, bool] = {}
        self.parts: dict[type, Parts] = {}
        self.followed: dict[tuple[type, type], tuple[int, object]] = {}  # number of names then, and an object

    def start(self, function: object, arguments: Mapping[str, object]) -> None:
        plain = isinstance(function, types.FunctionType | types.MethodType | functools.partial)
        self.queue.append(("" if plain else type(function).__name__, function))
        self.queue.extend(arguments.items())
        known = len(self.known.every)
        self.look_at_all()
        while len(self.known.every) != known:  # new names reach more methods: saves most of the next walk
            known = len(self.known.every)
            for (kind, _), (_, value) in list(self.followed.items()):
                self.class_of("", kind, value, {} if value is kind else getattr(value, "__dict__", {}))
            self.look_at_all()

    def look_at_all(self) -> None:
        while self.queue:
            path, value = self.queue.popleft()
            self.look(path, value)

    def settle(self) -> None:
        """Complete the paths once all tensors are known."""
        self.found.names = self.known
        for at, edge in enumerate(self.found.edges):
            path = self.settled(edge.path)
            if path is not edge.path:
                self.found.edges[at] = edge._replace(path=path)
        for key, (tensor, path) in self.found.tensors.items():
            self.found.tensors[key] = tensor, self.settled(path)

    def settled(self, path: str) -> str:
        """Replace tensors that are dictionary keys by their paths."""
        if "<tensor " not in path:
            return path
        return _KEY.sub(lambda match: self.found.tensors.get(int(match[1]), (None, "tensor"))[1], path)

    def note(self, path: str, kind: str, holder: Any, key: object, value: object) -> None:
        """Record a place."""
        self.found.edges.append(Edge(path, kind, holder, key, value))

    def edge(self, path: str, kind: str, holder: Any, key: object, value: object) -> None:
        """Record a place and queue its content."""
        self.note(path, kind, holder, key, value)
        if not is_constant(value):
            self.queue.append((path, value))

    def holder(self, path: str, kind: str, target: Any, owner: Any = None, names: Iterable[str] = ()) -> None:
        """Record a holder whose places the function may change; the library's own state is tracked elsewhere."""
        if id(target) in self.inside:
            return
        self.found.holders.append(Holder(path, kind, target, owner, frozenset(names)))

    def look(self, path: str, value: object) -> None:
        if is_constant(value):
            return
        if isinstance(value, dict | list | set | deque):
            self.found.paths.setdefault(id(value), []).append(path)
        if id(value) in self.seen:
            if isinstance(value, dict) and _last_name(path) is not None:  # also known by another name
                self.mapping(path, value)
            return
        self.seen[id(value)] = value
        looker = self.lookers.get(type(value))
        if looker is None:
            looker = next((looker for kinds, looker in _LOOKERS if isinstance(value, kinds)), _Walk.instance)
            if says_what_it_is(type(value)):
                self.lookers[type(value)] = looker
        looker(self, path, value)

    def tensor(self, path: str, value: Tensor) -> None:
        self.found.tensors[id(value)] = (value, path)
        if value._extra is not None and value.node is None:
            hooks = (*value._extra.get("hooks", ()), *value._extra.get("after", ()))
            self.queue.extend((f"{path}.hook", hook) for hook in hooks)

    def bound(self, path: str, value: types.MethodType) -> None:
        self.queue.append((path, value.__func__))
        self.queue.append((path or "self", value.__self__))

    def partial(self, path: str, value: functools.partial[Any]) -> None:
        self.queue.extend((path, part) for part in (value.func, *value.args))
        self.queue.append((f"{path}.keywords", value.keywords))

    def stream(self, path: str, value: object) -> None:
        self.found.streams.append((path, value))

    def array(self, path: str, value: Array) -> None:
        self.found.arrays.append((path, value))
        if id(value) in self.inside:
            self.found.tables.add(id(value))

    def numbers(self, path: str, value: Any) -> None:
        self.note(path, "bytes", value, None, value.tobytes())

    def nothing(self, path: str, value: object) -> None:
        """Ignore an object that neither is state nor leads to any."""

    def method(self, path: str, value: types.BuiltinFunctionType) -> None:
        """Follow a method of a container, such as ``log.append``."""
        if isinstance(value.__self__, list | dict | set | deque):
            self.queue.append((path, value.__self__))

    # --- code -----------------------------------------------------------------------------------------

    def function(self, path: str, function: types.FunctionType) -> None:
        module = function.__module__ or ""
        if module.split(".")[0] in OTHERS:
            return
        inner = getattr(function, "__wrapped__", None)
        if inner is not None:
            self.queue.append((path, inner))
        codes = list(nested(function.__code__))
        for code in codes:
            self.known.add(code, users=not is_engine(module))
        if not provenance.is_internal(function.__code__.co_filename):
            self.note(f"{function.__name__}.__code__", "attribute", function, "__code__", function.__code__)
            self.found.codes += codes
            if len(self.found.codes) > _MOST_CODES:
                raise self.too_much()
            self.surroundings(path, function, codes)
            self.imported(function, codes)

    def too_much(self) -> Exception:
        """Return the error about a function that reaches whole libraries."""
        files = Counter(provenance.shorten(code.co_filename) for code in self.found.codes)
        return errors.TRACE_TOO_MUCH(limit=_MOST_CODES, files=", ".join(file for file, _ in files.most_common(3)))

    def surroundings(self, path: str, function: types.FunctionType, codes: list[types.CodeType]) -> None:
        """Follow a user function's closure, globals and defaults."""
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            try:
                content = cell.cell_contents
            except ValueError:  # the variable has no value yet
                continue
            self.edge(name, "cell", cell, None, content)
            self.holder(name, "cell", cell)
        # Keep the order of the code in every process, because the order of a step's inputs is part of its cache key.
        for name in dict.fromkeys(name for code in codes for name in Names.globals_of(code)):
            if name in function.__globals__:
                self.global_value(name, function.__globals__)
        stored = [name for code in codes for name in Names.stored_by(code)]
        if stored:
            self.holder("", "names", function.__globals__, None, stored)
        if function.__defaults__:
            self.edge(
                f"{path or function.__name__}.__defaults__",
                "attribute",
                function,
                "__defaults__",
                function.__defaults__,
            )
        for part in (function.__kwdefaults__, function.__dict__):
            if part:
                self.mapping(path or function.__name__, part, attributes=True)

    def imported(self, function: types.FunctionType, codes: list[types.CodeType]) -> None:
        """Follow the modules that the code itself imports."""
        package = function.__globals__.get("__package__") or ""
        for name, level in dict.fromkeys(one for code in codes for one in Names.imports_of(code)):
            whole = importlib.util.resolve_name("." * level + name, package) if level and package else name
            module = sys.modules.get(whole)
            if module is not None and is_users(module.__name__):
                self.edge(whole, "item", sys.modules, whole, module)

    def global_value(self, name: str, space: dict[str, object]) -> None:
        value = space[name]
        if isinstance(value, type) and not is_users_class(value):
            return
        if isinstance(value, types.ModuleType) and not is_users(value.__name__):
            return
        self.edge(name, "item", space, name, value)

    def module(self, path: str, module: types.ModuleType) -> None:
        if not is_users(module.__name__):
            return
        space = vars(module)
        self.holder(path, "names", space, module, self.known.every & space.keys())
        for name in sorted(self.known.every & space.keys()):
            if not name.startswith("__"):
                self.global_value(name, space) if path == "" else self._module_value(path, name, space)

    def _module_value(self, path: str, name: str, space: dict[str, object]) -> None:
        value = space[name]
        if not isinstance(value, type | types.ModuleType) or (isinstance(value, type) and is_users_class(value)):
            self.edge(f"{path}.{name}", "item", space, name, value)

    # --- objects --------------------------------------------------------------------------------------

    def instance(self, path: str, value: object) -> None:
        kind = type(value)
        if kind.__module__.split(".")[0] in OTHERS and not isinstance(value, _NAMESPACES):
            return
        inner = getattr(value, "__compiled_function__", None)
        if inner is not None:
            self.queue.append((path, inner))
            return
        whole = hasattr(kind, "named_parameters")  # a Module: its children are found by iteration, not by name
        state = getattr(value, "__dict__", None)
        ours = is_engine(kind.__module__)
        # Private attributes of our optimizers are scratch memory; their state is in public attributes.
        scratch = ours and not whole
        constants = self.constants_of(kind)
        for name, held in list((state or {}).items()):
            if scratch and name.startswith("_"):
                continue
            if ours and (scratch or isinstance(held, np.ndarray)):
                self.inside.add(id(held))
            if name in constants if is_constant(held) else whole or name in self.known.every:
                self.edge(f"{path}.{name}", "item", state, name, held)
        if scratch:
            self.holder(path, "names", state, value, [name for name in state or () if not name.startswith("_")])
        elif state is not None:
            self.holder(path, "object", state, value)
            self.note(f"len(vars({path}))", "length", state, frozenset(state), len(state))
        self.class_of(path, kind, value, state or {})

    def constants_of(self, kind: type) -> frozenset[str] | set[str]:
        """Return the names of numeric and string attributes that code reads."""
        mine = self.by_user.get(kind)
        if mine is None:
            mine = self.by_user[kind] = is_read_by_user(kind)
        return self.known.mine if mine else self.known.read

    def class_of(self, path: str, kind: type, value: object, state: Mapping[str, object]) -> None:
        """Follow the methods that the code may call, and the class attributes."""
        constants = self.constants_of(kind)
        kinds, known = (kind, type(value)), len(self.known.every)
        again = self.followed.get(kinds, (-1,))[0] == known  # same names, so the methods would be the same
        self.followed[kinds] = known, value
        for base in kind.__mro__[:-1]:
            parts = self.parts_of(base)
            for name, part in parts.shared if again else parts.every:
                if isinstance(part, types.MemberDescriptorType):
                    self.holder(path, "slot", value, value, [name])
                    if hasattr(value, name):
                        self.edge(f"{path}.{name}", "attribute", value, name, getattr(value, name))
                elif name not in state or callable(getattr(part, "__get__", None)):
                    self.class_part(path, value, base, name, part, users=parts.users, constant=name in constants)

    def parts_of(self, base: type) -> Parts:
        """Return the attributes of a class whose names are read."""
        parts = self.parts.get(base)
        if parts is None or parts.known not in {len(self.known.every), None}:
            if parts is None and is_users(base.__module__):
                self.holder(base.__name__, "class", base)
            parts = self.parts[base] = parts_of(base, self.known.every, parts)
        return parts

    def class_part(
        self, path: str, value: object, base: type, name: str, part: object, *, users: bool, constant: bool
    ) -> None:
        """Follow a class attribute: a function, or a value that its objects share."""
        if isinstance(getattr(type(value), name, None), property) and not isinstance(part, property):
            return  # a subclass has a property of this name, whose value is not shared
        code = code_in(part)
        if isinstance(code, types.FunctionType):
            self.queue.append((path, code))
            if users or name == "forward":
                self.note(f"{base.__name__}.{name}", "item", self.parts[base].space, name, part)
        elif name.startswith("__"):
            return
        elif is_constant(part):
            if constant:
                self.note(f"{path}.{name}", "attribute", value, name, getattr(value, name))
        elif isinstance(part, type):
            if users and is_users_class(part):
                self.edge(f"{path}.{name}", "attribute", base, name, part)
        elif users and not hasattr(type(part), "__get__") and not isinstance(part, types.ModuleType):
            self.edge(f"{path}.{name}", "attribute", value, name, getattr(value, name))

    def klass(self, path: str, kind: type) -> None:
        """Follow a class whose own attributes are read, as is common for settings."""
        if is_users_class(kind):
            self.class_of(path, kind, kind, {})

    # --- containers -----------------------------------------------------------------------------------

    def mapping(self, path: str, items: dict[Any, object], *, attributes: bool = False) -> None:
        self.holder(path, "object" if attributes else "dict", items)
        whole, keys = self.asked_for(path, items, attributes=attributes)
        if len(items) > LONG and all(is_constant(value) for value in items.values()):
            if whole:
                self.as_a_whole(path, items)
                return
            items_read = [(key, items[key]) for key in keys if key in items]
        else:
            items_read = list(items.items())
        for key, value in items_read:
            if whole or key in keys or not is_constant(value) or not isinstance(key, str):
                place = f"{path}.{key}" if attributes else f"{path}[{self.key_text(key)}]"
                self.edge(place, "item", items, key, value)
            if id(items) in self.inside:
                self.inside.add(id(value))
        if id(items) in self.inside:
            self.found.sizes.append((items, frozenset(items)))
        if whole:
            self.keys_of(path, items)
        elif id(items) not in self.inside and not attributes:
            for key in sorted(keys - items.keys(), key=repr):
                self.note(f"{path}[{key!r}]", "absent", items, key, None)

    def keys_of(self, path: str, items: dict[Any, object]) -> None:
        """Record the keys in order."""
        if all(map(is_constant, items)):
            self.note(f"the keys of {path}", "keys", items, frozenset(items), tuple(items))
        else:
            self.note(f"len({path})", "length", items, frozenset(items), len(items))

    def asked_for(self, path: str, items: Any, *, attributes: bool) -> tuple[bool, Any]:
        """Return whether a dictionary is read whole, and if not, the keys by which it may be read."""
        if id(items) in self.inside:
            # A rule may read the options of a group through helpers, whose code is not analysed.
            return False, self.known.every.union(items) if _GROUP.search(path) else self.known.every
        if attributes:
            return False, self.known.mine
        name = _last_name(path)
        if name is None or name in self.known.whole or name not in self.known.keys:
            return True, frozenset()
        return False, self.known.keys[name]

    def as_a_whole(self, path: str, items: Any) -> None:
        """Record all constants of a container at once."""
        if len(items) > _HUGE:
            self.note(f"len({path})", "length", items, None, len(items))
        else:
            self.note(path, "content", items, None, items.copy())

    def key_text(self, key: object) -> str:
        """Write a key as the user would; a tensor (e.g. in an optimizer's state) by the place where it was found."""
        if isinstance(key, Tensor) and id(key) in self.found.tensors:
            return self.found.tensors[id(key)][1]
        if isinstance(key, Tensor):  # its path may be found later
            return _LATER.format(id(key))
        return repr(key) if is_constant(key) else type(key).__name__

    def sequence(self, path: str, items: Any) -> None:
        ordered = isinstance(items, list | tuple | deque)
        if not isinstance(items, tuple | frozenset):
            self.holder(path, "list" if ordered else "set", items)
        constant = all(is_constant(value) for value in items)
        if constant and (len(items) > LONG or not ordered):
            if not isinstance(items, tuple | frozenset):  # those never change
                self.as_a_whole(path, items)
            return
        self.note(f"len({path})", "length", items, None, len(items))
        for position, value in enumerate(list(items)):
            if id(items) in self.inside:
                self.inside.add(id(value))
            if ordered:
                self.edge(f"{path}[{position}]", "item", items, position, value)
            else:
                self.queue.append((f"{path}[{position}]", value))


def _context(walk: _Walk, path: str, value: contextvars.ContextVar[Any]) -> None:
    walk.holder(path, "context", value)
    walk.edge(path, "context", value, None, value.get(None))


_LOOKERS: tuple[tuple[Any, Any], ...] = (
    (Tensor, _Walk.tensor),
    (types.FunctionType, _Walk.function),
    (types.MethodType, _Walk.bound),
    (functools.partial, _Walk.partial),
    (types.ModuleType, _Walk.module),
    (np.ndarray, _Walk.array),
    (type, _Walk.klass),
    (types.BuiltinFunctionType, _Walk.method),
    (types.CodeType, _Walk.nothing),
    ((Generator, np.random.Generator, np.random.RandomState, random.Random), _Walk.stream),
    (contextvars.ContextVar, _context),
    (dict, _Walk.mapping),
    (bytearray, _Walk.as_a_whole),
    (array.array, _Walk.numbers),
    ((list, tuple, set, frozenset, deque), _Walk.sequence),
)


def _last_name(path: str) -> str | None:
    """Return the name that code loads to reach a path: that of a variable or an attribute."""
    name = path.rpartition(".")[2]
    return name if name.isidentifier() else None
