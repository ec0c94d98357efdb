"""A step taken again, op by op, until the first NaN: in the forward pass, the backward pass or the optimizer's step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from glassgrad import provenance
from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.nans import findings
from glassgrad.engine.anomaly import detect_anomaly
from glassgrad.engine.mode import MODE
from glassgrad.engine.nonfinite import ALLOWED, has_bad
from glassgrad.engine.tensor import Tensor


class _Found(BaseException):
    """Unwinds the step past any handler in the user's code."""


class Again:
    """Replays a step under anomaly mode, as the engine's witness, and keeps the first finding.

    Args:
        model: whose parameters and modules have names.
        inf: look for infinities as well.
        allow: names of ops, and of modules of the model, whose NaN and infinities are meant.

    Attributes:
        finding: the first place where a NaN appears, None if there is none.
    """

    def __init__(self, model: Any, *, inf: bool = False, allow: Collection[str] = ()) -> None:
        self.model, self.inf, self.allow = model, inf, frozenset(allow)
        self.finding: Finding | None = None
        self.tensors = dict(_tensors(model))
        self.names = {id(tensor): name for name, tensor in self.tensors.items()}
        self._looking: Any = None
        self._path: list[str] = []
        self._output: Any = None
        self._before: dict[str, dict[str, Any]] = {}

    def run(self, step: Callable[[], Any]) -> Finding | None:
        """Run the step and return the finding."""
        witness = MODE.witness
        looking = self._looking = detect_anomaly(check_inf=self.inf, allow=self.allow)
        looking.module = lambda: self._path[-1] if self._path else ""
        with np.errstate(all="ignore"), self._modules(), looking:
            MODE.witness = self
            try:
                result = step()
                if self.finding is None and has_bad(library.first_tensor(result), self.inf):
                    self._look_at_loss(library.first_tensor(result))
            except _Found:
                pass
            except Exception as error:
                if error is not looking.backward.raised:
                    raise
            finally:
                MODE.witness = witness
        if looking.backward.raised is not None:
            self.finding = findings.of_backward(looking.backward.raised, looking.backward)
        return self.finding

    @contextmanager
    def _modules(self) -> Iterator[None]:
        """Note in which module the ops run, and let those be that are allowed."""
        handles: list[Any] = []
        for name, module in self.model.named_modules() if hasattr(self.model, "named_modules") else ():
            if hasattr(module, "register_forward_pre_hook"):
                told = f"{name} ({type(module).__name__})" if name else type(module).__name__
                handles.append(module.register_forward_pre_hook(self._enters(name, told)))
                handles.append(module.register_forward_hook(self._leaves(name), always_call=True))
        if hasattr(self.model, "register_forward_hook"):
            handles.append(self.model.register_forward_hook(self._keep_output))
        depth = ALLOWED.depth
        try:
            yield
        finally:
            ALLOWED.depth = depth
            for handle in handles:
                handle.remove()
            library.drop_empty_hooks(self.model)

    def _enters(self, name: str, told: str) -> Callable[..., None]:
        def enters(_module: Any, _args: Any) -> None:
            self._path.append(told)
            ALLOWED.depth += name in self.allow

        return enters

    def _leaves(self, name: str) -> Callable[..., None]:
        def leaves(_module: Any, _args: Any, _output: Any) -> None:
            self._path.pop()
            ALLOWED.depth -= name in self.allow

        return leaves

    def _keep_output(self, _module: Any, _args: Any, output: Any) -> None:
        self._output = output

    # --- events reported by the engine ---

    def backward(self, roots: Any) -> None:
        """Check the loss before a backward pass."""
        root = roots[0] if isinstance(roots, tuple | list) and roots else roots
        if has_bad(root, self.inf) or (self.inf and self._looking.born is not None):
            self._look_at_loss(root)
            raise _Found

    def _look_at_loss(self, loss: Any) -> None:
        output = library.first_tensor(self._output)
        in_model = has_bad(output, self.inf) or bool(self._looking.born is not None and self._looking.born.module)
        of = "" if output is None else " of the model" if in_model else " of the loss"
        tracked = loss if isinstance(loss, Tensor) and loss.node is not None else None
        self.finding = findings.of_forward(
            tracked, self.names, self._looking.born, of=of, inf=self.inf, allow=self.allow
        )

    def left(self) -> None:
        """Do nothing: no cotangent of the pass was bad."""

    def stepping(self, optimizer: Any) -> None:
        """Before an optimizer's step: copy the inputs of its rule."""
        self._before = {}
        for group in optimizer.param_groups:
            for at, tensor in enumerate(group["params"]):
                state = {name: _copy(part) for name, part in optimizer.state.get(tensor, {}).items()}
                gradient = {} if tensor._grad is None else {"gradient": _copy(tensor._grad)}
                name = self.names.get(id(tensor), f"parameter {at}")
                self._before[name] = {"the parameter": _copy(tensor), **gradient, **state}
                self.tensors.setdefault(name, tensor)

    def stepped(self, optimizer: Any) -> None:
        """After an optimizer's step: check the weights."""
        now = {name: self.tensors[name].array for name in self._before}
        name = findings.first_update(now, self.inf)
        if name is not None:
            place = str(provenance.here())
            self.finding = findings.of_update(optimizer, name, now[name], self._before[name], place, self.inf)
            raise _Found


def _tensors(model: Any) -> Iterator[tuple[str, Any]]:
    yield from model.named_parameters()
    if hasattr(model, "named_buffers"):
        yield from model.named_buffers()


def _copy(value: Any) -> Any:
    return np.array(value.array if isinstance(value, Tensor) else value)


__all__ = ["Again"]
