"""Calls that cannot be compiled: who caused the error, and how it is reported.

An error during tracing or compiling is the user's own (a shape that does not fit, a `raise` in the function), a
refusal (the function needs numbers that do not exist while it is traced), or a failure of the compiler. Only the first
is raised, as in eager mode; after the others the call runs eagerly.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from types import FrameType, TracebackType
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front.origin import Origin
from glassgrad.compile.ir.graph import Instr
from glassgrad.ops.core import Primitive

MANY = 8  # kinds of calls that failed to compile, after which no other kind is tried
# Errors about the user's arguments, the same in tracing as in eager mode. Errors about the type of a value are not
# included, because a Symbol has another type than its array. Warnings are raised if a filter turns them into errors.
_OWN = (
    errors.ShapeError,
    errors.ArgumentError,
    errors.IndexRangeError,
    errors.AutogradError,
    errors.FileError,
    Warning,
)
_RAISES = frozenset({"RAISE_VARARGS", "RERAISE"})


class RefusedError(Exception):
    """A call that has to run eagerly.

    Attributes:
        error: the reason; None for a kind of call that was refused before.
        certain: whether eager mode is known not to raise this error. If not, the error is reported only after eager
            mode succeeded.
        key: the signature of the call.
    """

    def __init__(self, error: Exception | None, *, certain: bool, key: Any = None) -> None:
        super().__init__(error)
        self.error = error
        self.certain = certain
        self.key = key


def is_own(error: Exception) -> bool:
    """Tell whether an exception from tracing or running is the user's own."""
    return not isinstance(error, RefusedError) and (isinstance(error, _OWN) or _is_raised_by_user(error))


def refusal(error: Exception, key: object) -> RefusedError:
    """Return the refusal of a call with this signature for an exception that is not the user's own."""
    if not isinstance(error, RefusedError):
        return RefusedError(error, certain=isinstance(error, errors.CompileError | errors.GraphError), key=key)
    if error.key is None:
        error.key = key
    return error


def failure(error: Exception) -> RefusedError:
    """Return the refusal for an exception after tracing, mostly a failure of the compiler."""
    return RefusedError(error, certain=not isinstance(error, _OWN))


def _is_raised_by_user(error: BaseException) -> bool:
    """Tell whether a `raise` or an `assert` in the user's code made the exception."""
    step = _innermost(error)
    if step is None or provenance.is_internal(step.tb_frame.f_code.co_filename):
        return False
    code = step.tb_frame.f_code.co_code
    return dis.opname[code[step.tb_lasti]] in _RAISES


def _steps(error: BaseException) -> Iterator[TracebackType]:
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def _innermost(error: BaseException) -> TracebackType | None:
    return next(reversed(list(_steps(error))), None)


# --- messages -------------------------------------------------------------------------------------


def reason(error: Exception) -> str:
    """Describe why a call cannot be compiled: a refusal by its message, a failure by its op and the user's line."""
    if _speaks_for_itself(error):
        return str(error)
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"the compiler failed at {_culprit(error)} ({told.splitlines()[0].removesuffix('.')})."


def strict_error(error: Exception, *, certain: bool) -> Exception:
    """Return the exception for `strict=True`: failures of the compiler are reworded, others unchanged."""
    if _speaks_for_itself(error) or not certain:
        return error
    made = errors.COMPILER_FAILED(reason=reason(error))
    made.__cause__ = error
    return made


def _speaks_for_itself(error: Exception) -> bool:
    return isinstance(error, errors.GlassgradError) and not isinstance(error, errors.GraphError)


def _culprit(error: BaseException) -> str:
    """Name the op that the compiler was processing when it failed, and the user's line it comes from."""
    steps = list(_steps(error))
    instr = next((found for step in reversed(steps) for found in _instrs(step.tb_frame)), None)
    if instr is not None and isinstance(instr.where, Origin):
        return f"{instr.op} at {instr.where.place}"
    frames = [step for step in steps if not provenance.is_internal(step.tb_frame.f_code.co_filename)]
    prims = (_primitive(step.tb_frame) for step in reversed(steps))
    op = instr.op if instr is not None else next((prim.name for prim in prims if prim is not None), "the function")
    if not frames:
        return op
    return f"{op} at {provenance.resolve(frames[-1].tb_frame.f_code, frames[-1].tb_lasti)}"


def _instrs(frame: FrameType) -> Iterable[Instr]:
    """Return the instructions that a frame of the compiler was processing."""
    if not frame.f_code.co_filename.startswith(provenance.PACKAGE):
        return ()
    found = [value for value in frame.f_locals.values() if isinstance(value, Instr)]
    # Compare by name, to avoid importing the planner before anything is compiled.
    kernels = [value for value in frame.f_locals.values() if type(value).__name__ == "Kernel"]
    return [*found, *(kernel.instrs[0] for kernel in kernels if kernel.instrs)]


def _primitive(frame: FrameType) -> Primitive | None:
    return next((value for value in frame.f_locals.values() if isinstance(value, Primitive)), None)
