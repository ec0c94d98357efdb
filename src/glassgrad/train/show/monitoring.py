"""`--monitor`: a run that is watched, and what its directory then holds.

monitor.npz                what `glassgrad.GradientMonitor.load` reads, and NumPy
gradient_flow.png          how large the gradients of the layers are, at the beginning and at the end
gradient_histograms.png    how they are spread, over the steps
total_norm.png             the norm of all together, before and after clipping
activations.png            what the layers put out, and the units that are dead or saturated
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassgrad.train.callbacks import Callback, RunState

if TYPE_CHECKING:
    from glassgrad.doctor import GradientMonitor, MonitorData

RECORD = "monitor.npz"

SAMPLES = 200
"""Steps sampled in a run when nobody says how many: enough for a picture, few enough to cost little."""


class Monitoring(Callback):
    """Watches gradients, weights, updates and activations of a run, and keeps the record in its directory.

    A sampled step is looked at beforehand, by an eager pass of which nothing remains, on the batch and with the random
    numbers that the step will have: the weights that come out are the same bit for bit, whatever the engine.

    Args:
        every: sample each so many steps; 0 for as many as make 200 samples of the run.
    """

    def __init__(self, every: int = 0) -> None:
        self.every = 1
        self.directory: Path | None = None
        self.monitor: GradientMonitor | None = None
        self._wanted = every

    def on_train_start(self, run: RunState) -> None:
        """Begin a record, or go on with the one of the run."""
        from glassgrad.doctor import GradientMonitor

        self.directory = run.directory
        path = None if run.directory is None else run.directory / RECORD
        every = self._wanted or max(run.steps // SAMPLES, 1)
        self.monitor = GradientMonitor(run.model, every, path=path, start=run.step)
        self._aim(run.step)

    def on_step_start(self, run: RunState) -> None:
        """Take a sample, if this step is one of those."""
        monitor = self.monitor
        if monitor is not None and run.step % monitor.every == 0:
            monitor.sample(run.step, run.gradients(), lambda: run.clip() is not None)

    def on_step_end(self, run: RunState) -> None:
        """See how far the step moved the weights."""
        if self.monitor is not None:
            self.monitor.after_step()
            self._aim(run.step)

    def _aim(self, step: int) -> None:
        """Be called again after the coming step, if it is one to be sampled, else at the next that is."""
        assert self.monitor is not None
        self.every = 1 if step % self.monitor.every == 0 else self.monitor.every

    def state_dict(self) -> dict[str, object]:
        """Write the record: a checkpoint is made, and a run that goes on from there shall miss no sample before it."""
        if self.monitor is not None:
            self.monitor.flush()
        return {}

    def on_train_end(self, run: RunState) -> None:
        """Write the record as it stands."""
        self.close()

    def close(self) -> None:
        """Write what is still to be written, however the run ended. Raises `OSError`."""
        if self.monitor is not None:
            self.monitor.close()


def draw(directory: Path) -> list[Path]:
    """Draw the four pictures of a run beside its record; return their paths. Raises `OSError`."""
    from glassgrad import report
    from glassgrad.doctor import GradientMonitor

    data = GradientMonitor.load(directory / RECORD)
    if not len(data):
        return []
    pictures: dict[str, Callable[[MonitorData], Any]] = {
        "gradient_flow": report.plot_gradient_flow,
        "gradient_histograms": report.plot_gradient_histograms,
        "total_norm": report.plot_total_norm,
    }
    if data.activations:
        pictures["activations"] = report.plot_activations
    written = []
    for name, plot in pictures.items():
        written.append(directory / f"{name}.png")
        plot(data).savefig(written[-1])
    return written


__all__ = ["Monitoring"]
