"""The panes of a run: what the library says of its result, as data for the page."""

from __future__ import annotations

import io
import math
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Tensor
from glassgrad.explanation.record import Record, record_of
from glassgrad.explanation.render import derivation, value_text
from glassgrad.explanation.replay import Replay
from glassgrad.lessons.playground.events import PANES
from glassgrad.lessons.playground.loop import witnessed
from glassgrad.lessons.playground.program import RESULT, Caught, Data, Program
from glassgrad.ops.core import PRIMITIVES, Array
from glassgrad.report.page.maps import array_data
from glassgrad.verify.truth import walked

if TYPE_CHECKING:
    from glassgrad.compile.view.linked import Linked

_MOST_VARIABLES = 200
_MOST_TEXT = 400
_SECONDS = 2.0  # that a check may take, roughly
_EXACT = 2**53
_HIDDEN = (ModuleType, FunctionType, type)
_OTHER = "Loops are written with the vectors of this processor. Its assembly is made anew for this page."
_TIMED = (
    "Each kernel is timed by itself, warm, on one thread, the best of three. The roof is that of one thread: the "
    "fastest product of matrices and the fastest sum of long arrays that were measured here."
)
_VARIED = "At most {} entries of each input are varied one by one, and all of them along random directions."


class Panes:
    """The panes of one run; what several of them need is made once.

    Attributes:
        trains: whether an optimizer made a step.
    """

    def __init__(self, program: Program, *, trains: bool = False) -> None:
        self.program = program
        self.trains = trains

    def pane(self, name: str) -> Data:
        """Return the data of a pane.

        Raises:
            InputError: there is no such pane.
            ArgumentError: there is no result to differentiate, or it cannot be computed again.
        """
        if name not in PANES:
            raise errors.PLAYGROUND_PANE(given=name, known=", ".join(PANES))
        made: Data = getattr(self, name)()
        return made

    @cached_property
    def replay(self) -> Replay:
        """The result's computation as a function."""
        root = self.program.root
        if root is None:
            raise errors.PLAYGROUND_NO_RESULT(name="loss")
        titles = [name for name, value in self.program.names.items() if value is root and name != RESULT]
        return Replay(root, self.program.recorder, self.program.names, (titles or ["result"])[0])

    @cached_property
    def record(self) -> Record:
        """The result's computation, explained."""
        return record_of(self.replay.traced()[0])

    @cached_property
    def code(self) -> Linked:
        """The result's computation, traced by the compiler."""
        from glassgrad.compile.view.linked import Linked  # values are shown without it, and sooner

        return Linked(self.replay.function, tuple(self.replay.arguments()), self.program.file)

    def _short_enough(self) -> Linked:
        from glassgrad.compile.view.kernels import MOST_PLANNED

        count = len(self.code.graph.instrs)
        if count > MOST_PLANNED:
            raise errors.PLAYGROUND_TOO_LONG(count=f"{count:,}", limit=f"{MOST_PLANNED:,}")
        return self.code

    # --- values -------------------------------------------------------------------------------------------------

    def values(self) -> Data:
        """Return every variable with its value and its gradient."""
        gradients: Mapping[int, Array] = {}
        note = None
        try:
            gradients = self._gradients()
        except errors.GlassgradError as error:
            note = str(error) if self.program.root is not None else None
        shown = islice(self._variables(), _MOST_VARIABLES)
        return {"variables": [self._variable(*one, gradients) for one in shown], "note": note}

    def _gradients(self) -> dict[int, Array]:
        """Return the gradient of every tensor behind the result, by the identity of its leaf or node."""
        call, now = self.replay.traced()
        root = call.result
        if not isinstance(root, Tensor) or root.node is None:
            raise errors.PLAYGROUND_NO_RESULT(name="loss")
        seen, leaves = walked(root.node, np.ones(root.shape, root.dtype))
        found = {id(old): seen.cotangents_of[new] for old, new in now.items() if new in seen.cotangents_of}
        given = {id(one.tensor): call.inputs.get(one.name) for one in self.replay.leaves}
        return found | {key: leaves[leaf] for key, leaf in given.items() if leaf is not None and leaf in leaves}

    def _variables(self) -> Iterator[tuple[str, object]]:
        for name, value in self.program.names.items():
            if name == RESULT:
                if self.program.shown and value is not None:
                    yield "result", value
            elif not name.startswith("_") and not isinstance(value, _HIDDEN):
                yield name, value
                if hasattr(type(value), "named_parameters"):
                    module: Array = value
                    yield from ((f"{name}.{inner}", one) for inner, one in module.named_parameters())

    def _variable(self, name: str, value: object, gradients: Mapping[int, Array]) -> Data:
        line = self.program.lines.get(name.partition(".")[0])
        found: Data = {"name": name, "line": line, "kind": "other", "shape": [], "dtype": type(value).__name__}
        found |= {"requires_grad": False, "value": None, "grad": None}
        if isinstance(value, Tensor | np.ndarray):
            array: Array = value.detach().numpy() if isinstance(value, Tensor) else value
            grad = _grad_of(value, gradients) if isinstance(value, Tensor) else None
            text = value_text(array) if isinstance(value, Tensor) or array.dtype.kind in "fiub" else ""
            found |= {"kind": "tensor", "shape": list(array.shape), "dtype": str(value.dtype), "text": text}
            found |= {"requires_grad": getattr(value, "requires_grad", False), "value": array_data(array)}
            return found | {"grad": array_data(grad) if grad is not None and np.shape(grad) == array.shape else None}
        found["text"] = _text(value)
        if isinstance(value, bool | int | float | np.number):
            number: Array = value
            found |= {"kind": "number", "value": array_data(number) if abs(number) < _EXACT else None}
        elif hasattr(type(value), "named_parameters"):
            found["kind"] = "module"
        return found

    # --- graph, derivation --------------------------------------------------------------------------------------

    def graph(self) -> Data:
        """Return inputs and ops with values and gradients, in the order of both passes."""
        inputs, steps, labels = self.record.inputs, self.record.steps, self.replay.labels
        nodes = [
            _node(one.name, "input", one.value, one.gradient, label=labels.get(one.name, one.name)) for one in inputs
        ]
        for step in steps:
            more = {"line": step.line or None, "saved": _saved(step.op), "group": step.source or None}
            nodes.append(_node(step.name, step.op, step.value, step.cotangent, formula=step.expression, **more))
        order = [str(node["id"]) for node in nodes]
        pairs = [(edge.name, step.name) for step in steps for edge in step.edges]
        edges = [{"from": tail, "to": head} for tail, head in pairs if tail in {*order}]
        backward = [step.name for step in reversed(steps)] + [one.name for one in inputs]
        return {"nodes": nodes, "edges": edges, "order": order, "backward": backward}

    def derivation(self) -> Data:
        """Return the steps of both passes as formulas."""
        told = [(one.step.line or None, one.tex, one.text, one.step.name) for one in derivation(self.record)]
        return {"steps": [dict(zip(("line", "tex", "text", "name"), one, strict=True)) for one in told]}

    # --- what the compiler makes ---------------------------------------------------------------------------------

    def backward(self) -> Data:
        """Return the program in NumPy, and for each of its lines the user's line."""
        text, lines = self.code.program()
        return {"program": text, "lines": [{"line": at, "source_line": line} for at, line in enumerate(lines, 1)]}

    def kernels(self) -> Data:
        """Return the kernels: their loops, LLVM, assembly and C."""
        kernels, why = self._short_enough().kernels()
        return {"kernels": [vars(one) for one in kernels], "note": f"{_OTHER} {why}".strip()}

    def cost(self) -> Data:
        """Return arithmetic, traffic and time of each kernel, and what this processor could do at best."""
        from glassgrad.compile.view.linked import peaks

        costs = self._short_enough().costs()
        flops, bandwidth = peaks()
        total = sum(one.seconds or 0.0 for one in costs)
        best = {"peak_flops": flops, "peak_bandwidth": bandwidth}
        return {"kernels": [vars(one) for one in costs], "total_seconds": total, "note": _TIMED, **best}

    # --- check, doctor ------------------------------------------------------------------------------------------

    def check(self) -> Data:
        """Return the verdict on the gradient of each input: finite differences beside the rule."""
        from glassgrad.verify.gradcheck import gradcheck

        leaves, arrays = self.replay.leaves, self.replay.arrays()
        began = time.perf_counter()
        self.replay.of_leaves(*map(Tensor, arrays))
        each = 8 * max(1, len(leaves)) * (time.perf_counter() - began)  # calls for an entry: two, and those of a doubt
        samples = max(1, min(60, int(_SECONDS / each)))
        found: list[Data] = []
        for at, leaf in enumerate(leaves):
            verdict = gradcheck(_of_one(self.replay, at), arrays[at], samples=samples)
            text = verdict.kind + (f": {verdict.why}" if verdict.why else "")
            one: Data = {"name": leaf.label, "passed": bool(verdict), "text": text, "worst": 0.0, "where": []}
            one |= {"numeric": None, "analytic": None}
            if (worst := verdict.worst) is not None:
                one |= {"worst": _finite(worst.relative), "where": list(worst.position or ())}
                one |= {"numeric": _finite(worst.numeric), "analytic": _finite(worst.analytic)}
            found.append(one)
        return {"inputs": found, "note": _VARIED.format(samples)}

    def doctor(self) -> Data:
        """Return what the doctor finds: in the source and, if the program trains, in a second run that it watches."""
        from glassgrad.doctor.reading.beside import joined
        from glassgrad.doctor.script import Watched, run_script

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "playground.py"
            path.write_text(self.program.text, encoding="utf-8", newline="\n")
            watched: list[Watched] = []
            provenance.resolve.cache_clear()  # Python calls the code of both files equal
            with (
                witnessed(None),
                redirect_stdout(io.StringIO()),
                redirect_stderr(io.StringIO()),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                if self.trains:
                    watched, _ = run_script(path)
            watched, read = joined(str(path), watched)
        told = "read, and watched in a second run" if self.trains else "read; it makes no step of an optimizer"
        findings = []
        for one in (*(finding for each in watched for finding in each.findings), *read):
            what = one.what.replace(f"{folder}/", "").replace(f"{folder}\\", "")
            stop = "" if what.endswith((".", "!", "?")) else "."
            place = re.search(r"playground\.py:(\d+)", one.where or one.what)
            found: Data = {"name": one.name, "severity": one.severity, "title": one.rule, "remedy": one.remedy}
            found |= {"text": f"{what}{stop} {one.advice}".strip(), "line": int(place[1]) if place else None}
            findings.append({**found, "page": f"findings.html#{one.name}"})
        return {
            "findings": findings,
            "note": f"{'' if findings else 'The doctor found nothing wrong. '}The program was {told}.",
        }


def _text(value: object) -> str:
    caught = Caught()
    with caught:
        text = repr(value)
        return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."
    return f"<{type(value).__name__}, whose repr raises {type(caught.error).__name__}>"


def _grad_of(value: Tensor, gradients: Mapping[int, Array]) -> Array | None:
    if value.node is None and value.grad is not None:
        found: Array = value.grad.detach().numpy()
        return found
    return gradients.get(id(value if value.node is None else value.node))


def _node(name: str, op: str, value: Array, gradient: Array, **more: object) -> Data:
    array = np.asarray(value[0] if isinstance(value, tuple | list) and value else value)
    grad = None if gradient is None or isinstance(gradient, tuple | list) else array_data(gradient)
    found: Data = {"id": name, "op": op, "label": name, "shape": list(array.shape), "dtype": str(array.dtype)}
    found |= {"value": array_data(array), "grad": grad, "line": None, "saved": None, "formula": "", "group": None}
    return found | more


def _saved(op: str) -> str | None:
    """Tell what the tape keeps of an op until the backward pass."""
    saves = {"its arguments": "saves_x", "its result": "saves_y"}
    kept = [words for words, name in saves.items() if getattr(PRIMITIVES.get(op), name, False)]
    return " and ".join(kept) or None


def _of_one(replay: Replay, at: int) -> Callable[[Tensor], object]:
    """Return the function of one leaf alone, computed in the precision of its argument."""

    def varied(value: Tensor) -> object:
        def fixed(array: Array) -> Tensor:
            return Tensor(array.astype(value.dtype) if array.dtype.kind == "f" else array)

        leaves = [value if place == at else fixed(one.array) for place, one in enumerate(replay.leaves)]
        return replay.function(*(fixed(one.array) for one in replay.data), *leaves)

    return varied


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None
