"""The panes that need no compiler: values, graph, derivation, check, doctor."""

from __future__ import annotations

import io
import math
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.view.kernels import MOST_PLANNED
from glassgrad.compile.view.linked import Linked, peaks
from glassgrad.engine.mode import MODE
from glassgrad.engine.tensor import Tensor
from glassgrad.explanation.record import Record, record_of
from glassgrad.explanation.render import derivation, value_text
from glassgrad.explanation.replay import Replay
from glassgrad.lessons.playground.program import RESULT, Caught, Data, Ran
from glassgrad.ops.core import PRIMITIVES, Array
from glassgrad.report.page.maps import array_data
from glassgrad.verify.gradcheck import gradcheck
from glassgrad.verify.truth import walked

_MOST_VARIABLES = 200
_MOST_TEXT = 400
_SECONDS = 2.0  # that a check may take, roughly
_HIDDEN = (ModuleType, FunctionType, type)
_OTHER = "Loops are written with the vectors of this processor. Its assembly is made anew for this page."
_TIMED = (
    "Each kernel is timed by itself, warm, on one thread, the best of three. The roof is that of one thread: the "
    "fastest product of matrices and the fastest sum of long arrays that were measured here."
)


class Panes:
    """The panes of one run; what several of them need is made once.

    Attributes:
        file: the name of the program's file.
        trains: whether an optimizer made a step.
    """

    def __init__(self, ran: Ran, *, trains: bool = False) -> None:
        self.ran = ran
        self.file = ran.program.file
        self.trains = trains
        self._replay: Replay | None = None
        self._record: Record | None = None
        self._code: Linked | None = None

    def pane(self, name: str) -> Data:
        """Return the data of a pane.

        Raises:
            InputError: there is no such pane.
            ArgumentError: there is no result to differentiate, or it cannot be computed again.
        """
        made = _MAKERS.get(name)
        if made is None:
            raise errors.PLAYGROUND_PANE(given=name, known=", ".join(_MAKERS))
        return made(self)

    @property
    def replay(self) -> Replay:
        """The result's computation as a function."""
        if self._replay is None:
            root = self.ran.root
            if root is None:
                raise errors.PLAYGROUND_NO_RESULT(name="loss")
            self._replay = Replay(root, self.ran.recorder, self.ran.names, self._title(root))
        return self._replay

    def _title(self, root: Tensor) -> str:
        found = [name for name, value in self.ran.names.items() if value is root and name != RESULT]
        return found[0] if found else "result"

    @property
    def record(self) -> Record:
        """The result's computation, explained."""
        if self._record is None:
            call, _ = self.replay.traced()
            self._record = record_of(call)
        return self._record

    @property
    def code(self) -> Linked:
        """The result's computation, traced by the compiler."""
        if self._code is None:
            self._code = Linked(self.replay.function, tuple(self.replay.arguments()), self.file)
        return self._code

    def _short_enough(self) -> Linked:
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
            note = str(error) if self.ran.root is not None else None
        found = [one for name, value in self._variables() if (one := self._variable(name, value, gradients))]
        return {"variables": found[:_MOST_VARIABLES], **({"note": note} if note else {})}

    def _gradients(self) -> dict[int, Array]:
        """Return the gradient of every tensor behind the result, by the identity of its leaf or node."""
        call, now = self.replay.traced()
        root = call.result
        if not isinstance(root, Tensor) or root.node is None:
            raise errors.PLAYGROUND_NO_RESULT(name="loss")
        seen, leaves = walked(root.node, np.ones(root.shape, root.dtype))
        found = {id(old): seen.cotangents_of[new] for old, new in now.items() if new in seen.cotangents_of}
        given = [call.inputs.get(one.name) for one in self.replay.leaves]
        for one, leaf in zip(self.replay.leaves, given, strict=True):
            if leaf is not None and leaf in leaves:
                found[id(one.tensor)] = leaves[leaf]
        return found

    def _variables(self) -> Iterator[tuple[str, object]]:
        for name, value in self.ran.names.items():
            if name == RESULT:
                if self.ran.program.shown and value is not None:
                    yield "result", value
            elif not name.startswith("_") and not isinstance(value, _HIDDEN):
                yield name, value
                if hasattr(type(value), "named_parameters"):
                    yield from ((f"{name}.{inner}", one) for inner, one in _parameters(value))

    def _variable(self, name: str, value: object, gradients: Mapping[int, Array]) -> Data:
        line = self.ran.program.lines.get(name.partition(".")[0])
        found: Data = {"name": name, "line": line, "kind": "other", "shape": [], "dtype": type(value).__name__}
        found |= {"requires_grad": False, "value": None, "grad": None, "text": _text(value)}
        if isinstance(value, Tensor):
            array = value.detach().numpy()
            found |= {"kind": "tensor", "shape": list(value.shape), "dtype": str(value.dtype)}
            found |= {"requires_grad": bool(value.requires_grad), "value": array_data(array), "text": value_text(array)}
            grad = _grad_of(value, gradients)
            if grad is not None and np.shape(grad) == tuple(value.shape):
                found["grad"] = array_data(grad)
        elif isinstance(value, np.ndarray):
            found |= {"kind": "tensor", "shape": list(value.shape), "dtype": str(value.dtype)}
            found |= {"value": array_data(value), "text": value_text(value) if value.dtype.kind in "fiub" else ""}
        elif isinstance(value, bool | int | float | np.number):
            number: Array = value
            found |= {"kind": "number", "value": array_data(number) if abs(number) < _EXACT else None}
        elif hasattr(type(value), "named_parameters"):
            found["kind"] = "module"
        return found

    # --- graph, derivation --------------------------------------------------------------------------------------

    def graph(self) -> Data:
        """Return inputs and ops with values and gradients, in the order of both passes."""
        labels = self.replay.labels
        nodes: list[Data] = [
            {
                **_node(one.name, "input", labels.get(one.name, one.name), None, one.value, one.gradient),
                "saved": None,
                "formula": "",
                "group": None,
            }
            for one in self.record.inputs
        ]
        nodes += [
            {
                **_node(step.name, step.op, step.name, step.line or None, step.value, step.cotangent),
                "saved": _saved(step.op),
                "formula": step.expression,
                "group": step.source or None,
            }
            for step in self.record.steps
        ]
        known = {str(node["id"]) for node in nodes}
        pairs = ((edge.name, step.name) for step in self.record.steps for edge in step.edges)
        edges = [{"from": tail, "to": head} for tail, head in pairs if tail in known]
        order = [str(node["id"]) for node in nodes]
        backward = [step.name for step in reversed(self.record.steps)] + [one.name for one in self.record.inputs]
        return {"nodes": nodes, "edges": edges, "order": order, "backward": backward}

    def derivation(self) -> Data:
        """Return the steps of both passes as formulas."""
        lines = derivation(self.record)
        return {
            "steps": [
                {"line": one.step.line or None, "tex": one.tex, "text": one.text, "name": one.step.name}
                for one in lines
            ]
        }

    # --- what the compiler makes ---------------------------------------------------------------------------------

    def backward(self) -> Data:
        """Return the program in NumPy, and for each of its lines the user's line."""
        text, lines = self.code.program()
        linked = [{"line": at, "source_line": line} for at, line in enumerate(lines, 1)]
        return {"program": text, "lines": linked, "note": None}

    def kernels(self) -> Data:
        """Return the kernels: their loops, LLVM, assembly and C."""
        kernels, why = self._short_enough().kernels()
        return {"kernels": [vars(one) for one in kernels], "note": f"{_OTHER} {why}".strip()}

    def cost(self) -> Data:
        """Return arithmetic, traffic and time of each kernel, and what this processor could do at best."""
        costs = self._short_enough().costs()
        flops, bandwidth = peaks()
        return {
            "kernels": [vars(one) for one in costs],
            "peak_flops": flops,
            "peak_bandwidth": bandwidth,
            "total_seconds": sum(one.seconds or 0.0 for one in costs),
            "note": _TIMED,
        }

    # --- check, doctor ------------------------------------------------------------------------------------------

    def check(self) -> Data:
        """Return the verdict on the gradient of each input: finite differences beside the rule."""
        leaves, arrays = self.replay.leaves, self.replay.arrays()
        began = time.perf_counter()
        self.replay.of_leaves(*map(Tensor, arrays))
        each = 8 * max(1, len(leaves)) * (time.perf_counter() - began)  # calls for an entry: two, and those of a doubt
        samples = max(1, min(60, int(_SECONDS / each)))
        found: list[Data] = []
        for at, leaf in enumerate(leaves):
            verdict = gradcheck(_of_one(self.replay, at), arrays[at], samples=samples)
            worst = verdict.worst
            one: Data = {"name": leaf.label, "passed": bool(verdict), "worst": 0.0, "where": []}
            one |= {"numeric": None, "analytic": None}
            one["text"] = verdict.kind + (f": {verdict.why}" if verdict.why else "")
            if worst is not None:
                one |= {"worst": _finite(worst.relative), "where": list(worst.position or ())}
                one |= {"numeric": _finite(worst.numeric), "analytic": _finite(worst.analytic)}
            found.append(one)
        note = (
            f"At most {samples} entries of each input are varied one by one, and all of them along random directions."
        )
        return {"inputs": found, "note": note}

    def doctor(self) -> Data:
        """Return what the doctor finds: in the source and, if the program trains, in a second run that it watches."""
        from glassgrad.doctor.reading.beside import joined
        from glassgrad.doctor.script import Watched, run_script

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "playground.py"
            path.write_text(self.ran.program.text, encoding="utf-8", newline="\n")
            watched: list[Watched] = []
            provenance.resolve.cache_clear()  # Python calls the code of both files equal
            if self.trains:
                before, MODE.witness = MODE.witness, None
                try:
                    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        watched, _ = run_script(path)
                finally:
                    MODE.witness = before
            watched, read = joined(str(path), watched)
        findings = [*(finding for one in watched for finding in one.findings), *read]
        told = "read, and watched in a second run" if self.trains else "read; it makes no step of an optimizer"
        return {
            "findings": [
                {
                    "name": one.name,
                    "severity": one.severity,
                    "title": one.rule,
                    "text": _sentences(_short(one.what, folder), one.advice),
                    "line": _line(one.where or one.what),
                    "remedy": one.remedy,
                    "page": f"findings.html#{one.name}",
                }
                for one in findings
            ],
            "note": f"{'' if findings else 'The doctor found nothing wrong. '}The program was {told}.",
        }


_EXACT = 2**53
_MAKERS: dict[str, Callable[[Panes], Data]] = {
    "values": Panes.values,
    "graph": Panes.graph,
    "backward": Panes.backward,
    "derivation": Panes.derivation,
    "check": Panes.check,
    "kernels": Panes.kernels,
    "cost": Panes.cost,
    "doctor": Panes.doctor,
}
NAMES = tuple(_MAKERS)


def _text(value: object) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return ""
    caught = Caught()
    text = ""
    with caught:
        text = repr(value)
    if caught.error is not None:
        text = f"<{type(value).__name__}, whose repr raises {type(caught.error).__name__}>"
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."


def _parameters(value: Array) -> list[tuple[str, Array]]:
    found: list[tuple[str, Array]] = [*value.named_parameters()]
    return found[:_MOST_VARIABLES]


def _grad_of(value: Tensor, gradients: Mapping[int, Array]) -> Array | None:
    if value.node is None and value.grad is not None:
        found: Array = value.grad.detach().numpy()
        return found
    return gradients.get(id(value if value.node is None else value.node))


def _node(name: str, op: str, label: str, line: int | None, value: Array, gradient: Array) -> Data:
    shown = value[0] if isinstance(value, tuple | list) and value else value
    array = np.asarray(shown)
    return {
        "id": name,
        "op": op,
        "label": label,
        "line": line,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "value": array_data(array),
        "grad": None if gradient is None or isinstance(gradient, tuple | list) else array_data(gradient),
    }


def _saved(op: str) -> str | None:
    """Tell what the tape keeps of an op until the backward pass."""
    prim = PRIMITIVES.get(op)
    if prim is None:
        return None
    kept = [word for word, saves in (("its arguments", prim.saves_x), ("its result", prim.saves_y)) if saves]
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


def _line(where: str) -> int | None:
    found = re.search(r"playground\.py:(\d+)", where)
    return int(found[1]) if found else None


def _sentences(what: str, advice: str) -> str:
    """Join an observation, which may lack its full stop, with what to do."""
    return f"{what}. {advice}".strip() if what[-1:] not in {".", "!", "?"} else f"{what} {advice}".strip()


def _short(text: str, folder: str) -> str:
    return text.replace(f"{folder}/", "").replace(f"{folder}\\", "")
