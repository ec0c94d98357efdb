"""Run code on a model and undo every effect: gradients, running statistics, random draws."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glassgrad.doctor import library
from glassgrad.provenance import pytorch

Array = Any
Module = Any

# PyTorch keeps these in separate dictionaries; an `nn` module here has everything among its attributes.
_REGISTRIES = ("_parameters", "_buffers", "_modules")


@contextlib.contextmanager
def aside(model: Module) -> Iterator[None]:
    """Restore model and random generators after the block, so that passes inside do not affect the training.

    It restores the values of parameters and buffers, gradients (there are none at the start of the block), the
    attributes of every module, and the random generators: ours, PyTorch's, NumPy's global one and Python's. Changes
    inside of lists and dictionaries of a module are not undone.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.BatchNorm1d(3), gg.nn.Dropout(0.5))
        >>> with aside(model):
        ...     model(gg.randn(8, 3)).sum().backward()
        >>> model[0].weight.grad is None, model[0].running_mean.tolist()
        (True, [0.0, 0.0, 0.0])
    """
    undo = [*_attributes(model), *_tensors(model), *_gradients(model), *_generators()]
    try:
        yield
    finally:
        for step in reversed(undo):
            step()


def _attributes(model: Module) -> Iterator[Callable[[], None]]:
    modules = model.modules() if hasattr(model, "modules") else ()
    for module in modules:
        for held in (module.__dict__, *(module.__dict__.get(name) for name in _REGISTRIES)):
            if isinstance(held, dict):
                yield _put_back(held, dict(held))


def _put_back(held: dict[str, Any], before: dict[str, Any]) -> Callable[[], None]:
    def undo() -> None:
        if held.keys() != before.keys() or any(held[name] is not value for name, value in before.items()):
            held.clear()
            held.update(before)

    return undo


def _tensors(model: Module) -> Iterator[Callable[[], None]]:
    named = [tensor for _, tensor in model.named_parameters()]
    named += [tensor for _, tensor in model.named_buffers()] if hasattr(model, "named_buffers") else []
    for tensor in named:
        if library.is_torch(tensor):
            yield _copy_back_torch(tensor, tensor.detach().clone())
        else:
            yield _copy_back(tensor, library.values(tensor))


def _copy_back_torch(tensor: Any, before: Any) -> Callable[[], None]:
    def undo() -> None:
        # Write only what changed: a write would make a graph that is still alive refuse its backward pass.
        if _bytes(tensor) != _bytes(before):
            tensor.data.copy_(before)

    return undo


def _bytes(tensor: Any) -> bytes:
    array = library.numbers(tensor)
    return b"" if array is None else bytes(array.tobytes())


def _copy_back(tensor: Any, memory: Array) -> Callable[[], None]:
    before = memory.copy()

    def undo() -> None:
        if hasattr(tensor, "array") and tensor.array is not memory:
            tensor.array = memory
        if memory.tobytes() != before.tobytes():
            memory[...] = before

    return undo


def _gradients(model: Module) -> Iterator[Callable[[], None]]:
    for _, parameter in model.named_parameters():
        name = "_grad" if hasattr(parameter, "array") else "grad"
        yield _set_back(parameter, name, getattr(parameter, name))
        setattr(parameter, name, None)


def _set_back(parameter: Any, name: str, before: Any) -> Callable[[], None]:
    return lambda: setattr(parameter, name, before)


def _generators() -> Iterator[Callable[[], None]]:
    python = random.getstate()
    yield lambda: random.setstate(python)
    if "numpy.random" in sys.modules:
        state = np.random.get_state()  # noqa: NPY002 - a user's model may draw from the global generator
        yield lambda: np.random.set_state(state)  # noqa: NPY002 - as above
    ours = sys.modules.get("glassgrad.engine.random")
    if ours is not None:
        states = ours.get_states()
        yield lambda: ours.set_states(states)
    torch = pytorch()
    if torch is not None:
        yield from _torch_generators(torch)


def _torch_generators(torch: Any) -> Iterator[Callable[[], None]]:
    state = torch.get_rng_state()
    yield lambda: torch.set_rng_state(state)
    if torch.cuda.is_initialized():
        states = torch.cuda.get_rng_state_all()
        yield lambda: torch.cuda.set_rng_state_all(states)


__all__ = ["aside"]
