"""One primitive or formula as native code, for eager ops that take NumPy long (`ops/kernels/native.py`)."""

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
    """Native code of one primitive or formula, for arrays in row order.

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
        """Return what runs this kernel on all chunks of many arrays; see `updates.Loop`."""
        from glassgrad.compile.native import updates  # only optimizers need it

        return updates.loop(self._step, arrays, shares)

    def along(self, arrays: Sequence[Array], steps: Sequence[int], count: int, shares: int) -> None:
        """Run a kernel of one share on so many chunks of arrays for its inputs and results; see `chunks.Chunks.run`."""
        found = self._chunks.get(shares)
        if found is None:
            from glassgrad.compile.native import chunks  # only formulas in rows or blocks need it

            # Arrays of later calls are of the dtypes of the first: both are what the kernel was asked for by.
            for array, var in zip(arrays, (*self._step.inputs, *self._step.outputs), strict=True):
                if array.dtype != var.dtype:  # it would write beyond the end
                    raise TypeError(f"native code for {var.dtype} is given an array of {array.dtype}")
            found = self._chunks[shares] = chunks.Chunks(self._step, shares)
        found.run(arrays, steps, count)

    def into(self, arrays: tuple[Array, ...], results: tuple[Array, ...]) -> bool:
        """Compute into arrays for all results; return False, with nothing written, if some array does not fit."""
        step = self._step
        if len(arrays) != len(step.inputs) or len(results) != len(step.outputs):
            return False  # native code would read beyond the end of the tuple
        with step.lock:
            return not step.run(arrays + results)


def kernel_for(
    op: str | Callable[..., Term],
    types: Sequence[Any],
    shape: Shape,
    params: Mapping[str, Any],
    threads: int | None,
) -> Kernel | None:
    """Return the kernel of a primitive or formula; None where it has no native code.

    Args:
        op: the name of the primitive, or a formula of ops, such as a local derivative.
        types: the operands' shapes and dtypes; what is no pair a formula gets as it is.
        shape: the result's; its dtype is that of the operands. A formula decides for itself. It may return a dictionary
            of new values for operands, by their places, and the kernel writes to these.
        params: of the primitive or formula.
        threads: how many to run on, at most as many as there are cores; by default as many as pay.

    Raises:
        ImportError: without llvmlite.
    """
    graph = _primitive(op, types, shape, params) if isinstance(op, str) else _formula(op, types, params)
    most = None if threads is None else min(threads, available_cores())
    # Looked for here already: where a kernel is found, neither passes nor stages are even imported.
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
    if isinstance(found, dict):  # operands that are written to, by their places
        return by.builder.build([], [(given[at].what, one.what) for at, one in found.items()])
    return by.builder.build([one.what for one in (found if isinstance(found, tuple) else (found,))])


class _Builds(Evaluator):
    """Appends what a formula computes to a graph; a term stands for a value of it."""

    def __init__(self, name: str) -> None:
        self.builder = GraphBuilder(name)

    def compute(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Term:
        operands = [arg.what if type(arg) is Term else arg for arg in args]
        aval = prim.abstract(*operands, **params)
        return Term(self, self.builder.apply(prim.name, operands, aval.shape, aval.dtype, params))
