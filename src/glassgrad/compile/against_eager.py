"""`verify=True`: compare the first compiled call of a trace with the same call in eager mode.

If they differ, find the stage at fault:

1. Compute every instruction with NumPy from the same inputs, rebuild the program with all its intermediate values as
      results, and name the first instruction that differs. That program reuses no memory.
   2. Compare the graph after the passes with the trace.
   3. Run the trace once more in NumPy, one instruction at a time. If it agrees with eager mode, the trace is right and
      the planner is at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile import backends
from glassgrad.compile.front.calls.cached_trace import TraceCall
from glassgrad.compile.front.calls.captured import Capture
from glassgrad.compile.front.calls.parameters import Args, Function, Kwargs, Leaves
from glassgrad.compile.front.origin import Origin
from glassgrad.compile.front.state.places import MISSING, Places
from glassgrad.compile.ir.evaluate import evaluate
from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.engine import tree
from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array
from glassgrad.ops.narrow import finfo

# Allowed difference, relative to the value and to the largest value of the array. Programs reorder sums.
RTOL = {np.dtype(np.float16): 2e-2, np.dtype(np.float32): 2e-4, np.dtype(np.float64): 1e-9}


def difference(found: object, wanted: object) -> str | None:
    """Say how two arrays differ; None when they agree within rounding."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{list(found.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind not in "fcV":
        equal = found == wanted
    else:
        rtol = RTOL.get(wanted.dtype, 1e-4)
        finite = np.abs(wanted[np.isfinite(wanted)])
        equal = np.isclose(found, wanted, rtol=rtol, atol=rtol * float(np.max(finite, initial=0.0)), equal_nan=True)
    if np.all(equal):
        return None
    worst = np.unravel_index(int(np.argmin(equal)), equal.shape) if equal.ndim else ()
    place = f"[{', '.join(map(str, worst))}]" if worst else ""
    wrong = equal.size - np.count_nonzero(equal)
    return f"{wrong} of {equal.size} entries; {place} is {found[worst]}, eager {wanted[worst]}"


def saved(capture: Capture, leaves: Sequence[object], *, arrays: bool = True) -> Snapshot:
    """Save everything a call changes: arrays, gradients, random streams, options, Python objects.

    Arrays are restored in place, so views of them are restored too. `arrays=False` leaves them out, if the call cannot
    change them.
    """
    given = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    held = [one.array for one in (*(state.tensor for state in capture.state), *given)]
    held += [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]
    return Snapshot(
        arrays=held if arrays else (),
        gradients=[*(leaf for leaf, _ in capture.grads), *given],
        dicts=capture.options,
        streams=capture.streams,
        more=[Places({id(one.holder.target): one.holder for one in capture.effects}.values()).restore],
    )


def checked(call: TraceCall, function: Function, args: Args, kwargs: Kwargs, leaves: Leaves) -> Any:
    """Run a trace for the first time and compare results and state with eager mode.

    Raises:
        CompileError: naming the first instruction that differs; the state is then that of eager mode.
    """
    capture = call.capture
    before = saved(capture, leaves)
    inputs: list[Array] = []
    result = call.run(leaves, watch=lambda arrays: inputs.extend(np.array(array) for array in arrays))
    found = _observed(capture, result)
    after = saved(capture, leaves)
    before.restore()
    wanted = _observed(capture, function(*args, **kwargs))
    eager = saved(capture, leaves)
    told = {name: difference(found.get(name, np.empty(0)), value) for name, value in wanted.items()}
    wrong = [name for name, text in told.items() if text is not None]
    if wrong:
        before.restore()
        noise = _sensitivity(capture, function, args, kwargs, leaves, wanted)
        wrong = [name for name in wrong if not _is_noise(found.get(name), wanted[name], noise[name])]
    if wrong:
        before.restore()
        plainly = TraceCall(capture, Interpreted(capture.graph), call.key, call.backend).run(leaves)
        is_traced_right = _agrees(_observed(capture, plainly), wanted, noise)
        eager.restore()
        culprit = first_difference(call.graph, capture.graph, inputs, call.backend)
        if culprit is None:
            culprit = _PLANNED[call.backend].text() if is_traced_right else errors.TRACE_DIFFERS.text()
        raise errors.COMPILED_DIFFERS(result=wrong[0], difference=told[wrong[0]], culprit=culprit)
    after.restore()
    return result


def _sensitivity(
    capture: Capture, function: Function, args: Args, kwargs: Kwargs, leaves: Leaves, wanted: dict[str, Any]
) -> Any:
    """Return how much each result moves in eager mode when every input moves by a rounding error.

    Some results are pure rounding error, such as the gradient of a bias before a batch norm, and an optimizer may
    amplify it.
    """
    rng = np.random.default_rng(0)
    for one in [*(state.tensor for state in capture.state), *leaves]:
        array = one.array if isinstance(one, Tensor) else one
        if isinstance(array, np.ndarray) and array.dtype.kind in "fV" and array.flags.writeable:
            array *= 1 + rng.choice([-1.0, 1.0], array.shape).astype(array.dtype) * finfo(array.dtype).eps
    moved = _observed(capture, function(*args, **kwargs))
    return {
        name: np.max(np.abs(moved[name] - value), initial=0) if value.dtype.kind in "fV" else 0.0
        for name, value in wanted.items()
    }


def _is_noise(found: Array, wanted: Array, noise: float) -> bool:
    if found is None or found.shape != wanted.shape or found.dtype.kind not in "fV":
        return False
    return bool(np.max(np.abs(found - wanted), initial=0) <= 30 * noise)


def _agrees(found: dict[str, Any], wanted: dict[str, Any], noise: dict[str, float]) -> bool:
    return all(
        difference(found.get(name, np.empty(0)), value) is None or _is_noise(found.get(name), value, noise[name])
        for name, value in wanted.items()
    )


def _observed(capture: Capture, result: object) -> dict[str, Any]:
    """Return copies of everything a caller can see after a call, by name."""
    seen: dict[str, Any] = {}

    def note(leaf: object, path: tree.Path) -> object:
        if isinstance(leaf, Tensor | np.ndarray):
            seen[f"the result{tree.path_text(path)}"] = np.array(leaf.array if isinstance(leaf, Tensor) else leaf)
        return leaf

    tree.map_tree(note, result)
    for number, one in enumerate(capture.state):
        if not one.path.endswith(".grad"):
            seen[one.path or f"state {number}"] = np.array(one.tensor.array)
    for effect in capture.effects:
        held = effect.holder.get(effect.key)
        parts = [] if held is MISSING else tree.every_leaf(held)
        stored = [(f"{effect.path} {at}", one) for at, one in enumerate(parts) if isinstance(one, Tensor)]
        seen.update((path, np.array(one.array)) for path, one in stored)
    for number, (leaf, _) in enumerate(capture.grads):
        if leaf._grad is not None and capture.keeps_grads:
            seen[f"gradient {number}"] = np.array(leaf._grad.array)
    return seen


# --- finding the instruction ----------------------------------------------------------------------


# The stages after the trace and their files, named when every instruction is right by itself.
_PLANNED = {"llvm": errors.PLAN_DIFFERS, "numpy": errors.NUMPY_PROGRAM_DIFFERS}


class Interpreted:
    """A graph as a program, computed by NumPy one instruction at a time: nothing is planned, fused or reused."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """Return new arrays for the outputs, and write updates into the arguments."""
        values = evaluate(self.graph, arrays)
        results = tuple(np.array(values[out]) for out in self.graph.outputs if isinstance(out, Var))
        written = [(values[target], np.array(values[value])) for target, value in self.graph.updates]
        for target, value in written:
            target[...] = value
        return results


def first_difference(graph: Graph, traced: Graph, inputs: Sequence[Array], backend: str) -> str | None:
    """Name the first instruction whose compiled value differs from NumPy's, or the result that a pass changed."""
    wanted = evaluate(graph, inputs)
    exposed = Graph(
        graph.inputs, graph.instrs, tuple(var for instr in graph.instrs for var in instr.outputs), graph.constants
    )
    program = backends.build(exposed, backend, 1)
    results = program(*[np.array(array) for array in inputs])
    found = dict(zip((out for out in exposed.outputs if isinstance(out, Var)), results, strict=True))
    for instr in graph.instrs:
        for var in instr.outputs:
            told = difference(found[var], wanted[var])
            if told is not None:
                return f"The first instruction that differs is {described(instr)}: {told}.\n"
    plain = evaluate(traced, inputs)
    for (target, value), (_, original) in zip(graph.updates, traced.updates, strict=True):
        told = difference(wanted[value], plain[original])
        if told is not None:
            return f"A pass changed the value written to {target.name}: {told}.\n"
    for number, (out, first) in enumerate(zip(graph.outputs, traced.outputs, strict=True)):
        if isinstance(out, Var) and isinstance(first, Var):
            told = difference(wanted[out], plain[first])
            if told is not None:
                return f"A pass changed result {number}: {told}.\n"
    return None


def described(instr: Instr) -> str:
    """Name an instruction with the user's line."""
    if not isinstance(instr.where, Origin):
        return instr.op
    place = instr.where.place
    part = f" (the backward pass of {instr.where.rule})" if instr.where.rule else ""
    return f"{instr.op} at {place}: {place.source}{part}"
