"""Every public object has a docstring and a signature.

tests/docs/test_site.py requires an example of each; tests/docs/test_examples.py runs them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from glassgrad.ops.core import Primitive

MODULES = [
    "glassgrad", "glassgrad.amp", "glassgrad.autograd", "glassgrad.compile", "glassgrad.data",
    "glassgrad.distributed", "glassgrad.distributions", "glassgrad.doctor", "glassgrad.explanation",
    "glassgrad.fft", "glassgrad.func", "glassgrad.lessons", "glassgrad.linalg", "glassgrad.manual", "glassgrad.models",
    "glassgrad.nn", "glassgrad.nn.functional", "glassgrad.nn.init", "glassgrad.nn.utils", "glassgrad.optim",
    "glassgrad.optim.lr_scheduler",
    "glassgrad.optim.swa_utils", "glassgrad.report", "glassgrad.scalar", "glassgrad.sparse", "glassgrad.train",
    "glassgrad.utils.data", "glassgrad.verify",
]  # fmt: skip  # a table


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
    "the options of the optimizer that is named": {"get_optimizer", "manual.get_optimizer", "ZeroRedundancyOptimizer"},
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
    primitives = [name for name in listed if isinstance(getattr(found, name), Primitive)]
    inner = [name for name in listed if name.startswith("_")] + [name for name in primitives if name.endswith("_p")]
    imported = [name for name in listed if name in {"annotations", "np", "Any", "TYPE_CHECKING", "provenance", "sys"}]
    assert inner + imported == []
    for name in listed:
        assert hasattr(found, name), f"{module}.{name} is listed and not there"
