"""Run code on a model and undo every effect: gradients, running statistics, random draws."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from glassgrad.base import undo
from glassgrad.base.provenance import pytorch
from glassgrad.base.undo import Undo
from glassgrad.doctor import library
from glassgrad.doctor.library import Module, Tensor

# PyTorch keeps these in separate dictionaries; an `nn` module here has everything among its attributes.
_REGISTRIES = ("_parameters", "_buffers", "_modules")


@contextlib.contextmanager
def aside(model: Module) -> Iterator[None]:
    """Restore model and random generators after the block, so that passes in the block do not affect the training.

    It restores the values of parameters and buffers, gradients (there are none at the start of the block), the
    attributes of every module, and the random generators: ours, PyTorch's, NumPy's global one and Python's. Changes
    inside lists and dictionaries of a module are not undone.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.BatchNorm1d(3), gg.nn.Dropout(0.5))
        >>> with aside(model):
        ...     model(gg.randn(8, 3)).sum().backward()
        >>> model[0].weight.grad is None, model[0].running_mean.tolist()
        (True, [0.0, 0.0, 0.0])
    """
    steps = [*_attributes(model), *_tensors(model), *_gradients(model), *_generators()]
    try:
        yield
    finally:
        for step in reversed(steps):
            step()


def _attributes(model: Module) -> Iterator[Undo]:
    modules = model.modules() if hasattr(model, "modules") else ()
    for module in modules:
        for drawn in module.__dict__.values():  # the generator of a hand-written layer
            if isinstance(drawn, np.random.Generator):
                yield _rewinder(drawn)
        for held in (module.__dict__, *(module.__dict__.get(name) for name in _REGISTRIES)):
            if isinstance(held, dict):
                yield undo.mapping(held)


def _rewinder(generator: np.random.Generator) -> Undo:
    state = generator.bit_generator.state
    return lambda: setattr(generator.bit_generator, "state", state)


def _tensors(model: Module) -> Iterator[Undo]:
    for tensor in library.tensors_of(model):
        if library.is_torch(tensor):
            yield _copy_back(tensor, tensor.detach().clone())
        else:
            yield undo.content(library.values(tensor))
            if hasattr(tensor, "array"):
                yield undo.attribute(tensor, "array")


def _copy_back(tensor: Tensor, before: Any) -> Undo:
    def undo() -> None:
        # Write only changed values: a write would make a live graph refuse its backward pass.
        if _bytes(tensor) != _bytes(before):
            tensor.data.copy_(before)

    return undo


def _bytes(tensor: Tensor) -> bytes:
    array = library.numbers(tensor)
    return b"" if array is None else bytes(array.tobytes())


def _gradients(model: Module) -> Iterator[Undo]:
    for _, parameter in model.named_parameters():
        name = "_grad" if hasattr(parameter, "array") else "grad"
        yield undo.attribute(parameter, name)
        setattr(parameter, name, None)


def _generators() -> Iterator[Undo]:
    yield undo.stream(random._inst)  # the generator behind the functions of Python's `random`
    if "numpy.random" in sys.modules:
        yield undo.stream(np.random.mtrand._rand)  # a user's model may draw from the global generator
    ours = sys.modules.get("glassgrad.engine.random")
    if ours is not None:
        states = ours.get_states()
        yield lambda: ours.set_states(states)
    torch = pytorch()
    if torch is not None:
        yield undo.stream(torch.default_generator)
        if torch.cuda.is_initialized():
            devices = torch.cuda.get_rng_state_all()
            yield lambda: torch.cuda.set_rng_state_all(devices)


__all__ = ["aside"]
