"""The names of tensors and modules in a function or a frame, and the running module call."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array

_MOST = 1000  # entries of a list that are inspected


class Scope:
    """Names of tensors and modules as the user would write them.

    Attributes:
        tensors: names of leaves, and of the tape nodes that made other tensors.
        arrays: names of the arrays of tensors, by id.
        modules: the outermost modules with their names; the name is empty for the function itself.
        optimizers: the optimizers among the variables.
    """

    def __init__(self) -> None:
        self.tensors: dict[Any, str] = {}
        self.arrays: dict[int, str] = {}
        self.modules: list[tuple[str, Any]] = []
        self.optimizers: list[Any] = []

    @classmethod
    def of_call(cls, function: Any, arguments: Mapping[str, Any]) -> Scope:
        """Read the arguments of a function and the variables around it."""
        scope = cls()
        for name, value in arguments.items():
            scope.look(name, value)
        if _is_module(function):
            scope.look("", function)
        owner = getattr(function, "__self__", None)
        if owner is not None:
            scope.look("self", owner)
        with contextlib.suppress(TypeError, ValueError):
            around = inspect.getclosurevars(inspect.unwrap(function))
            for name, value in {**around.globals, **around.nonlocals}.items():
                scope.look(name, value)
        return scope

    @classmethod
    def of_frame(cls, frame: FrameType) -> Scope:
        """Read the variables of a frame, its own before those of its file."""
        scope = cls()
        for variables in (frame.f_locals, frame.f_globals):
            for name, value in list(variables.items()):
                if name.isidentifier() and not name.startswith("_"):
                    scope.look(name, value)
        return scope

    def look(self, name: str, value: object) -> None:
        """Record a variable: a tensor, a module with its parameters, or a list or dictionary of them."""
        if _is_unbound(value) or isinstance(value, ModuleType | type):
            return
        if isinstance(value, Tensor):
            self._note(name, value)
        elif isinstance(value, np.ndarray):
            self.arrays.setdefault(id(value), name)
        elif _is_module(value):
            self._look_module(name, value)
        elif hasattr(type(value), "add_param_group") and hasattr(type(value), "limits"):
            self.optimizers.append(value)
        else:
            for inner, entry in _entries(name, value):
                if not _is_unbound(entry) and (isinstance(entry, Tensor) or _is_module(entry)):
                    self.look(inner, entry)

    def _look_module(self, name: str, module: Any) -> None:
        if any(module is known for _, known in self.modules):
            return
        self.modules.append((name, module))
        prefix = f"{name}." if name else ""
        for inner, tensor in [*module.named_parameters(), *module.named_buffers()]:
            self._note(prefix + inner, tensor)

    def _note(self, name: str, tensor: Array) -> None:
        self.arrays.setdefault(id(tensor.array), name)  # the id stays valid: the caller keeps the tensor alive
        self.tensors.setdefault(tensor if tensor.node is None else tensor.node, name)

    def snapshot(self) -> Snapshot:
        """Save everything found and the random states, to restore them after a call."""
        found = [key for key in self.tensors if isinstance(key, Tensor)]
        return Snapshot(tensors=found, gradients=found, states=self.optimizers, randoms=True)


def _entries(name: str, value: object) -> Iterable[tuple[str, Any]]:
    """Return the entries of a container, or of a method's object, named as the user would write them."""
    if isinstance(value, list | tuple) and len(value) <= _MOST:
        return [(f"{name}[{at}]", entry) for at, entry in enumerate(value)]
    if isinstance(value, dict) and len(value) <= _MOST:
        return [(f"{name}[{key!r}]", entry) for key, entry in list(value.items())]
    if name == "self" and hasattr(value, "__dict__"):
        return [(f"self.{key}", entry) for key, entry in vars(value).items()]
    return []


def _is_module(value: object) -> bool:
    # Read on the type, since a user's __getattr__ may do or raise anything; PyTorch's modules keep hooks elsewhere.
    kind = type(value)
    return hasattr(kind, "named_modules") and hasattr(kind, "_hooks")


def _is_unbound(value: object) -> bool:
    """Tell whether a value is a proxy that is not bound to an object now, such as a web framework's request."""
    with contextlib.suppress(Exception):  # whatever the proxy raises
        return value.__class__ is None
    return True


class ModuleCalls:
    """Tracks the running module calls while it is active.

    Attributes:
        path: the running calls, outermost first; a second call of a module has its own name.
        kinds: the class of each module, by path.
    """

    def __init__(self, modules: list[tuple[str, Any]]) -> None:
        self.path: tuple[str, ...] = ()
        self.kinds: dict[tuple[str, ...], str] = {}
        self._modules = modules
        self._names: list[str] = []
        self._counts: dict[tuple[str, ...], int] = {}

    @contextlib.contextmanager
    def seen(self) -> Iterator[None]:
        """Hook the modules in the block."""
        hooked = {id(module): (name, module) for name, module in reversed(self._named())}
        handles, bare = [], []
        for name, module in hooked.values():
            if module._hooks is None:
                bare.append(module)
            handles.append(module.register_forward_pre_hook(self._enter(name)))
            handles.append(module.register_forward_hook(self._leave, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            for module in bare:
                module._hooks = None

    def _named(self) -> list[tuple[str, Any]]:
        found = []
        for outer, module in self._modules:
            for name, inner in module.named_modules():
                full = f"{outer}.{name}" if outer and name else outer or name
                if full:
                    found.append((full, inner))
        return found

    def _enter(self, name: str) -> Callable[..., None]:
        def enter(module: object, _args: object) -> None:
            outer = next((known for known in reversed(self._names) if name.startswith(f"{known}.")), None)
            short = name if outer is None else name[len(outer) + 1 :]
            path = (*self.path, short)
            count = self._counts[path] = self._counts.get(path, 0) + 1
            self.path = path if count == 1 else (*self.path, f"{short}, call {count}")
            self._names.append(name)
            self.kinds[self.path] = type(module).__name__
            self.changed()

        return enter

    def _leave(self, *_call: object) -> None:
        self.path = self.path[:-1]
        self._names.pop()
        self.changed()

    def changed(self) -> None:
        """Called when another call becomes current; subclasses may record it."""
