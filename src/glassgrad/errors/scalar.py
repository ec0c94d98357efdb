"""Messages about the scalar engine."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, GlassgradError, KindError, Message, ShapeError


class ScalarDivisionError(GlassgradError, ZeroDivisionError):
    """A Value is divided by zero. A `ZeroDivisionError`, as with floats."""


class ScalarOverflowError(GlassgradError, OverflowError):
    """The result of an op on Values is larger than any float. An `OverflowError`, as with floats."""


SCALAR_SLOPES = Message(
    ArgumentError,
    "Value with op {op!r} got {children} children and {slopes} slopes; backward() needs one slope per child.\n"
    "Next: Value(result, (a, b), 'name', slopes=(d_result_by_da, d_result_by_db)).",
)

SCALAR_NO_SLOPES = Message(
    ArgumentError,
    "backward() reached a Value with op {op!r} and {children} children, which has neither slopes nor a _backward.\n"
    "Next: Value(result, (a, b), 'name', slopes=(d_result_by_da, d_result_by_db)); or after it out._backward = f, a "
    "function that adds out.grad times each slope to a.grad and b.grad.",
)

SCALAR_DIVISION = Message(ScalarDivisionError, "{what} at {where}: division by zero.\nNext: {next}.")
SCALAR_OVERFLOW = Message(ScalarOverflowError, "{what} at {where}: larger than any float.\nNext: {next}.")
SCALAR_DOMAIN = Message(ArgumentError, "{what} at {where}: {why}.\nNext: {next}.")
SCALAR_OWN_OP = Message(
    KindError,
    "scalar.compile has no rule for your own op {op!r}.\n"
    "Next: write it with the ops of Value, or compute without compile.",
)

SCALAR_DOT = Message(
    ShapeError,
    "`@` of a vector with {left} values and one with {right}: a dot product needs the same number on both sides.",
)

DRAWING_SUFFIX = Message(
    ArgumentError,
    "cannot save a drawing as {path}: its suffix has to be one of {expected}.",
)

SCALAR_TRACED_NUMBER = Message(
    KindError,
    "the function under scalar.compile {what} at {file}:{line}; the outcome could differ from sample to sample, but the "
    "graph is recorded once.\nNext: use ops that choose by themselves (.relu(), .max(), abs()), or compute this outside.",
)

SCALAR_COMPILE_RESULT = Message(
    KindError,
    "the function under scalar.compile returned {given}, expected one Value.\n"
    "Next: combine several results into one, or compile one function for each.",
)

SCALAR_COMPILE_BATCH = Message(
    ShapeError,
    "a compiled scalar function was called with arrays of shapes {shapes}.\n"
    "Expected: at least one sample, arrays of shape (samples,) or (samples, numbers), and the same samples in all.",
)

SCALAR_COMPILE_COLUMNS = Message(
    ShapeError,
    "a compiled expression of {expected} inputs was called with {given} columns.",
)

SCALAR_COMPILE_ENGINE = Message(ArgumentError, "scalar.compile: engine={given!r}, expected 'auto', 'llvm' or 'numpy'.")

SCALAR_COMPILE_REDUCTION = Message(ArgumentError, "backward: reduction={given!r}, expected 'mean' or 'sum'.")

SCALAR_COMPILE_NOT_CALLED = Message(
    ArgumentError,
    "{what} of a compiled scalar function does not exist before the first call, which traces it.\nNext: call it once with a batch.",
)

SCALAR_RESULT = Message(
    KindError,
    "{owner}: the function of Values returned {given}, expected one Value.\n"
    "Next: combine several results into one, as with a loss: sum((y - t) ** 2 for y, t in zip(ys, targets)).",
)
