"""Record runs of PyTorch for comparison: results of functions, gradients of these results, changed state.

Modules and optimizers are found in the arguments of a run and in the variables that its code reads.
"""

from __future__ import annotations

import copy
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.bisection.op_record import Event
from glassgrad.doctor.graphs.graph import VIEWS, canonical
from glassgrad.doctor.graphs.torch_graph import NOTHING, Calls
from glassgrad.doctor.library import Args, Array, Kwargs, Module
from glassgrad.doctor.restoring.set_aside import aside
from glassgrad.doctor.run import here
from glassgrad.engine.tape import Observer, unwrap

_DEEPEST = 4
"""How deep the search follows functions that name other functions."""
_MOST = 5_000
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "power"})
_NUMBERS = (int, float)
Things = Sequence[tuple[str, Any]]
"""Tensors, modules, optimizers and libraries, with the names of the variables that hold them."""
_SAME = VIEWS | {"embedding"}
"""Ops that only pass values on, under different names in the two libraries."""


def is_torch_run(run: Any, args: Sequence[Any]) -> bool:
    """Tell whether a run computes with PyTorch, from the names in its code, else from its arguments."""
    for things in (things_of(run, ()), things_of(None, args)):
        kinds = {_is_torch(thing) for _, thing in things}
        if kinds - {None}:
            return kinds - {None} == {True}
    return False


def _is_torch(thing: Any) -> bool | None:
    """Tell whether a tensor, a module, an optimizer or a library is PyTorch's; None for anything else."""
    if isinstance(thing, types.ModuleType):
        return {"torch": True, "glassgrad": False}.get(thing.__name__.partition(".")[0])
    if _is_optimizer(thing):
        return type(thing).__module__.startswith("torch.")
    return library.is_torch(thing)


def things_of(run: Any, args: Sequence[Any]) -> Things:
    """Return the tensors, modules, optimizers and libraries that a run uses, with the names of the variables."""
    found: dict[int, tuple[str, Any]] = {}
    waiting = [("", run, 0), *((f"args[{at}]", arg, 0) for at, arg in enumerate(args))]
    seen: set[int] = set()
    while waiting:
        name, thing, depth = waiting.pop(0)
        if id(thing) in seen or depth > _DEEPEST or len(seen) > _MOST:
            continue
        seen.add(id(thing))
        if (
            isinstance(thing, types.ModuleType)
            or library.is_tensor(thing)
            or hasattr(thing, "named_parameters")
            or _is_optimizer(thing)
        ):
            found[id(thing)] = name or type(thing).__name__, thing
        else:
            waiting += [(inner, part, depth + 1) for inner, part in _named_by(name, thing)]
    return list(found.values())


def _is_optimizer(thing: Any) -> bool:
    return hasattr(thing, "param_groups") and hasattr(thing, "step")


def _named_by(name: str, thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, functools.partial):
        yield from ((name, part) for part in (thing.func, *thing.args, *thing.keywords.values()))
    elif isinstance(thing, types.MethodType):
        yield from ((name, part) for part in (thing.__self__, thing.__func__))
    elif isinstance(thing, types.FunctionType):
        yield from inspect.getclosurevars(thing).nonlocals.items()
        names = dict.fromkeys(_globals_read(thing.__code__))
        yield from ((one, thing.__globals__[one]) for one in names if one in thing.__globals__)
    elif isinstance(thing, dict):
        yield from ((f"{name}[{key!r}]", part) for key, part in thing.items())
    elif isinstance(thing, list | tuple):
        yield from ((f"{name}[{at}]", part) for at, part in enumerate(thing))
    elif "__main__" in type(thing).__module__ or not provenance.is_internal(_file(type(thing))):
        yield from ((f"{name}.{key}" if name else key, part) for key, part in getattr(thing, "__dict__", {}).items())


def _globals_read(code: types.CodeType) -> Iterator[str]:
    """Yield the globals that code reads, including the code of functions inside it.

    `co_names` also lists attributes: with it, the "nn" of `torch.nn` would count as a global of that name.
    """
    yield from (str(one.argval) for one in dis.get_instructions(code) if one.opname in {"LOAD_GLOBAL", "LOAD_NAME"})
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _globals_read(inner)


def _file(kind: type) -> str:
    return str(getattr(sys.modules.get(kind.__module__), "__file__", None) or provenance.__file__)


class TorchAside:
    """Restores, after a run of PyTorch, weights, buffers, gradients, optimizers and random state."""

    def __init__(self, run: Any, args: Sequence[Any]) -> None:
        self.things = things_of(run, args)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for _, module in _modules(self.things):
            self._stack.enter_context(aside(module))
        for _, thing in self.things:
            if _is_optimizer(thing):
                self._stack.callback(thing.load_state_dict, copy.deepcopy(thing.state_dict()))
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def state(self) -> dict[str, Array]:
        """Return copies of the parameters and their gradients, by the paths that a user would write."""
        return state_of(self.things)


def state_of(things: Things) -> dict[str, Array]:
    """Return copies of the parameters of modules of either library, and of their gradients, by path."""
    found = {}
    for name, module in _modules(things):
        for parameter, tensor in module.named_parameters():
            found[f"{name}.{parameter}"] = np.array(library.values(tensor))
            gradient = library.gradient(tensor)
            if gradient is not None:
                found[f"{name}.{parameter}.grad"] = np.array(gradient)
    return found


def paths_of(things: Things) -> dict[int, str]:
    """Return the paths of the parameters of modules of either library by their ids, as in `state_of`."""
    return {
        id(tensor): f"{name}.{path}" for name, module in _modules(things) for path, tensor in module.named_parameters()
    }


def _modules(things: Things) -> list[tuple[str, Module]]:
    return [(name, thing) for name, thing in things if hasattr(thing, "named_parameters")]


def same_parameters(one: Things, other: Things) -> list[tuple[str, str]]:
    """Return the paths, in both runs, of parameters with the same name in corresponding modules."""
    return [
        (f"{name}.{parameter}", f"{their_name}.{parameter}")
        for (name, module), (their_name, their_module) in zip(_modules(one), _modules(other), strict=False)
        for parameter in dict(module.named_parameters())
        if parameter in dict(their_module.named_parameters())
    ]


def given_to(run_is_torch: bool, arg: Any) -> Any:
    """Convert an argument to a tensor of the run's library; return anything else unchanged."""
    if not isinstance(arg, np.ndarray) and (not library.is_tensor(arg) or library.is_torch(arg) == run_is_torch):
        return arg
    return library.tensor_of(np.array(library.numbers(arg)), run_is_torch)


def record_torch(
    run: Callable[..., Any],
    args: Sequence[Any],
    things: Things = (),
    stepping: Callable[..., None] | None = None,
) -> tuple[list[Event], Any]:
    """Run a PyTorch function once; return the events, in order, and the result.

    `stepping` is called with each optimizer before a step.
    """
    recorder = _Recorder()
    with ExitStack() as stack:
        for _, thing in things:
            if _is_optimizer(thing):
                if stepping is not None:
                    stack.callback(thing.register_step_pre_hook(stepping).remove)
                stack.callback(thing.register_step_pre_hook(recorder.optimizing(True)).remove)
                stack.callback(thing.register_step_post_hook(recorder.optimizing(False)).remove)
        stack.enter_context(Calls(recorder.called))
        result = run(*args)
    return recorder.events, result


class _Recorder:
    """Records every call of a PyTorch function."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._made: dict[int, Any] = {}  # tensors, kept alive so that their ids are not reused
        self._random = _torch_random()
        self._quiet = False

    def optimizing(self, begins: bool) -> Callable[..., None]:
        """Return a hook that pauses or resumes recording: an optimizer's arithmetic shows in the weights."""

        def told(*_: Any) -> None:
            self._quiet = begins

        return told

    def called(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        name = getattr(function, "__name__", "")
        if self._quiet or name in NOTHING or name == "backward":
            return function(*args, **kwargs)
        kinds = (*_NUMBERS, _torch().Tensor) if canonical(name) in _ARITHMETIC else _torch().Tensor
        operands = [one for one in _flat((*args, *kwargs.values())) if isinstance(one, kinds)]
        before = tuple(np.array(library.numbers(one)) for one in operands)
        outside = tuple(id(one) not in self._made for one in operands)
        result = function(*args, **kwargs)
        now = _torch_random()
        drew, self._random = now != self._random, now
        site = here()
        for one in _flat((result,)):
            if not library.is_torch(one):
                continue
            if not all(outside):
                self._made[id(one)] = one
            if outside and canonical(name) not in _SAME:
                self._made[id(one)] = one
                value = np.array(library.numbers(one))
                self.events.append(Event("forward", canonical(name), value, before, outside, drew, "", site))
                if one.requires_grad:
                    one.register_hook(functools.partial(self._arrived, canonical(name), site))
        return result

    def _arrived(self, name: str, site: Any, gradient: Any) -> None:
        self.events.append(Event("arriving", name, np.array(library.numbers(gradient)), (), (), False, "", site))


def _torch() -> Any:
    return sys.modules["torch"]


def _torch_random() -> bytes:
    return bytes(_torch().get_rng_state().numpy().tobytes())


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flat(value)
        else:
            yield value


class Arriving(Observer):
    """Copies the gradient of each op's result in our run, like a hook of PyTorch would receive it."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def rule(self, node: Any, g: Array, saved: tuple[Any, ...], position: int | None) -> None:
        name = canonical(node.name)
        array = unwrap(g)
        if position is None and name not in _SAME and isinstance(array, np.ndarray | np.generic):
            self._events.append(Event("arriving", name, np.array(array), (), (), False, "", (node.code, node.lasti)))


def likened(events: Sequence[Event]) -> list[Event]:
    """Return our events in the form of PyTorch's: without views, and under the names that both libraries share.

    In PyTorch, a convolution and the addition of its bias are one op.
    """
    found: list[Event] = []
    for event in events:
        now = replace(event, op=canonical(event.op), params="")
        before = found[-1] if found else None
        if now.op in _SAME:
            continue
        if before is not None and _is_bias(before, now):
            conv, added = (before, now) if now.phase == "forward" else (now, before)
            operands, outside = (*conv.operands, *added.operands[1:]), (*conv.outside, *added.outside[1:])
            found[-1] = replace(added, op=conv.op, operands=operands, outside=outside)
        else:
            found.append(now)
    return found


def _is_bias(before: Event, now: Event) -> bool:
    if now.phase == "forward" == before.phase:
        added = before.op.startswith("conv") and now.op == "add" and now.operands[1].size == before.value.shape[1]
        return bool(added and np.array_equal(now.operands[0], before.value))
    both = (before.phase, now.phase) == ("arriving", "arriving") and before.site == now.site
    return both and before.op == "add" and now.op.startswith("conv") and np.array_equal(before.value, now.value)
