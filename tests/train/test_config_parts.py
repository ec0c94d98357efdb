"""One configuration makes the optimizer and the loader; impossible or ineffective options are refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import glassgrad as gg
from glassgrad import manual, nn, optim
from glassgrad.errors import ArgumentError, InputError
from glassgrad.nn import functional as F
from glassgrad.train import Trainer, TrainingConfig, option

from .fitting import data, net, weights


def pairs() -> list[Any]:
    x, y = data()
    return [(x[at], y[at]) for at in range(len(x))]


def fitted_by(file: Path) -> dict[str, Any]:
    config = TrainingConfig.from_toml(file)
    gg.manual_seed(1)
    model = net()
    loader = config.make_loader(pairs())
    Trainer(model, config.make_optimizer(model.parameters()), F.cross_entropy, loader, config=config).fit()
    return weights(model)


def test_a_file_drives_a_script(tmp_path: Path) -> None:
    config = TrainingConfig(
        epochs=2, optimizer="momentum", rate=0.05, batch_size=20, engine="eager", progress="none", run_dir=""
    )
    file = tmp_path / "run.toml"
    file.write_text(config.to_toml(), encoding="utf-8")
    assert TrainingConfig.from_toml(file) == config
    assert len(config.make_loader(pairs())) == 3
    gg.manual_seed(1)
    model = net()
    made = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    Trainer(model, made, F.cross_entropy, config.make_loader(pairs()), config=config).fit()
    for name, array in fitted_by(file).items():
        assert (array == weights(model)[name]).all(), name


def test_optimizers_of_both_kinds_and_defaults() -> None:
    weight = nn.Parameter(gg.zeros(2))
    made = TrainingConfig(optimizer="AdamW", rate=0.25).make_optimizer([weight], weight_decay=0.5)
    assert type(made) is optim.AdamW
    assert (made.param_groups[0]["lr"], made.param_groups[0]["weight_decay"]) == (0.25, 0.5)
    assert TrainingConfig(optimizer="adam").make_optimizer([weight]).param_groups[0]["lr"] == 0.001
    grouped = TrainingConfig(optimizer="sgd", rate=0.5).make_optimizer([{"params": [weight], "lr": 0.125}])
    assert grouped.param_groups[0]["lr"] == 0.125
    by_hand = manual.Linear(2, 2).parameters()
    assert type(TrainingConfig(optimizer="momentum", rate=0.5).make_optimizer(by_hand)) is manual.SGDMomentum
    with pytest.raises(ArgumentError, match=r"'lion'\.\nExpected: one of adam, momentum, rmsprop, sgd\."):
        TrainingConfig(optimizer="lion").make_optimizer(by_hand)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("optimizer = 'adamm'", r"optimizer in .*run\.toml must be one of '', adadelta, .*sparseadam, .*mean 'adam'\?"),
        ("rate = -0.1", r"rate in .*run\.toml must be a number at least 0, given -0\.1"),
        ("batch_size = 0.5", r"batch_size in .*run\.toml must be a whole number"),
        ("batchsize = 5", r"unknown key 'batchsize' in .*; did you mean 'batch_size'\?"),
        (
            "batch_size = 8",
            r"TrainingConfig\.optimizer is not set; add optimizer = \"adamw\" to the file, or give --opti",
        ),
        ("optimizer = 'sgd'", r"TrainingConfig\.batch_size is not set; add batch_size = 32"),
    ],
)
def test_files_that_cannot_drive_a_script(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        fitted_by(tmp_path / "run.toml")


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ({"optimizer": "sgd"}, "the optimizer given has Adam"),
        ({"rate": 0.5}, "the optimizer given has lr=0.001"),
        ({"batch_size": 5}, "the train_loader given has batch_size=4"),
    ],
)
def test_options_without_effect_are_refused(option: dict[str, Any], found: str) -> None:
    model = net()
    parts = (model, optim.Adam(model.parameters()), F.cross_entropy, TrainingConfig(batch_size=4).make_loader(pairs()))
    with pytest.raises(InputError, match=found):
        Trainer(*parts, config=TrainingConfig(**option))
    agreeing = TrainingConfig(optimizer="adam", rate=0.001, batch_size=4)
    assert Trainer(*parts, config=agreeing).config == agreeing
    schedule = optim.lr_scheduler.LinearLR(parts[1])  # it has moved the rate already
    assert Trainer(*parts, scheduler=schedule, config=agreeing).config == agreeing


def test_help_is_a_line_about_the_script_and_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    @dataclass(frozen=True)
    class Own(TrainingConfig):
        hidden: int = option(64, "units of the hidden layer", low=1)

    for kind in (Own, TrainingConfig):
        with pytest.raises(SystemExit):
            kind.from_command_line(["--help"])
        out = capsys.readouterr().out
        assert "--optimizer NAME" in out
        assert ">>>" not in out
        assert "epochs: int" not in out
    assert "The options of a `Trainer`" in out
