"""PyTorch's submodules as attributes while glassgrad has its name; and attributes that a program sets on it."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import compat
from tests.compat.test_names_of_modules import IMPORTS


@pytest.mark.parametrize("module", IMPORTS)
def test_attributes_lead_to_the_same_modules(module: str) -> None:
    steps = module.split(".")[1:]
    real = pytest.importorskip("torch", reason="PyTorch has these modules")
    importlib.import_module("torch.distributions")
    try:
        there: Any = functools.reduce(getattr, steps, real)
    except AttributeError:
        pytest.skip("PyTorch wants it imported")
    if not isinstance(there, ModuleType):
        pytest.skip("a function hides the module")
    with compat.as_torch():
        found: Any = functools.reduce(getattr, steps, gg)
        assert [name for name in IMPORTS[module].split() if not hasattr(found, name)] == []


def test_the_helpers_of_distributions() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the other library")

    def found(torch: Any) -> list[Any]:
        utils = importlib.import_module("torch.distributions.utils")
        p = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
        back = [utils.logits_to_probs(utils.probs_to_logits(p, binary), binary) for binary in (True, False)]
        sums = [utils._sum_rightmost(p, count) for count in (1, 2)]
        return [*sums, utils.clamp_probs(p), *back, utils.probs_to_logits(p, True), *utils.broadcast_all(p, 2)]

    expected = found(torch)
    with compat.as_torch():
        for ours, theirs in zip(found(gg), expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_what_a_program_puts_into_the_package_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own = object()
    monkeypatch.setattr(gg, "randn", own)
    assert not hasattr(gg, "no_such_name")
    assert gg.randn is own


def test_names_are_lent_for_a_time() -> None:
    assert not hasattr(gg.nn.utils, "convert_parameters")
    assert not hasattr(gg.nn, "_reduction")
    with compat.as_torch():
        assert gg.nn.utils.convert_parameters.vector_to_parameters is gg.nn.utils.vector_to_parameters
        assert gg.nn._reduction.get_enum("sum") == 2
        assert not hasattr(gg.optim, "sdg")
    assert not hasattr(gg.nn.utils, "convert_parameters")
