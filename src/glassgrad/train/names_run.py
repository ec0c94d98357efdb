"""`glassgrad train names` from beginning to end: make a run or open one, train, finish, or stop so it can go on."""

from __future__ import annotations

import dataclasses
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import errors
from . import rundir
from .calibrate import calibrate_batch_norm
from .checkpoint import pack, save_checkpoint
from .config import Layer, command_line, flag, read_toml, rules, to_toml
from .display import Display, choose_display
from .files import write_atomically
from .metrics import MetricsLog
from .names import MODELS, TASK, NamesConfig, NamesTask, configure, default_data_folder, load_words, mean_loss
from .picture import draw_loss
from .progress import duration, speed
from .rundir import RunDirectory
from .sample import sample_words
from .signals import StopSignals
from .trainer import Plan, Trainer

SAMPLES = 20


def start(options: Mapping[str, Any], config_file: Path | None, path: Path | None) -> int:
    """Begin a run and train it to its end; return the exit code.

    `options` are those of the command line (None where not given). Raises `errors.InputError` before anything is
    written, `errors.RunError` when training cannot go on.
    """
    if path is not None:
        rundir.check_free(path)
    layers = [command_line(options)]
    if config_file is not None:
        layers.insert(0, default_data_folder(read_toml(config_file, NamesConfig, TASK), config_file.parent))
    task = _task(configure(layers))
    trainer = Trainer(_plan(task))
    stop = StopSignals()
    display = choose_display(lambda: stop.request(_closed_output()))

    def fill(run: RunDirectory) -> None:
        toml = to_toml(task.config, TASK, leave_out=MODELS[task.config.model].without)
        write_atomically(run.config, toml.encode())
        trainer.save(run)

    run = rundir.create(path, TASK, fill)
    _introduce(task, display)
    display.say(f"run        {run.path}\n")
    with run.lock():
        return _train(task, trainer, run, display, stop)


def resume(options: Mapping[str, Any], path: Path) -> int:
    """Go on with a run from its last checkpoint, as if it had never stopped; return the exit code.

    Raises `errors.InputError` when there is no whole run at `path` or `options` would make it another run.
    """
    run = RunDirectory.existing(path)
    with run.lock():
        stored = read_toml(run.config, NamesConfig, TASK)
        given = command_line(options)
        _refuse_changes(configure([stored]), given)
        changed = {key: value for key, value in given.values.items() if rules(NamesConfig)[key][1].resumable}
        config = configure([stored, Layer(changed, flag)])
        task = _task(config)
        trainer = Trainer(_plan(task))
        trainer.load(run, lambda facts: _check_facts(facts, task, run))
        stop = StopSignals()
        display = choose_display(lambda: stop.request(_closed_output()))
        _introduce(task, display)
        display.say(f"run        {run.path}, going on at step {trainer.step:,}\n")
        return _train(task, trainer, run, display, stop)


def _plan(task: NamesTask) -> Plan:
    config = task.config
    return Plan(
        step=task.step,
        batch_at=task.batches.at,
        steps=config.steps,
        rate_at=task.rate_at,
        set_rate=task.set_rate,
        evaluate=task.validation_loss,
        save_model=lambda run: save_model(run, task),
        parts={"model": task.model, "optimizer": task.optimizer},
        facts=task.facts(),
        log_every=config.log_every,
        eval_every=config.eval_every,
        save_every=config.save_every,
    )


def save_model(run: RunDirectory, task: NamesTask) -> None:
    """Write the weights under their PyTorch names, with what is needed to sample from them. Raises `OSError`."""
    arrays: dict[str, Any] = {}
    for name, value in task.model.state_dict().items():
        pack(value, name, arrays)
    save_checkpoint(run.model, arrays, task.description())


def _task(config: NamesConfig) -> NamesTask:
    """A run can be resumed from any directory, so it remembers the whole path of its words; messages do not need it."""
    words = load_words(config)
    if config.data:
        config = dataclasses.replace(config, data=str(Path(config.data).resolve()))
    return NamesTask(config, words)


def _refuse_changes(stored: NamesConfig, given: Layer) -> None:
    for key, value in given.values.items():
        before = getattr(stored, key)
        if not rules(NamesConfig)[key][1].resumable and value != before:
            raise errors.RUN_CHANGED(name=given.name(key), before=before, after=value)


def _check_facts(facts: Mapping[str, Any], task: NamesTask, run: RunDirectory) -> None:
    before = facts["config"]
    for key, value in task.facts()["config"].items():
        if before.get(key) != value:
            raise errors.RUN_CHANGED(name=f"{key} in {run.config}", before=before.get(key), after=value)
    if facts["words"] != task.data.words.digest:
        raise errors.RUN_OTHER_WORDS(path=task.data.words.source)


def _introduce(task: NamesTask, display: Display) -> None:
    data, words = task.data, task.data.words
    origin = "the list that comes with glassgrad (US Census 1990)" if not task.config.data else words.source
    distinct = f", {len(words.words) - words.repeated:,} of them different" if words.repeated else ""
    display.say(f"words      {len(words.words):,}{distinct}: {origin}")
    if words.differ_in_case_only:
        display.say(f"           {words.differ_in_case_only:,} differ from others in case only; --lowercase joins them")
    display.say(
        f"examples   {len(data.train):,} training / {len(data.validation):,} validation / {len(data.test):,} test"
    )
    display.say(f"model      {task.config.model}, {task.parameters:,} parameters, {data.tokenizer.size} tokens")


def _train(task: NamesTask, trainer: Trainer, run: RunDirectory, display: Display, stop: StopSignals) -> int:
    try:
        with stop:
            begun = (trainer.step, trainer.seconds)
            if not trainer.run(run, display, stop):
                return _stopped(trainer, run, stop)
            stop.at_once = True  # everything is saved: what follows can be done again
            _finish(task, trainer, run, display, begun)
    except KeyboardInterrupt:
        display.stop()
        return _interrupted(trainer, run, stop)
    return 0


def _stopped(trainer: Trainer, run: RunDirectory, stop: StopSignals) -> int:
    cause = {_closed_output(): "output closed", signal.SIGINT: "interrupted"}.get(stop.requested, "asked to stop")
    _tell(
        f"{cause}: stopped after step {trainer.step:,} of {trainer.plan.steps:,} and saved it\n"
        f"go on with: glassgrad train {TASK} --resume {_quoted(run.path)}"
    )
    return 128 + stop.requested


def _interrupted(trainer: Trainer, run: RunDirectory, stop: StopSignals) -> int:
    where = "while finishing" if stop.at_once else "at once"
    _tell(
        f"interrupted {where}: the checkpoint of step {trainer.saved_step:,} is kept\n"
        f"go on with: glassgrad train {TASK} --resume {_quoted(run.path)}"
    )
    return 128 + (stop.requested or signal.SIGINT)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - for the person at the keyboard, wherever the output goes


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


def _closed_output() -> int:
    return int(getattr(signal, "SIGPIPE", 13))


def _finish(task: NamesTask, trainer: Trainer, run: RunDirectory, display: Display, begun: tuple[int, float]) -> None:
    """Calibrate, measure, save, draw and sample; the same each time it is done."""
    calibrate_batch_norm(task.model, task.data.train.inputs)
    train_loss = mean_loss(task.model, task.data.train)
    validation_loss = mean_loss(task.model, task.data.validation)
    try:
        with MetricsLog(run.metrics) as log:
            log.write(
                event="final",
                step=trainer.step,
                train_loss=train_loss,
                validation_loss=validation_loss,
                seconds=round(trainer.seconds, 3),
            )
            log.sync()
        save_model(run, task)
    except OSError as error:
        raise trainer.not_saved(run, error) from None
    steps, seconds = trainer.step - begun[0], trainer.seconds - begun[1]
    if steps and seconds:
        display.say(f"\n{steps:,} steps in {duration(seconds)} ({speed(steps / seconds)})")
    display.say(f"train loss {train_loss:.4f}   validation loss {validation_loss:.4f}\n")
    for word in sample_words(task.model, task.description(), SAMPLES, task.config.seed):
        display.say(f"  {word}")
    display.say(f"\nsaved      {run.model}")
    display.say(f"           {_draw(run, task)}")
    display.say(f"more       glassgrad sample {_quoted(run.path)} -n {SAMPLES}")


def _draw(run: RunDirectory, task: NamesTask) -> str:
    """Draw the picture and return its path, or why there is none: a run is no failure for want of a picture."""
    try:
        draw_loss(run.metrics, run.picture, f"{TASK}: {task.config.model}")
    except (ImportError, OSError) as error:
        return f"no picture: {error}"
    return str(run.picture)
