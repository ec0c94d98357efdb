"""Hand-written graphs for tests, and NumPy as their oracle.

`Builder` records what is done to its arrays as a Graph; `interpret` runs a Graph with NumPy's own functions,
one instruction at a time, so that nothing of the compiler is in the expected values.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.ir.graph import Graph, GraphBuilder, Var
from glassgrad.ops.kernels import native
from glassgrad.ops.places import ARRAY, Slice

assert gg  # importing it fills the registry

__all__ = [
    "ARRAY",
    "Array",
    "Builder",
    "Slice",
    "agree",
    "emitted",
    "evaluate",
    "interpret",
    "lower",
    "random_inputs",
    "written",
]


def lower(graph, threads=None):
    """Compile a graph to native code as it is, without the passes."""
    from glassgrad.compile.stages import native

    return native(graph, threads, as_it_is=True)


def written(graph):
    """Return the module that `lower` would translate for one thread, where only its text matters."""
    return emitted(graph, 1, as_it_is=True).text


def emitted(graph, threads, *, as_it_is=False):
    """Return what the stages before machine code leave: the schedule, the memory plan, the module's text."""
    from glassgrad.compile import stages

    def keep(made, *_):
        raise _EmittedError(made)

    with mock.patch.object(stages, "loaded", keep), pytest.raises(_EmittedError) as found:
        stages.native(graph, threads, as_it_is=as_it_is, stored=False)
    return found.value.args[0]


class _EmittedError(Exception):
    """The way out before a module is translated."""


class Array:
    """A Var with operators that record instructions."""

    __array_ufunc__ = None

    def __init__(self, builder, var):
        self.builder, self.var = builder, var

    shape = property(lambda self: self.var.shape)
    dtype = property(lambda self: self.var.dtype)

    def __add__(self, other):
        return self.builder("add", self, other)

    def __radd__(self, other):
        return self.builder("add", other, self)

    def __sub__(self, other):
        return self.builder("subtract", self, other)

    def __rsub__(self, other):
        return self.builder("subtract", other, self)

    def __mul__(self, other):
        return self.builder("multiply", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self.builder("divide", self, other)

    def __rtruediv__(self, other):
        return self.builder("divide", other, self)

    def __neg__(self):
        return self.builder("negative", self)

    def __pow__(self, other):
        return self.builder("power", self, other)

    def __matmul__(self, other):
        return self.builder("matmul", self, other)

    def __gt__(self, other):
        return self.builder("greater", self, other)

    def __lt__(self, other):
        return self.builder("less", self, other)

    def sum(self, *axis, keepdims=False):
        return self.builder("sum", self, axis=self._axes(axis), keepdims=keepdims)

    def max(self, *axis, keepdims=False):
        return self.builder("max", self, axis=self._axes(axis), keepdims=keepdims)

    def mean(self, *axis, keepdims=False):
        axes = self._axes(axis)
        return self.sum(*axes, keepdims=keepdims) * (1 / np.prod([self.shape[a] for a in axes]).item())

    def _axes(self, axis):
        axes = tuple(sorted(a % len(self.shape) for a in axis))
        return axes if axis else tuple(range(len(self.shape)))

    def reshape(self, *shape):
        return self.builder("reshape", self, shape=shape)

    def permute(self, *axes):
        return self.builder("permute_dims", self, axes=axes)

    @property
    def T(self):
        n = len(self.shape)
        return self.permute(*range(n - 2), n - 1, n - 2)

    def __getattr__(self, op):
        if op.startswith("_"):
            raise AttributeError(op)
        return lambda *args, **params: self.builder(op, self, *args, **params)


class Builder:
    """Makes inputs and records ops; call it with an op's name."""

    def __init__(self, dtype=np.float32):
        self.graph = GraphBuilder()
        self.dtype = dtype

    def input(self, *shape, dtype=None, name=None):
        return Array(self, self.graph.input(shape, dtype or self.dtype, name))

    def constant(self, value):
        return Array(self, self.graph.constant(value))

    def __call__(self, op, *args, **params):
        operands = [arg.var if isinstance(arg, Array) else arg for arg in args]
        hollow = [np.zeros(arg.shape, arg.dtype) if isinstance(arg, Array) else arg for arg in args]
        with np.errstate(all="ignore"):
            result = np.asarray(evaluate(op, hollow, params)) if op in _ORACLES else _abstract(op, hollow, params)
        return Array(self, self.graph.apply(op, operands, result.shape, result.dtype, params))

    def build(self, *outputs, updates=()) -> Graph:
        pairs = [(target.var, value.var) for target, value in updates]
        return self.graph.build([out.var if isinstance(out, Array) else out for out in outputs], pairs)


def _abstract(op, args, params):
    from glassgrad.ops.core import REGISTRY

    return REGISTRY[op].abstract(*args, **params)


def evaluate(op, args, params):
    """Compute one instruction with NumPy."""
    from glassgrad.ops.core import REGISTRY

    return _ORACLES[op](*args, **params) if op in _ORACLES else REGISTRY[op].evaluate(*args, **params)


def _erf(x):
    from scipy.special import erf

    return erf(x)


_ORACLES = {
    "erf": _erf,
    "prod": lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims),
    "round": np.round, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "remainder": np.remainder,
    "signbit": np.signbit,
}  # fmt: skip  # a table


def interpret(graph: Graph, arrays):
    """Return (outputs, values of the updates) of a graph, computed with NumPy and no native code."""
    values = dict(zip(graph.inputs, arrays, strict=True))
    values.update(dict(graph.constants))
    with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(native.kernels, "off", True)
        for instr in graph.instrs:
            args = [values[arg] if isinstance(arg, Var) else arg for arg in instr.inputs]
            result = evaluate(instr.op, args, instr.params)
            for var, part in zip(instr.outputs, result if len(instr.outputs) > 1 else [result], strict=True):
                values[var] = np.asarray(part, var.dtype)
    return [values[out] for out in graph.outputs], [values[value] for _, value in graph.updates]


def agree(got, want, rtol=None, scale=None):
    """Assert that two arrays agree: tolerance by dtype, NaN and Inf in the same places."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return
    rtol = rtol or (1e-5 if want.dtype == np.float32 else 1e-12)
    finite = np.abs(want[np.isfinite(want)])
    size = scale if scale is not None else (finite.max() if finite.size else 0.0)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * size)


def random_inputs(graph: Graph, seed=0):
    """Return an array for every input: normal numbers, booleans, indices below the smallest extent indexed."""
    rng = np.random.default_rng(seed)
    bound = _smallest_extent(graph)
    arrays = []
    for var in graph.inputs:
        if var.dtype.kind == "f":
            arrays.append(rng.normal(size=var.shape).astype(var.dtype))
        elif var.dtype.kind == "b":
            arrays.append(rng.random(var.shape) < 0.5)
        else:
            arrays.append(rng.integers(0 if var.dtype.kind == "u" else -bound, bound, var.shape).astype(var.dtype))
    return arrays


def _smallest_extent(graph):
    sizes = [min(var.shape) for var in graph.inputs if var.dtype.kind == "f" and var.shape]
    return min(sizes, default=5)
