"""`--monitor`: watch a run, and write these files to its directory.

monitor.npz                the record, for `glassgrad.GradientMonitor.load` or NumPy
gradient_flow.png          sizes of the layers' gradients, at the beginning and at the end
gradient_histograms.png    distributions of the gradients, over the steps
total_norm.png             total norm of the gradients, before and after clipping
activations.png            outputs of the layers, and the dead or saturated units
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
"""Steps sampled in a run by default: enough for a picture, few enough to cost little."""


class Monitoring(Callback):
    """Watches gradients, weights, updates and activations of a run; keeps the record in the run's directory.

    Before a sampled step, an eager pass runs on the same batch with the same random numbers, and its effects are
    undone: the trained weights are the same bit for bit, on every engine.

    Args:
        every: steps between samples; 0 for 200 samples per run.

    Example:
        >>> from glassgrad.train import Monitoring
        >>> watch = Monitoring(every=50)
    """

    def __init__(self, every: int = 0) -> None:
        self.every = 1
        self.directory: Path | None = None
        self.monitor: GradientMonitor | None = None
        self._wanted = every

    def on_train_start(self, run: RunState) -> None:
        """Begin a record, or continue that of the run."""
        from glassgrad.doctor import GradientMonitor

        self.directory = run.directory
        path = None if run.directory is None else run.directory / RECORD
        every = self._wanted or max(run.steps // SAMPLES, 1)
        self.monitor = GradientMonitor(run.model, every, path=path, start=run.step)
        self._aim(run.step)

    def on_step_start(self, run: RunState) -> None:
        """Take a sample, if this step is due."""
        monitor = self.monitor
        if monitor is not None and run.step % monitor.every == 0:
            monitor.sample(run.step, run.gradients(), lambda: run.clip() is not None)

    def on_step_end(self, run: RunState) -> None:
        """Record the size of the weight update."""
        if self.monitor is not None:
            self.monitor.after_step()
            self._aim(run.step)

    def _aim(self, step: int) -> None:
        """Set `every` so that the next call is after this step if it is sampled, else at the next sampled step."""
        assert self.monitor is not None
        self.every = 1 if step % self.monitor.every == 0 else self.monitor.every

    def state_dict(self) -> dict[str, object]:
        """Write the record with the checkpoint, so that a run resumed from it has all earlier samples."""
        if self.monitor is not None:
            self.monitor.flush()
        return {}

    def on_train_end(self, run: RunState) -> None:
        """Write the current record."""
        self.close()

    def close(self) -> None:
        """Write buffered data, however the run ended. Raises `OSError`."""
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
