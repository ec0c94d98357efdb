"""Messages of the native backend: calls of a compiled step."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, GlassgradError, IndexRangeError, KindError, Message


class GraphError(GlassgradError, RuntimeError):
    """A program in the compiler is inconsistent."""


class LinkError(GraphError):
    """Native code calls a function that this process lacks."""


STEP_ARGUMENT_COUNT = Message(
    KindError,
    "a native step takes {expected} arrays, given {given}.\n"
    "Next: pass one array for every input of the graph, in order; `step.inputs` lists them.",
)

STEP_ARGUMENT = Message(
    KindError,
    "argument {number} of a native step ({name}) is {given}, expected {expected}.\n"
    "Next: convert it with numpy.asarray(x, dtype), or lower a graph for this type.",
)

STEP_STATE = Message(
    ArgumentError,
    "argument {number} of a native step ({name}) is written to in place, so it has to be a writeable, contiguous array.\n"
    "Next: pass numpy.ascontiguousarray(x) and keep that array.",
)

STEP_INDEX = Message(
    IndexRangeError,
    "index {index} is out of range for an axis of extent {extent} (input {name}, used at {where}).\n"
    "Expected: between {low} and {high}. Nothing was computed.\n"
    "Next: find where these indices come from.",
)

STEP_COMPUTED_INDEX = Message(
    IndexRangeError,
    "an index that the step computes at {where} was out of range for its axis.\n"
    "The step changed no state.\nNext: run the step eagerly to see the index.",
)

GRAPH_MALFORMED = Message(
    GraphError,
    "the traced program is malformed at {what}{where}: {problem}.\n"
    "Expected: every value defined once, before its use, with the type its primitive gives.\n"
    "Next: this is a fault of the compiler, not of the step; please report it with the step that was compiled.",
)

FUNCTIONS_MISSING = Message(
    LinkError,
    "native code would call {names}, but no loaded library has such a function",
)

BLAS_UNKNOWN = Message(
    ArgumentError,
    "the environment variable GLASSGRAD_BLAS is {given!r}.\n"
    "Expected: 'own', 'openblas' or 'mkl'; unset, the best one is chosen.",
)

BLAS_MISSING = Message(
    ArgumentError,
    "the environment variable GLASSGRAD_BLAS requests {given!r}, which was not found or cannot run on one thread here.\n"
    "Next: pip install 'glassgrad[mkl]' for MKL, SciPy's wheel for OpenBLAS; or leave the variable unset.",
)

ISA_UNKNOWN = Message(
    ArgumentError,
    "the environment variable GLASSGRAD_ISA is {given!r}.\n"
    "Expected: 'avx2'; unset, native code uses all instructions of the processor.",
)

ISA_MISSING = Message(
    ArgumentError,
    "the environment variable GLASSGRAD_ISA requests {given!r}, which this processor ({cpu}) does not have.\n"
    "Next: leave the variable unset.",
)
