"""The exception types, and `Message`, which every entry is."""

from __future__ import annotations


class GlassgradError(Exception):
    """Base of all errors that glassgrad raises on purpose."""


class AutogradError(GlassgradError, RuntimeError):
    """A gradient was asked for that cannot be given. A `RuntimeError`, as in PyTorch."""


class ShapeError(GlassgradError, ValueError, RuntimeError):
    """Shapes that do not fit together. A `ValueError`, as in NumPy, and a `RuntimeError`, as in PyTorch."""


class ArgumentError(GlassgradError, ValueError):
    """An argument with the right type and an impossible value."""


class KindError(GlassgradError, TypeError):
    """An argument of a type that cannot work here."""


class NoValueError(KindError):
    """Numbers were asked for where there are none yet: inside vmap, or while a step is traced."""


class IndexRangeError(GlassgradError, IndexError):
    """An index or a dimension that is out of range."""


class FileError(GlassgradError, OSError):
    """A file that cannot be written."""


class MissingError(GlassgradError, AttributeError):
    """A name that PyTorch or NumPy has and glassgrad has not."""


class NoFormulaError(GlassgradError, NotImplementedError):
    """A distribution was asked for something that it has no formula for."""


class GradientLostWarning(UserWarning):
    """Numbers were taken out of tensors that require a gradient, where a function would have kept it."""


class NonLeafGradWarning(UserWarning):
    """`.grad` was read on a tensor that does not keep one."""


class Message:
    """One message: calling it with the facts builds the exception."""

    __slots__ = ("kind", "template")

    def __init__(self, kind: type[Exception], template: str) -> None:
        self.kind = kind
        self.template = template

    def __call__(self, **facts: object) -> Exception:
        return self.kind(self.text(**facts))

    def text(self, **facts: object) -> str:
        """Return the message as a string, for warnings."""
        return self.template.format(**facts)
