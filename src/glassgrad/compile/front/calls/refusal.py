"""Calls that cannot be compiled: who caused the error, how it is reported, what is restored before an eager run.

An error on the way to a program is the user's own (a shape that does not fit, a `raise` in the function), a refusal
(the function needs numbers that do not exist while it is traced), or a failure of the compiler. Only the first is
raised, as in eager mode; after the others the call runs eagerly.
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
# What says something about the user's arguments, in tracing as in eager mode. Errors about the kind of a value are not
# among them: a Symbol is of another kind than the array it stands for. A warning is raised where a filter says so.
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
        error: why; None for a call of a kind that was refused before.
        certain: whether eager mode is known to do without this error. If not, the error is reported only after eager
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
    """Return what an exception that is not the user's own means for a call with this signature."""
    if not isinstance(error, RefusedError):
        return RefusedError(error, certain=isinstance(error, errors.CompileError | errors.GraphError), key=key)
    if error.key is None:
        error.key = key
    return error


def failure(error: Exception) -> RefusedError:
    """Return what an exception means after the function was traced: mostly a failure of the compiler."""
    return RefusedError(error, certain=not isinstance(error, _OWN))


def _is_raised_by_user(error: BaseException) -> bool:
    """Tell whether a `raise` or an `assert` of the user's made the exception."""
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


# --- telling --------------------------------------------------------------------------------------


def reason(error: Exception) -> str:
    """Say why a call cannot be compiled: a refusal in its own words, a failure by its op and the user's line."""
    if _speaks_for_itself(error):
        return str(error)
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"the compiler failed at {_culprit(error)} ({told.splitlines()[0].removesuffix('.')})."


def strict_error(error: Exception, *, certain: bool) -> Exception:
    """Return what `strict=True` raises: a failure of the compiler in our words, all else as it is."""
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
    # Compared by name, so that planning is not imported before something is compiled.
    kernels = [value for value in frame.f_locals.values() if type(value).__name__ == "Kernel"]
    return [*found, *(kernel.instrs[0] for kernel in kernels if kernel.instrs)]


def _primitive(frame: FrameType) -> Primitive | None:
    return next((value for value in frame.f_locals.values() if isinstance(value, Primitive)), None)
