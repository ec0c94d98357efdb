"""Record which leaves' gradients a function reads and writes while it is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor

if TYPE_CHECKING:
    from glassgrad.compile.front.tracer import Tracer

GRAD: Any = Tensor.__dict__["_grad"]  # the slot itself, also while a stand-in replaces it


class GradWatch:
    """Records which gradients of leaves a function reads and writes, by replacing the slot of `Tensor`.

    The tracer needs this to know whether a gradient left by the previous call matters. After `zero_grad()` it does
    not, and a second call runs the same program; otherwise the function adds to the gradient.

    Attributes:
        first: tensor -> the first access to its gradient, "read" or "write", and the gradient before it.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.first: dict[int, tuple[Tensor, str, Tensor | None]] = {}

    def start(self) -> None:
        """Begin to watch. Other threads also go through the stand-in, at a small cost."""
        slot = GRAD

        def read(target: Tensor) -> Any:
            grad = slot.__get__(target)
            if MODE.flags & TRACING:
                self._note(target, "read")
                if grad is not None and target.node is None:
                    self.tracer.lift(grad, path=self.tracer.path_of(target, ".grad"))
            return grad

        def write(target: Tensor, grad: Any) -> None:
            if MODE.flags & TRACING:
                self._note(target, "write")
            slot.__set__(target, grad)

        type.__setattr__(Tensor, "_grad", property(read, write))

    def stop(self) -> None:
        """Restore the slot."""
        type.__setattr__(Tensor, "_grad", GRAD)

    def _note(self, target: Tensor, what: str) -> None:
        key = id(target)
        if key in self.first:
            return
        try:
            before = GRAD.__get__(target)
        except AttributeError:  # being constructed
            return
        if target.node is None and target._tracks:
            self.first[key] = (target, what, before)

    def restore(self) -> None:
        """Restore every leaf's gradient."""
        for target, _, before in self.first.values():
            GRAD.__set__(target, before)
