"""`scalar.compile`: a function of Values becomes one native function over a batch of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad import errors

if TYPE_CHECKING:
    from glassgrad.scalar import Value
    from glassgrad.scalar.program import Program, Row

_data = attrgetter("data")


def compile(function: Callable[..., Any] | Value, inputs: Sequence[Value] = (), engine: str = "auto") -> Compiled:
    """Compile a function of one sample, to be called with a batch.

    `function` takes Values (for a 1-D argument) or lists of Values (for the rows of a 2-D one) and
    returns one Value. It is run once, on the first sample; the graph it builds is compiled. Values that
    existed before are its parameters: every call reads their values and writes their gradients.
    An existing expression can be given instead; `inputs` are its Values to replace by the batch.

    `engine` is "llvm" (needs llvmlite), "numpy" (a generated NumPy program) or "auto". Where a Python
    float raises (log(0)), compiled code follows IEEE 754 instead and gives -inf or nan.

    Raises if the function compares Values or reads their `data`, since the outcome may differ per sample.

        >>> from glassgrad import scalar
        >>> w = scalar.Value(3.0)
        >>> square = scalar.compile(lambda x: (w * x) ** 2)
        >>> square([1.0, 2.0]).tolist()
        [9.0, 36.0]
        >>> square.backward([1.0, 2.0])  # the mean; its gradient is added to w.grad
        22.5
        >>> w.grad
        15.0
    """
    if engine not in {"auto", "llvm", "numpy"}:
        raise errors.SCALAR_COMPILE_ENGINE(given=engine)
    return Compiled(function, inputs, engine)


class Compiled:
    """A compiled function of a batch. `source` is readable NumPy, `llvm` the text of the native code."""

    def __init__(self, function: Callable[..., Any] | Value, inputs: Sequence[Value], engine: str) -> None:
        self.function, self.inputs, self.engine = function, inputs, engine
        self.llvm: str | None = None
        self._built: dict[tuple[int, ...], tuple[Program, Callable[..., Any]]] = {}
        self._latest: Program | None = None

    def __call__(self, *batch: Any) -> Any:
        """Return the function's value for every sample, an array of shape (samples,)."""
        result, _ = self._run(batch, 0.0)
        return result

    def backward(self, *batch: Any, reduction: str = "mean") -> float:
        """Return the mean (or "sum") over the batch and add its gradient to every parameter's `grad`."""
        if reduction not in {"mean", "sum"}:
            raise errors.SCALAR_COMPILE_REDUCTION(given=reduction)
        result, add_gradients = self._run(batch, 1.0 if reduction == "sum" else None)
        add_gradients()
        return float(result.mean() if reduction == "mean" else result.sum())

    @property
    def source(self) -> str:
        """The program of the latest call, as NumPy source."""
        from glassgrad.scalar.emit_numpy import source_of

        if self._latest is None:
            raise errors.SCALAR_COMPILE_NOT_CALLED(what="source")
        return source_of(self._latest)

    def parameters(self) -> list[Value]:
        """The Values that the function uses and that existed before it was traced."""
        if self._latest is None:
            raise errors.SCALAR_COMPILE_NOT_CALLED(what="parameters()")
        return self._latest.leaves

    def _run(self, batch: tuple[Any, ...], seed: float | None) -> tuple[Any, Callable[[], None]]:
        arrays = [np.asarray(part, dtype=np.float64) for part in batch]
        samples = arrays[0].shape[0] if arrays and arrays[0].ndim else 1
        if any(a.ndim not in {1, 2} or a.shape[0] != samples for a in arrays) or not samples:
            raise errors.SCALAR_COMPILE_BATCH(shapes=", ".join(str(a.shape) for a in arrays))
        key = tuple(a.shape[1] if a.ndim == 2 else 0 for a in arrays)
        if key not in self._built:
            self._built[key] = self._build([a[0].tolist() for a in arrays])
        program, run = self._built[key]
        self._latest = program
        columns = [column for a in arrays for column in (a.T if a.ndim == 2 else [a])]
        leaves = np.fromiter(map(_data, program.leaves), np.float64, len(program.leaves))
        result, gradients = run(columns, leaves, np.full(samples, 1.0 / samples if seed is None else seed))

        def add_gradients() -> None:
            for leaf, gradient in zip(program.leaves, np.asarray(gradients).tolist(), strict=True):
                leaf.grad += gradient

        return result, add_gradients

    def _build(self, row: Row) -> tuple[Program, Callable[..., Any]]:
        from glassgrad.scalar import emit_numpy, tracing

        if callable(self.function):
            program = tracing.trace(self.function, row)
        else:
            program = tracing.trace_expression(self.function, self.inputs)
            columns = sum(len(part) if isinstance(part, list) else 1 for part in row)
            if columns != len(self.inputs):
                raise errors.SCALAR_COMPILE_COLUMNS(given=columns, expected=len(self.inputs))
        if self.engine != "numpy":
            try:
                from glassgrad.scalar import emit_llvm

                run, self.llvm = emit_llvm.build(program)
                return program, run
            except ImportError:
                if self.engine == "llvm":
                    raise
        run, _ = emit_numpy.build(program)
        return program, run
