"""`Trainer`: the task of a user's own model, optimizer, loss and loader, and the loop that runs it."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.amp import GradScaler
from glassgrad.data.atomic import write_atomically
from glassgrad.doctor.library import is_by_hand
from glassgrad.nn import Module
from glassgrad.ops.core import Array
from glassgrad.optim.ema import EMA
from glassgrad.optim.lr_scheduler import ReduceLROnPlateau
from glassgrad.optim.optimizer import Optimizer
from glassgrad.train.callbacks import Callback, RunState
from glassgrad.train.feed import LoaderFeed, parts_of
from glassgrad.train.given import check_config, check_kinds
from glassgrad.train.kept import loggers, rundir
from glassgrad.train.kept.checkpoint import Stateful
from glassgrad.train.kept.metrics import RecordLog, read_metrics
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.kept.samples import mistakes, write_samples
from glassgrad.train.kept.weights import check_shapes, shapes_of, write_weights
from glassgrad.train.learners.by_hand import HandLearner
from glassgrad.train.learners.engine import AsArrays, EngineLearner, can_compile
from glassgrad.train.learners.learner import StepOptions
from glassgrad.train.loop import Loop, tags_of
from glassgrad.train.ranks import joined, size_of
from glassgrad.train.show import choose_display
from glassgrad.train.show.display import Display, PlainDisplay
from glassgrad.train.signals import StopSignals
from glassgrad.train.stopping import BestWeights, EarlyStopping, measured
from glassgrad.train.task import Task
from glassgrad.train.training_config import TASK, TrainingConfig
from glassgrad.train.transaction import named_as_damaged

_NEVER = 10**18
_LOOKED_AT = 5_000  # validation examples searched for mistakes


@dataclass(frozen=True)
class FitResult:
    """The result of `fit`.

    Attributes:
        step, epoch: the number of steps and epochs done.
        loss: the mean loss since the last record.
        measures: the results of the last validation.
        finished: whether the training is complete.
        ended: the reason why the run ended before its last step; None if it did not.
        seconds: total time of the run, resumed parts included.
        records: all log records, in order.
        best: (value, step) of the best validations, the best first.
        directory: the run directory.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(1, 1)
        >>> optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
        >>> data = [(gg.ones(2, 1), gg.ones(2, 1))]
        >>> found = gg.train.Trainer(model, optimizer, gg.nn.functional.mse_loss, data).fit()
        >>> found.step, found.finished
        (10, True)
    """

    step: int
    epoch: int
    loss: float | None
    measures: Mapping[str, float]
    finished: bool
    ended: str | None
    seconds: float
    records: Sequence[Mapping[str, Any]] = field(repr=False)
    best: Sequence[tuple[float, int]] = ()
    directory: Path | None = None

    def _repr_html_(self) -> str:
        from glassgrad.train.show.notebook import result_html

        return result_html(self)


class Trainer(Task):
    """Trains a model: batches, steps, schedule, validation, checkpoints, logs, progress, a clean stop and resume.

    Args:
        model: a module, or a layer of `glassgrad.manual`.
        optimizer: the optimizer of its parameters; for a hand-written layer one of `glassgrad.manual`.
        loss_fn: (outputs, targets) -> loss; None for a model that returns its loss, alone or last in a tuple. For a
            hand-written layer a loss of `glassgrad.manual`; its metrics get arrays.
        train_loader: a `DataLoader` or any iterable of (inputs..., targets); it accepts other libraries' arrays.
        val_loader: the same for validation examples.
        scheduler: the optimizer's schedule; the configuration says whether it counts steps or epochs.
        config: all options that are plain values.
        callbacks: called at the run's events.
        metrics: name -> function(outputs, targets) of a validation batch; means over the examples are logged.
        more_loggers: loggers besides those of the configuration.

    Raises:
        errors.InputError: an empty loader, no number of steps for a loader without length, or contradictory options.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad import nn, optim
        >>> from glassgrad.nn import functional as F
        >>> from glassgrad.train import Trainer, TrainingConfig
        >>> from glassgrad.utils.data import DataLoader, TensorDataset
        >>> _ = gg.manual_seed(0)
        >>> x = gg.randn(256, 2)
        >>> loader = DataLoader(TensorDataset(x, (x[:, 0] > x[:, 1]).long()), batch_size=32, shuffle=True)
        >>> model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        >>> optimizer = optim.AdamW(model.parameters(), lr=0.01)
        >>> config = TrainingConfig(epochs=20, progress="none")
        >>> trainer = Trainer(model, optimizer, F.cross_entropy, loader, config=config)
        >>> result = trainer.fit()
        >>> result.step, result.loss < 0.2
        (160, True)
    """

    save_share = 0.02
    resume_by = "fit(resume=True)"

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        loss_fn: Callable[[Array, Array], Array] | None,
        train_loader: Iterable[Any],
        val_loader: Any = None,
        scheduler: Any = None,
        config: TrainingConfig | None = None,
        callbacks: Sequence[Callback] = (),
        *,
        metrics: Mapping[str, Callable[[Array, Array], Array]] | None = None,
        more_loggers: Sequence[RecordLog] = (),
    ) -> None:
        check_kinds("Trainer", model, optimizer, loss_fn, scheduler)
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.config = config = config or TrainingConfig()
        check_config(config, model, optimizer, train_loader, scheduler)
        self.metrics = dict(metrics or {})
        self.val_loader = val_loader
        self.run: RunDirectory | None = None
        self._check(config)
        self.feed = LoaderFeed(train_loader, config.accumulate, config.check_data)
        self.scaler = GradScaler(init_scale=config.loss_scale) if config.loss_scale else None
        self.learner: EngineLearner | HandLearner
        if is_by_hand(model):
            self.engine = "manual"
            options = _step_options(config, self.engine)
            self.learner = HandLearner(model, optimizer, loss_fn=loss_fn, options=options)
        else:
            self.engine = "compiled" if config.engine == "compiled" and can_compile() else "eager"
            self.learner = EngineLearner(
                model,
                optimizer,
                loss_fn=loss_fn,
                options=_step_options(config, self.engine),
                scaler=self.scaler,
                averages=EMA(model, config.ema) if config.ema else None,
            )
        self.ranks = joined() if config.distributed else None
        if self.ranks is not None:
            self.learner.share(self.ranks)
            self.ranks.gather = getattr(optimizer, "consolidate_state_dict", None) if config.run_dir else None
        self._records = loggers.Records()
        self._loggers = list(more_loggers)
        self._best = BestWeights(config.best, config.monitor, config.higher)
        self._tried = False
        self._last: tuple[Array, ...] = ()
        self._per_step = (
            scheduler is not None and config.schedule == "step" and not isinstance(scheduler, ReduceLROnPlateau)
        )
        self._validation = self.learner.program(self.learner.outputs_and_loss)
        self._schedule()
        self.loop = Loop(self, [*self._own_callbacks(), *callbacks])
        self.loop.tags = tags_of(config.tag)

    # --- the interface of the loop --------------------------------------------------------------------

    def _check(self, config: TrainingConfig) -> None:
        for option in ("patience", "eval_every"):
            if getattr(config, option) and self.val_loader is None:
                raise errors.FIT_NEEDS_VALIDATION(option=f"{option}={getattr(config, option)}")
        if isinstance(self.scheduler, ReduceLROnPlateau) and self.val_loader is None:
            raise errors.FIT_NEEDS_VALIDATION(option="ReduceLROnPlateau")
        known = loggers.wanted(config.log_to)
        if not config.run_dir:
            known = [name for name in known if name != "jsonl"]
        self._logger_names = known

    def _schedule(self) -> None:
        """Set the attributes that the loop reads: the schedule and the parts of a checkpoint."""
        config, feed = self.config, self.feed
        self.epoch_steps = feed.steps or 0
        if not config.steps and not self.epoch_steps:
            raise errors.FIT_NEEDS_STEPS(what="train_loader")
        self.steps = config.steps or config.epochs * self.epoch_steps
        self.eval_every = config.eval_every or self.epoch_steps or _NEVER
        self.skips = self.learner.options.skip_nonfinite
        self.batch_at, self.extras = feed.at, self.learner.extras
        self.rate_at = lambda step: float(self.optimizer.param_groups[0]["lr"])
        self.set_rate = lambda rate: None  # the scheduler sets it
        parts: dict[str, Stateful] = {**self.learner.parts, "feed": feed}
        if self.scheduler is not None:
            parts["scheduler"] = AsArrays(self.scheduler)
        self.parts = {**parts, "random": feed.random}  # last, since restoring a loader may draw random numbers

    @property
    def validates(self) -> bool:
        """Whether there are validation examples; their loader may be set later."""
        return self.val_loader is not None

    def facts(self) -> dict[str, Any]:
        """Return the facts that a checkpoint must match."""
        config = self.config
        options = {
            "optimizer": type(self.optimizer).__name__,
            "scheduler": type(self.scheduler).__name__ if self.scheduler is not None else None,
            "accumulate": config.accumulate,
            "dtype": config.dtype,
            "ema": config.ema,
            "loss_scale": bool(config.loss_scale),
        }
        return {"shapes": shapes_of(self.model), "options": options}

    def check(self, facts: Mapping[str, Any], run: RunDirectory) -> None:
        """Raise `errors.InputError` if a checkpoint belongs to another model or was made with other options."""
        with named_as_damaged(run.state):
            check_shapes(self.model, facts.get("shapes", {}), run.state)
            options = dict(facts.get("options", {}))
        for name, value in self.facts()["options"].items():
            before = options.get(name)
            if before != value:
                raise errors.RUN_CHANGED(name=name, before=before, after=value)

    def _own_callbacks(self) -> Iterator[Callback]:
        config = self.config
        if self.scheduler is not None and not self._per_step:
            yield _Schedule(self.scheduler, config)
        if self.val_loader is not None and config.patience:
            yield EarlyStopping(config.patience, config.monitor, config.min_delta, config.higher)
        if self.val_loader is not None and config.best:
            yield self._best

    def step(self, *batch: Array) -> Array:
        """Make a step; before the first one, run a trial whose errors name the user's own code."""
        try:
            if not self._tried:
                self._try(batch)
                self._tried = True
            self._last = batch
            loss = self.learner.step(*batch)
        except errors.GlassgradError as error:
            error.add_note(f"while training on batch {self.feed.given} of epoch {self.feed.epoch + 1}")
            raise
        if self._per_step:
            self.scheduler.step()
        return loss

    def _try(self, batch: tuple[Array, ...]) -> None:
        first = batch[0] if self.config.accumulate > 1 else batch
        if self.learner.loss_fn is not None and (len(first) < 2 or isinstance(first[0], Mapping)):
            kind = "dictionaries" if isinstance(first[0], Mapping) else "single tensors"
            raise errors.FIT_BATCH(given=kind)
        self.learner.check(*first)

    # --- validation -----------------------------------------------------------------------------------

    def evaluate(self, loader: Any = None) -> dict[str, float]:
        """Return the mean loss and metrics over a loader (the validation loader by default).

        It uses the averaged weights if an average is kept, and does not change the random state.
        """
        loader = self.val_loader if loader is None else loader
        totals: dict[str, float] = dict.fromkeys(("loss", *self.metrics), 0.0)
        count = 0
        with self.learner.validating():
            for batch in loader:
                parts = parts_of(batch)
                size = size_of(parts)
                count += size
                outputs, loss = self._validation(*parts)
                totals["loss"] += float(loss) * size
                for name, metric in self.metrics.items():
                    totals[name] += float(metric(outputs, self.learner.target(parts[-1]))) * size
        if not count:
            raise errors.FIT_EMPTY_LOADER(what="val_loader", reason="it ended at once")
        return {name: total / count for name, total in totals.items()}

    # --- training -------------------------------------------------------------------------------------

    def fit(self, resume: bool = False, until: int | None = None) -> FitResult:
        """Train to the end, or to the step `until`; a further call continues.

        A model in evaluation mode is put into training mode. A part that is in evaluation mode while the model is not,
        such as a normalisation with frozen statistics, stays in it.

        With a `run_dir` everything is kept there, and Ctrl-C (SIGTERM, SIGHUP) saves before it ends the run.

        Args:
            resume: continue the run in `run_dir` if there is one, bit for bit as if it had never stopped.
            until: stop after this step for now, as if interrupted.

        Raises:
            errors.InputError: `run_dir` contains a run and `resume` is not set, or its checkpoint is damaged or of
                another model; a batch that cannot be trained on.
            errors.RunError: a non-finite loss, a full disk, a step that cannot be compiled.
        """
        stop, display = StopSignals(), self._display()
        first = self.ranks is None or self.ranks.first
        with contextlib.ExitStack() as stack:
            self._open_together(stack, resume)
            with self.loop.saving(self.run):
                taking = [self._records, *((*self._loggers, *self._named_loggers(stack)) if first else ())]
            if not self.model.training:  # otherwise parts are in evaluation mode on purpose
                self.model.train()
            stack.enter_context(stop)
            stack.callback(self.feed.pause)
            finished = self.loop.run(self.run, display, stop, taking, until)
            self._save_weights()
            if finished:
                self._keep_samples()
        if stop.requested and first:
            kept = f"; go on with fit(resume=True): {self.run.path}" if self.run is not None else ""
            PlainDisplay(sys.stderr).say(f"stopped after step {self.loop.step:,}{kept}")
        if stop.requested and not stop.by_file:
            signal.raise_signal(stop.requested)
        return self._result(finished)

    def report(self, path: str | Path | None = None, *, graph: bool = True) -> Path:
        """Write one HTML file about the run: findings first, then curves and settings; also layers, if it was watched.

        Args:
            path: the file to write; by default report.html in the run directory.
            graph: also draw a step on the last batch into step.html in the run directory, and link to it.

        Returns:
            The path of the file.

        Raises:
            errors.InputError: the run has no directory, or not yet, or the file cannot be written.
        """
        if not self.config.run_dir:
            raise errors.REPORT_NO_DIRECTORY(owner="Trainer.report")
        from glassgrad.train.show.run_graph import write_graph_if_possible
        from glassgrad.train.show.run_page import write_report

        if self.ranks is not None and not self.ranks.first:
            return Path(path or Path(self.config.run_dir) / "report.html")
        if graph and self._last and self.engine != "manual":
            write_graph_if_possible(Path(self.config.run_dir), self.learner, self._last)
        return write_report(self.config.run_dir, path=path)

    def _open_together(self, stack: contextlib.ExitStack, resume: bool) -> None:
        """Open the run directory on rank 0; start the other ranks from the same state."""
        ranks = self.ranks
        if ranks is None:
            self._open(stack, resume)
            return
        if ranks.gather is not None:  # a new run is saved at once
            ranks.gather()
            self.loop.saved_step = self.loop.step
        loaded = ranks.shared(bool(ranks.once(lambda: self._open(stack, resume))))
        if loaded and not ranks.first:
            self.loop.read(RunDirectory.existing(self.config.run_dir))
        elif not loaded and not self.loop.step:
            self.feed.random.load_state_dict(ranks.shared(self.feed.random.state_dict()))
        ranks.shared(None)  # no rank writes a new checkpoint while another reads the last one

    def _open(self, stack: contextlib.ExitStack, resume: bool) -> bool:
        """Create or open the run directory and lock it; return whether a checkpoint was loaded."""
        if not self.config.run_dir:
            return False
        path = Path(self.config.run_dir)
        if self.run is not None:
            stack.enter_context(self.run.lock())
            return False
        if not any(path.glob("*")):
            self.run = self.loop.start(path, TASK, self.config.to_toml())
            stack.enter_context(self.run.lock())
            return False
        if not resume:
            if (path / rundir.STATE).exists():
                raise errors.FIT_RUN_EXISTS(path=path)
            rundir.check_free(path)
        run = RunDirectory.existing(path)
        stack.enter_context(run.lock())
        with self.loop.saving(run):
            self.loop.load(run)
            self._records.all = read_metrics(run.metrics)
            write_atomically(run.config, self.config.to_toml().encode())
        self.run = run
        return True

    def _named_loggers(self, stack: contextlib.ExitStack) -> list[Any]:
        directory = self.run.path if self.run is not None else None
        found = loggers.make(self._logger_names, directory, dataclasses.asdict(self.config))
        for logger in found:
            stack.callback(logger.close)
            if self.loop.step:
                logger.drop_after(self.loop.step)
        return found

    def _display(self) -> Display:
        if self.config.progress == "none" or not (self.ranks is None or self.ranks.first):
            return Display()
        return PlainDisplay(sys.stdout) if self.config.progress == "plain" else choose_display()

    def _save_weights(self) -> None:
        """Write model.safetensors: the weights for evaluation, under PyTorch's names."""
        if self.run is None:
            return
        with self.loop.saving(self.run):
            write_weights(self.run.model, self.learner.best_weights(), {"step": self.loop.step})

    def _keep_samples(self) -> None:
        """Write the mistakes of a classifier among the first validation examples."""
        found = None if self.run is None or self.val_loader is None else self._mistakes()
        if self.run is not None and found is not None:
            with self.loop.saving(self.run):
                write_samples(self.run.path, found)

    def _mistakes(self) -> dict[str, Any] | None:
        """Return the misclassified examples; None if the model is not a classifier of single inputs."""
        kept: list[tuple[Array, ...]] = []
        with self.learner.validating():
            for batch in self.val_loader:
                parts = parts_of(batch)
                outputs, _ = self._validation(*parts)
                found = (outputs, parts[0], parts[-1])
                if len(parts) != 2 or not all(hasattr(one, "shape") for one in found):
                    return None
                logits, inputs, labels = map(np.asarray, found)
                if logits.ndim != 2 or labels.shape != logits.shape[:1] or labels.dtype.kind not in "iu":
                    return None
                if logits.shape[1] < 2 or labels.min(initial=0) < 0 or labels.max(initial=0) >= logits.shape[1]:
                    return None
                kept.append((logits, inputs, labels))
                if sum(len(one[2]) for one in kept) >= _LOOKED_AT:
                    break
        return mistakes(*map(np.concatenate, zip(*kept, strict=True))) if kept else None

    def _result(self, finished: bool) -> FitResult:
        loop = self.loop
        return FitResult(
            step=loop.step,
            epoch=loop.step // self.epoch_steps if self.epoch_steps else self.feed.epoch,
            loss=loop.progress().loss,
            measures=dict(loop.measures),
            finished=finished,
            ended=loop.ended,
            seconds=loop.seconds,
            records=list(self._records.all),
            best=self._best.kept,
            directory=self.run.path if self.run is not None else None,
        )


class _Schedule(Callback):
    """Steps a scheduler after epochs or after validations."""

    def __init__(self, scheduler: Any, config: TrainingConfig) -> None:
        self.scheduler, self.monitor = scheduler, config.monitor

    def on_epoch_end(self, run: RunState) -> None:
        """Step after an epoch."""
        if not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()

    def on_validation_end(self, run: RunState, measures: Mapping[str, float]) -> None:
        """Step with a validation measure."""
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(measured(self.monitor, measures))


def _step_options(config: TrainingConfig, engine: str) -> StepOptions:
    return StepOptions(
        compiled=engine == "compiled",
        accumulate=config.accumulate,
        max_norm=config.clip_norm or None,
        clip_value=config.clip_value or None,
        skip_nonfinite=config.skip_nonfinite or bool(config.loss_scale),
        norms=config.norms,
        dtype=config.dtype,
    )


__all__ = ["FitResult", "Trainer"]
