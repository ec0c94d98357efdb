"""Every public name of PyTorch's tensors and of common modules exists, or raises an error that says it is missing."""

from __future__ import annotations

import importlib
import warnings

import pytest

import glassgrad as gg
from glassgrad import compat, nn, optim
from glassgrad.engine.reports import absent
from glassgrad.errors.kinds import MissingError

MODULES = (
    "", "nn", "nn.functional", "nn.utils", "nn.init", "optim", "optim.lr_scheduler", "utils.data", "autograd", "linalg",
    "fft", "special", "func", "cuda", "amp",
)  # fmt: skip  # a table


def names(thing) -> list[str]:
    listed = getattr(thing, "__all__", None) or dir(thing)
    return [name for name in listed if not name.startswith("_")]


@pytest.mark.parametrize("module", MODULES)
def test_modules(module: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch knows its names")
    theirs = importlib.import_module(f"torch.{module}".rstrip("."))
    ours = importlib.import_module(f"glassgrad.{module}".rstrip("."))
    assert theirs is not torch or ours is gg
    silent = []
    for name in names(theirs):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                getattr(ours, name)
        except AttributeError as error:
            if not isinstance(error, MissingError) or name not in str(error):
                silent.append((name, str(error)))
    assert not silent


def test_methods_of_tensors() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch knows its names")
    x = gg.ones(2)
    silent = [name for name in names(torch.Tensor) if not hasattr(gg.Tensor, name) and name not in absent.INSTEAD]
    assert not silent
    assert not set(absent.INSTEAD) - set(dir(torch.Tensor)), "names that PyTorch has not either"
    for name in absent.INSTEAD:
        if not hasattr(x, name):
            with pytest.raises(MissingError, match=f"Tensor has no '{name}'"):
                getattr(x, name)
    assert "storage_type" not in dir(x)
    assert "add_" in dir(x)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: gg.ones(2).chalf(), r"\.cfloat\(\)"),
        (lambda: gg.ones(2).const_data_ptr(), r"\.numpy\(\)"),
        (lambda: gg.ones(2).slice_inverse(0), "Nearest: .*inverse"),
        (lambda: nn.utils.prune, "a mask that is a buffer"),
        (lambda: nn.init.normalize, "normal_"),
        (lambda: nn.Conv4d, "Conv2d"),
        (lambda: optim.lr_scheduler.CosineLR, "CosineAnnealingLR"),
        (lambda: gg.cuda.memory_allocated, "no GPU"),
        (lambda: gg.special.erfinv2, "erfinv"),
    ],
)
def test_what_to_use_is_said(use, message: str) -> None:
    with pytest.raises(MissingError, match=message):
        use()


def test_what_is_named_in_their_place_exists() -> None:
    """Names of ours in the advice are names that can be looked up."""
    import re

    advice = [*absent.INSTEAD.values(), *compat.INSTEAD.values()]
    pattern = r"(?<!scipy\.)\b(?:glassgrad\.)?((?:linalg|func|nn|optim)\.\w+)"
    found = {path for text in advice for path in re.findall(pattern, text)}
    assert found
    for path in found:
        thing = gg
        for part in path.split("."):
            thing = getattr(thing, part)


def test_older_spellings() -> None:
    v = gg.autograd.Variable(gg.ones(2), requires_grad=True)
    v.sum().backward()
    assert v.grad.tolist() == [1, 1]
    assert gg.ones(2, dtype=gg.float64).new(3, 2).dtype == gg.float64
    assert gg.ones(2).new([1, 2]).tolist() == [1, 2]
    assert gg.ones(2).new(gg.zeros(3, 4)).shape == (3, 4)
    assert gg.ones(2).pin_memory().is_pinned() is False
    assert gg.tensor([0.0, 1.0]).multinomial(1).item() == 1
    y = v * 2
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad
    assert gg.get_default_device().type == "cpu"
    assert gg.get_num_threads() >= 1
    with pytest.warns(FutureWarning, match="normal_"):
        assert nn.init.kaiming_normal is nn.init.kaiming_normal_
    with pytest.raises(ValueError, match="cuda"):
        gg.set_default_device("cuda")
    gg.set_default_device("cpu")
