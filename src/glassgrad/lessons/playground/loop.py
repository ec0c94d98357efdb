"""A program's training loop while it runs: its loss and its picture for the page, and the brake."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import CodeType, FrameType

import numpy as np

from glassgrad.engine.mode import MODE, no_grad
from glassgrad.engine.tensor import Tensor
from glassgrad.lessons.limits import Watchdog
from glassgrad.lessons.playground.events import Sender
from glassgrad.lessons.playground.program import Data, Program, rounds_of
from glassgrad.nn.module import Module
from glassgrad.ops.core import Array
from glassgrad.report.page.maps import heat

_EVERY = 0.05  # seconds between two events
_MOST = 8  # values, and samples
_LONG = 200  # characters of a sample
_CELLS = 24
_PLAIN = frozenset({"Linear", "Sequential", "ModuleList", "Tanh", "ReLU", "Sigmoid", "GELU", "SiLU", "LeakyReLU"})
"""Layers that computing once more changes in nothing: no running statistics, no random numbers."""


@contextmanager
def witnessed(witness: object) -> Iterator[None]:
    """Let somebody hear of the backward passes and steps in the block, or with None nobody."""
    before, MODE.witness = MODE.witness, witness
    try:
        yield
    finally:
        MODE.witness = before


class Loop:
    """The engine's witness of a run: it hears of backward passes and of optimizers' steps.

    Attributes:
        steps: of optimizers, so far.
    """

    def __init__(self, send: Sender, guard: Watchdog, program: Program, flush: Callable[[], None]) -> None:
        self.steps = 0
        self._send, self._guard, self._program, self._flush = send, guard, program, flush
        self._loss: float | None = None
        self._since: list[tuple[int, float]] = []
        self._last = 0.0
        self._sent = 0
        self._picture: _Picture | None = None
        self._place: tuple[CodeType, int] | None = None
        self._total: int | None = None
        self._go = threading.Event()
        self._go.set()
        self._once = False

    def steer(self, order: str, paused: bool) -> None:
        """Pause, go on, or make one step."""
        if order == "pause" and paused:
            self._go.clear()
            return
        self._once = order == "step"
        self._go.set()

    # --- what the engine reports ----------------------------------------------------------------------------

    def backward(self, roots: Tensor | list[Tensor]) -> bool:
        """Note the loss; no gradients are asked for."""
        root = roots if isinstance(roots, Tensor) else roots[0]
        if root.numel() == 1 and isinstance(root.array, np.ndarray):
            loss = float(root.array.reshape(()).real)
            self._loss = loss if np.isfinite(loss) else None
        return False

    def left(self) -> None:
        """A backward pass has ended."""

    def stepping(self, optimizer: object) -> None:
        """An optimizer begins its step."""

    def stepped(self, optimizer: object) -> None:
        """Show a step, and wait if the loop is paused."""
        del optimizer
        if self._send.is_forked:
            return
        self.steps += 1
        self._locate(sys._getframe(1))
        if self._loss is not None:
            self._since.append((self.steps, self._loss))
        self._program.recorder.end_round()
        self._guard.reset()
        paused = not self._go.is_set()
        if paused or self._once or time.monotonic() - self._last > _EVERY:
            self._show()
        if self._once:
            self._once = False
            self._go.clear()
        if not self._go.is_set():
            self._guard.stop()
            self._go.wait()
            self._guard.reset()

    def _locate(self, frame: FrameType | None) -> None:
        """Find how many steps the loop around a new place will make."""
        while frame is not None and frame.f_code.co_filename != self._program.file:
            frame = frame.f_back
        if frame is None or self._place == (frame.f_code, frame.f_lasti):
            return
        self._place = frame.f_code, frame.f_lasti
        rounds = rounds_of(self._program.tree, frame.f_lineno, {**frame.f_globals, **frame.f_locals})
        self._total = None if rounds is None else self.steps - 1 + rounds

    def over(self) -> None:
        """Show the last step of a program that has ended."""
        if self.steps > self._sent:
            self._show()

    # --- what the page sees -----------------------------------------------------------------------------------

    def _show(self) -> None:
        names = self._program.names
        plain = [(name, one) for name, one in names.items() if type(one) is float and not name.startswith("_")]
        shown = dict([(name, one) for name, one in plain if np.isfinite(one)][:_MOST])
        if self._picture is None or not self._picture.fits(names):
            self._picture = _Picture.of(names)
        grid = self._picture.drawn() if self._picture is not None else None
        if samples := _samples(names):
            grid = {**(grid or {}), "samples": samples}
        self._flush()
        state = {"step": self.steps, "total": self._total, "loss": self._loss, "values": shown, "grid": grid}
        self._send({"event": "progress", "loop": {**state, "since": self._since}})
        self._since = []
        self._last, self._sent = time.monotonic(), self.steps


class _Picture:
    """The output of a model of two inputs over the plane of its data."""

    def __init__(self, model: Module, points: Array, labels: Array) -> None:
        self.model = model
        low, high = points.min(axis=0), points.max(axis=0)
        low, high = low - (high - low) / 4, high + (high - low) / 4
        marks = np.zeros(len(points)) if labels is None else labels.reshape(-1)
        shown = np.column_stack([points, marks])[:_MOST_POINTS]
        self.place: Data = {"low": low.tolist(), "high": high.tolist(), "points": shown.tolist()}
        across, down = np.linspace(low[0], high[0], _CELLS), np.linspace(high[1], low[1], _CELLS)
        self.plane = np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2).astype(np.float32)

    @classmethod
    def of(cls, names: dict[str, object]) -> _Picture | None:
        """Return the picture of a program's first model, if its layers may be computed once more and it has data."""
        model = next((one for one in names.values() if isinstance(one, Module)), None)
        if model is None or any(type(one).__name__ not in _PLAIN for one in model.modules() if one is not model):
            return None
        arrays = [one.detach().numpy() if isinstance(one, Tensor) else one for one in names.values()]
        points: Array = next((one for one in arrays if _is_plane(one)), None)
        if points is None:
            return None
        return cls(model, points, next((one for one in arrays if _are_labels(one, len(points))), None))

    def fits(self, names: dict[str, object]) -> bool:
        """Tell whether the program still has this model."""
        return any(one is self.model for one in names.values())

    def drawn(self) -> Data | None:
        """Return the output on a grid: the only one, or the second of two less the first."""
        result: Array = None
        with witnessed(None), suppress(Exception), no_grad():
            result = self.model(Tensor(self.plane)).numpy()
        if result is None or result.size not in {len(self.plane), 2 * len(self.plane)}:
            return None
        cells = result.reshape(_CELLS, _CELLS, -1)
        return {**heat(cells[..., -1] if cells.shape[-1] == 1 else cells[..., 1] - cells[..., 0]), **self.place}


def _samples(names: Mapping[str, object]) -> list[str]:
    """Return the texts of a variable `samples`, which a program renews while it trains."""
    found = names.get("samples")
    return [one[:_LONG] for one in found[:_MOST] if isinstance(one, str)] if isinstance(found, list) else []


def _is_plane(value: Array) -> bool:
    flat = isinstance(value, np.ndarray) and value.ndim == _AXES and value.shape[1] == _AXES
    return flat and len(value) > _AXES and value.dtype.kind == "f" and bool(np.isfinite(value).all())


def _are_labels(value: Array, count: int) -> bool:
    """Tell whether an array holds one of two numbers for each point."""
    return isinstance(value, np.ndarray) and value.size == count and bool(np.isin(value, (0, 1)).all())


_AXES = 2
_MOST_POINTS = 500
