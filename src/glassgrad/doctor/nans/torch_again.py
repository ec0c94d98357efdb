"""Find the origin of a NaN in PyTorch: replay a step under a dispatch mode that checks every op."""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad.base import provenance
from glassgrad.base.provenance import pytorch
from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.graphs.graph import VIEWS
from glassgrad.doctor.library import Args, Kwargs, Module, Optimizer, Tensor
from glassgrad.doctor.nans import findings
from glassgrad.doctor.nans.replay import Replay
from glassgrad.doctor.nans.tape_search import joined
from glassgrad.doctor.nans.torch_events import Event, Events, common, elements, is_bad, leaves, memory, origin
from glassgrad.doctor.reading import names
from glassgrad.engine.reports.nonfinite import ALLOWED, INSTEAD, advice, named, place_in

_UNWRITTEN = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize")
"""Ops whose results are uninitialised memory."""
_CHOOSERS = names.named(
    "clamp clampmax clampmin fmax fmin gather index indexselect maskedfill maskedselect max maximum min minimum "
    "select slice where"
)
"""Nodes that send a cotangent of 0 to operands that they did not select."""
_WITH_NUMBERS = frozenset({"power", "multiply", "divide", "add", "subtract"})
"""Ops whose numbers in the call are operands."""


class TorchAgain(Replay):
    """Replays a step of PyTorch's and finds the first op that makes a NaN or an infinity from finite numbers."""

    def __init__(self, model: Module, *, inf: bool = False, allow: Collection[str] = ()) -> None:
        super().__init__(model, inf=inf, allow=allow)
        self._phase = "forward pass"
        self._behind: dict[int, str] = {}
        self._place: provenance.Place | None = None
        self._outer: provenance.Place | None = None  # the user's call of the model that is repeated
        self._trigger: provenance.Place | None = None  # the line that runs now
        self._places: list[tuple[int, int, provenance.Place]] = []
        self._loss: Any = None
        self._events = Events()
        self._operands: dict[
            int, tuple[list[Tensor], provenance.Place]
        ] = {}  # of forward ops, by the number of their node
        self._g: tuple[Tensor, ...] = ()  # the cotangents of the node whose rule runs

    def run(self, forward: Callable[[], Any], optimizer: Optimizer = None) -> Finding | None:
        """Run the forward and backward pass and the optimizer's step; return the finding."""
        self._trigger = provenance.here()
        lines = pytorch().autograd.set_detect_anomaly(True, check_nan=False)  # nodes record their lines
        with lines, self._modules(), _mode(self):
            loss = self._loss = forward()
            self.finding = self._found([loss])
            if self.finding is None and library.is_tensor(loss) and loss.requires_grad and not is_bad(loss):
                self._phase = "backward pass"
                self._note_cotangents(loss)
                loss.backward()
                self.finding = self._found([one.grad for one in self.model.parameters() if one.grad is not None])
            if self.finding is None and optimizer is not None and not is_bad(loss):
                self._phase = f"step of {type(optimizer).__name__}"
                optimizer.step()
                self.finding = self._found(list(self.model.parameters()))
        return self.finding

    @contextmanager
    def at(self, place: provenance.Place) -> Iterator[None]:
        """Attribute calls in the block to a user's line that ran earlier."""
        first, self._place = _next_node(), place
        try:
            yield
        finally:
            self._places.append((first, _next_node(), place))
            self._place = None

    @contextmanager
    def inside(self, place: provenance.Place) -> Iterator[None]:
        """Attribute ops in the block that no line of the user's model calls to a line that ran earlier."""
        self._outer = place
        try:
            yield
        finally:
            self._outer = None

    def _here(self) -> provenance.Place:
        place = self._place or provenance.here()
        if self._outer is None or self._trigger is None or place[:2] != self._trigger[:2]:
            return place
        return self._outer

    def look(self, op: Any, args: Args, kwargs: Kwargs, result: Tensor) -> None:
        """Record an op that made or passed on bad numbers."""
        name = op.__name__.partition(".")[0] if hasattr(op, "__name__") else str(op)
        if ALLOWED.depth or name.startswith(_UNWRITTEN) or common(name) in self.allow:
            return
        given = list(leaves((args, kwargs), numbers=True))
        writes = bool(getattr(getattr(op, "_schema", None), "is_mutable", False))
        made = list(leaves(result)) or list(leaves(args[:1]))  # an in-place op on a list returns nothing
        if self._phase == "forward pass" and advice(common(name)):
            self._operands.setdefault(_next_node() - 1, (list(args), self._here()))
        results = [one for one in made if is_bad(one)]
        if not writes:
            taken = {memory(one) for one in given if library.is_torch(one)}
            results = [one for one in results if memory(one) not in taken]  # without views
        if not results:
            return
        before, held = self._events.behind(given, results if writes else [])
        is_nan = any(is_bad(one, inf=False) for one in results)
        event = Event(common(name), is_nan, before, held, phase=self._phase, number=_next_node() - 1)
        if not any(one.is_nan for one in before) and held != "NaN":
            self._describe(event, name, args, next((one for one in results if is_bad(one, not is_nan)), results[0]))
        self._events.add(event, results)

    # --- inside ---

    def _found(self, tensors: list[Tensor]) -> Finding | None:
        """Return the finding about bad tensors at the end of a phase; with `inf` about any bad op of the phase."""
        bad = sorted((one for one in tensors if is_bad(one)), key=lambda one: not is_bad(one, inf=False))
        for one in bad:
            event = self._events.of(one)
            found = None if event is None else origin(event)
            if found is not None:
                return self._finding(*found, "NaN" if is_bad(one, inf=False) else "inf")
        if self.inf:
            for event in self._events.all:
                if event.phase == self._phase and event.is_birth:
                    return self._finding(event, None, "NaN" if event.is_nan else "inf")
        return None

    def _finding(self, event: Event, turned: Event | None, kind: str) -> Finding:
        again = event.phase == "backward pass" and not event.trap  # its rule may compute a bad result again
        born = self._events.forward(event.number) if again else None
        if born is not None and (found := origin(born)) is not None:
            event, turned = found[0], event
        what = event.what + (f"; {turned.what}" if turned is not None and turned.what else "")
        path = [] if event.phase.startswith("step") else _path(self._loss, event.number)
        if self._phase.startswith("step"):
            return Finding(
                f"{kind} in the {self._phase}",
                "error",
                what,
                findings.RATE,
                event.site,
                remedy="raise eps, or lower the rate",
            )
        makers = [common(_plain(one)) for one in _makers(path[0])] if path else []
        told = [text for one in makers if (text := INSTEAD.get((event.op, one)))]
        remedy, sentence = (told or [advice(event.op)])[0], "Keep the operands finite."
        if event.trap:
            sentence = "Mask the input of the op, not its result."
            remedy = f"torch.where(mask, {event.op}(torch.where(mask, x, 1.0)), 0.0)"
        of = ""
        if event.phase == "forward pass":
            of = " of the model" if event.module else " of the loss"
            what += f". To the loss: {joined([_plain(node) for node in path])}" if len(path) > 1 else ""
        elif len(path) > 1:
            what += f". The cotangent came from the loss by {' -> '.join(_plain(one) for one in path[::-1])}"
        return Finding(f"{kind} in the {self._phase}{of}", "error", what, sentence, event.site, remedy=remedy)

    def _describe(self, event: Event, name: str, args: Args, bad: Tensor) -> None:
        """Say of an event where it was, and which numbers it got at the first bad place."""
        where = bad.isnan() if event.is_nan else ~bad.isfinite()
        index = tuple(int(at) for at in where.nonzero()[0].tolist())
        values = event.values = elements(args, index, bad.shape, event.op in _WITH_NUMBERS)
        more = ""
        if self._phase == "backward pass":
            node = pytorch()._C._current_autograd_node()
            rule, event.number = "" if node is None else _plain(node), -1 if node is None else node._sequence_nr()
            event.op = common(rule)
            event.site, place = self._recorded()
            name = f"the backward pass of {rule}, in {name},"
            operands = ", ".join(f"{value:.6g}" for value in values)
            more = self._slope(event, index, bad.shape)
        else:
            here = self._here()
            event.site, event.module = str(here), bool(self._path)
            place = f" at {here.quoted()}" + (f" in {self._path[-1]}" if self._path else "")
            operands = named(here, values)
        event.what = (
            f"{name.lstrip('_')}{place} made {int(where.sum())} of {bad.numel()} elements "
            f"{'NaN' if event.is_nan else 'infinite'}, the first at {place_in(index)}"
            + (f", of {operands}" if operands else "")
            + more
        )

    def _slope(self, event: Event, index: tuple[int, ...], shape: Tensor) -> str:
        """Describe the operands of the forward op, and its cotangent, where its rule made the first bad number."""
        args, place = self._operands.get(event.number, ([], None))
        values = elements(args, index, shape, event.op in _WITH_NUMBERS)
        known = named(place, values) if place is not None else ""
        cotangents = elements(self._g, index, shape, numbers=False)
        event.trap = event.is_birth and event.is_nan and (cotangents[0] == 0.0 if cotangents else 0.0 in event.values)
        event.trap = event.trap and any(_plain(one) in _CHOOSERS for one in _path(self._loss, event.number)[1:2])
        if event.trap:
            more = "; its cotangent is 0 there, as in a branch that where() does not take, and 0 times an infinite "
            return (f", where its operands are {known}" if known else "") + more + "slope is NaN"
        told = [f"its operands are {known}"] if known else []
        told += [f"its cotangent is {cotangents[0]:.6g}"] if cotangents else []
        finite = event.is_birth and not event.is_nan and bool(cotangents) and math.isfinite(cotangents[0])
        return (f", where {' and '.join(told)}" if told else "") + (
            ", so its slope there is infinite" if finite else ""
        )

    def _note_cotangents(self, loss: Tensor) -> None:
        """Keep the cotangents of each node while its rule runs."""

        def note(given: tuple[Tensor, ...]) -> None:
            self._g = given

        seen, stack = set(), [loss.grad_fn]
        while stack:
            node = stack.pop()
            if node is not None and node not in seen:
                seen.add(node)
                node.register_prehook(note)
                stack += [before for before, _ in node.next_functions]

    def _recorded(self) -> tuple[str, str]:
        """Return the user's line, and the module, of the op whose backward pass is running."""
        node = pytorch()._C._current_autograd_node()
        if node is None:
            return "", ""
        number = node._sequence_nr()
        if number in self._operands:
            known = self._operands[number][1]
            return str(known), f" at {known.quoted()}{self._behind.get(number, '')}"
        for first, last, known in self._places:
            if first <= number < last:
                return str(known), f" at {known.quoted()}"
        found = [
            (file, line)
            for text in node.metadata.get("traceback_", ())
            for file, line in re.findall(r'File "(.+)", line (\d+)', text)
            if not provenance.is_internal(file)
        ]
        site = f"{provenance.shorten(found[-1][0])}:{found[-1][1]}" if found else ""
        source = f" ({linecache.getline(found[-1][0], int(found[-1][1])).strip()})" if found else ""
        return site, f" at {site}{source}" * bool(site) + self._behind.get(node._sequence_nr(), "")

    def _put_out(self, module: Module, told: str, output: Any) -> None:
        """Mark the ops of a module as ancestors of its output."""
        made = library.first_tensor(output)
        stack = [] if made is None else [made.grad_fn]
        while stack:
            node = stack.pop()
            if node is not None and node._sequence_nr() not in self._behind:
                self._behind[node._sequence_nr()] = f" in {told}"
                stack += [before for before, _ in node.next_functions]


def _mode(again: TorchAgain) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Look(TorchDispatchMode):  # type: ignore[misc]  # PyTorch's class is not typed
        """Runs each op unchanged and passes it to `look`."""

        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = op(*args, **(kwargs or {}))
            again.look(op, args, kwargs or {}, result)
            return result

    return Look()


def _next_node() -> int:
    """Return the sequence number of PyTorch's next node."""
    return int(pytorch()._C._autograd._get_sequence_nr())


def _path(loss: Tensor, number: int) -> list[Any]:
    """Return the nodes from the one with a sequence number to the loss; empty if there is no path."""
    root = getattr(loss, "grad_fn", None)
    users: dict[Any, Any] = {}
    waiting = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if node._sequence_nr() == number and not hasattr(node, "variable"):
            path = [node]
            while path[-1] in users:
                path.append(users[path[-1]])
            return path
        for before, _ in node.next_functions:
            if before is not None and before not in users and before is not root:
                users[before] = node
                waiting.append(before)
    return []


def _plain(node: Any) -> str:
    """Return the op that a PyTorch node differentiates."""
    return re.sub(r"Backward\d*$", "", node.name()).lower()


def _makers(node: Tensor) -> list[Tensor]:
    """Return the nodes that made the operands of a node, looking through views."""
    found = []
    for before, _ in node.next_functions:
        while before is not None and common(_plain(before)) in VIEWS and before.next_functions:
            before = before.next_functions[0][0]
        found += [] if before is None else [before]
    return found
