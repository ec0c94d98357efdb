"""The bridge between hand-written layers and the engine: `as_function`, `twin` and `show_twin`.

This is the only file of the package that uses the engine; the others need only NumPy.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from glassgrad import errors, manual
from glassgrad.engine.function import Function
from glassgrad.engine.tensor import Tensor
from glassgrad.manual.protocols import Array

_COPIED_OPTIONS: dict[str, tuple[str, ...]] = {
    "LeakyReLU": ("negative_slope",),
    "PReLU": ("num_parameters",),
    "ELU": ("alpha",),
    "Softmax": ("dim",),
    "LogSoftmax": ("dim",),
    "GELU": ("approximate",),
    "Dropout": ("p",),
    "BatchNorm1d": ("num_features", "eps", "momentum"),
    "LayerNorm": ("normalized_shape", "eps"),
    "MaxPool2d": ("kernel_size", "stride", "padding"),
    "Linear": ("in_features", "out_features"),
    "Embedding": ("num_embeddings", "embedding_dim"),
    "Conv2d": ("in_channels", "out_channels", "kernel_size", "stride", "padding"),
}


class _ByHand(Function):
    """One call of a hand-written layer on the tape, with the layer's `backward` as its rule."""

    @staticmethod
    def forward(ctx: Any, layer: Any, count: int, *tensors: Any) -> Any:
        ctx.layer = _for_one_call(layer)
        ctx.inputs = count
        return Tensor(np.asarray(ctx.layer.forward(*(_array(x) for x in tensors[:count]))))

    @staticmethod
    def backward(ctx: Any, g: Array) -> Array:
        parameters = list(ctx.layer.parameters())
        before = [parameter.grad for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        try:
            found = ctx.layer.backward(g.numpy())
            grads = [*(found if isinstance(found, tuple) else (found,)), *(parameter.grad for parameter in parameters)]
        finally:
            for parameter, grad in zip(parameters, before, strict=True):
                parameter.grad = grad
        # Inputs for which the layer returns no gradient, such as a mask, get None.
        missing = ctx.inputs + len(parameters) - len(grads)
        at = len(grads) - len(parameters)
        grads[at:at] = [None] * missing
        return (None, None, *(None if grad is None else Tensor(np.asarray(grad)) for grad in grads))


def _for_one_call(layer: Any) -> Any:
    """Copy a layer and the layers inside it, so that the next call does not overwrite the values saved by this one.

    Parameters, running statistics and generators are shared.
    """
    own = copy.copy(layer)
    for name, value in list(getattr(own, "__dict__", {}).items()):
        if isinstance(value, manual.Module):
            setattr(own, name, _for_one_call(value))
        elif type(value) is list and any(isinstance(part, manual.Layer) for part in value):
            setattr(own, name, [_for_one_call(part) for part in value])
    return own


def _array(x: Array) -> Array:
    return x.numpy() if isinstance(x, Tensor) else x


class LayerOp:
    """A hand-written layer that takes and returns Tensors; see `as_function`."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer
        self._tensors = [Tensor(parameter.data, requires_grad=True) for parameter in layer.parameters()]

    def parameters(self) -> list[Tensor]:
        """The parameters as leaves of the tape; they share the layer's arrays."""
        return self._tensors

    def __call__(self, *inputs: Array) -> Array:
        for tensor, parameter in zip(self._tensors, self.layer.parameters(), strict=True):
            tensor.array = parameter.data  # follows an array that has been replaced
        return _ByHand.apply(self.layer, len(inputs), *inputs, *self._tensors)

    def __repr__(self) -> str:
        return f"as_function({type(self.layer).__name__})"


def as_function(layer: Any) -> LayerOp:
    """Turn a hand-written layer into an op of the tape: Tensors in, a Tensor out, its own backward in between.

    `layer` is anything with the `Layer` protocol. `parameters()` of the result are Tensors for an optimizer,
    sharing their arrays with the layer's. Its backward cannot be differentiated again.

        >>> import glassgrad as gg
        >>> op = as_function(manual.Tanh())
        >>> x = gg.zeros(2, requires_grad=True)
        >>> op(x).sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """
    if not isinstance(layer, manual.Layer):
        raise errors.MANUAL_NOT_A_LAYER(given=type(layer).__name__)
    return LayerOp(layer)


def twin(module: Any) -> Any:
    """Return the hand-written counterpart of an `nn` module, with copies of its parameters and in the same mode.

    A `Sequential` becomes a `Net`. Raises `KindError` for a module that has no counterpart.

        >>> import glassgrad as gg
        >>> twin(gg.nn.Sequential(gg.nn.Linear(2, 3), gg.nn.ReLU()))
        Net(Linear, ReLU)
    """
    name = type(module).__name__
    if name == "Sequential":
        net = manual.Net(*(twin(part) for part in module))
        return net.train(module.training)
    kind = getattr(manual, name, None)
    if kind is None or not _has_twin(name):
        raise errors.MANUAL_NO_TWIN(given=name, known=", ".join(sorted(_twins())))
    options = {option: getattr(module, option) for option in _COPIED_OPTIONS.get(name, ())}
    if "bias" in inspect.signature(kind).parameters:
        options["bias"] = module.bias is not None
    layer = kind(**options)
    state = {key: value.detach().numpy() for key, value in module.state_dict().items()}
    for parameter in layer.parameters():
        parameter.data = parameter.data.astype(next(iter(state.values())).dtype)
    if hasattr(layer, "load_state_dict"):
        layer.load_state_dict(state)
        layer.train(module.training)
    return layer


def _twins() -> Iterable[str]:
    from glassgrad.manual.registry import LAYERS, LOSSES

    return {entry.kind.__name__ for entry in (*LAYERS, *LOSSES)}


def _has_twin(name: str) -> bool:
    return name in _twins()


def show_twin(module: Any) -> str:
    """Return the derivation and the source of the hand-written counterpart of an `nn` module (or its class).

    Example:
        >>> from glassgrad import manual, nn
        >>> "dx" in manual.show_twin(nn.ReLU())
        True
    """
    name = module.__name__ if isinstance(module, type) else type(module).__name__
    if name == "Sequential":
        parts = dict.fromkeys(type(part).__name__ for part in module)
        by_name = {type(part).__name__: part for part in module}
        return "\n\n".join(show_twin(by_name[part]) for part in parts)
    if not _has_twin(name):
        raise errors.MANUAL_NO_TWIN(given=name, known=", ".join(sorted(_twins())))
    kind = getattr(manual, name)
    title = f"# glassgrad.manual.{name}, the twin of nn.{name}"
    methods: list[Callable[..., Any]] = [kind.forward, kind.backward]
    source = "\n".join(inspect.getsource(method) for method in methods)
    return f"{title}\n\n{inspect.getdoc(kind)}\n\n{source}"
