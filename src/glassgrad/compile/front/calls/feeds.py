"""Feeds: inputs of a program that Python computes before every call, such as random draws and numeric options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front.calls.parameters import Function
from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.ir.graph import Params, Var
from glassgrad.engine.random import Generator
from glassgrad.ops.core import Array

if TYPE_CHECKING:
    from glassgrad.compile.front.tracer import Tracer


@dataclass(eq=False)
class Feed:
    """An input that Python computes before every call: a random draw, a learning rate.

    Attributes:
        var: the input; None for Python code that only has to run again, such as a schedule's step.
        draw: returns the array of this call.
        label: a description for printing.
        pure: whether an extra draw is harmless.
        drawn: the call of a generator that draws it; None for anything else.
    """

    var: Var | None
    draw: Callable[[], Array]
    label: str
    pure: bool = False
    drawn: Drawn | None = None


class Drawn(NamedTuple):
    """A call of a generator: ``generator.rng.method(*args, **options)``."""

    generator: Generator
    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]


def number_reader(options: Params, name: str, at: int | None = None) -> Callable[[], Array]:
    """Return a function that returns an option, or an item of it, as an array; a new array if the number changed."""
    known: list[Any] = [None, None]

    def read() -> Array:
        value = options[name]
        if value is not known[0]:
            known[:] = value, np.asarray(value if at is None else value[at], np.float64)
        return known[1]

    return read


class Draws:
    """Replaces the stream of a Generator while tracing: each draw becomes an input, drawn in every call."""

    def __init__(self, tracer: Tracer, generator: Generator) -> None:
        self._tracer = tracer
        self._generator = generator
        # Shapes and dtypes come from a separate stream, so tracing does not advance the real one.
        self._scratch = np.random.Generator(np.random.PCG64(0))

    def __getattr__(self, name: str) -> Function:
        method = getattr(self._scratch, name)

        def draw(*args: object, **kwargs: object) -> Symbol:
            if any(isinstance(arg, Symbol) for arg in (*args, *kwargs.values())):
                raise errors.TRACE_RANDOM_CALL(call=f"{name}()", where=provenance.here())
            like = np.asarray(method(*args, **kwargs))
            generator = self._generator
            label = f"drawn by {name}()"
            symbol = self._tracer.feed(lambda: getattr(generator.rng, name)(*args, **kwargs), like, label)
            self._tracer.feeds[-1].drawn = Drawn(generator, name, args, kwargs)
            return symbol

        return draw
