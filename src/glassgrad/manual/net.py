"""Net: layers in a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glassgrad import errors
from glassgrad.manual.protocols import Array, Layer, Module, Parameter


class Net(Module):
    """y = last(... second(first(x))).

    The chain rule takes the layers in reverse: the gradient with respect to one layer's input is the gradient with
    respect to the previous layer's output.

        >>> import numpy as np
        >>> from glassgrad import manual
        >>> net = manual.Net(manual.Linear(2, 8), manual.Tanh(), manual.Linear(8, 1))
        >>> loss, adam = manual.MSELoss(), manual.Adam(net.parameters(), lr=0.01)
        >>> x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
        >>> target = x[:, :1] * x[:, 1:]
        >>> before = loss(net(x), target)
        >>> for _ in range(300):
        ...     adam.zero_grad()
        ...     now = loss(net(x), target)
        ...     _ = net.backward(loss.backward())
        ...     adam.step()
        >>> now < 0.2 * before
        True

    Raises:
        KindError: a layer has no `backward`, such as a list of layers.
    """

    def __init__(self, *layers: Any) -> None:
        for position, layer in enumerate(layers):
            if not callable(getattr(layer, "backward", None)):
                advice = "manual.Net(*layers)" if isinstance(layer, list | tuple) else "manual.Linear, manual.Tanh, ..."
                kind = type(layer).__name__
                raise errors.MANUAL_NO_LAYER(layer=type(self).__name__, position=position, kind=kind, next=advice)
        self.layers = list(layers)

    def parts(self) -> Iterator[tuple[str, Module]]:
        for number, layer in enumerate(self.layers):
            if isinstance(layer, Module):
                yield str(number), layer

    def parameters(self) -> list[Parameter]:
        return [parameter for layer in self.layers for parameter in layer.parameters()]

    def forward(self, *inputs: Array) -> Array:
        first, *rest = self.layers
        out = first(*inputs)
        for layer in rest:
            out = layer(out)
        return out

    def backward(self, dout: Array) -> Array:
        for layer in reversed(self.layers):
            dout = layer.backward(dout)
        return dout

    def __getitem__(self, index: int) -> Layer:
        layer: Layer = self.layers[index]
        return layer

    def __repr__(self) -> str:
        return f"Net({', '.join(type(layer).__name__ for layer in self.layers)})"

    def __len__(self) -> int:
        return len(self.layers)
