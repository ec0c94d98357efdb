"""Backpropagation on one page.

A `Value` is a number that remembers the values it was made from, and its slope with respect to each. `backward()`
walks this record from the result to the inputs and applies the chain rule, `input.grad += output.grad * slope`: a
value used twice acts on the result twice. The API is micrograd's; numbers raise the same errors as floats.

    >>> x, w, b = Value(2.0), Value(-3.0), Value(1.0)
    >>> loss = (x * w + b) ** 2
    >>> loss.backward()
    >>> loss.data, w.grad
    (25.0, -20.0)
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from operator import attrgetter, eq, ge, gt, le, lt, mul
from typing import Any

from glassgrad import errors
from glassgrad.errors.missing import getter, lister
from glassgrad.scalar.compiler import compile
from glassgrad.scalar.drawing import draw, html
from glassgrad.scalar.operators import comparison, reflected
from glassgrad.scalar.trouble import INSTEAD, absent, named, no_slopes


def _value(x: Value | float) -> Value:
    return x if isinstance(x, Value) else Value(x)


def _function(name: str, forward: Callable[..., float], slope: Callable[..., float]) -> Callable[[Value], Value]:
    return named(name)(lambda self: Value(y := forward(self.data), (self,), name, slopes=(slope(self.data, y),)))


class Value:
    """A number with a gradient. A new op is one line: result, arguments, name, slopes (or set `_backward` after it)."""

    __slots__ = ("_args", "_backward", "_op", "_seq", "_slopes", "data", "grad", "label")
    __array_ufunc__ = None  # leaves numpy_number * value to Value.__rmul__
    _tick = count().__next__

    def __init__(
        self, data: float, _children: Sequence[Value] = (), _op: str = "", label: str = "", slopes: Sequence[float] = ()
    ) -> None:
        if slopes and len(_children) != len(slopes):
            raise errors.SCALAR_SLOPES(op=_op, children=len(_children), slopes=len(slopes))
        self.data, self.grad, self.label = float(data), 0.0, label
        self._args, self._slopes, self._op = _children, slopes, _op
        self._backward: Callable[[], None] | None = None
        self._seq = self._tick()

    def backward(self) -> None:
        """Add d(self)/d(leaf) to the `grad` of every leaf; replace the `grad` of every value in between."""
        reached, frontier = {self}, {self}
        while frontier:
            frontier = set(chain.from_iterable(value._args for value in frontier)) - reached
            reached |= frontier
        # Youngest first: each value comes after everything that was made from it.
        inner = sorted((v for v in reached if v._args), key=attrgetter("_seq"), reverse=True)
        for value in inner:
            value.grad = 0.0
        self.grad = 1.0
        for value in inner:
            if value._backward is not None:
                value._backward()
            else:
                for arg, slope in zip(value._args, value._slopes or no_slopes(value), strict=True):
                    arg.grad += value.grad * slope

    def __add__(self, other: Value | float) -> Value:
        other = _value(other)
        return Value(self.data + other.data, (self, other), "+", slopes=(1.0, 1.0))

    def __sub__(self, other: Value | float) -> Value:
        other = _value(other)
        return Value(self.data - other.data, (self, other), "-", slopes=(1.0, -1.0))

    def __mul__(self, other: Value | float) -> Value:
        other = _value(other)
        return Value(self.data * other.data, (self, other), "*", slopes=(other.data, self.data))

    @named("/")
    def __truediv__(self, other: Value | float) -> Value:
        other = _value(other)
        y = self.data / other.data
        return Value(y, (self, other), "/", slopes=(1.0 / other.data, -y / other.data))

    @named("**")
    def __pow__(self, other: Value | float) -> Value:
        x, k = self.data, other.data if isinstance(other, Value) else other
        y = math.pow(x, k) if x or k >= 0 else x**k  # 0.0 ** -1 divides by zero, as with floats
        slope = k * math.pow(x, k - 1) if x or k >= 1 else math.inf if k else 0.0
        if not isinstance(other, Value):
            return Value(y, (self,), f"**{k}", slopes=(slope,))
        return Value(y, (self, other), "**", slopes=(slope, y * math.log(x) if x > 0 else math.nan))

    def max(self, other: Value | float) -> Value:
        other = _value(other)
        share = 0.5 * ((self.data > other.data) + (self.data >= other.data))  # a tie is shared
        return Value(max(self.data, other.data), (self, other), "max", slopes=(share, 1.0 - share))

    __neg__ = _function("neg", lambda x: -x, lambda x, y: -1.0)
    __abs__ = _function("abs", abs, lambda x, y: float((x > 0) - (x < 0)))
    exp = _function("exp", math.exp, lambda x, y: y)
    log = _function("log", math.log, lambda x, y: 1.0 / x)
    sin = _function("sin", math.sin, lambda x, y: math.cos(x))
    cos = _function("cos", math.cos, lambda x, y: -math.sin(x))
    tanh = _function("tanh", math.tanh, lambda x, y: 1.0 - y * y)
    sigmoid = _function("sigmoid", lambda x: math.exp(min(x, 0)) / (1 + math.exp(-abs(x))), lambda x, y: y * (1.0 - y))
    relu = _function("ReLU", lambda x: 0.0 if x < 0 else x, lambda x, y: 1.0 if y > 0 else 0.0)

    __radd__, __rmul__ = __add__, __mul__
    __rsub__, __rtruediv__, __rpow__ = map(reflected, (__sub__, __truediv__, __pow__))

    __hash__ = object.__hash__  # comparisons use the numbers, but in a set or dict each Value is a key of its own
    __eq__, __lt__, __le__, __gt__, __ge__ = map(comparison, (eq, lt, le, gt, ge))

    __getattr__ = absent  # names the replacement
    _repr_html_ = html  # the picture in a notebook
    _prev = property(lambda self: set(self._args), doc="The values that this one was made from.")

    def __repr__(self) -> str:
        return f"Value(data={self.data}, grad={self.grad})"


class Vector(list[Value]):
    """A list with a dot product: `w @ x` is one node, with a slope for every weight and every input."""

    def __matmul__(self, numbers: Iterable[Value | float]) -> Value:
        other = [_value(number) for number in numbers]
        if len(self) != len(other):
            raise errors.SCALAR_DOT(left=len(self), right=len(other))
        left, right = [v.data for v in self], [v.data for v in other]
        return Value(sum(map(mul, left, right)), (*self, *other), "@", slopes=(*right, *left))

    __rmatmul__ = __matmul__


class Module:
    """Base of everything with parameters: its own, or those of its parts."""

    parts: Sequence[Any] = ()

    def parameters(self) -> list[Value]:
        return [p for part in self.parts for p in part.parameters()]

    def zero_grad(self) -> None:
        for parameter in self.parameters():
            parameter.grad = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__} of [{', '.join(map(str, self.parts))}]"


class Neuron(Module):
    """act(w @ x + b); without `nonlin`, just w @ x + b."""

    def __init__(self, nin: int, nonlin: bool = True, act: str = "relu") -> None:
        self.w = Vector(Value(random.uniform(-1, 1)) for _ in range(nin))
        self.b = Value(0.0)
        self.act = act if nonlin else "linear"

    def __call__(self, x: Iterable[Value | float]) -> Value:
        y = self.w @ x + self.b
        return y if self.act == "linear" else getattr(y, self.act)()

    def parameters(self) -> list[Value]:
        return [*self.w, self.b]

    def __repr__(self) -> str:
        return f"{'ReLU' if self.act == 'relu' else self.act.capitalize()}Neuron({len(self.w)})"


class Layer(Module):
    """`nout` neurons that see the same inputs. A single neuron's result is not wrapped in a list."""

    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None:
        self.neurons = self.parts = [Neuron(nin, **kwargs) for _ in range(nout)]

    def __call__(self, x: Iterable[Value | float]) -> Any:
        inputs = [_value(number) for number in x]
        out = Vector(neuron(inputs) for neuron in self.neurons)
        return out[0] if len(out) == 1 else out


class MLP(Module):
    """Layers one after another; the last one is linear."""

    def __init__(self, nin: int, nouts: Sequence[int], **kwargs: Any) -> None:
        sizes, last = [nin, *nouts], len(nouts) - 1
        self.layers = self.parts = [Layer(*sizes[i : i + 2], nonlin=i != last, **kwargs) for i in range(last + 1)]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


__all__ = ["MLP", "Layer", "Module", "Neuron", "Value", "Vector", "compile", "draw"]
__getattr__, __dir__ = getter(__name__, INSTEAD), lister(__name__)
