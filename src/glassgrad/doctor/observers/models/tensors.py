"""A module for the tensors of an optimizer that belong to no module, so that the doctor can watch their training."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType

from glassgrad.doctor import library
from glassgrad.doctor.library import Module, Optimizer, Tensor


def model_of(optimizer: Optimizer, frame: FrameType) -> Module | None:
    """Return a module whose parameters are the tensors of an optimizer, with the names of the user's variables.

    Args:
        optimizer: an optimizer of glassgrad or of PyTorch.
        frame: the user's frame, which holds the variables.
    """
    held = library.trained_by(optimizer)
    return model_of_tensors(held, frame) if all(map(library.is_tensor, held)) else None


def model_of_tensors(held: Sequence[Tensor], frame: FrameType) -> Module | None:
    """Return a module whose parameters are these tensors; None if they are an image or a few fitted numbers."""
    known = [one for one in held if library.trainable(one)]
    if len(known) < max(len(held), 2) or all(len(one.shape) < 2 for one in known):
        return None
    variables = dict(_variables(frame))
    named = {variables.get(id(one), f"tensor {at}"): one for at, one in enumerate(known)}
    return _of_torch(named) if library.is_torch(known[0]) else _of_ours(named)


def _variables(frame: FrameType) -> Iterator[tuple[int, str]]:
    """Yield the ids of the user's tensors, with the names of the variables, lists and attributes that hold them."""
    for name, value in [*frame.f_globals.items(), *frame.f_locals.items()]:
        inner = vars(value) if name == "self" and hasattr(value, "__dict__") else {name: value}
        for path, one in list(inner.items()):
            if isinstance(one, list | tuple):
                yield from ((id(part), f"{path}[{at}]") for at, part in enumerate(one) if library.is_tensor(part))
            elif isinstance(one, dict):
                yield from ((id(part), f"{path}[{at!r}]") for at, part in one.items() if library.is_tensor(part))
    for name, value in [*frame.f_globals.items(), *frame.f_locals.items()]:  # prefer the name of a variable of its own
        if library.is_tensor(value):
            yield id(value), name


def _of_torch(named: dict[str, Tensor]) -> Module:
    torch: Module = sys.modules["torch"]
    kind = type("Tensors", (torch.nn.Module,), {"called": False})
    made = kind()
    made._parameters.update({name.replace(".", "_"): one for name, one in named.items()})
    return made


def _of_ours(named: dict[str, Tensor]) -> Module:
    from glassgrad.nn.module import Module as Base

    class Tensors(Base):
        called = False

        def named_parameters(self, *_given: object, **_options: object) -> Iterator[tuple[str, Tensor]]:
            yield from named.items()

        def parameters(self, *_given: object, **_options: object) -> Iterator[Tensor]:
            yield from named.values()

    return Tensors()
