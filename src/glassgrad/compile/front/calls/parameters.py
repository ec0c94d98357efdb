"""The parameters of a compiled function: their names, and calls in normal form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Leaves = list[Any]  # of the arguments of a call, in order
Kind = tuple[Any, ...]  # of a leaf: a word, and what a trace depends on
Signature = tuple[int | str, tuple[Kind, ...], int]  # the structure of the arguments, their kinds, and the mode


def parameter_names(function: Function) -> list[str]:
    """Return the names of a function's parameters, as far as known; for a module, those of `forward`."""
    try:
        return list(inspect.signature(getattr(function, "forward", function)).parameters)
    except (TypeError, ValueError):
        return []


def plain_parameters(function: Function) -> tuple[str, ...]:
    """Return the names of a function's parameters if each can be passed by position and by name, else none."""
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters
    except (TypeError, ValueError):
        return ()
    plain = all(one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for one in parameters.values())
    return tuple(parameters) if plain else ()


def placed(args: Args, kwargs: Kwargs, names: tuple[str, ...]) -> tuple[Args, Kwargs]:
    """Return a call with its keyword arguments turned into positional ones, as far as they are consecutive.

    ``f(x, y=1)`` is the same program as ``f(x, 1)``, and the order of names does not matter.
    """
    left = dict(kwargs)
    found = list(args)
    for name in names[len(args) :]:
        if name not in left:
            break
        found.append(left.pop(name))
    return tuple(found), dict(sorted(left.items())) if len(left) > 1 else left
