"""Deprecate public names: one warning at the user's line, with the replacement and the version that removes the name.

`docs/stability.md` states how long a deprecated name stays. `tests/repo/test_promise.py` fails for every entry of
`DEPRECATIONS` whose version has come (`overdue`), so a name cannot outlive its own announcement.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from glassgrad.base import provenance

Target = TypeVar("Target", bound=Callable[..., object])
Takes = ParamSpec("Takes")
Result = TypeVar("Result")


class Deprecation(NamedTuple):
    """A name that goes: what replaces it, since which version it warns, and which version lacks it."""

    name: str
    instead: str
    since: str
    removed_in: str

    def warn(self, **facts: str) -> None:
        """Warn at the user's line; `facts` fill the braces of a name that stands for several."""
        from glassgrad.errors.kinds import RemovalWarning
        from glassgrad.errors.nn import DEPRECATED

        name, instead = self.name.format(**facts), self.instead.format(**facts)
        text = DEPRECATED.text(name=name, instead=instead, since=self.since, removed_in=self.removed_in)
        warnings.warn(text, RemovalWarning, stacklevel=provenance.stack_level())


DEPRECATIONS: dict[str, Deprecation] = {}
"""All entries by name, from when their modules are imported."""


def deprecate(name: str, *, instead: str, since: str, removed_in: str) -> Deprecation:
    """Announce that a name goes, and return the entry whose `warn` says so.

    Args:
        name: the name as users write it; `{}`-fields stand for parts that vary.
        instead: what to write from now on, with the same fields.
        since: the version that warns first.
        removed_in: the version that lacks the name, a major one.

    Example:
        >>> from glassgrad.base.deprecation import DEPRECATIONS, deprecate
        >>> entry = deprecate("nn.Old", instead="nn.New", since="1.1", removed_in="2.0")
        >>> DEPRECATIONS.pop("nn.Old") is entry
        True
    """
    entry = DEPRECATIONS[name] = Deprecation(name, instead, since, removed_in)
    return entry


def deprecated(name: str, *, instead: str, since: str, removed_in: str) -> Callable[[Target], Target]:
    """Mark a function, a method or a class: each call (of a class: each instance) warns, and works as before.

    Takes the arguments of `deprecate`.

    Example:
        >>> import warnings
        >>> from glassgrad.base.deprecation import DEPRECATIONS, deprecated
        >>> @deprecated("double", instead="x + x", since="1.1", removed_in="2.0")
        ... def double(x):
        ...     return 2 * x
        >>> with warnings.catch_warnings(record=True) as seen:
        ...     warnings.simplefilter("always")
        ...     double(4)
        8
        >>> print(seen[0].message)
        double is deprecated since glassgrad 1.1 and will be removed in 2.0; write x + x
        >>> _ = DEPRECATIONS.pop("double")
    """
    entry = deprecate(name, instead=instead, since=since, removed_in=removed_in)

    def mark(target: Target) -> Target:
        if not isinstance(target, type):
            return cast("Target", _warning(entry, target))
        owner = cast("Any", target)
        owner.__init__ = _warning(entry, owner.__init__)
        return target

    return mark


def _warning(entry: Deprecation, function: Callable[Takes, Result]) -> Callable[Takes, Result]:
    @functools.wraps(function)
    def warned(*args: Takes.args, **keywords: Takes.kwargs) -> Result:
        entry.warn()
        return function(*args, **keywords)

    return warned


def overdue(version: str) -> list[Deprecation]:
    """Return the entries that a version must not have any more; a pre-release counts as the version it leads to.

    Example:
        >>> from glassgrad.base.deprecation import deprecate, overdue, DEPRECATIONS
        >>> entry = deprecate("nn.Old", instead="nn.New", since="1.1", removed_in="2.0")
        >>> [[one.name for one in overdue(version) if one is entry] for version in ("1.9.3", "2.0.0rc1")]
        [[], ['nn.Old']]
        >>> _ = DEPRECATIONS.pop("nn.Old")
    """
    return [one for one in DEPRECATIONS.values() if _numbers(version) >= _numbers(one.removed_in)]


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release of a version as numbers, without zeros at its end: 2.0.0rc1 is (2,)."""
    release = re.match(r"[0-9]+(\.[0-9]+)*", version)
    numbers = [int(part) for part in release[0].split(".")] if release else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


__all__ = ["DEPRECATIONS", "Deprecation", "deprecate", "deprecated", "overdue"]
