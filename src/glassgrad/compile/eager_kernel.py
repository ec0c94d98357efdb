"""One primitive or formula as native code, for eager ops that are slow in NumPy (`ops/kernels/native.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.compile.ir.graph import Graph, GraphBuilder, Shape
from glassgrad.compile.native import cache_entry
from glassgrad.compile.native.common_memory import COMMON
from glassgrad.compile.native.runtime import available_cores
from glassgrad.compile.plan.indexing.bounds import Computed, IndexCheck
from glassgrad.engine.terms import Evaluator, Term
from glassgrad.ops.core import Array, Primitive

if TYPE_CHECKING:
    from glassgrad.compile.native import chunks, updates
    from glassgrad.compile.native.executable import NativeStep


class Kernel:
    """Native code of one primitive or formula, for C-contiguous arrays.

    Calling it returns a new array, the first result.
    """

    __slots__ = ("_chunks", "_step")

    def __init__(self, step: NativeStep) -> None:
        self._step = step
        self._chunks: dict[int, chunks.Chunks] = {}
        step.share(COMMON)

    def __call__(self, *arrays: Array) -> Array:
        return self._step(*arrays)[0]

    def loop(self, arrays: int, shares: int) -> updates.Loop | None:
        """Return the loop that runs this kernel on all chunks of many arrays; see `updates.Loop`."""
        from glassgrad.compile.native import updates  # only optimizers need it

        return updates.loop(self._step, arrays, shares)

    def along(self, arrays: Sequence[Array], steps: Sequence[int], count: int, shares: int) -> None:
        """Run a kernel of one share on `count` chunks of the arrays; see `chunks.Chunks.run`."""
        found = self._chunks.get(shares)
        if found is None:
            from glassgrad.compile.native import chunks  # only formulas in rows or blocks need it

            # Check only once: kernels are looked up by dtypes, so later calls have the same ones.
            for array, var in zip(arrays, (*self._step.inputs, *self._step.outputs), strict=True):
                if array.dtype != var.dtype:  # the kernel would write out of bounds
                    raise TypeError(f"native code for {var.dtype} is given an array of {array.dtype}")
            found = self._chunks[shares] = chunks.Chunks(self._step, shares)
        found.run(arrays, steps, count)

    def into(self, arrays: tuple[Array, ...], results: tuple[Array, ...]) -> bool:
        """Compute into arrays for all results; return False, with nothing written, if some array does not fit."""
        step = self._step
        if len(arrays) != len(step.inputs) or len(results) != len(step.outputs):
            return False  # native code would read past the end of the tuple
        with step.lock:
            return not step.run(arrays + results)


def kernel_for(
    op: str | Callable[..., Term],
    types: Sequence[Any],
    shape: Shape,
    params: Mapping[str, Any],
    threads: int | None,
) -> Kernel | None:
    """Return the kernel of a primitive or formula; None if it has no native code.

    Args:
        op: the name of the primitive, or a formula of ops, such as a local derivative.
        types: the operands' shapes and dtypes; other values are passed to a formula unchanged.
        shape: the shape of a primitive's result, whose dtype follows from the operands; ignored for a formula.
            A formula may return a dictionary of new values for operands, by position; the kernel writes to those.
        params: the parameters of the primitive or formula.
        threads: the number of threads, at most that of the cores; by default as many as are worthwhile.

    Raises:
        ImportError: without llvmlite.
    """
    graph = _primitive(op, types, shape, params) if isinstance(op, str) else _formula(op, types, params)
    most = None if threads is None else min(threads, available_cores())
    # Look the kernel up here first, because a hit avoids the import of passes and stages.
    found = cache_entry.find(cache_entry.key_of(graph, most, as_it_is=False), graph, lambda: _uses(graph))
    step = _built(graph, most) if found is None else found[0]
    return Kernel(step) if step.is_plain else None


def _built(graph: Graph, threads: int | None) -> Any:
    from glassgrad.compile import backends

    return backends.build(graph, "llvm", threads, apart=True).step


def _uses(graph: Graph) -> tuple[list[IndexCheck], list[Computed]]:
    from glassgrad.compile.ir import passes
    from glassgrad.compile.plan.indexing.checks import find_checks

    return find_checks(passes.simplified(passes.decompose(graph)))


def _primitive(op: str, types: Sequence[tuple[Shape, Any]], shape: Shape, params: Mapping[str, Any]) -> Graph:
    builder = GraphBuilder(op)
    operands = [builder.input(*one) for one in types]
    output = builder.apply(op, operands, shape, np.result_type(*(dtype for _, dtype in types)), params)
    return builder.build([output])


def _formula(formula: Callable[..., Any], types: Sequence[Any], params: Mapping[str, Any]) -> Graph:
    by = _Builds(formula.__name__.strip("_<>"))
    given = [Term(by, by.builder.input(*one)) if isinstance(one, tuple) else one for one in types]
    found = formula(*given, **params)
    if isinstance(found, dict):  # operands that are written to, by position
        return by.builder.build([], [(given[at].what, one.what) for at, one in found.items()])
    return by.builder.build([one.what for one in (found if isinstance(found, tuple) else (found,))])


class _Builds(Evaluator):
    """Appends the ops of a formula to a graph; a term represents a value of the graph."""

    def __init__(self, name: str) -> None:
        self.builder = GraphBuilder(name)

    def compute(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Term:
        operands = [arg.what if type(arg) is Term else arg for arg in args]
        aval = prim.abstract(*operands, **params)
        return Term(self, self.builder.apply(prim.name, operands, aval.shape, aval.dtype, params))
