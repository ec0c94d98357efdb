"""Functions on small arrays whose NumPy calls are recorded once, and made by one native call from then on.

What a small network computes takes less time than asking NumPy for it. A `Replay` runs its function as it is at first.
Once shapes come again and again, what the function does with them is recorded, and native code makes the same calls of
NumPy's loops and BLAS without the interpreter: every number is the same to the last bit. A record is compared with the
function, on several numbers, before it is used. Threads share records: native code keeps the interpreter to itself.

The function runs where NumPy would warn or raise, or might if `numpy.errstate` did not tell it to be silent, for
arguments of other kinds, where llvmlite is missing, and with ``GLASSGRAD_NATIVE=0``.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad.ops.kernels.recording import (
    Record,
    Unrecordable,
    copy_of,
    is_constant,
    is_recording,
    others_like,
    record,
)

MOST = 32_768  # elements: for larger arrays the calls themselves take longer than asking for them
_REMEMBERED = 256  # kinds of arguments that are counted
_CHOICES = 32  # of options of a function
_OPTIONS = frozenset({float, int, bool, str, type(None)})
_PAUSE = 4_000  # calls that nobody counts after too many kinds
_ENOUGH_RUNS = 1_000  # of one kind of arguments, for a function of which nothing could be recorded
_ENOUGH = 4  # kinds that could not be recorded, for a function of which none could


def load() -> Any:
    """Return the module that makes records native; `native`, which stands above, puts its function here."""
    raise ImportError


class Settings:
    """When recording begins: what native code saves has to make up for loading it.

    Attributes:
        first: how often functions that could be recorded have to run before native code is loaded.
        repeats: how often shapes have to come again before they are recorded.
        most: records of a function.
        runs: how often they have run so far.
        off: whether nothing is recorded.
    """

    def __init__(self) -> None:
        self.first, self.repeats, self.most = 4_000, 16, 32
        self.runs = 0
        self.off = os.environ.get("GLASSGRAD_NATIVE", "") == "0"


settings = Settings()


class Replay:
    """A function whose calls are replayed.

    Args:
        function: takes arrays, floats and constants, and returns a new array, a tuple of several, or None. What it does
            depends on shapes and dtypes alone, not on the numbers. A record holds for any objects that it is given
            besides if it does not use them.
        written: positions of the arrays that it writes to.

    Attributes:
        run: the function, or what takes its place.
        records: how many there are.
    """

    __slots__ = ("_function", "_latest", "_latest_results", "_refused", "_rest", "_seen", "_written", "records", "run")

    def __init__(self, function: Callable[..., Any], written: Sequence[int] = ()) -> None:
        self._function, self._written = function, tuple(written)
        self._seen: dict[Any, int] = {}  # how often arguments of a kind came
        self._refused = self._rest = 0
        self._latest: Any = None  # the record that native code looks at first
        self._latest_results: int | None = None  # how many arrays it returns
        self.records = 0
        self.run: Callable[..., Any] = self._plainly

    def _plainly(self, *args: Any) -> Any:
        """Run the function; record it where it has run on arguments like these again and again."""
        now = settings
        now.runs += 1
        if now.off:
            self.run = self._function
        if self._rest or now.runs < now.first or now.off or not _are_small(args):
            self._rest -= self._rest > 0
            return self._function(*args)
        key = tuple([_kind(one) for one in args])
        seen = self._seen[key] = self._seen.get(key, 0) + 1
        if seen == now.repeats and self.records < now.most:
            if is_recording():
                self._seen[key] = seen - 1
            else:
                self._record(args)
        elif seen > _ENOUGH_RUNS and not self.records:
            self.run = self._function
        elif len(self._seen) > _REMEMBERED:  # sizes that change from call to call
            self._seen.clear()
            self._rest = _PAUSE
        return self._function(*args)

    def _record(self, args: tuple[Any, ...]) -> None:
        """Record the function, and replay it from now on if that gives the same bits, also for other numbers."""
        try:
            found, others = self._recorded(args), others_like(args)
            same = found.is_like(self._recorded(others[0])) and self._agree(found, args, others)
            # Native code makes a tuple before it knows which record fits: all have as many results.
            same = same and self._latest_results in (None, len(found.results))
        except Exception:  # noqa: BLE001 - Unrecordable, or an error that the function raises when it runs as itself
            same = False
        if same:
            self._latest = _made(found, self._plainly, self._latest)
            self._latest_results = len(found.results)
            self.records += 1
            self.run = self._latest.function
        else:
            self._refused += 1
            if not self.records and self._refused >= _ENOUGH:
                self.run = self._function

    def _recorded(self, args: tuple[Any, ...]) -> Record:
        with np.errstate(all="ignore"):  # it warns when it runs as itself
            return record(self._function, args, self._written)

    def _agree(self, found: Record, args: tuple[Any, ...], others: list[tuple[Any, ...]]) -> bool:
        """Tell whether a record does to the last bit what the function does; where NumPy would warn, it need not."""
        trial = _made(found, _none, None)
        if trial is None:
            return False
        for given in (args, *others):
            ours, theirs = [[copy_of(one) if type(one) is np.ndarray else one for one in given] for _ in range(2)]
            result = trial.function(*ours)
            if result is NotImplemented:
                if given is args:
                    return False
                continue
            with np.errstate(all="ignore"):
                expected = self._function(*theirs)
            if (result is True) != (expected is None) or (type(result) is tuple) != (type(expected) is tuple):
                return False
            pairs = [(ours[at], theirs[at]) for at in self._written]
            pairs += zip(_listed(None if result is True else result), _listed(expected), strict=True)
            if not all(_equal(*pair) for pair in pairs):
                return False
        return True


class Replays:
    """A function with options: a `Replay` for each choice of them.

    Args:
        function: as that of a `Replay`, with options besides.
    """

    __slots__ = ("_by_options", "_latest", "function", "plain")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.plain = Replay(function)  # without options
        self._by_options: dict[Any, Replay] = {}
        self._latest: tuple[tuple[Any, ...], Replay | None] = ((), None)

    def of(self, options: dict[str, Any]) -> Replay | None:
        """Return the replay for some options; None for those of other types, zeros, whose signs count, and too many."""
        values = tuple(options.values())
        known, latest = self._latest
        if len(known) == len(values) and all(map(operator.is_, known, values)):
            return latest
        if not _OPTIONS.issuperset(map(type, values)) or any(one == 0 and type(one) is float for one in values):
            return None
        key = (*options, *map(type, values), *values)  # 1 and 1.0 are equal, but make other dtypes
        found = self._by_options.get(key)
        if found is None and len(self._by_options) < _CHOICES:
            found = self._by_options[key] = Replay(functools.partial(self.function, **options))
        self._latest = values, found
        return found


def replayed_pair(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule ``(c, y, a, b)`` of an op of two arguments whose calls are replayed for arrays.

    Not so with an integer, such as the exponent of ``x ** 2``, which no record holds.
    """
    replay = Replay(rule)
    return lambda c, y, a, b: (replay.run if type(c) is np.ndarray and type(b) is not int else rule)(c, y, a, b)


def _made(found: Record, otherwise: Callable[..., Any], following: Any) -> Any:
    """Return a record as native code; None where there is none."""
    try:
        maker = load()
    except ImportError:  # no llvmlite
        settings.off = True
        return None
    try:
        return maker.Replayed(found, otherwise, following)
    except Unrecordable:
        return None
    except (maker.Unavailable, OSError, RuntimeError):
        settings.off = True
        return None


def _none(*_args: Any) -> Any:
    """Stand in for the function while its record is compared with it."""
    return NotImplemented


def _are_small(args: tuple[Any, ...]) -> bool:
    return all(0 < one.size <= MOST for one in args if type(one) is np.ndarray)


def _kind(one: Any) -> Any:
    """Return what a record knows an argument by."""
    if type(one) is np.ndarray:
        return one.shape, one.strides, one.dtype
    return one if is_constant(one) else float if type(one) is float else NotImplemented


def _listed(found: Any) -> Sequence[Any]:
    return found if type(found) is tuple else () if found is None else (found,)


def _equal(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())


__all__ = ["MOST", "Replay", "Replays", "replayed_pair", "settings"]
