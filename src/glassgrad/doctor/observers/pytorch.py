"""The wire to PyTorch, through its own hooks: of the model, of its output and of the optimizers.

The loss and the ops behind it are recorded in sampled steps only, by a mode of `torch.overrides`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glassgrad.doctor import library
from glassgrad.doctor.graphs.torch_graph import Recorder
from glassgrad.doctor.restoring.set_aside import aside

if TYPE_CHECKING:
    from glassgrad.doctor.nans.torch_guard import TorchGuard
    from glassgrad.doctor.watching import Watch


class TorchWire:
    """A connection to a module and optimizers of PyTorch's."""

    def __init__(
        self, listener: Watch, model: Any, optimizers: tuple[Any, ...], guard: TorchGuard | None = None
    ) -> None:
        self._listener = listener
        self._guard = guard
        self._model = model
        self._optimizers = optimizers
        self._handles: list[Any] = []
        self._recorder = Recorder(self._loss)
        self._told = False
        self._inner = library.uncompiled(model)

    def connect(self) -> None:
        """Register the hooks."""
        untraced = library.untraced
        self._handles.append(self._model.register_forward_pre_hook(untraced(self._entered)))
        self._handles.append(self._model.register_forward_hook(untraced(self._forward), with_kwargs=True))
        for optimizer in self._optimizers:
            self._handles.append(optimizer.register_step_pre_hook(untraced(self._stepping)))
            self._handles.append(optimizer.register_step_post_hook(untraced(self._stepped)))

    def sampled(self, wanted: bool) -> None:
        """Record the functions that are called in a sampled step."""
        if wanted:
            self._recorder.start()
        else:
            self._recorder.stop()

    def graph(self, loss: Any) -> Any:
        """Return the graph of a loss, if the step was sampled."""
        return self._recorder.graph(loss)

    def disconnect(self) -> None:
        """Remove the hooks."""
        if self._guard is not None:
            self._guard.disconnect()
        self._recorder.stop()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # --- the hooks ---

    def _entered(self, _module: Any, _args: Any) -> None:
        if self._guard is not None:
            self._guard.entered()
        if self._inner is not self._model:
            self._recorder.stop()  # a mode would be compiled with the model

    def _forward(self, _module: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        if self._guard is not None and self._guard.busy:
            return
        if self._inner is not self._model and self._listener.sampling:
            with aside(self._inner):
                self._inner(*args, **kwargs)  # for the hooks inside, which a compiled module does not call
            self._recorder.start()
        self._listener.forward(output, args)
        if self._guard is not None:
            self._guard.forward(args, kwargs, output)
        result = library.first_tensor(output)
        if self._listener.sampling and result is not None and result.requires_grad:
            result.register_hook(self._arrived)

    def _arrived(self, _gradient: Any) -> None:
        """Report a backward pass from a loss that the mode has not recorded."""
        if not self._told:
            self._listener.before_backward(None)

    def _loss(self, loss: Any) -> None:
        """A backward pass begins, or has ended."""
        if loss is None:
            self._told = False
            self._listener.after_backward()
        else:
            self._told = True
            self._listener.before_backward(loss)

    def _stepping(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        # A closure runs its forward and backward pass between this hook and the update, before which no hook is called.
        self._listener.before_step(optimizer, closure=bool(len(args) > 1 or kwargs.get("closure")))
        if self._guard is not None:
            self._guard.stepping(optimizer)

    def _stepped(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._listener.after_step(optimizer)
        if self._guard is not None:
            self._guard.stepped(optimizer)
