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
    "glassgrad.lessons", "glassgrad.linalg", "glassgrad.manual", "glassgrad.models", "glassgrad.nn",
    "glassgrad.nn.functional",
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


# How many of a module's names have no example yet. The numbers only fall.
WITHOUT_EXAMPLES = {
    "glassgrad": 540, "glassgrad.autograd": 7, "glassgrad.compile": 1, "glassgrad.data": 6, "glassgrad.doctor": 14,
    "glassgrad.explanation": 5, "glassgrad.fft": 20, "glassgrad.linalg": 30, "glassgrad.manual": 31,
    "glassgrad.nn.functional": 93, "glassgrad.nn.init": 1, "glassgrad.nn.utils": 4, "glassgrad.report": 5,
    "glassgrad.scalar": 6, "glassgrad.sparse": 5, "glassgrad.train": 14, "glassgrad.verify": 7,
}  # fmt: skip  # a table


@pytest.mark.parametrize("module", WITHOUT_EXAMPLES)
def test_no_new_name_is_without_an_example(module: str) -> None:
    without = [name for name, thing in public(module) if ">>>" not in (thing.__doc__ or "")]
    assert len(without) <= WITHOUT_EXAMPLES[module]


# Signatures that end in keywords of any name, and why.
LOOSE = {
    "hands them to the function or the program it is given": {
        "explain",
        "draw",
        "summary",
        "WandbLogger",
        "Checkpoint",
    },
    "takes what PyTorch's takes, and ignores it": {"Identity", "cuda", "to"},
    "subclasses say what it takes": {"Function"},
    "a protocol": {"manual.Layer", "manual.Loss", "manual.Optimizer"},
    "hands them to its neurons": {"MLP", "scalar.Layer"},
    "the options of the optimizer that is named": {"get_optimizer", "manual.get_optimizer"},
}


def loose(thing: Any) -> bool:
    """Tell whether a signature says nothing of the keywords it takes."""
    kinds = inspect.Parameter
    rest = [one for one in inspect.signature(thing).parameters.values() if one.kind is kinds.VAR_KEYWORD]
    return any("Unpack" not in str(one.annotation) for one in rest)


def test_everything_has_a_signature() -> None:
    found = set()
    for module in MODULES:
        for name, thing in public(module):
            if not (isinstance(thing, type) and issubclass(thing, Exception)) and loose(thing):
                short = f"{module.rpartition('.')[2]}.{name}"
                found.add(short if module.endswith(("manual", "scalar")) and name != "MLP" else name)
    tensor = importlib.import_module("glassgrad").Tensor
    methods = {name: inspect.getattr_static(tensor, name) for name in dir(tensor) if not name.startswith("_")}
    found |= {name for name, method in methods.items() if inspect.isfunction(method) and loose(method)}
    assert found == set().union(*LOOSE.values())


@pytest.mark.parametrize("module", [*MODULES, "glassgrad.errors", "glassgrad.random", "glassgrad.special"])
def test_a_public_module_lists_public_names_only(module: str) -> None:
    found = importlib.import_module(module)
    listed = [name for name in dir(found) if not name.startswith("__")]
    assert listed
    inner = [name for name in listed if name.startswith("_") or name.endswith("_p")]
    imported = [name for name in listed if name in {"annotations", "np", "Any", "TYPE_CHECKING", "provenance", "sys"}]
    assert inner + imported == []
    for name in listed:
        assert hasattr(found, name), f"{module}.{name} is listed and not there"
