"""Find the origin of a NaN in PyTorch: replay a step under a dispatch mode that checks every op."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from glassgrad.base import provenance
from glassgrad.base.provenance import pytorch
from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.graphs.graph import canonical
from glassgrad.doctor.library import Module, Optimizer, Tensor
from glassgrad.doctor.nans import findings
from glassgrad.doctor.nans.replay import Replay
from glassgrad.doctor.nans.tape_search import joined
from glassgrad.engine.reports.nonfinite import ADVICE, ALLOWED, place_in

_UNWRITTEN = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize")
"""Ops whose results are uninitialised memory."""


class TorchAgain(Replay):
    """Replays a step of PyTorch's and keeps the first op that makes a NaN from finite numbers."""

    def __init__(self, model: Module, *, inf: bool = False, allow: Collection[str] = ()) -> None:
        super().__init__(model, inf=inf, allow=allow)
        self._phase = "forward pass"
        self._behind: dict[int, str] = {}
        self._place: provenance.Place | None = None
        self._places: list[tuple[int, int, provenance.Place]] = []
        self._loss: Any = None
        self._made = -1
        self._infinity: tuple[str, str] | None = None

    def run(self, forward: Callable[[], Any], optimizer: Optimizer = None) -> Finding | None:
        """Run the forward and backward pass and the optimizer's step; return the finding."""
        lines = pytorch().autograd.set_detect_anomaly(True, check_nan=False)  # nodes record their lines
        with lines, self._modules(), _mode(self):
            loss = self._loss = forward()
            if self.finding is not None and self._bad(loss):
                return self._with_chain(self.finding, self._made)
            if not self.inf:
                self.finding = None  # drop a NaN that does not reach the loss
            self._phase = "backward pass"
            if self.finding is None and library.is_tensor(loss) and loss.requires_grad:
                loss.backward()
            if self.finding is None and optimizer is not None:
                self._phase = f"step of {type(optimizer).__name__}"
                optimizer.step()
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

    def _with_chain(self, found: Finding, number: int) -> Finding:
        """Add to a finding the path from an op to the loss."""
        path = _path(self._loss, number)
        if len(path) < 2:
            return found
        return replace(found, what=f"{found.what}. To the loss: {joined([_plain(node) for node in path])}")

    def _bad(self, value: Any) -> bool:
        if not library.is_torch(value) or not (value.is_floating_point() or value.is_complex()):
            return False
        return bool((~value.isfinite()).any() if self.inf else value.isnan().any())

    def look(self, op: Any, args: Any, result: Any) -> None:
        """Check whether an op made a NaN from finite operands."""
        name = op.__name__.partition(".")[0] if hasattr(op, "__name__") else str(op)
        if self.finding is not None or ALLOWED.depth or name.startswith(_UNWRITTEN) or canonical(name) in self.allow:
            return
        made = list(_leaves(result)) or list(_leaves(args[0][:1]))  # an in-place op on a list returns nothing
        if (
            self._phase == "forward pass"
            and not self._infinity
            and any(bool(one.isinf().any()) for one in made if one.is_floating_point())
        ):
            here = self._place or provenance.here()
            self._infinity = canonical(name), f"{name} at {here.quoted()}"
        results = [one for one in made if self._bad(one)]
        given = list(_leaves(args))
        written = {id(one) for one in made}
        if not results or any(self._bad(one) for one in given if id(one) not in written):
            return
        given = [one for one in given if id(one) not in written]
        bad = results[0]
        where = ~bad.isfinite() if self.inf else bad.isnan()
        index = tuple(int(at) for at in where.nonzero()[0].tolist())
        op_name = name
        operands = ", ".join(f"{_element(one, index, bad.shape):.6g}" for one in given if _fits(one, bad.shape))
        if self._phase == "backward pass":
            site, place = self._recorded()
            name = f"the backward pass of {_plain(pytorch()._C._current_autograd_node())}, in {name},"
        else:
            here = self._place or provenance.here()
            site, self._made = str(here), _next_node() - 1
            place = f" at {here.quoted()}" + (f" in {self._path[-1]}" if self._path else "")
        kind = "NaN" if bool(bad.isnan().any()) else "infinite"
        what = (
            f"{name}{place} made {int(where.sum())} of {bad.numel()} elements {kind}, the first at "
            f"{place_in(index)}" + (f", of {operands}" if operands else "")
        )
        of = "" if self._phase != "forward pass" else " of the model" if self._path else " of the loss"
        rule = f"{'NaN' if kind == 'NaN' else 'inf'} in the {self._phase}{of}"
        values = [_element(one, index, bad.shape) for one in given if _fits(one, bad.shape)]
        more, advice, remedy = self._why(canonical(op_name), kind, values)
        what += more
        self.finding = Finding(rule, "error", what, advice, site, remedy=remedy)

    def _why(self, name: str, kind: str, values: list[float]) -> tuple[str, str, str]:
        """Explain a NaN: return the explanation, the advice and the remedy.

        Args:
            name: name of the op.
            kind: "NaN" or "infinite".
            values: values of the operands, at the index of the first bad element.
        """
        if self._phase.startswith("step"):
            return "", findings.RATE, "raise eps, or lower the rate"
        advice, remedy = "Keep what goes in finite.", ADVICE.get(name, "")
        if self._phase == "forward pass":
            if kind == "NaN" and self._infinity is not None:
                return f"; an infinity comes from {self._infinity[1]}", advice, ADVICE.get(self._infinity[0], remedy)
            return "", advice, remedy
        node = pytorch()._C._current_autograd_node()
        rule = "" if node is None else _plain(node)
        more, remedy = "", ADVICE.get(canonical(rule), "")
        if kind == "NaN" and 0.0 in values:
            more = (
                "; its cotangent is 0 there, as that of a branch that where() does not take, and 0 times an infinite "
            )
            more += "slope is NaN"
            advice = "Mask the input of the op, not its result."
            remedy = f"torch.where(mask, {rule}(torch.where(mask, x, 1.0)), 0.0)"
        path = [] if node is None else _path(self._loss, node._sequence_nr())
        if len(path) > 1:
            more += f". The cotangent came from the loss by {' -> '.join(_plain(one) for one in path[::-1])}"
        return more, advice, remedy

    def _recorded(self) -> tuple[str, str]:
        """Return the user's line, and the module, of the op whose backward pass is running."""
        node = pytorch()._C._current_autograd_node()
        if node is None:
            return "", ""
        number = node._sequence_nr()
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
            again.look(op, (args, kwargs), result)
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


def _leaves(value: Any) -> Iterator[Any]:
    if library.is_torch(value):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))


def _fits(value: Any, shape: Any) -> bool:
    try:
        value.broadcast_to(shape)
    except RuntimeError:
        return False
    return True


def _element(value: Any, index: tuple[int, ...], shape: Any) -> float:
    found = value.broadcast_to(shape)[index]
    return float(found.real if found.is_complex() else found)
