"""GradientMonitor: statistics of gradients, weights, updates and activations over the steps of a training run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.doctor import library
from glassgrad.doctor.library import Module
from glassgrad.doctor.observers.forward_watch import ForwardWatch
from glassgrad.doctor.observers.sampling import EVERYTHING, Sampler
from glassgrad.doctor.quantities import norms
from glassgrad.doctor.quantities.statistics import norm
from glassgrad.doctor.record import MonitorData, Sample
from glassgrad.doctor.reports.loggers import hand_over
from glassgrad.doctor.restoring.set_aside import aside

_WRITE_SECONDS = 5.0
_SHARE_OF_WRITING = 0.02
"""Upper limit of the share of time spent on writing the file."""


class GradientMonitor(AbstractContextManager["GradientMonitor"]):
    """Records statistics of a model's gradients every few steps, at almost no cost in other steps.

    Call `update()` after each backward pass and, if you clip, `update_after_clip()` after clipping. The monitor does
    not need the optimizer: the next `update()` measures how far each weight moved.

    Args:
        model: a module of glassgrad or PyTorch, or anything with `named_parameters()`.
        every: sample steps that are multiples of it.
        path: npz file of the record, written during training and by `close()`; an existing file is continued, without
            its samples from step `start` on.
        start: the number of the next step, counted from 0; not 0 in a resumed run.
        activations: watch the outputs of modules, through forward hooks that are attached for sampled steps only.
        keep: the largest number of samples; when there are more, every second is dropped and `every` doubles.

    Raises:
        KindError: a model without `named_parameters()`.
        InputError: the file at `path` is not a record, or one of another model.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.Tanh(), gg.nn.Linear(8, 1))
        >>> optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
        >>> monitor = gg.GradientMonitor(model, every=2)
        >>> for step in range(5):
        ...     loss = model(gg.randn(16, 4)).square().mean()
        ...     optimizer.zero_grad()
        ...     loss.backward()
        ...     monitor.update(loss)
        ...     _ = gg.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        ...     monitor.update_after_clip()
        ...     optimizer.step()
        >>> monitor.data.steps, monitor.data.gradient_norm.shape
        (array([0, 2, 4]), (3, 4))
    """

    def __init__(
        self,
        model: Module,
        every: int = 1,
        *,
        path: str | Path | None = None,
        start: int = 0,
        activations: bool = True,
        keep: int = 2_000,
    ) -> None:
        if not hasattr(model, "named_parameters"):
            raise errors.MONITOR_MODEL(owner="GradientMonitor", given=type(model).__name__)
        whole: tuple[tuple[str, Any, int], ...] = (("every", every, 1), ("start", start, 0), ("keep", keep, 2))
        for name, value, low in whole:
            if not isinstance(value, int | np.integer) or value < low:
                raise errors.MONITOR_EVERY(name=name, low=low, given=value)
        self.model = model
        self.every = int(every)
        self.path = None if path is None else Path(path)
        self.step = self._start = int(start)
        self._keep = int(keep)
        self._parameters = list(model.named_parameters())
        if not self._parameters:
            raise errors.MONITOR_NO_PARAMETERS(owner="GradientMonitor", model=type(model).__name__)
        self._shapes = {name: tuple(parameter.shape) for name, parameter in self._parameters}
        self._samples: list[Sample] = []
        self._kinds: dict[str, str] = {}
        self._sampler = Sampler(self._parameters, EVERYTHING)
        self._next_write = time.monotonic() + _WRITE_SECONDS
        self._open: Sample | None = None
        self._ahead = True
        self._watch = ForwardWatch(model) if activations else None
        if self.path is not None and self.path.exists():
            self._go_on(self.path)
        self._due = self.step + -self.step % self.every
        self._look_ahead()

    def __repr__(self) -> str:
        count = len(self._samples)
        return f"<GradientMonitor of {type(self.model).__name__}: {count} samples, one in {self.every} steps>"

    def _repr_html_(self) -> str:
        return self.data._repr_html_()

    # --- in the training loop ---

    @property
    def due(self) -> bool:
        """Whether the current step is to be sampled."""
        return self.step == self._due

    def update(self, loss: Any = None) -> None:
        """Take a sample if one is due; call it once per step, after the backward pass and before clipping.

        Raises `GlassgradError` if no parameter has a gradient in a sampled step.
        """
        step = self.step
        self.step = step + 1
        if self._open is not None:
            self._settle()
        if step == self._due:
            self._take(step, loss)
            self._write_sometimes()
        if self.step == self._due:
            self._look_ahead()

    def update_after_clip(self) -> None:
        """Record the total norm after clipping; call it after clipping, in the same step as `update()`.

        Raises `GlassgradError` if `update()` was never called.
        """
        if self._open is not None and self._open.step == self.step - 1:
            self._open.values["total_norm_clipped"] = self._total_norm()
        elif self.step == self._start:
            raise errors.MONITOR_ORDER(step=self.step)

    def after_step(self) -> None:
        """Measure how far the optimizer moved the weights; without this call the next `update()` measures it."""
        if self._open is not None:
            self._settle()

    def observe(self, loss: Callable[[], Any], clip: Callable[[], Any] | None = None) -> None:
        """Take a sample from a separate forward and backward pass, and undo all of its effects.

        Use it for steps that keep no gradients, such as compiled ones: call it before each step. Weights, statistics,
        gradients and random generators are restored, so training continues bit for bit as without the call, and random
        draws such as dropout are the ones that the step itself will make.

        Args:
            loss: computes the loss of the next step's batch.
            clip: clips the gradients like the step, if the step clips.
        """
        self._ahead = False  # the steps themselves are not watched
        if self.due:
            self.sample(self.step, _side_pass(self.model, loss), clip)
        else:
            self.update()

    def sample(self, step: int, passes: AbstractContextManager[object], clip: Callable[[], Any] | None = None) -> None:
        """Take a sample of a step, due or not, for a loop that counts steps and manages gradients itself.

        Args:
            step: the number of the next step.
            passes: a context manager that makes a forward and a backward pass, yields the loss, and gives the
                parameters their gradients within the block.
            clip: clips the gradients like the step; returns False if the step does not clip.
        """
        self.after_step()
        self._ahead = False
        self.step = self._due = int(step)
        if self._watch is not None:
            self._watch.take()
            self._watch.attach()
        try:
            with passes as loss:
                self.update(loss)
                if clip is not None and clip() is not False:
                    self.update_after_clip()
        finally:
            if self._watch is not None:
                self._watch.detach()

    def log_stats(self, logger: Any, step: int | None = None) -> None:
        """Measure the current gradients, and pass mean, standard deviation and norm of each to a logger.

        Args:
            logger: TensorBoard's writer (`add_scalar`), W&B (`log`), Lightning's (`log_metrics`), one of
                `glassgrad.train` (`write`), Python's own (`info`), or a function of (name, value, step).
            step: the number of the step; by default the one after the last.

        Raises:
            GlassgradError: no parameter has a gradient.
            KindError: the object is not a logger.

        Example:
            >>> import glassgrad as gg
            >>> layer = gg.nn.Linear(2, 1, bias=False)
            >>> layer(gg.tensor([[3.0, 4.0]])).sum().backward()
            >>> seen = {}
            >>> gg.GradientMonitor(layer).log_stats(lambda name, value, step: seen.update({name: value}), 0)
            >>> seen["gradient_norm/weight"], seen["total_norm"]
            (5.0, 5.0)
        """
        self.after_step()
        self.step = self._due = self.step if step is None else int(step)
        self.update()
        values = self._samples[-1].values
        found = {"total_norm": float(values["total_norm"])}
        for kind in ("gradient", "parameter"):
            for name in ("mean", "std", "norm"):
                for parameter, value in zip(self._shapes, values[f"{kind}_{name}"], strict=True):
                    if not np.isnan(value):
                        found[f"{kind}_{name}/{parameter}"] = float(value)
        hand_over(logger, found, self.step - 1)

    # --- the record ---

    @property
    def data(self) -> MonitorData:
        """Everything recorded so far, as plain arrays."""
        return MonitorData.gather(self.every, self._shapes, self._kinds, self._samples)

    @staticmethod
    def load(path: str | Path) -> MonitorData:
        """Read a record from its file. Raises `errors.InputError` when it cannot be read."""
        return MonitorData.load(path)

    def flush(self) -> None:
        """Write the file now, if there is one. Raises `OSError`; the old file then stays intact."""
        if self.path is None:
            return
        began = time.monotonic()
        self.data.save(self.path)
        ended = time.monotonic()
        self._next_write = ended + max(_WRITE_SECONDS, (ended - began) / _SHARE_OF_WRITING)

    def close(self) -> None:
        """Complete the last sample, write the file, and remove the hooks from the model."""
        self.after_step()
        if self._watch is not None:
            self._watch.detach()
        self.flush()

    def __exit__(self, *raised: object) -> None:
        self.close()

    # --- inside ---

    def _look_ahead(self) -> None:
        """Watch the forward pass of the next step, if it is to be sampled."""
        if self._watch is not None and self._ahead and self.step == self._due and not self._watch.traced:
            self._watch.take()
            self._watch.attach()

    def _take(self, step: int, loss: Any) -> None:
        sample = Sample(step)
        if loss is not None:
            number = library.numbers(loss)
            sample.values["loss"] = np.nan if number is None else number.item()
        self._sampler.gradients(sample)
        if "total_norm" not in sample.values:
            raise errors.MONITOR_NO_GRADIENTS(model=type(self.model).__name__, step=sample.step)
        if self._watch is not None:
            self._watch.detach()
            sample.activations = self._watch.take()
            self._kinds.update(self._watch.kinds)
        self._sampler.before()
        self._open = sample
        self._samples.append(sample)
        if len(self._samples) > self._keep:
            self.every *= 2
            self._samples = [kept for kept in self._samples if kept.step % self.every == 0]
        self._due = step + 1 + -(step + 1) % self.every

    def _total_norm(self) -> float:
        held = [library.gradient(parameter) for _, parameter in self._parameters]
        return norms.total(norm(gradient) for gradient in held if gradient is not None)

    def _settle(self) -> None:
        """Compare the weights with those of the sampled step."""
        assert self._open is not None
        self._sampler.after(self._open)
        self._open = None

    def _write_sometimes(self) -> None:
        if self.path is not None and time.monotonic() >= self._next_write:
            self.flush()

    def _go_on(self, path: Path) -> None:
        """Load the samples of an earlier part of the run, up to the next step."""
        if self.step == 0:
            return
        data = MonitorData.load(path)
        if data.parameters != tuple(self._shapes):
            wrong = sorted(set(data.parameters) ^ set(self._shapes))
            raise errors.MONITOR_OTHER_MODEL(path=path, reason=f"parameters {', '.join(wrong[:5])}")
        sizes = [int(np.prod(shape)) for shape in self._shapes.values()]
        for name, before, now in zip(data.parameters, data.sizes, sizes, strict=True):
            if before != now:
                raise errors.MONITOR_OTHER_MODEL(path=path, reason=f"{name} had {before} numbers, now {now}")
        self.every = max(self.every, data.every)
        self._samples = data.before(self.step).samples()
        self._kinds = dict(zip(data.activations, data.kinds, strict=True))


@contextmanager
def _side_pass(model: Module, loss: Callable[[], Any]) -> Iterator[Any]:
    with aside(model):
        value = loss()
        value.backward()
        yield value


__all__ = ["GradientMonitor"]
