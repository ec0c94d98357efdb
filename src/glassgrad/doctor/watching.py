"""`watch`: observe a training loop from outside, in any library, and diagnose it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.facts import Facts, Finding
from glassgrad.doctor.graphs.kept import Kept
from glassgrad.doctor.library import Args, Kwargs, Module, Optimizer, Tensor
from glassgrad.doctor.nans import guard_of
from glassgrad.doctor.observers.calls import scaling
from glassgrad.doctor.observers.connecting import check_watchable, observer_of
from glassgrad.doctor.observers.dead_units import DeadUnits
from glassgrad.doctor.observers.events import Sampling
from glassgrad.doctor.observers.forward_watch import ForwardWatch, inputs_of
from glassgrad.doctor.observers.leftovers import Leftovers
from glassgrad.doctor.observers.loss_record import LossRecord
from glassgrad.doctor.observers.sampling import PRESETS, Sampler, Schedule
from glassgrad.doctor.observers.structure import Structure
from glassgrad.doctor.record import MonitorData, Sample
from glassgrad.doctor.reports.shown import Shown
from glassgrad.doctor.rules import findings_of_run
from glassgrad.doctor.run import Calls, Run, here
from glassgrad.doctor.setup import options_of, setup_of, stochastic

_FIRST_CALLS = 60
_LEFTOVERS = 8  # first steps, sampled or not, in which the watch looks for gradients that the last step used
_MOST_SAMPLES = 2_000


class Watch(Shown, Sampling, AbstractContextManager["Watch"]):
    """The watch of one loop: it records the events while its block runs."""

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer = None,
        *,
        preset: str = "standard",
        every: int | None = None,
        path: str | Path | None = None,
        report: bool = True,
        file: TextIO | None = None,
        nan: bool = False,
        inf: bool = False,
        allow: Collection[str] = (),
    ) -> None:
        self.model = model
        self.optimizers = tuple(optimizer) if isinstance(optimizer, list | tuple) else (optimizer,) if optimizer else ()
        check_watchable(model, self.optimizers, preset, every)
        self.heard = Calls()
        self._naming = True  # the order of the first calls is recorded
        self._preset, self._every = PRESETS[preset], every
        self._path = None if path is None else Path(path)
        self._report, self._file = report, file
        self._named = list((inner := library.uncompiled(model)).named_parameters())
        if not self._named:
            raise errors.MONITOR_NO_PARAMETERS(owner="watch", model=type(model).__name__)
        self._sampler = Sampler(self._named, self._preset)
        self._leftovers = Leftovers(self._named, self.optimizers, self._preset, self.heard)
        self._schedule = Schedule(self._preset, every)
        looks = self._preset.activations
        self._structure = Structure(inner, self.optimizers, self._named, self.heard)
        self._forward = ForwardWatch(inner, self._schedule, self._structure.lookers) if looks else None
        self._dead = DeadUnits(inner, self._schedule, library.is_torch_compiled(model)) if looks else None
        self._guard = guard_of(model, self.optimizers, inf=inf, allow=allow) if nan or inf else None
        self._observer = observer_of(model, self.optimizers, self, self._guard)
        self.losses = LossRecord()
        self._samples: list[Sample] = []
        self._kept = Kept(self.losses, self._structure)
        self._weights: list[float] = []
        self._unseen: dict[str, None] = {}
        self._held_out: list[tuple[int, float]] = []
        self._sample: Sample | None = None
        self._batch = float("nan")
        self._inputs: tuple[Facts, ...] | None = None
        self._setup = setup_of(model, self.optimizers)

    # --- the block ---

    def __enter__(self) -> Self:
        frame = provenance.user_frame()
        self.heard.note("built")
        self._setup = setup_of(self.model, self.optimizers, frame)
        self._structure.connect(frame)
        self._weights = self._sampler.sizes()
        self._observer.connect()
        self._look_ahead()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._observer.disconnect()
        self._structure.disconnect()
        if self.calls.backwards and not self.calls.steps and self._weights != self._sampler.sizes():
            self.calls.hidden = True
            self.unseen("the optimizer's steps: weights changed, but no step was reported (torch.compile, or by hand)")
        calls = getattr(self.model, "called", True) and self._forward is not None
        if calls and self._forward and not self._forward.kinds and self._samples and library.is_torch(self.model):
            self.unseen("activations: no hook of a module was called, as inside of torch.compile")
        if not self.calls.steps:  # no step was taken: keep the observed losses
            self._commit()
        self._unhook()
        if error is not None and isinstance(error, Exception):
            self.calls.failure = f"{kind.__name__ if kind else ''}: {str(error).strip()}"
        if self._path is not None:
            self.data.save(self._path)
        if self._report:
            print(self, file=self._file or sys.stdout)

    # --- results ---

    @property
    def calls(self) -> Calls:
        """The order of the calls."""
        self.settle()
        return self.heard

    @property
    def data(self) -> MonitorData:
        """Statistics of the sampled steps, as plain arrays."""
        shapes = {name: tuple(parameter.shape) for name, parameter in self._named}
        return MonitorData.gather(self._every or 1, shapes, getattr(self._forward, "kinds", {}), self._samples)

    @property
    def run(self) -> Run:
        """All observations so far."""
        return Run(
            model=type(self.model).__name__,
            data=self.data if self._samples else None,
            calls=self.calls,
            losses=self.losses.table(),
            unseen=tuple(self._unseen),
            setup=self._structure.fitted(self._setup),
            graph=self._kept.first,
            inputs=self._inputs or (),
            labels=tuple(self._kept.labels),
            held_out=np.array(self._held_out, np.float64).reshape(-1, 2),
            dead={} if self._dead is None else self._dead.found(self.calls.steps),
            parts=self._structure.facts(),
            examples=tuple(self._structure.examples),
            pairs=tuple(self._structure.pairs),
            places=tuple(self._structure.places),
            scores=tuple(self._structure.scores),
            modes=tuple(self._structure.modes),
            validations=tuple(self._structure.validations.scores),
            held=tuple(self._structure.validations.examples),
            sizes=tuple(self._sampler.sizes()),
            rounded=self._sampler.rounded(),
        )

    @property
    def spent(self) -> float:
        """Seconds of processor time that the watch took for itself."""
        return self._schedule.seconds

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the rules, causes first; before them the origin of a NaN."""
        found = findings_of_run(self.run)
        if self._guard is None or not self._guard.found:
            return found
        if self.calls.failure.startswith("AutogradError: step"):  # the guard's finding already says it
            found = tuple(one for one in found if one.rule != "stopped")
        return *self._guard.found, *found

    def held_out(self, loss: Tensor) -> None:
        """Record the loss of held-out examples, a number or a tensor of one; it shows over- and underfitting.

        Example:
            >>> import glassgrad as gg
            >>> model = gg.nn.Linear(2, 1)
            >>> seen = watch(model, report=False)
            >>> seen.held_out(0.5)
            >>> seen.run.held_out.tolist()
            [[0.0, 0.5]]
        """
        value = library.numbers(loss)
        if value is None or value.size != 1:
            raise errors.WATCH_HELD_OUT(given=type(loss).__name__ if value is None else f"shape {list(value.shape)}")
        self._held_out.append((self.calls.steps, float(value.reshape(()))))

    # --- events reported by the observer ---

    def forward(self, args: Args, kwargs: Kwargs, output: Any) -> None:
        """Record a forward pass of the model, after it."""
        if not library.is_recording(self.model):
            if bool(getattr(self.model, "training", False)) and self._setup.stochastic and not self._structure.asking:
                self.calls.training.append((self.calls.steps, here()))
            self._structure.held(args, output)
            return
        self._call("F")
        if self._setup.stochastic and getattr(self.model, "training", False):
            self._structure.apart.entered(here())
        if self.sampling:
            with self._schedule:
                self._structure.forward(args, output, bool(kwargs))
            if self._inputs is None or self._structure.bad_inputs:
                self._inputs = inputs_of(args)
            entering = library.first_tensor(args)
            first = entering if entering is not None else args[0] if args else None
            self._batch = float(next(iter(getattr(first, "shape", ())), "nan"))

    def backward(self, loss: Tensor, traced: bool = False) -> bool:
        """Record the beginning of a backward pass."""
        with self._schedule:
            self.calls.backwards += 1
            self._call("B")
            self._structure.apart.used()
            if not traced and (value := library.number(loss)) is not None:
                self._kept.loss = value / scaling.factor()
            if loss is not None and library.is_cut(loss):
                self.calls.detached.append((self.calls.steps, here()))
            if self._leftovers.used and (self.sampling or traced or self.calls.steps < _LEFTOVERS):
                self._leftovers.look(traced)
            if self.sampling and not traced:
                self._structure.backward(loss)
            if loss is not None and (self.sampling or traced):
                self._look_at_graph(loss)
        return False

    def passed(self, loss: float | None) -> None:
        """Record a backward pass of a step that is not sampled."""
        self.heard.backwards += 1
        self._call("B")
        self._structure.apart.used()
        if loss is not None:
            self._kept.loss = loss / scaling.factor()
        if self._leftovers.used and self.heard.steps < _LEFTOVERS:
            self._leftovers.look(False)

    def _look_at_graph(self, loss: Tensor) -> None:
        looks = self._forward is not None or self._kept.labels or len(self._kept.graphs) < 2
        if looks and (graph := self._observer.graph(loss)) is not None:
            self._kept.graph = graph
            self._structure.passes(graph)

    def _commit(self) -> None:
        self._kept.commit(self.calls)

    def left(self) -> None:
        """Measure the gradients of a sampled step, after its backward pass."""
        if self._sample is not None:
            with self._schedule:
                self._sampler.gradients(self._sample)
                self._structure.left()

    def stepping(self, optimizer: Optimizer, traced: bool = False, closure: bool = False) -> None:
        """Record the beginning of an optimizer's step, or of its `closure`."""
        self._call("S")
        if traced or closure:
            return
        if self.sampling:
            self._structure.stepping()
        with self._schedule:
            self._leftovers.count()
            if self._sample is not None:
                self._before_sampled_step(optimizer)

    def _before_sampled_step(self, optimizer: Optimizer) -> None:
        sample = self._sample
        assert sample is not None
        if not self._sampler.any_gradient():
            self.calls.empty.append(self.calls.steps)
        if "total_norm" not in sample.values and self._sampler.any_gradient():
            self._sampler.gradients(sample)  # the backward pass was not reported
        elif "total_norm" in sample.values:
            sample.values["total_norm_clipped"] = self._sampler.total()
        sample.values["rate"] = options_of(optimizer).get("lr", np.nan)
        sample.values["batch"] = self._batch
        self._sampler.before()
        resting = tuple(name for name, module in stochastic(self.model) if not getattr(module, "training", True))
        if resting:
            self.calls.evaluating.append((self.calls.steps, resting))

    def stepped(self, optimizer: Optimizer, traced: bool = False) -> None:
        """Record the end of an optimizer's step."""
        self._commit()
        if traced:
            self._leftovers.end_trace()
            return
        if self._sample is not None:
            with self._schedule:
                self._sampler.after(self._sample)
                self._close_sample()
            self._structure.stepped(self._schedule)
        self._end_step()

    def hands_off(self, args: Args) -> None:
        """Remove the hooks before a compiled program is called: they would be traced."""
        if self._inputs is None:
            self._inputs = inputs_of(args[:1])
        if self.hooked:
            self._unhook()

    def _unhook(self) -> None:
        """Remove the hooks from the model."""
        self.hooked = False
        self._observer.sampled(False)
        for one in (self._forward, self._dead):
            if one is not None:
                one.detach()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Inspect a compiled step that runs eagerly in the block, outside the training."""
        with self._schedule:
            self.hooked = True
            self._observer.sampled(True)
            if self._forward is not None:
                self._forward.take()
                self._forward.attach()
            try:
                yield
            finally:
                self._unhook()

    @property
    def wants_beside(self) -> bool:
        """Whether to run the current step in `beside`: it is sampled, and the preset measures activations."""
        return self._sample is not None and self._forward is not None

    def beside_backward(self, loss: Tensor) -> None:
        """Record a backward pass of that eager run; `left` follows."""
        self._look_at_graph(loss)

    def beside_step(self, optimizer: Optimizer) -> None:
        """Record the beginning of an optimizer's step of that eager run."""
        if self._sample is not None:
            self._before_sampled_step(optimizer)

    def unseen(self, reason: str) -> None:
        """Record the reason why something cannot be inspected."""
        self._unseen.setdefault(reason, None)

    def program_begins(self) -> None:
        """Record the beginning of a compiled training step."""
        if self._sample is not None:
            with self._schedule:
                self._sampler.before()

    def program_ended(self, result: Any) -> None:
        """Record the end of a compiled training step, and its result."""
        with self._schedule:
            if self._forward is None:
                self.unseen(f"the inside of the compiled step: preset {self._preset.name!r} does not look at it")
            self._commit()
            if (loss := library.number(library.first_tensor(result))) is not None:
                self.losses.add(self.calls.steps, loss)
            if self._sample is not None:
                if "total_norm" not in self._sample.values and self._sampler.any_gradient():
                    self._sampler.gradients(self._sample)
                options = options_of(self.optimizers[0]) if self.optimizers else {}
                self._sample.values["rate"] = options.get("lr", np.nan)
                self._sampler.after(self._sample)
                self._close_sample()
            self._end_step(compiled=True)

    def quiet_step(self, loss: float, compiled: bool = False) -> None:
        """Record a step that is not sampled: one event instead of all others."""
        waiting = self.losses.waiting
        waiting.append(loss)
        if self.heard.steps + len(waiting) >= self._schedule.asks:
            self.settle(compiled)

    def settle(self, compiled: bool = True) -> int:
        """Count the quiet steps whose losses are waiting; return how many may follow before the next decision."""
        if self.losses.waiting:
            self.heard.steps += self.losses.count(self.heard.steps)
            self._kept.drop()
            if self.heard.steps >= self._schedule.asks:
                self._look_ahead(compiled)
        return self._schedule.asks - self.heard.steps

    def _end_step(self, compiled: bool = False) -> None:
        self._leftovers.end_step()
        self.calls.steps += 1
        if self.calls.steps >= self._schedule.asks:
            self._look_ahead(compiled)

    def _call(self, letter: str) -> None:
        if self._naming:
            self.calls.sequence += letter
            name = {"F": "forward", "B": "backward", "S": "step"}[letter]
            self.calls.note(name)
            if self.calls.sequence.endswith("SS"):
                self.calls.note("again")
            if len(self.calls.sequence) == _FIRST_CALLS:
                self._naming = False
                self._schedule.asks = 0  # the next steps may be quiet

    def _look_ahead(self, compiled: bool = False) -> None:
        """Decide whether the next step is sampled, and prepare for it."""
        if self._dead is not None:
            self._dead.count(self.calls.steps)
        due = self._schedule.due(self.calls.steps)
        self.sampling, self.quiet = due, not (due or self._naming)
        self._sample = Sample(self.calls.steps) if due else None
        self._batch = float("nan")
        if not compiled:  # a compiled step calls no module, and hooks would force a new trace
            with self._schedule:
                self._attach(due)

    def _attach(self, due: bool) -> None:
        """Attach the hooks that the next step needs, and remove the others."""
        self.hooked = True
        self._observer.sampled(due)
        if self._forward is not None and self._dead is not None:
            if due:
                self._dead.detach()
                self._forward.take()
                self._forward.attach()
            else:
                self._forward.detach()
                if self._every is None and not self._schedule.spent:
                    self._dead.attach()
                else:
                    self._dead.detach()

    def _close_sample(self) -> None:
        sample, self._sample = self._sample, None
        assert sample is not None
        if self._forward is not None and self._dead is not None:
            self._dead.sampled(self._forward.alive())
            self._structure.end_pass()
            sample.activations = self._forward.take()
        if (loss := self.losses.of(sample.step)) is not None:
            sample.values["loss"] = loss
        self._samples.append(sample)
        if len(self._samples) > _MOST_SAMPLES:
            self._samples = self._samples[::2]


def watch(
    model: Module,
    optimizer: Optimizer | Iterable[Any] = None,
    *,
    preset: str = "standard",
    every: int | None = None,
    path: str | Path | None = None,
    report: bool = True,
    file: TextIO | None = None,
    nan: bool = False,
    inf: bool = False,
    allow: Collection[str] = (),
) -> Watch:
    """Watch a training loop and diagnose it: `with doctor.watch(model, optimizer):` around the loop.

    The loop stays unchanged: eager or compiled, with modules of glassgrad or PyTorch, or with hand-written layers. Its
    weights and random numbers are bit for bit the same as without a watch.

    Args:
        model: the module that is trained.
        optimizer: its optimizer, or several.
        preset: "economy" measures only norms, "standard" also statistics and activations, "full" every step. The
            first two sample a few steps at the beginning, and then as many as fit into 0.6 or 6 % of the time.
        every: sample every K-th step instead.
        path: the npz file to write the statistics to, in the format of `GradientMonitor`.
        report: print the findings when the block ends, to `file` or the standard output.
        nan: check each step for NaN, and raise an `AutogradError` at the first step that makes one: it names the op,
            the user's line, the operands and the remedy. Weights, optimizer, running statistics and random numbers then
            have their values from before that step, so a loop that catches the error can continue.
        inf: check for infinities as well.
        allow: names of ops ("masked_fill") and of modules that make NaN on purpose; see also `allow_nonfinite`.

    Raises:
        KindError: a model without `named_parameters()`.
        ArgumentError: an unknown preset.

    Example:
        >>> import glassgrad as gg
        >>> _ = gg.manual_seed(0)
        >>> model = gg.nn.Linear(4, 1)
        >>> optimizer = gg.optim.SGD(model.parameters(), lr=0.01)
        >>> x, y = gg.randn(32, 4), gg.randn(32, 1)
        >>> with gg.doctor.watch(model, optimizer, report=False) as seen:
        ...     for _ in range(8):
        ...         loss = (model(x) - y).square().mean()
        ...         loss.backward()
        ...         optimizer.step()
        >>> [finding.rule for finding in seen.findings]
        ['zero_grad is missing']
    """
    return Watch(
        model, optimizer, preset=preset, every=every, path=path, report=report, file=file, nan=nan, inf=inf, allow=allow
    )


__all__ = ["Watch", "watch"]
