"""The origin of a NaN in PyTorch: a step taken under a dispatch mode that looks at every op, forward and backward."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad import provenance
from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.graph import canonical
from glassgrad.doctor.nans import findings
from glassgrad.engine.nonfinite import ADVICE, ALLOWED, place_in
from glassgrad.provenance import pytorch

_UNWRITTEN = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize")
"""Ops whose results hold whatever was in memory."""


class TorchAgain:
    """Takes a step of PyTorch's and keeps the first op that makes a NaN of numbers.

    Args:
        model: whose modules have names.
        inf: look for infinities too.
        allow: names of ops and modules whose NaN and infinities are meant.
    """

    def __init__(self, model: Any, *, inf: bool = False, allow: Collection[str] = ()) -> None:
        self.model, self.inf, self.allow = model, inf, frozenset(allow)
        self.finding: Finding | None = None
        self._phase = "forward pass"
        self._path: list[str] = []
        self._behind: dict[int, str] = {}

    def run(self, forward: Callable[[], Any], optimizer: Any = None) -> Finding | None:
        """Compute a loss, its gradients and an optimizer's step; return what was found."""
        lines = pytorch().autograd.set_detect_anomaly(True, check_nan=False)  # its nodes know where they were made
        with lines, self._modules(), _mode(self):
            loss = forward()
            if self.finding is not None and self._bad(loss):
                return self.finding
            if not self.inf:
                self.finding = None  # a NaN that does not reach the loss
            self._phase = "backward pass"
            if self.finding is None and library.is_tensor(loss) and loss.requires_grad:
                loss.backward()
            if self.finding is None and optimizer is not None:
                self._phase = f"step of {type(optimizer).__name__}"
                optimizer.step()
        return self.finding

    def _bad(self, value: Any) -> bool:
        if not library.is_torch(value) or not (value.is_floating_point() or value.is_complex()):
            return False
        return bool((~value.isfinite()).any() if self.inf else value.isnan().any())

    def look(self, op: Any, args: Any, result: Any) -> None:
        """See whether an op has made a NaN of numbers."""
        name = op.__name__.partition(".")[0] if hasattr(op, "__name__") else str(op)
        if self.finding is not None or ALLOWED.depth or name.startswith(_UNWRITTEN) or canonical(name) in self.allow:
            return
        made = list(_leaves(result)) or list(_leaves(args[0][:1]))  # an op in place on a list returns nothing
        results = [one for one in made if self._bad(one)]
        given = list(_leaves(args))
        written = {id(one) for one in made}
        if not results or any(self._bad(one) for one in given if id(one) not in written):
            return
        given = [one for one in given if id(one) not in written]
        bad = results[0]
        where = ~bad.isfinite() if self.inf else bad.isnan()
        index = tuple(int(at) for at in where.nonzero()[0].tolist())
        operands = ", ".join(f"{_element(one, index, bad.shape):.6g}" for one in given if _fits(one, bad.shape))
        if self._phase == "backward pass":
            site, place = self._recorded()
            name = f"the backward pass of {_plain(pytorch()._C._current_autograd_node())}, in {name},"
        else:
            site = str(provenance.here())
            place = f" at {site} ({provenance.here().source})" + (f" in {self._path[-1]}" if self._path else "")
        kind = "NaN" if bool(bad.isnan().any()) else "infinite"
        what = (
            f"{name}{place} made {int(where.sum())} of {bad.numel()} elements {kind}, the first at "
            f"{place_in(index)}" + (f", of {operands}" if operands else "")
        )
        of = "" if self._phase != "forward pass" else " of the model" if self._path else " of the loss"
        rule = f"{'NaN' if kind == 'NaN' else 'inf'} in the {self._phase}{of}"
        advice = findings.RATE if self._phase.startswith("step") else "Keep what goes in finite."
        remedy = ADVICE.get(canonical(name), "")
        if self._phase == "backward pass":
            advice = "If where() hides that place, mask the input of the op, not its result."
            remedy = ADVICE.get(canonical(_plain(pytorch()._C._current_autograd_node())), "")
        if self._phase.startswith("step"):
            remedy = "raise eps, or lower the rate"
        self.finding = Finding(rule, "error", what, advice, site, remedy=remedy)

    def _recorded(self) -> tuple[str, str]:
        """Return the user's line, and the module, of the op whose backward pass is being computed."""
        node = pytorch()._C._current_autograd_node()
        if node is None:
            return "", ""
        found = [
            (file, line)
            for text in node.metadata.get("traceback_", ())
            for file, line in re.findall(r'File "(.+)", line (\d+)', text)
            if not provenance.is_internal(file)
        ]
        site = f"{provenance.shorten(found[-1][0])}:{found[-1][1]}" if found else ""
        source = f" ({linecache.getline(found[-1][0], int(found[-1][1])).strip()})" if found else ""
        return site, f" at {site}{source}" * bool(site) + self._behind.get(node._sequence_nr(), "")

    @contextmanager
    def _modules(self) -> Iterator[None]:
        handles = []
        for name, module in self.model.named_modules():
            told = f"{name} ({type(module).__name__})" if name else type(module).__name__
            handles.append(module.register_forward_pre_hook(self._enters(name, told)))
            handles.append(module.register_forward_hook(self._leaves(name, told), always_call=True))
        depth = ALLOWED.depth
        try:
            yield
        finally:
            ALLOWED.depth = depth
            for handle in handles:
                handle.remove()

    def _enters(self, name: str, told: str) -> Callable[..., None]:
        def enters(_module: Any, _args: Any) -> None:
            self._path.append(told)
            ALLOWED.depth += name in self.allow

        return enters

    def _leaves(self, name: str, told: str) -> Callable[..., None]:
        def leaves(_module: Any, _args: Any, output: Any) -> None:
            self._path.pop()
            ALLOWED.depth -= name in self.allow
            made = library.first_tensor(output)
            stack = [] if made is None else [made.grad_fn]
            while stack:
                node = stack.pop()
                if node is not None and node._sequence_nr() not in self._behind:
                    self._behind[node._sequence_nr()] = f" in {told}"
                    stack += [before for before, _ in node.next_functions]

        return leaves


def _mode(again: TorchAgain) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Look(TorchDispatchMode):  # type: ignore[misc]  # PyTorch's class is not typed
        """Computes each op as it is, and shows it."""

        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = op(*args, **(kwargs or {}))
            again.look(op, (args, kwargs), result)
            return result

    return Look()


def _plain(node: Any) -> str:
    """Return the op that a node of PyTorch's differentiates."""
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


__all__ = ["TorchAgain"]
