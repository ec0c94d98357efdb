"""Fast path: one generated function that checks a call against the latest trace and runs its program.

The trace fixes everything that a call needs, so the loops over arguments, guards, state and gradients are unrolled
once. The generated code uses globals of its own namespace, which Python looks up fastest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.compile.front.calls.captured import Capture, Given, Output, assembled
from glassgrad.compile.front.calls.guards import Guards, Space, hooks_of
from glassgrad.compile.front.calls.parameters import Args, Kwargs
from glassgrad.compile.ir.generated import executed
from glassgrad.engine.mode import ANOMALY, FINITE, KEYED, MODE, TRACING
from glassgrad.engine.node import next_sequence
from glassgrad.engine.reports.float_warnings import hidden_branch
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.writes import MUTATIONS, Writer
from glassgrad.ops.core import Array

MISS = object()
Quick = Callable[[Args, Kwargs], Any]


@dataclass(frozen=True)
class Recorder:
    """The callbacks that a fast path runs before and after each call.

    Attributes:
        lock: held during a call.
        begin: called before the program runs.
        record: called after it with the arguments, the return value of `begin`, and two numbers: the result, and
            whether all written values are finite (see `finite`).
    """

    lock: Any
    begin: Callable[[], Any]
    record: Callable[[Args, Any, float, Array], None]


def quick_call(
    capture: Capture,
    guards: Guards,
    program: Callable[..., Any],
    arrays: list[Array],
    writer: Writer,
    key: Any,
    leaves: Sequence[object],
    owners: set[int],
    recorder: Recorder | None = None,
) -> Quick | None:
    """Return a function of (args, kwargs) that returns the result or MISS; None for calls that are not flat.

    `arrays` are the state's arrays, `owners` the ids of those whose memory is written to; the caller keeps both up to
    date. A call with an argument in such memory takes the slow path. With a `recorder`, return None also if there is
    nothing to report.
    """
    if not isinstance(key[0], int) or capture.once or capture.boundary is not None or capture.argument_grads:
        return None
    recorded = recorder is not None
    if recorded and not _can_be_recorded(capture):
        return None
    space: Space = {"MISS": MISS, "MODE": MODE, "Tensor": Tensor, "ndarray": np.ndarray, "make": make}
    space.update(program=program, K=arrays)
    step = _plain_step(capture, program)
    lines = _arguments(space, key, leaves, unchecked=step is not None, recorded=recorded)
    if lines is None:
        return None
    held = [f"m{number}" for number in range(len(arrays))]
    lines += [f"{', '.join(held)}, = K"] * bool(held)
    lines += _conditions(space, capture, guards, owners)
    lines += ["begun = begin()"] * recorded
    passed = [*(f"x{at}" for at in capture.arguments), *held, *(f"f{at}" for at in _fed(capture))]
    lines += _feeds(space, capture)
    lines += [f"results = program({', '.join(passed)})"] if step is None else _native_call(space, step, passed)
    lines += _writing(space, writer) * bool(capture.written)
    lines += _watching(space, capture, recorded=recorded) + _afterwards(space, capture)
    lines += _recording(space, capture, recorder) + _result(space, capture)
    lines = ["with lock:", *(f"    {line}" for line in lines)] if recorded else lines
    return _made(space, lines)


def _made(space: Space, lines: Sequence[str]) -> Quick:
    """Return the function with these lines as body and `space` as globals."""
    source = "def quick(args, kwargs):\n" + "\n".join(f"    {line}" for line in lines) + "\n"
    # The file name is in the package, so that the search for the user's line skips it.
    quick: Quick = executed(source, f"{provenance.PACKAGE}<call>", space)["quick"]
    return quick


def _conditions(space: Space, capture: Capture, guards: Guards, owners: set[int]) -> list[str]:
    """Return the lines that leave the fast path unless the guards hold and the arrays are the known ones."""
    terms = guards.terms(space)
    for number, one in enumerate(capture.state):
        space[f"s{number}"] = one.tensor
        terms.append(f"s{number}.array is m{number}")
    if owners:
        space["owners"] = owners
        terms += [f"id(x{at} if x{at}.base is None else x{at}.base) not in owners" for at in capture.arguments]
    lines = ["try:", f"    if not ({' and '.join(terms) or 'True'}):", "        return MISS"]
    return [*lines, "except (LookupError, AttributeError, ValueError):", "    return MISS"]


def _fed(capture: Capture) -> list[int]:
    """Return the numbers of the feeds that are inputs."""
    return [number for number, feed in enumerate(capture.feeds) if feed.var is not None]


def _feeds(space: Space, capture: Capture) -> list[str]:
    """Return the lines that draw the feeds before each call."""
    space.update((f"feed{number}", feed.draw) for number, feed in enumerate(capture.feeds))
    inputs = _fed(capture)
    return [f"f{number} = " * (number in inputs) + f"feed{number}()" for number in range(len(capture.feeds))]


def _writing(space: Space, writer: Writer) -> list[str]:
    """Return `Writer.wrote` inlined; its arrays change only on the slow path, which updates the writer."""
    space.update(writer=writer, MUTATIONS=MUTATIONS, next_sequence=next_sequence, getframe=sys._getframe)
    lines = ["frame = getframe(2)", "writer.code, writer.lasti = frame.f_code, frame.f_lasti"]
    return [*lines, "writer.seq = MUTATIONS.latest = MUTATIONS.latest_of_writers = next_sequence()"]


def _afterwards(space: Space, capture: Capture) -> list[str]:
    """Return the lines that set gradients after a call and run the code that follows it."""
    lines = []
    for number, (leaf, grad) in enumerate(capture.grads):
        space[f"leaf{number}"], space[f"grad{number}"] = leaf, grad
        lines.append(f"leaf{number}._grad = grad{number}")
    for number, call in enumerate(capture.after):
        space[f"after{number}"] = call
        lines.append(f"after{number}()")
    return lines


def _plain_step(capture: Capture, program: object) -> Any:
    """Return the native step if the generated function may call it directly.

    Native code checks the arguments first. If they do not fit, the slow path repeats the call, which draws the feeds
    once more.
    """
    step = getattr(program, "step", None)
    return step if step is not None and step.is_plain and all(feed.pure for feed in capture.feeds) else None


def _native_call(space: Space, step: Any, passed: Sequence[str]) -> list[str]:
    """Return the lines of the step's call without its lock, which the caller holds."""
    space.update(empty=np.empty, call=step.call, run=step.run)
    lines, results = [], []
    for number, out in enumerate(step.outputs):
        space[f"e{number}"] = out.dtype
        lines.append(f"r{number} = empty({out.shape!r}, e{number})")
        results.append(f"r{number}, ")
    lines.append(f"results = ({''.join(results)})")
    lines.append(f"arrays = ({', '.join(passed)}, {''.join(results)})" if passed else f"arrays = ({''.join(results)})")
    run = f"call({step.address}, id(arrays), 1, {step.first})" if step.shares == 1 else "run(arrays)"
    return [*lines, f"if {run}:", "    return MISS"]


def _can_be_recorded(capture: Capture) -> bool:
    """Tell whether a program returns one number, and a second one that tells whether all written values are finite."""
    result = capture.result
    if capture.finite is None or not isinstance(result, Output) or not result.wrapped:
        return False
    return getattr(capture.graph.outputs[result.at], "size", 0) == 1


def _recording(space: Space, capture: Capture, recorder: Recorder | None) -> list[str]:
    """Return the line that reports the call to a recorder."""
    if recorder is None:
        return []
    space.update(lock=recorder.lock, begin=recorder.begin, record=recorder.record)
    return [f"record(args, begun, results[{capture.result.at}].item(), results[{capture.finite}])"]


def _arguments(
    space: Space, key: Any, leaves: Sequence[object], *, unchecked: bool, recorded: bool
) -> list[str] | None:
    """Return lines that check the arguments and bind the arrays in them to x0, x1, ...

    `unchecked` leaves out the types of arrays, for a program that checks them itself. If calls are `recorded`, the
    output for finiteness is needed in every mode, and the function itself checks whether it may run.
    """
    count, kinds, recording = key
    asked = KEYED
    if recorded:
        asked, recording = (KEYED | TRACING | ANOMALY) & ~FINITE, recording & ~FINITE
    lines = [
        f"if kwargs or len(args) != {count} or MODE.flags & {asked} != {recording}:",
        "    return MISS",
    ]
    if count:
        lines.append(f"{', '.join(f'a{at}' for at in range(count))}, = args")
    seen: list[int] = []
    for at, (kind, leaf) in enumerate(zip(kinds, leaves, strict=True)):
        if kind[0] == "tensor":
            _, dtype, shape, tracks, first, *hooks = kind
            if first != at or type(leaf) is not Tensor or hooks:
                return None
            different = "".join(f" or a{at} is a{other}" for other in seen)
            different += f" or (a{at}._extra is not None and hooks_of(a{at}))" if tracks else ""
            space["hooks_of"] = hooks_of
            lines.append(f"if type(a{at}) is not Tensor or a{at}._tracks is not {tracks}{different}:")
            lines.append("    return MISS")
            lines.append(f"x{at} = a{at}.array")
            seen.append(at)
        elif kind[0] == "array":
            _, dtype, shape = kind
            lines.append(f"x{at} = a{at}")
        elif kind[0] == "moving":
            space["asarray"] = np.asarray
            lines += [f"if type(a{at}) is not float:", "    return MISS", f"x{at} = asarray(a{at})"]
            continue
        elif kind[0] == "number" and kind[1] in {bool, int, str, type(None)}:
            differs = f"type(a{at}) is not {kind[1].__name__} or a{at} != {kind[2]}"
            lines += [f"if {differs if leaf is not None else f'a{at} is not None'}:", "    return MISS"]
            continue
        else:
            space[f"o{at}"] = leaf
            lines += [f"if a{at} is not o{at}:", "    return MISS"]
            continue
        if unchecked:
            continue
        space[f"d{at}"] = np.dtype(dtype)
        lines.append(f"if type(x{at}) is not ndarray or x{at}.shape != {shape!r} or x{at}.dtype is not d{at}:")
        lines.append("    return MISS")
    return lines


def _watching(space: Space, capture: Capture, *, recorded: bool) -> list[str]:
    """Return the lines for the outputs that watch the program."""
    lines = [] if recorded or capture.finite is None else [f"MODE.finite = results[{capture.finite}]"]
    for number, (at, branch) in enumerate(capture.branches):
        space.update({f"op{number}": branch.op, f"place{number}": branch.place, "hidden_branch": hidden_branch})
        lines += [f"if results[{at}]:", f"    hidden_branch(op{number}, place{number}, int(results[{at}]))"]
    return lines


def _result(space: Space, capture: Capture) -> list[str]:
    result = capture.result
    if isinstance(result, Output):
        made = f"make(results[{result.at}], None, False)" if result.wrapped else f"results[{result.at}]"
        return [f"return {made}"]
    if isinstance(result, Given) and result.leaf is None and result.value is None:
        return ["return None"]
    space["assembled"], space["capture"] = assembled, capture
    return ["return assembled(capture.result, results, args, {})"]
