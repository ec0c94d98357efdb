"""Loading a state as a whole: the parts are compared first; after an error everything is restored."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.train.kept.checkpoint import Stateful
from glassgrad.train.kept.weights import check_shapes

_FOREIGN = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError, RuntimeError)
"""The errors that a foreign or damaged description may cause."""


def described(part: Any) -> dict[str, Any]:
    """Return the facts of a part that must match the stored state."""
    if hasattr(part, "parameters") and hasattr(part, "state_dict") and not _is_optimizer(part):
        dtypes = {name: str(value.dtype) for name, value in part.state_dict().items() if hasattr(value, "dtype")}
        return {"dtypes": dtypes}
    found: dict[str, Any] = {}
    if type(part).__module__.partition(".")[0] == __name__.partition(".")[0]:  # users may rename their classes
        found["kind"] = type(part).__name__
    if _is_optimizer(part):
        found["parameters"] = [[list(one.shape) for one in group["params"]] for group in part.param_groups]
    inner = getattr(part, "_schedulers", None)
    if isinstance(inner, list):
        found["inner"] = [described(one) for one in inner]
    return found


def check_parts(parts: Mapping[str, Any], shapes: Mapping[str, Any], stored: Mapping[str, Any], path: Path) -> None:
    """Raise `errors.InputError` unless each part has the stored class, shapes and dtypes.

    Files written before descriptions were stored have only `shapes`.
    """
    for name, given in shapes.items():
        check_shapes(parts[name], given, path)
    for name, part in parts.items():
        own = described(part)
        for fact, given in stored.get(name, {}).items():
            if fact not in own or own[fact] == given:
                continue
            raise errors.CHECKPOINT_OTHER_KIND(path=path, name=name, **_difference(fact, given, own[fact]))


def _difference(fact: str, given: Any, own: Any) -> dict[str, Any]:
    """Describe the difference to a stored description."""
    if fact == "inner":
        given, own = ([one.get("kind") for one in many] for many in (given, own))
        fact = "schedules"
    if fact == "dtypes":
        names = [name for name in own if given.get(name) != own[name]]
        given, own = ([f"{name} {some.get(name)}" for name in names[:4]] for some in (given, own))
    return {"what": fact, "given": _text(given), "expected": _text(own)}


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@contextlib.contextmanager
def all_or_nothing(parts: Mapping[str, Stateful]) -> Iterator[None]:
    """Restore the parts if the block raises.

    It uses the parts' own states instead of the engine's snapshots, since manual learners must not load the engine.
    """
    before = [(part, copy.deepcopy(part.state_dict()), _attributes(part)) for part in parts.values()]
    try:
        yield
    except BaseException:
        for part, state, attributes in before:
            with contextlib.suppress(Exception):  # report the original error
                part.load_state_dict(state)
            for owner, values in attributes:
                vars(owner).update(values)
        raise


def _attributes(part: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Return the attributes of a part, some of which may be missing in its state, such as a loader's position."""
    inner = getattr(part, "_part", part)  # inside `AsArrays`
    return [] if _is_module(inner) or not hasattr(inner, "__dict__") else [(inner, dict(vars(inner)))]


def _is_module(part: object) -> bool:
    return hasattr(part, "named_modules")


def _is_optimizer(part: object) -> bool:
    return "param_groups" in getattr(part, "__dict__", ())


@contextlib.contextmanager
def named_as_damaged(path: Path) -> Iterator[None]:
    """Convert errors about an invalid description into one that names the file."""
    try:
        yield
    except errors.InputError:
        raise
    except _FOREIGN as error:
        raise errors.RUN_DAMAGED(path=path, reason=f"its description makes no sense ({_line(error)})") from None


@contextlib.contextmanager
def named_as_unfit(path: Path, name: str) -> Iterator[None]:
    """Convert errors about a state that does not fit into one that names the file and the part."""
    try:
        yield
    except errors.InputError:
        raise
    except _FOREIGN as error:
        raise errors.CHECKPOINT_PART_UNFIT(path=path, name=name, reason=_line(error)) from error


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{error.args[0]!r} is not there" if isinstance(error, KeyError) and error.args else text
