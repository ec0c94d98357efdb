"""The protocols of hand-written layers, losses and optimizers, and their shared bookkeeping.

Anything with `forward`, `backward`, `parameters` and a call is a layer here: it need not inherit from
`Module`. A parameter is anything with `data` and `grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from glassgrad import errors

Array = Any  # numpy.ndarray


class Parameter:
    """A trained array: `data`, and in `grad` the sum of its gradients from backward passes.

    `grad` is None until the first gradient, which then costs no addition.
    """

    __slots__ = ("data", "grad")

    def __init__(self, data: Array) -> None:
        self.data: Array = np.asarray(data)
        self.grad: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    def accumulate(self, grad: Array) -> None:
        """Add to `grad`: by the chain rule, a parameter that is used twice gets the sum of two gradients."""
        self.grad = grad if self.grad is None else self.grad + grad

    def __repr__(self) -> str:
        return f"Parameter(shape={self.shape}, dtype={self.data.dtype})"


@runtime_checkable
class Layer(Protocol):
    """A function with a backward pass.

    `forward(*inputs)` computes the output and keeps what `backward` will need. `backward(dout)` takes the
    gradient of the loss with respect to the output (same shape as the output), adds the gradients of the
    parameters to their `grad`, and returns the gradient with respect to the input (a tuple when there are
    several). Calling the layer is calling `forward`.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]

    def parameters(self) -> list[Any]: ...

    def __call__(self, *inputs: Any) -> Any: ...


@runtime_checkable
class Loss(Protocol):
    """`forward(prediction, target)` returns a float; `backward()` the gradient of the prediction."""

    forward: Callable[..., float]
    backward: Callable[..., Any]


@runtime_checkable
class Optimizer(Protocol):
    """`step()` updates every parameter from its `grad`; `zero_grad()` clears the gradients."""

    def step(self) -> None: ...

    def zero_grad(self) -> None: ...


class Module:
    """Bookkeeping shared by the layers of this package: names, modes, state. No mathematics.

    A layer keeps the values for its backward pass in `saved`. Parameters are found among the attributes, in the
    order of their definition; attributes named in `buffers` are saved and loaded with them.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    buffers: tuple[str, ...] = ()
    training: bool = True
    saved: Any = None

    def __call__(self, *inputs: Any) -> Any:
        return self.forward(*inputs)

    def parts(self) -> Iterator[tuple[str, Module]]:
        """Yield the layers inside this one, by name."""
        for name, part in vars(self).items():
            if isinstance(part, Module):
                yield name, part

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield name, value
        for name, part in self.parts():
            for inner, parameter in part.named_parameters():
                yield f"{name}.{inner}", parameter

    def parameters(self) -> list[Any]:
        return [parameter for _, parameter in self.named_parameters()]

    def zero_grad(self) -> None:
        for parameter in self.parameters():
            parameter.grad = None

    def train(self, mode: bool = True) -> Module:
        """Switch this layer and its parts to training mode, or with False to evaluation mode."""
        self.training = mode
        for _, part in self.parts():
            part.train(mode)
        return self

    def eval(self) -> Module:
        return self.train(mode=False)

    def state_dict(self) -> dict[str, Array]:
        """Return every parameter and buffer by PyTorch's name for it. The arrays are not copies."""
        state = {name: p.data for name, p in vars(self).items() if isinstance(p, Parameter)}
        state |= {name: getattr(self, name) for name in self.buffers}
        for name, part in self.parts():
            state |= {f"{name}.{inner}": array for inner, array in part.state_dict().items()}
        return state

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Copy the arrays of `state` into the parameters and buffers. Raises unless names and shapes agree."""
        mine = self.state_dict()
        wrong = [f"{name}: no such name here" for name in state if name not in mine]
        for name, array in mine.items():
            if name not in state:
                wrong.append(f"{name}: missing")
            elif np.shape(state[name]) != np.shape(array):
                wrong.append(f"{name}: shape {np.shape(state[name])}, expected {np.shape(array)}")
        if wrong:
            raise errors.MANUAL_STATE(layer=type(self).__name__, wrong="\n  ".join(wrong))
        for name, array in mine.items():
            array[...] = state[name]


def check_range(layer: str, what: str, numbers: Array, count: int) -> None:
    """Raise `IndexRangeError` for a number outside 0..count-1; NumPy would count negative ones from the end."""
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        given = numbers[(numbers < 0) | (numbers >= count)].flat[0]
        raise errors.MANUAL_INDEX(layer=layer, what=what, given=given, last=count - 1)


def uniform(rng: np.random.Generator | None, bound: float, shape: Iterable[int], dtype: Any) -> Parameter:
    """Return a parameter drawn from [-bound, bound), as PyTorch initialises linear and convolution layers."""
    generator = np.random.default_rng() if rng is None else rng
    return Parameter(generator.uniform(-bound, bound, tuple(shape)).astype(dtype))
