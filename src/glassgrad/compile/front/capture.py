"""Trace one call of a function, and restore all state, however the trace ends."""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.kept import free_in_children
from glassgrad.compile.front import checks, origin
from glassgrad.compile.front.calls.arguments import Arguments
from glassgrad.compile.front.calls.captured import Capture
from glassgrad.compile.front.calls.parameters import Args, Function, Kwargs
from glassgrad.compile.front.finish import Finish
from glassgrad.compile.front.interrupts import opened
from glassgrad.compile.front.state import environment
from glassgrad.compile.front.state.iterators import watched
from glassgrad.compile.front.state.places import Places
from glassgrad.compile.front.state.reach import Reach, reach
from glassgrad.compile.front.tracer import Tracer
from glassgrad.engine.random import default_generator
from glassgrad.engine.snapshot import Snapshot
from glassgrad.ops.core import Array

origin.ENTRANCES.add(__file__)

TRACING_LOCK = free_in_children(threading.RLock())
"""Held while a function is traced, because tracing replaces the arrays of shared tensors."""


def capture(
    function: Function,
    args: Args,
    kwargs: Kwargs,
    *,
    names: Sequence[str] = (),
    moving: Collection[int] = (),
    follow_results: bool = True,
    keep_grads: bool = True,
    after: Callable[[Any], object] | None = None,
    make_tracer: Callable[[str], Tracer] = Tracer,
) -> Capture:
    """Trace one call.

    Args:
        function, args, kwargs: the call.
        names: names of the positional arguments.
        moving: positions of floats that are inputs, among all leaves of the arguments.
        follow_results: trace the backward pass of results that still require a gradient.
        keep_grads: leave gradients on the leaves after a call, as in eager mode.
        after: called with the result while still tracing; returns the result of the program. It also makes the trace
            mark detached tensors (see `Origin.records`).
        make_tracer: called with the name of the program.

    Raises:
        CompileError: if the function cannot be compiled as written. All state is restored.
    """
    tracer = make_tracer(getattr(function, "__name__", type(function).__name__))
    tracer.marks_stops = after is not None
    arguments = Arguments(names, moving)
    statics = arguments.static(args, kwargs)
    found = reach(function, statics)
    hidden = [("random", random._inst), ("np.random", np.random.mtrand._rand)]
    streams = [(path, stream, checks.state_of(stream)) for path, stream in [*found.streams, *hidden]]
    places = Places(found.holders)
    randoms = Snapshot(streams=[default_generator, *(stream for _, stream, _ in streams)])
    undo = functools.partial(_undo, found, places, randoms)
    tracer.live = {id(array): path for path, array in found.arrays if id(array) not in found.tables}
    try:
        arrays = [array for _, array in found.arrays]
        with tracer.active(), watched(found.edges), _read_only(arrays), environment.noted() as variables:
            for tensor, path in found.tensors.values():
                tracer.newcomers.greet(tensor)
                tracer.lift(tensor, path=path)
            traced_args, traced_kwargs = arguments.traced(tracer, args, kwargs)
            with opened():
                result = function(*traced_args, **traced_kwargs)
                result = result if after is None else after(result)
            finished = Finish(tracer, arguments, result, found, places, follow=follow_results, keep_grads=keep_grads)
            tracer.newcomers.check()
    except BaseException:  # Ctrl-C too leaves everything as it was
        undo()
        raise
    finally:
        tracer.restore()
    del result, traced_args, traced_kwargs
    try:
        checks.check_streams(streams)
        checks.check_numbers(tracer)
        captured = finished.capture(function, statics, found)
        captured.edges += variables.values()
        captured.undo = undo
        return captured
    except BaseException:  # as above
        undo()
        raise


@contextmanager
def _read_only(arrays: Sequence[Array]) -> Iterator[None]:
    """Refuse writes to NumPy arrays while tracing, because they would happen once, not in every call."""
    locked = [array for array in arrays if array.flags.writeable]
    try:
        for array in locked:
            array.flags.writeable = False
        yield
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise errors.TRACE_ARRAY_WRITE(where=_last_line(error)) from error
    finally:
        for array in locked:
            array.flags.writeable = True


def _last_line(error: BaseException) -> object:
    """Return the innermost line of the user's code in an exception's traceback."""
    found, step = None, error.__traceback__
    while step is not None:
        if not provenance.is_internal(step.tb_frame.f_code.co_filename):
            found = step
        step = step.tb_next
    return provenance.resolve(found.tb_frame.f_code, found.tb_lasti) if found is not None else "an unknown line"


def _undo(found: Reach, places: Places, randoms: Snapshot) -> bool:
    """Undo a failed trace's changes of random streams and Python objects; return the result of `put_back`."""
    randoms.restore()
    places.restore()
    return put_back(found)


def put_back(found: Reach) -> bool:
    """Undo a failed trace's changes of existing variables, attributes, lists and objects.

    Returns whether an optimizer had gained state.
    """
    for edge in found.edges:
        if edge.holds():
            continue
        if edge.kind == "length":
            _shorten(edge.holder, edge.key, edge.value)
        elif edge.kind == "cell":
            edge.holder.cell_contents = edge.value
        elif edge.kind == "item" and _is_open(edge.holder, edge.key):
            edge.holder[edge.key] = edge.value
    grown = [(holder, keys) for holder, keys in found.sizes if len(holder) > len(keys)]
    for holder, keys in grown:
        _shorten(holder, keys, len(keys))
    return bool(grown)


def _is_open(holder: object, key: Any) -> bool:
    """Tell whether a place in a container can be written to."""
    return isinstance(holder, dict) or (isinstance(holder, list) and key < len(holder))


def _shorten(holder: object, keys: frozenset[object] | None, length: int) -> None:
    if isinstance(holder, list):
        del holder[length:]
    elif isinstance(holder, dict) and keys is not None:
        for name in [name for name in holder if name not in keys]:
            del holder[name]
