"""The exception types, and `Message`, the class of every entry."""

from __future__ import annotations


class GlassgradError(Exception):
    """Base of all errors that glassgrad raises on purpose."""

    _meant = True  # see `tracebacks`


class AutogradError(GlassgradError, RuntimeError):
    """A gradient cannot be computed. A `RuntimeError`, as in PyTorch."""


class ShapeError(GlassgradError, ValueError, RuntimeError):
    """Shapes do not match. A `ValueError`, as in NumPy, and a `RuntimeError`, as in PyTorch."""


class ArgumentError(GlassgradError, ValueError):
    """An argument has the right type but an invalid value."""


class KindError(GlassgradError, TypeError):
    """An argument has an invalid type."""


class DtypeError(KindError, RuntimeError):
    """Numbers of this dtype do not fit. A `TypeError`, as in NumPy, and a `RuntimeError`, as in PyTorch."""


class NoValueError(KindError):
    """Values were requested before they exist: inside vmap, or while a step is traced."""


class IndexRangeError(GlassgradError, IndexError):
    """An index or a dimension is out of range."""


class FileError(GlassgradError, OSError):
    """A file cannot be written."""


class MissingError(GlassgradError, AttributeError):
    """A name exists in PyTorch or NumPy but not in glassgrad."""


class NoFormulaError(GlassgradError, NotImplementedError):
    """A distribution has no formula for the requested quantity."""


class ProcessError(GlassgradError):
    """A process of `multiprocessing.spawn` failed."""

    error_index: int  # the rank of the process
    error_pid: int
    exit_code: int


class ProcessRaisedError(ProcessError):
    """A process of `multiprocessing.spawn` raised an exception; the message has its traceback."""


class ProcessExitedError(ProcessError):
    """A process of `multiprocessing.spawn` ended by itself, or by a signal, whose name is `signal_name`."""

    signal_name: str | None = None


class GradientLostWarning(UserWarning):
    """A tensor was made from the values of tensors that require gradients; a function would have kept the graph."""


class NonLeafGradWarning(UserWarning):
    """`.grad` was read on a non-leaf tensor that does not retain it."""


class RemovalWarning(FutureWarning):
    """A name is deprecated; a later version removes it. A `FutureWarning`, which Python shows by default."""


class IdleStepWarning(UserWarning):
    """An optimizer's step changed nothing, because no parameter had a gradient."""


class HiddenBranchWarning(RuntimeWarning):
    """A backward pass turned a cotangent of 0 into NaN, as in a branch that `where` does not take."""


class Message:
    """One message: a call with the facts builds the exception."""

    __slots__ = ("kind", "template")

    def __init__(self, kind: type[Exception], template: str) -> None:
        self.kind = kind
        self.template = template

    def __call__(self, **facts: object) -> Exception:
        from glassgrad.errors.tracebacks import tell

        tell()
        return self.kind(self.text(**facts))

    def text(self, **facts: object) -> str:
        """Return the message as a string, for warnings."""
        return self.template.format(**facts)
