"""Healthy trainings, in several depths, widths, activations, optimizers and presets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tests.doctor.small_models import (
    char_gpt,
    deep_lstm,
    digits_cnn,
    digits_mlp,
    dropped_lstm,
    gated_gpt,
    glu_names_mlp,
    grouped_cnn,
    layered_names_mlp,
    mnist_cnn,
    names_gru,
    names_mlp,
    normalised_names_mlp,
    parallel_gpt,
    residual_cnn,
    residual_names_mlp,
    separable_cnn,
    stacked_lstm,
)
from tests.doctor.trainings import HALVES, MNIST, Training, squares


def tuning_variants(tasks: dict[str, Training]) -> Iterator[tuple[str, Training]]:
    """Yield healthy trainings of the half that thresholds are set on, beside those in all optimizers."""
    mlp, letters, cnn = tasks["digits MLP"], tasks["names MLP"], tasks["digits CNN"]
    for depth in (1, 3, 5):
        yield f"digits MLP, {depth} deep", replace(mlp, model=partial(digits_mlp, depth=depth))
    for activation in ("Tanh", "GELU", "SiLU", "LeakyReLU", "Sigmoid"):
        yield f"digits MLP, {activation}", replace(mlp, model=partial(digits_mlp, activation=activation))
    yield "digits MLP, dropout", replace(mlp, model=partial(digits_mlp, dropout=0.3))
    yield "names MLP, wide", replace(letters, model=partial(names_mlp, width=200))
    yield "names MLP, economy", replace(letters, preset="economy")
    yield "digits MLP, RMSprop", replace(mlp, optimizer="RMSprop", rate=1e-3)
    yield "digits MLP, Adagrad", replace(mlp, optimizer="Adagrad", rate=1e-2)
    yield "digits MLP, validated", replace(mlp, held_out=True, steps=150)
    yield "digits CNN, no norm", replace(cnn, model=partial(digits_cnn, norm=False))
    yield "digits CNN, wide", replace(cnn, model=partial(digits_cnn, channels=16))
    yield "regression, SGD alone", replace(tasks["regression"], optimizer="SGD", rate=0.01, loss=squares)


def more_tuning_variants(tasks: dict[str, Training]) -> Iterator[tuple[str, Training]]:
    """Yield those of what was reported once: other depths, widths, activations, norms, presets."""
    mlp, letters, cnn = tasks["digits MLP"], tasks["names MLP"], tasks["digits CNN"]
    images = partial(digits_mlp, features=784)
    for depth, width in ((1, 200), (2, 64), (4, 96)):
        yield f"digits MLP, {depth} x {width}", replace(mlp, model=partial(images, depth=depth, width=width))
    for activation in ("Tanh", "ELU", "Softplus", "Hardtanh", "ReLU6"):
        yield f"digits MLP, {activation}", replace(mlp, model=partial(images, activation=activation))
    yield "digits MLP, dropout", replace(mlp, model=partial(images, dropout=0.5))
    yield "digits MLP, economy", replace(mlp, preset="economy")
    yield "digits MLP, NAdam", replace(mlp, optimizer="NAdam", rate=1e-3)
    yield "digits MLP, Adadelta", replace(mlp, optimizer="Adadelta", rate=1.0)
    yield "digits MLP, validated", replace(mlp, held_out=True, steps=150)
    yield "names MLP, one layer", replace(letters, model=partial(normalised_names_mlp, depth=1))
    yield "names MLP, GELU", replace(letters, model=partial(normalised_names_mlp, activation="GELU"))
    yield "digits CNN, norm", replace(cnn, model=partial(mnist_cnn, norm=True))
    yield "digits CNN, wide", replace(cnn, model=partial(mnist_cnn, channels=12))
    yield "GPT, one layer", replace(tasks["GPT"], model=partial(char_gpt, layers=1), order="zbcs")


def tuning_variants_also(tasks: dict[str, Training]) -> Iterator[tuple[str, Training]]:
    """Yield healthy trainings of a half that was reported once."""
    mlp, letters, cnn = tasks["digits MLP"], tasks["names MLP"], tasks["digits CNN"]
    images = partial(digits_mlp, features=784)
    for depth, width in ((1, 64), (3, 160), (4, 64)):
        yield f"digits MLP, {depth} x {width}", replace(mlp, model=partial(images, depth=depth, width=width))
    for activation in ("Tanh", "SiLU", "LeakyReLU", "Mish", "Sigmoid"):
        yield f"digits MLP, {activation}", replace(mlp, model=partial(images, activation=activation))
    yield "digits MLP, dropout", replace(mlp, model=partial(images, dropout=0.2))
    yield "digits MLP, full", replace(mlp, preset="full", steps=120)
    yield "digits MLP, RAdam", replace(mlp, optimizer="RAdam", rate=2e-3)
    yield "digits MLP, SGD alone", replace(mlp, optimizer="SGD", rate=0.1)
    yield "digits MLP, validated", replace(mlp, held_out=True, steps=150)
    yield "names MLP, ReLU", replace(letters, model=partial(layered_names_mlp, activation="ReLU"))
    yield "names MLP, economy", replace(letters, preset="economy")
    yield "digits CNN, three blocks", replace(cnn, model=partial(residual_cnn, blocks=3))
    yield "LSTM, narrow", replace(tasks["LSTM"], model=partial(dropped_lstm, width=24))
    yield "GPT, narrow", replace(tasks["GPT"], model=partial(char_gpt, width=32, layers=4))


def tuning_variants_again(tasks: dict[str, Training]) -> Iterator[tuple[str, Training]]:
    """Yield healthy trainings of another half that was reported once."""
    mlp, letters, cnn = tasks["digits MLP"], tasks["names MLP"], tasks["digits CNN"]
    images = partial(digits_mlp, features=784)
    for depth, width in ((1, 200), (2, 48), (5, 80)):
        yield f"digits MLP, {depth} x {width}", replace(mlp, model=partial(images, depth=depth, width=width))
    for activation in ("Tanh", "SELU", "Softsign", "PReLU", "Hardswish"):
        yield f"digits MLP, {activation}", replace(mlp, model=partial(images, activation=activation))
    yield "digits MLP, dropout", replace(mlp, model=partial(images, dropout=0.3))
    yield "digits MLP, full", replace(mlp, preset="full", steps=100)
    yield "digits MLP, RMSprop", replace(mlp, optimizer="RMSprop", rate=3e-4)
    yield "digits MLP, Adagrad", replace(mlp, optimizer="Adagrad", rate=0.02)
    yield "digits MLP, validated", replace(mlp, held_out=True, steps=150)
    yield "names MLP, Tanh", replace(letters, model=partial(residual_names_mlp, activation="Tanh"))
    yield "names MLP, economy", replace(letters, preset="economy")
    yield "digits CNN, hidden layer", replace(cnn, model=partial(grouped_cnn, hidden=40))
    yield "LSTM, two layers", replace(tasks["LSTM"], model=partial(names_gru, width=28, layers=2))
    yield "GPT, four heads", replace(tasks["GPT"], model=partial(gated_gpt, width=48, heads=4))


def last_tuning_variants(tasks: dict[str, Training]) -> Iterator[tuple[str, Training]]:
    """Yield healthy trainings of the half that was reported last."""
    mlp, letters, cnn = tasks["digits MLP"], tasks["names MLP"], tasks["digits CNN"]
    images = partial(digits_mlp, features=784)
    for depth, width in ((1, 150), (3, 72), (6, 64)):
        yield f"digits MLP, {depth} x {width}", replace(mlp, model=partial(images, depth=depth, width=width))
    for activation in ("Tanh", "GELU", "Mish", "CELU", "LeakyReLU"):
        yield f"digits MLP, {activation}", replace(mlp, model=partial(images, activation=activation))
    yield "digits MLP, dropout", replace(mlp, model=partial(images, dropout=0.4))
    yield "digits MLP, full", replace(mlp, preset="full", steps=80)
    yield "digits MLP, NAdam", replace(mlp, optimizer="NAdam", rate=2e-3)
    yield "digits MLP, Adamax", replace(mlp, optimizer="Adamax", rate=4e-3)
    yield "digits MLP, validated", replace(mlp, held_out=True, steps=150)
    yield "names MLP, SiLU", replace(letters, model=partial(glu_names_mlp, activation="SiLU"))
    yield "names MLP, economy", replace(letters, preset="economy")
    yield "digits CNN, Hardswish", replace(cnn, model=partial(separable_cnn, activation="Hardswish"))
    yield "LSTM, one layer", replace(tasks["LSTM"], model=partial(stacked_lstm, width=30, layers=1))
    yield "GPT, three layers", replace(tasks["GPT"], model=partial(parallel_gpt, width=36, layers=3))


def reporting_variants(tasks: dict[str, Training]) -> Iterator[tuple[str, Training]]:
    """Yield healthy trainings of the half that is reported."""
    mlp, letters, cnn = tasks["digits MLP"], tasks["names MLP"], tasks["digits CNN"]
    images = partial(digits_mlp, features=784)
    for depth, width in ((1, 120), (2, 100), (4, 72)):
        yield f"digits MLP, {depth} x {width}", replace(mlp, model=partial(images, depth=depth, width=width))
    for activation in ("Tanh", "GELU", "ELU", "PReLU", "Softplus"):
        yield f"digits MLP, {activation}", replace(mlp, model=partial(images, activation=activation))
    yield "digits MLP, dropout", replace(mlp, model=partial(images, dropout=0.25))
    yield "digits MLP, full", replace(mlp, preset="full", steps=90)
    yield "digits MLP, RMSprop", replace(mlp, optimizer="RMSprop", rate=4e-4)
    yield "digits MLP, Adamax", replace(mlp, optimizer="Adamax", rate=2e-3)
    yield "digits MLP, validated", replace(mlp, held_out=True, steps=150)
    yield "names MLP, Tanh", replace(letters, model=partial(names_mlp, width=60, depth=2))
    yield "names MLP, economy", replace(letters, preset="economy")
    yield "digits CNN, SiLU", replace(cnn, model=partial(separable_cnn, channels=14, activation="SiLU"))
    yield "LSTM, wide", replace(tasks["LSTM"], model=partial(deep_lstm, width=52))
    yield "GPT, one layer", replace(tasks["GPT"], model=partial(parallel_gpt, width=40, layers=1, heads=4))


VARIANTS = {
    "tuning": tuning_variants, "tuning-too": more_tuning_variants, "tuning-also": tuning_variants_also,
    "tuning-again": tuning_variants_again, "tuning-last": last_tuning_variants, "reporting": reporting_variants,
}  # fmt: skip  # a table


def healthy(half: str) -> Iterator[tuple[str, Training]]:
    """Yield trainings in which nothing is wrong: depths, widths, optimizers, rates and batch sizes."""
    for name, task in tasks_of(half).items():
        yield name, task
        yield f"{name}, SGD", replace(task, optimizer="SGD", rate=0.05, options={"momentum": 0.9})
        yield f"{name}, AdamW", replace(task, optimizer="AdamW", rate=1e-3, options={})
        yield f"{name}, batch 64", replace(task, batch=64, preset="full", steps=40)
    yield from VARIANTS[half](tasks_of(half))


def tasks_of(half: str) -> dict[str, Training]:
    """Return the trainings of a half; two of them need the real digits."""
    tasks = HALVES[half]
    if half != "tuning" and not MNIST.is_dir():
        raise SystemExit(f"the real digits are not in {MNIST}: set GLASSGRAD_DATA to the folder above it")
    return tasks
