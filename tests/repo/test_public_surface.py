"""Whatever a user can import says what it is, and what is built or called with options shows how.

The examples themselves are run by tests/docs/test_examples.py.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

MODULES = [
    "glassgrad", "glassgrad.amp", "glassgrad.autograd", "glassgrad.compile", "glassgrad.data",
    "glassgrad.distributions", "glassgrad.doctor", "glassgrad.explanation", "glassgrad.fft", "glassgrad.func",
    "glassgrad.linalg", "glassgrad.manual", "glassgrad.models", "glassgrad.nn", "glassgrad.nn.functional",
    "glassgrad.nn.init", "glassgrad.nn.utils", "glassgrad.optim", "glassgrad.optim.lr_scheduler",
    "glassgrad.optim.swa_utils", "glassgrad.report", "glassgrad.scalar", "glassgrad.sparse", "glassgrad.train",
    "glassgrad.utils.data", "glassgrad.verify",
]  # fmt: skip  # a table

# Where classes, and the functions that are no ops, have an example each.
WITH_EXAMPLES = [
    "glassgrad.amp", "glassgrad.distributions", "glassgrad.func", "glassgrad.models", "glassgrad.nn",
    "glassgrad.optim", "glassgrad.optim.lr_scheduler", "glassgrad.optim.swa_utils", "glassgrad.utils.data",
]  # fmt: skip  # a table

# Why something in them has none.
EXCEPTIONS = {
    "an activation: its first line is the whole formula, and all are called as ReLU is": {
        "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
        "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin",
        "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
    },
    "a base: those that are built have examples": {
        "Distribution", "ExponentialFamily", "LRScheduler", "Optimizer", "Sampler", "Transform",
    },
    "a result: what returns it has the example": {"Summary", "WorkerInfo"},
    "another order or spelling of what has an example": {"generate", "grad_and_value"},
    "handed to AveragedModel": {
        "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    },
    "changes nothing": {"autocast"},
}  # fmt: skip  # a table


def public(module: str) -> Iterator[tuple[str, Any]]:
    """Yield the classes and functions of ours that a module offers."""
    found = importlib.import_module(module)
    for name in found.__all__ if hasattr(found, "__all__") else dir(found):
        thing = getattr(found, name)
        ours = str(getattr(thing, "__module__", "")).startswith("glassgrad")
        if not name.startswith("_") and callable(thing) and not inspect.ismodule(thing) and ours:
            yield name, thing


@pytest.mark.parametrize("module", MODULES)
def test_everything_says_what_it_is(module: str) -> None:
    texts = {name: (thing.__doc__ or "").strip() for name, thing in public(module)}
    # What a dataclass writes by itself only repeats the signature; an op's has the derivative below it.
    silent = [name for name, text in texts.items() if not text or (text.startswith(f"{name}(") and "\n" not in text)]
    assert texts
    assert silent == []


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_everything_built_or_called_with_options_has_an_example(module: str) -> None:
    excused = set().union(*EXCEPTIONS.values())
    assert [name for name, thing in public(module) if ">>>" not in (thing.__doc__ or "") and name not in excused] == []


def test_no_exception_is_left_over() -> None:
    without = {name for module in WITH_EXAMPLES for name, thing in public(module) if ">>>" not in (thing.__doc__ or "")}
    assert set().union(*EXCEPTIONS.values()) <= without


@pytest.mark.parametrize("module", ["glassgrad.nn", "glassgrad.optim", "glassgrad.train", "glassgrad.utils.data"])
def test_a_list_of_arguments_is_whole(module: str) -> None:
    # What PyTorch's signatures have and ours accept without a use, and private ones.
    hidden = {"device", "dtype", "_weight", "_freeze", "hints", "self", "pin_memory_device", "in_order"}
    gaps = {}
    for name, thing in public(module):
        text = thing.__doc__ or ""
        if "Args:" in text:
            given = inspect.signature(thing).parameters
            gaps[name] = [key for key in given if key not in hidden and key not in text]
    assert {name: missing for name, missing in gaps.items() if missing} == {}
