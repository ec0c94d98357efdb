"""The protocols of hand-written layers, losses and optimizers, and their shared bookkeeping.

Anything with `forward`, `backward`, `parameters` and a call is a layer here: it need not inherit from
`Module`. A parameter is anything with `data` and `grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

from glassgrad import errors
from glassgrad.errors.missing import missing
from glassgrad.manual import cache

Array = Any  # numpy.ndarray


class Parameter:
    """A trained array: `data`, and in `grad` the sum of its gradients from backward passes.

    `grad` is None until the first gradient, which then costs no addition.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> p = manual.Parameter(np.array([1.0, -1.0]))
        >>> p.grad is None
        True
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

    Example:
        >>> from glassgrad import manual
        >>> isinstance(manual.Tanh(), manual.Layer)
        True
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]

    def parameters(self) -> list[Parameter]: ...

    def __call__(self, *inputs: Array) -> Array: ...


@runtime_checkable
class Loss(Protocol):
    """`forward(prediction, target)` returns a float; `backward()` the gradient of the prediction.

    Example:
        >>> from glassgrad import manual
        >>> isinstance(manual.MSELoss(), manual.Loss)
        True
    """

    forward: Callable[..., float]
    backward: Callable[..., Any]


@runtime_checkable
class Optimizer(Protocol):
    """`step()` updates every parameter from its `grad`; `zero_grad()` clears the gradients.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> isinstance(manual.SGD([manual.Parameter(np.ones(2))], lr=0.1), manual.Optimizer)
        True
    """

    def step(self) -> None: ...

    def zero_grad(self) -> None: ...


# What to call instead of methods of `nn.Module`.
_INSTEAD = {
    "to": "hand-written layers use NumPy arrays on the CPU; give dtype=np.float64 to the layer",
    "cuda": "hand-written layers use NumPy arrays on the CPU; leave the call out",
    "double": "give dtype=np.float64 to the layer",
    "float": "give dtype=np.float32 to the layer",
    "register_forward_hook": "override forward in a subclass",
    "register_buffer": "assign the array to an attribute, and list its name in the class's `buffers`",
    "register_parameter": "assign a manual.Parameter to an attribute",
    "requires_grad_": "leave the parameter out of the optimizer's list",
    "apply": "loop over modules()",
    "children": "parts() yields name and layer",
    "named_children": "parts() yields name and layer",
}


class Saving:
    """The common part of layers and losses: a forward pass keeps values for its backward pass in `saved`."""

    training: bool = True
    saved: Any = None
    _latest: cache.Latest | None = None  # the forward pass that filled `saved`
    _inside = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cache.watch(cls)


class Module(Saving):
    """Bookkeeping shared by the layers of this package: names, modes, state. No mathematics.

    A layer keeps the values for its backward pass in `saved`. Parameters are found among the attributes, in the
    order of their definition; attributes named in `buffers` are saved and loaded with them.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> class Scale(manual.Module):
        ...     def __init__(self):
        ...         self.weight = manual.Parameter(np.ones(2))
        ...     def forward(self, x):
        ...         self.x = x
        ...         return x * self.weight.data
        ...     def backward(self, dout):
        ...         self.weight.accumulate((dout * self.x).sum(0))
        ...         return dout * self.weight.data
        >>> layer = Scale()
        >>> y = layer(np.array([[3.0, 4.0]]))
        >>> layer.backward(np.ones_like(y)).tolist(), layer.weight.grad.tolist()
        ([[1.0, 1.0]], [3.0, 4.0])
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    buffers: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        known = [*vars(self), *(one for kind in type(self).__mro__ for one in vars(kind))]
        raise missing(f"manual.{type(self).__name__}", name, [one for one in known if one[0] != "_"], _INSTEAD)

    def __call__(self, *inputs: Array) -> Array:
        return self.forward(*inputs)

    def parts(self) -> Iterator[tuple[str, Module]]:
        """Yield the layers inside this one, by name."""
        for name, part in vars(self).items():
            if isinstance(part, Module):
                yield name, part

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Yield this layer, under the empty name, and all layers inside it."""
        yield "", self
        for name, part in self.parts():
            for inner, module in part.named_modules():
                yield f"{name}.{inner}".rstrip("."), module

    def modules(self) -> Iterator[Module]:
        return (module for _, module in self.named_modules())

    def named_buffers(self) -> Iterator[tuple[str, Array]]:
        for prefix, module in self.named_modules():
            for name in module.buffers:
                yield f"{prefix}.{name}".lstrip("."), getattr(module, name)

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield name, value
        for name, part in self.parts():
            for inner, parameter in part.named_parameters():
                yield f"{name}.{inner}", parameter

    def parameters(self) -> list[Parameter]:
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


def uniform(rng: np.random.Generator | None, bound: float, shape: Iterable[int], dtype: DTypeLike | None) -> Parameter:
    """Return a parameter drawn from [-bound, bound), as PyTorch initialises linear and convolution layers."""
    generator = np.random.default_rng() if rng is None else rng
    return Parameter(generator.uniform(-bound, bound, tuple(shape)).astype(dtype))
