"""`TrainingConfig`: the plain options of a run, defined once for Python, TOML files and the command line.

A script adds options in a subclass, with `option` for each. They then appear in the file and on the command line, too,
with the same checks and messages.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from glassgrad import errors
from glassgrad.base import documents
from glassgrad.train.config import Layer, flag, nearest, option, read_toml, resolve, resolve_values, rules, to_toml
from glassgrad.train.policy import DTYPES

TASK = "trainer"


def _optimizers() -> Sequence[str]:
    from glassgrad.optim.by_name import optimizer_names

    return optimizer_names()


class _Fields:
    """The signature of a class, built from its fields on first use."""

    def __get__(self, instance: object, owner: Any) -> Any:
        import inspect

        own = inspect.signature(owner.__init__)
        return own.replace(parameters=list(own.parameters.values())[1:], return_annotation=inspect.Signature.empty)


@dataclass(frozen=True)
class TrainingConfig:
    """The options of a `Trainer`, and of the optimizer and the loader that a script makes from them.

    Raises `errors.InputError` for an unknown name, suggesting the nearest one, and for an invalid value.

    Example:
        >>> TrainingConfig(epochs=3, clip_norm=1.0).clip_norm
        1.0
        >>> TrainingConfig(epohcs=3)
        Traceback (most recent call last):
        ...
        glassgrad.errors.runs.InputError: unknown key 'epohcs' in TrainingConfig(...); did you mean 'epochs'?

    The parts that it makes:
        >>> import glassgrad as gg
        >>> config = TrainingConfig(optimizer="adamw", rate=0.003, batch_size=32)
        >>> config.make_optimizer(gg.nn.Linear(2, 1).parameters()).param_groups[0]["lr"]
        0.003
        >>> len(config.make_loader(gg.utils.data.TensorDataset(gg.zeros(64, 2))))
        2

    A script's own options:
        >>> @dataclass(frozen=True)
        ... class MyConfig(TrainingConfig):
        ...     hidden: int = option(64, "units of the hidden layer", low=1)
        >>> MyConfig.from_command_line(["--hidden", "128", "--epochs", "3"]).hidden
        128
    """

    epochs: int = option(10, "passes over the training loader", low=1, high=1e9)
    steps: int = option(0, "training steps; 0 for the steps of the epochs", low=0, high=1e12)
    optimizer: str = option(
        "", "optimizer that make_optimizer makes; empty if the script has its own", choices=("",), more=_optimizers
    )
    rate: float = option(0.0, "learning rate of make_optimizer; 0 for the optimizer's default", low=0)
    batch_size: int = option(0, "examples per batch of make_loader; 0 if the script has its own", low=0, high=1e9)
    engine: str = option(
        "compiled",
        "how to compute steps: as one native program, or op by op; compiled is eager without llvmlite",
        choices=("compiled", "eager"),
    )
    accumulate: int = option(1, "batches of the loader per step, their gradients averaged", low=1, high=1e6)
    clip_norm: float = option(0.0, "largest norm of all gradients together; 0 for no limit", low=0)
    clip_value: float = option(0.0, "largest absolute value of a gradient's elements; 0 for no limit", low=0)
    skip_nonfinite: bool = option(False, "skip steps whose gradients are not finite, and count them")
    norms: bool = option(False, "record the norm of the gradients, even if no other option needs it")
    loss_scale: float = option(0.0, "first factor of dynamic loss scaling; 0 for none", low=0)
    dtype: str = option("", "dtype of the forward pass; empty for the model's own", choices=DTYPES)
    ema: float = option(0.0, "decay of a moving average of the weights; 0 for no average", low=0, high=1)
    schedule: str = option("step", "what a scheduler counts", choices=("step", "epoch"))
    patience: int = option(0, "validations without improvement after which to stop; 0 for never", low=0, high=1e9)
    min_delta: float = option(0.0, "how much better counts as an improvement", low=0)
    best: int = option(1, "number of best weights to keep in the run directory", low=0, high=1e6)
    monitor: str = option("loss", "measure of the validation that determines the best weights")
    higher: bool = option(False, "the measure is better when it is larger")
    check_data: bool = option(True, "look for NaN and infinity in every batch")
    tag: str = option("", "words by which `glassgrad runs --tag` finds the run, separated by commas")
    run_dir: str = option("", "directory for checkpoints, metrics and weights; empty for none")
    log_to: str = option("jsonl", "loggers, separated by commas: jsonl, csv, tensorboard, wandb")
    log_every: int = option(10, "steps between records of the metrics", low=1, high=1e12)
    eval_every: int = option(0, "steps between validations; 0 for once per epoch", low=0, high=1e12)
    save_every: float = option(10.0, "seconds between checkpoints", above=0, high=1e9)
    distributed: bool = option(True, "share every batch among the ranks, if MPI has started several")
    progress: str = option("auto", "how to show progress", choices=("auto", "plain", "none"))

    __signature__ = _Fields()  # the signature of `__new__` says nothing

    def __new__(cls, *args: Any, **values: Any) -> Self:
        """Check the names, since a dataclass's error would suggest no correction."""
        known = [entry.name for entry in dataclasses.fields(cls)]
        for key in values:
            if key not in known:
                raise errors.CONFIG_UNKNOWN_KEY(key=key, source=f"{cls.__name__}(...)", nearest=nearest(key, known))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        values = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        for key, value in check(type(self), values).items():
            object.__setattr__(self, key, value)

    # --- the parts of a run ---

    def make_optimizer(self, parameters: Iterable[Any], **options: Any) -> Any:
        """Return the optimizer of the configuration; for parameters of hand-written layers, one of `manual`.

        Args:
            parameters: tensors, groups of them, or parameters of `manual`.
            **options: further options of its class, such as weight_decay.

        Raises:
            errors.InputError: no optimizer is set.
            errors.ArgumentError: options that the class refuses.

        Example:
            >>> from glassgrad import manual
            >>> TrainingConfig(optimizer="rmsprop", rate=0.01).make_optimizer(manual.Linear(2, 1).parameters())
            RMSprop(lr=0.01, 2 parameters)
        """
        if not self.optimizer:
            raise self._not_set("optimizer", "adamw")
        from glassgrad import manual, optim

        found = list(parameters)
        by_hand = bool(found) and isinstance(getattr(found[0], "data", None), np.ndarray)
        make: Any = manual.get_optimizer if by_hand else optim.get_optimizer
        return make(self.optimizer, found, self.rate or None, **options)

    def make_loader(self, data: Any, shuffle: bool = True, **options: Any) -> Any:
        """Return a `DataLoader` with batches of the configuration's size.

        Args:
            data: a data set, as for `DataLoader`.
            shuffle: whether every epoch has a new order.
            **options: further options of `DataLoader`.

        Raises:
            errors.InputError: no batch size is set.
            errors.ArgumentError: an empty data set, or options that the loader refuses.
        """
        if not self.batch_size:
            raise self._not_set("batch_size", 32)
        from glassgrad.utils.data import DataLoader

        return DataLoader(data, batch_size=self.batch_size, shuffle=shuffle, **options)

    def _not_set(self, name: str, value: Any) -> Exception:
        shown = f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}"
        return errors.CONFIG_NOT_SET(owner=type(self).__name__, name=name, example=shown, flag=flag(name)[2:])

    # --- files ---

    @classmethod
    def from_toml(cls, path: str | Path, **changes: Any) -> Self:
        """Read a configuration file, and override some of its values.

        Raises `errors.InputError` if it cannot be read, is not TOML, or has an invalid key or value.
        """
        return resolve(cls, [read_toml(Path(path), cls, TASK), Layer(changes, str)])

    def to_toml(self) -> str:
        """Return the configuration as TOML, every key under its help text."""
        return to_toml(self, TASK)

    # --- the command line ---

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add one option for every field to a parser, and --config."""
        parser.add_argument("--config", metavar="FILE", help="read values from a TOML file; options override them")
        for key, (kind, rule) in rules(cls).items():
            default = next(entry.default for entry in dataclasses.fields(cls) if entry.name == key)
            shown = rule.help.replace("%", "%%") + ("" if default == "" else f" (default: {default})")
            if kind is bool:
                parser.add_argument(flag(key), action=argparse.BooleanOptionalAction, default=None, help=shown)
            else:
                words = "" if rule.more else "|".join(one or "''" for one in rule.choices)
                metavar = words or {int: "N", float: "X"}.get(kind, "NAME" if rule.more else "TEXT")
                parser.add_argument(flag(key), metavar=metavar, default=None, help=shown)

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace | Mapping[str, Any]) -> Self:
        """Build a configuration from the file given with --config and the given options."""
        given = dict(arguments if isinstance(arguments, Mapping) else vars(arguments))
        kinds = {key: kind for key, (kind, _) in rules(cls).items()}
        values = {key: _read(given[key], kind) for key, kind in kinds.items() if given.get(key) is not None}
        layers = [read_toml(Path(given["config"]), cls, TASK)] if given.get("config") else []
        return resolve(cls, [*layers, Layer(values, flag)])

    @classmethod
    def from_command_line(cls, arguments: Sequence[str] | None = None, description: str = "") -> Self:
        """Read the options of a script, including --config; the error for a misspelt option suggests the nearest one.

        Raises `errors.InputError` for an unknown option or an invalid value; `--help` ends the program.
        """
        own = (cls.__doc__ or "").partition("\n")[0]  # without a docstring, a dataclass has its signature there
        parser = argparse.ArgumentParser(
            description=description or ("" if own.startswith(f"{cls.__name__}(") else own), allow_abbrev=False
        )
        cls.add_arguments(parser)
        given, unknown = parser.parse_known_args(sys.argv[1:] if arguments is None else list(arguments))
        if unknown:
            known = ["--config", *(flag(key) for key in rules(cls))]
            raise errors.OPTION_UNKNOWN(given=unknown[0], nearest=nearest(unknown[0].split("=")[0], known))
        return cls.from_arguments(given)


_OPTIONS = {key: rule.help for key, (_, rule) in rules(TrainingConfig).items()}
documents.complete("glassgrad.train", "TrainingConfig", TrainingConfig, _OPTIONS)


def check(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values converted to their types. Raises `errors.InputError` naming an invalid one."""
    return resolve_values(cls, [Layer(values, lambda key: f"{cls.__name__}.{key}")])


def _read(text: Any, kind: type) -> Any:
    """Convert an option's text to its type; the check of all values reports unconvertible text."""
    if not isinstance(text, str) or kind is str:
        return text
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text


__all__ = ["TrainingConfig"]
