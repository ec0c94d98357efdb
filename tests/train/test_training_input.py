"""Input that cannot be trained on: an error names each kind, before anything is lost."""

from __future__ import annotations

from collections import UserDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.errors import CompileWarning, GlassgradError, InputError, LossBroadcastWarning
from glassgrad.nn import functional as F
from glassgrad.train import Trainer, TrainingConfig
from glassgrad.utils.data import DataLoader, TensorDataset

from .fitting import data, loader, net, trainer, weights

pytestmark = pytest.mark.usefixtures("numpy_target")  # test_engines.py trains in native code

ENGINES = ["eager", "compiled"]


def refused(made: Trainer, kind: type[Exception], words: str) -> BaseException:
    """`fit` raises, and the weights are those from before."""
    before = weights(made.model)
    with pytest.raises(kind, match=words) as caught:
        made.fit()
    for name, array in before.items():
        np.testing.assert_array_equal(weights(made.model)[name], array)
    return caught.value


# --- loaders ----------------------------------------------------------------------------------------------


def test_loaders_that_give_nothing() -> None:
    x, y = data()
    with pytest.raises(InputError, match="train_loader gives no batches: its length is 0"):
        trainer(train=[])
    with pytest.raises(GlassgradError, match="DataLoader"):
        DataLoader(TensorDataset(gg.zeros(0, 4), gg.zeros(0)), batch_size=8)
    with pytest.raises(GlassgradError, match="100"):  # a batch larger than the data, and nothing else allowed
        DataLoader(TensorDataset(gg.tensor(x), gg.tensor(y)), batch_size=100, drop_last=True)
    assert trainer(train=loader(100), epochs=2).fit().step == 2  # one batch with all there is

    class Promising:
        def __len__(self) -> int:
            return 3

        def __iter__(self) -> Any:
            return iter(())

    refused(trainer(train=Promising(), validation=False), InputError, "train_loader gives no batches: epoch 1 has none")
    made = trainer()
    made.val_loader = Promising()
    with pytest.raises(InputError, match="val_loader gives no batches: it ended at once"):
        made.evaluate()


def test_batches_with_containers_in_them() -> None:
    """Arrays in tuples with names, in dictionaries and in other mappings become tensors where they are."""

    class Pair(NamedTuple):
        left: Any
        right: Any

    seen: list[Any] = []

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(4, 3)

        def forward(self, pair: Any, rest: Any) -> Any:
            seen.append((type(pair), type(pair.left), type(rest["deep"][0])))
            return self.line(pair.left + pair.right + rest["deep"][0])

    x, y = (array[:8] for array in data())
    batches = [(Pair(x, 0 * x), UserDict(deep=[0 * x]), y)]

    model = Model()
    config = TrainingConfig(epochs=1, engine="eager", progress="none")
    Trainer(model, optim.SGD(model.parameters(), lr=0.1), F.cross_entropy, batches, config=config).fit()
    assert seen == [(Pair, gg.Tensor, gg.Tensor)]


def test_a_loader_without_length_needs_a_number_of_steps() -> None:
    with pytest.raises(
        InputError, match=r"does not know its length; give the number of steps with TrainingConfig\(steps="
    ):
        trainer(train=iter([1]), validation=False)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_named_with_their_place(engine: str, bad: float) -> None:
    x, y = data()
    x[19, 2] = bad
    batches = [(x[at : at + 8], y[at : at + 8]) for at in range(0, 56, 8)]
    made = trainer(train=batches, validation=False, engine=engine)
    with pytest.raises(InputError) as caught:
        made.fit()
    text = str(caught.value)
    assert text.startswith(f"batch 3 of epoch 1 holds {bad} in part 0 at [3, 2] (1 of 32 numbers are not finite)")
    expected = trainer(train=batches[:2], validation=False, engine=engine, epochs=1)
    expected.fit()
    for name, array in weights(expected.model).items():  # two good batches were trained on, and nothing else
        np.testing.assert_array_equal(weights(made.model)[name], array)
    targets = trainer(
        train=[(x[:8], np.full((8, 3), np.nan, np.float32))], validation=False, loss_fn=F.mse_loss, engine=engine
    )
    refused(targets, InputError, r"batch 1 of epoch 1 holds nan in part 1 at \[0, 0\] \(24 of 24")
    named = trainer(
        train=[{"x": x[16:24]}], validation=False, engine=engine, loss_fn=None, model=lambda: nn.Linear(4, 1)
    )
    refused(named, InputError, r"in part 'x' at \[3, 2\]")


def test_large_numbers_are_no_infinity() -> None:
    x, y = data()
    x[:8] = 3e38  # their sum overflows, they do not
    assert trainer(train=[(x[:8], y[:8])], validation=False).fit().finished


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_that_are_no_classes(engine: str) -> None:
    x, y = data()
    floats = trainer(train=[(x[:8], y[:8].astype(np.float32))], validation=False, engine=engine)
    refused(floats, GlassgradError, "cross_entropy expects class indices as integers, given dtype float32")
    for bad in (3, -1):
        labels = y.copy()
        labels[5] = bad
        wrong = trainer(train=[(x[:8], labels[:8])], validation=False, engine=engine)
        error = refused(wrong, GlassgradError, f"label {bad} is out of range for 3 classes")
        assert error.__notes__ == ["while training on batch 1 of epoch 1"]
    later = y.copy()
    later[20] = 7
    made = trainer(
        train=[(x[at : at + 8], later[at : at + 8]) for at in range(0, 32, 8)], validation=False, engine=engine
    )
    with pytest.raises(GlassgradError, match="7") as caught:
        made.fit()
    assert caught.value.__notes__ == ["while training on batch 3 of epoch 1"]
    good = [(x[at : at + 8], y[at : at + 8]) for at in (0, 8)]
    expected = trainer(train=good, validation=False, epochs=1, engine=engine)
    expected.fit()
    for name, array in weights(expected.model).items():
        np.testing.assert_array_equal(weights(made.model)[name], array)


@pytest.mark.parametrize("engine", ENGINES)
def test_shapes_that_do_not_fit(engine: str) -> None:
    x, y = data()
    made = trainer(train=[(x[:8, :3], y[:8])], validation=False, engine=engine)
    error = refused(made, GlassgradError, "3")
    assert error.__notes__ == ["while training on batch 1 of epoch 1"]
    for batch, words in ((x[:8], "batches are single tensors, which"), ({"x": x}, "batches are dictionaries, which")):
        refused(trainer(train=[batch], validation=False, engine=engine), InputError, words)


# --- arguments and options --------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_broadcasts_is_told_at_the_line_that_trains(engine: str) -> None:
    x = gg.randn(8, 4)
    pairs = DataLoader(TensorDataset(x, x[:, 0]), batch_size=4)
    made = trainer(model=lambda: nn.Linear(4, 1), train=pairs, validation=False, loss_fn=F.mse_loss, engine=engine)
    with pytest.warns(LossBroadcastWarning, match=r"test_training_input\.py:\d+") as told:
        made.fit()
    assert told[0].filename == __file__


def test_arguments_in_the_wrong_order_or_of_the_wrong_kind() -> None:
    model = net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for arguments, words in (
        (
            (optimizer, model, F.cross_entropy),
            "model must be a module of glassgrad.nn, or of glassgrad.manual, given SGD",
        ),
        ((model, F.cross_entropy, optimizer), "optimizer must be an optimizer of glassgrad.optim, given function"),
        ((model, optimizer, "mse"), "loss_fn must be a function of outputs and targets, or None, given str"),
        ((model, optimizer, F.cross_entropy, loader(), None, 0.1), "scheduler must be a scheduler with step"),
    ):
        with pytest.raises(InputError, match=words):
            Trainer(*arguments, *([loader()] if len(arguments) == 3 else []))


def test_what_is_asked_of_a_validation_that_there_is_not() -> None:
    with pytest.raises(InputError, match="patience=3 needs a val_loader"):
        trainer(validation=False, patience=3)
    with pytest.raises(InputError, match=r"the validation measures loss.* not 'acuracy'"):
        trainer(monitor="acuracy").fit()
    plateau = optim.lr_scheduler.ReduceLROnPlateau
    with pytest.raises(InputError, match="ReduceLROnPlateau needs a val_loader"):  # it would never look at anything
        trainer(validation=False, scheduler=plateau)
    with pytest.raises(InputError, match=r"the validation measures loss.* not 'acuracy'"):
        trainer(scheduler=plateau, monitor="acuracy", best=0).fit()


def test_loggers_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no 'tensorbord'; expected some of jsonl, csv.*did you mean 'tensorboard'"):
        trainer(log_to="jsonl, tensorbord")
    with pytest.raises(InputError, match="log_to='csv' writes files; give a run_dir"):
        trainer(log_to="csv").fit()


def test_a_step_that_cannot_be_compiled_runs_eagerly() -> None:
    def loss_fn(scores: Any, labels: Any) -> Any:
        loss = F.cross_entropy(scores, labels)
        return loss * 2 if float(loss) > 1 else loss

    made = trainer(engine="compiled", loss_fn=loss_fn)
    with pytest.warns(CompileWarning, match=r"float\(\) at .*test_training_input\.py"):
        loss = made.fit().loss
    assert loss == trainer(engine="eager", loss_fn=loss_fn).fit().loss


def test_errors_of_the_users_own_code_stay_what_they_are(tmp_path: Path) -> None:
    class Files:
        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Any:
            raise FileNotFoundError(2, "No such file", "images/7.png")

    with pytest.raises(FileNotFoundError, match=r"images/7\.png"):
        trainer(train=Files(), run_dir=str(tmp_path / "run"), validation=False).fit()


# --- the configuration ------------------------------------------------------------------------------------


def test_a_misspelt_key_is_answered_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "train.toml"
    file.write_text("epohcs = 3\n")
    with pytest.raises(InputError, match=r"unknown key 'epohcs' in .*train\.toml; did you mean 'epochs'\?"):
        TrainingConfig.from_toml(file)
    with pytest.raises(InputError, match=r"unknown key .clipnorm. in TrainingConfig"):
        TrainingConfig(clipnorm=1.0)
    with pytest.raises(InputError, match=r"unknown option --epoch; did you mean '--epochs'\?"):
        TrainingConfig.from_command_line(["--epoch", "3"])
    with pytest.raises(InputError, match=r"unknown option --log-evry=3; did you mean '--log-every'\?"):
        TrainingConfig.from_command_line(["--log-evry=3"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"epochs": 0}, r"TrainingConfig\.epochs must be a whole number at least 1"),
        ({"epochs": 2.5}, r"TrainingConfig\.epochs must be a whole number .*, given 2\.5"),
        ({"ema": 1.5}, r"TrainingConfig\.ema must be a number at least 0 and at most 1, given 1\.5"),
        ({"engine": "compield"}, r"must be one of compiled, eager, given 'compield'; did you mean 'compiled'\?"),
        ({"skip_nonfinite": 1}, r"TrainingConfig\.skip_nonfinite must be true or false, given 1"),
        ({"clip_norm": float("nan")}, r"TrainingConfig\.clip_norm must be a number at least 0, given nan"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_values_that_cannot_be_used(values: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        TrainingConfig(**values)
