"""The mode of the current thread: ops are recorded, not recorded, or traced for the compiler."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from glassgrad.ops.core import Array
from glassgrad.ops.vmap.batched import Level

_Function = TypeVar("_Function", bound=Callable[..., Any])

RECORDING = 1  # ops on tensors that require a gradient are recorded
TRACING = 2  # a compiler's tracer is running: tensors are lifted to Symbols at first touch
WATCHED = 4  # watchers decide what nodes keep: hooks on saved values, checkpoints (see saved_tensors.py)
ANOMALY = 8  # every op and every cotangent is checked (see walks/anomaly.py)
AUTOCAST = 32  # some ops round their operands to bfloat16 (see autocasting.py)
FINITE = 16  # compiled steps report whether the weights they write are finite (see compile/front/finite.py)

KEYED = RECORDING | FINITE | AUTOCAST  # the flags that select among a compiled function's traces


class _Mode(threading.local):
    """The mode of the current thread; the hot path reads only `flags`."""

    flags = RECORDING
    lift: Callable[..., None] | None = None  # tensor -> its array becomes a Symbol
    lift_number: Callable[[dict[str, Any], str], Any] | None = None  # an option -> a Symbol
    draws: Callable[[Any], Any] | None = None  # a Generator -> a stream whose draws are inputs of the program
    replay: Callable[[Callable[[], Any], Any], None] | None = None  # code to run in every call, and its owner
    once: Callable[[], None] | None = None  # says that the traced code runs in the first call only
    observer: Any = None  # a `tape.Observer` of the backward walks of a trace
    finite: Any = None  # report of the latest step under FINITE: an array of one number, NaN if a weight was not finite
    witness: Any = None  # notified of backward passes and optimizer steps
    stop: Callable[[Any], Any] | None = None  # an array -> the same one, marked as off the tape
    whole: frozenset[str] = frozenset()  # composites that a trace keeps as one op if nothing is recorded
    levels: tuple[Level, ...] = ()  # the calls of vmap that are running, outermost first
    watchers: tuple[Any, ...] = ()  # active watchers, outermost first
    part: Any = None  # the checkpointed part of a program that is being traced

    def saved(self) -> dict[str, Any]:
        """Return this thread's settings, for `restore`."""
        return dict(self.__dict__)

    def restore(self, saved: dict[str, Array]) -> None:
        """Restore settings that `saved` returned."""
        self.__dict__.clear()
        self.__dict__.update(saved)

    moved: list[Any] | None = None  # inside a transform: weak references to tensors whose writes are on the tape


MODE = _Mode()


class _Switch:
    """A context manager and decorator that sets whether ops are recorded in this thread."""

    recording: bool

    def __init__(self, mode: bool | None = None) -> None:
        if mode is not None:
            self.recording = bool(mode)
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(MODE.flags)
        MODE.flags = MODE.flags | RECORDING if self.recording else MODE.flags & ~RECORDING

    def __exit__(self, *_exception: object) -> None:
        MODE.flags = self._before.pop()

    def __call__(self, function: _Function) -> _Function:
        switch = type(self)

        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> Any:
            with switch(self.recording):
                return function(*args, **kwargs)

        return cast("_Function", wrapped)


class no_grad(_Switch):  # noqa: N801 - PyTorch's name
    """Ops inside are not recorded: a context manager and a decorator, for the current thread only.

    Args:
        args: nothing; or the decorated function (`@gg.no_grad` works without brackets); or a `mode`, as for
            `enable_grad`.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.ones(2, requires_grad=True)
        >>> with gg.no_grad():
        ...     print((w * 2).requires_grad)
        False
    """

    recording = False

    def __new__(cls, *args: Any) -> Any:
        # `@no_grad` without brackets is accepted too.
        if args and callable(args[0]):
            return super().__new__(cls).__call__(args[0])
        return super().__new__(cls)


class enable_grad(_Switch):  # noqa: N801 - PyTorch's name
    """Ops inside are recorded again, also within `no_grad`.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.ones(2, requires_grad=True)
        >>> with gg.no_grad(), gg.enable_grad():
        ...     (x * 2).requires_grad
        True
    """

    recording = True


class set_grad_enabled(_Switch):  # noqa: N801 - PyTorch's name
    """Set recording on or off, at once and, as a context manager, until the block ends.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.ones(2, requires_grad=True)
        >>> with gg.set_grad_enabled(False):
        ...     (x * 2).requires_grad
        False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._outer = MODE.flags
        super().__enter__()
        self._before = [self._outer]

    def __enter__(self) -> None:
        return None


def is_grad_enabled() -> bool:
    """Tell whether ops on tensors that require gradients are recorded in this thread."""
    return bool(MODE.flags & RECORDING)


def is_anomaly_enabled() -> bool:
    """Tell whether anomaly mode is on in this thread."""
    return bool(MODE.flags & ANOMALY)
