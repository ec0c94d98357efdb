"""Arguments that were accepted without effect: they now have an effect or are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.nn import functional as F
from glassgrad.utils import data

LAYERS: dict[str, Callable[[Any], Any]] = {
    "Linear": lambda d: nn.Linear(2, 3, device=d),
    "Bilinear": lambda d: nn.Bilinear(2, 2, 3, device=d),
    "Conv2d": lambda d: nn.Conv2d(1, 2, 3, device=d),
    "ConvTranspose1d": lambda d: nn.ConvTranspose1d(1, 2, 3, device=d),
    "Embedding": lambda d: nn.Embedding(3, 2, device=d),
    "EmbeddingBag": lambda d: nn.EmbeddingBag(3, 2, device=d),
    "BatchNorm1d without parameters": lambda d: nn.BatchNorm1d(2, affine=False, device=d),
    "LayerNorm": lambda d: nn.LayerNorm(2, device=d),
    "RMSNorm": lambda d: nn.RMSNorm(2, device=d),
    "GroupNorm": lambda d: nn.GroupNorm(1, 2, device=d),
    "PReLU": lambda d: nn.PReLU(device=d),
    "LSTM": lambda d: nn.LSTM(2, 3, device=d),
    "GRUCell": lambda d: nn.GRUCell(2, 3, device=d),
    "MultiheadAttention": lambda d: nn.MultiheadAttention(4, 2, device=d),
    "TransformerEncoderLayer": lambda d: nn.TransformerEncoderLayer(4, 2, 8, device=d),
    "Transformer": lambda d: nn.Transformer(4, 2, 1, 1, 8, device=d),
    "AveragedModel": lambda d: gg.optim.swa_utils.AveragedModel(nn.Linear(1, 1), device=d),
    "Generator": lambda d: gg.Generator(device=d),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_device_that_there_is_not_is_refused(name: str) -> None:
    for device in (None, "cpu", "cpu:0", gg.device("cpu")):
        assert LAYERS[name](device) is not None
    with pytest.raises(errors.ArgumentError, match=r"device 'cuda:1' is not available .*nobody_reads\.py"):
        LAYERS[name]("cuda:1")


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
def test_open_grids_are_numpys(indexing: Any, sparse: bool) -> None:
    axes = [np.arange(2.0), np.arange(3.0), np.arange(4.0)]
    for count in (1, 2, 3):
        found = np.meshgrid(*map(gg.tensor, axes[:count]), indexing=indexing, sparse=sparse)
        wanted = np.meshgrid(*axes[:count], indexing=indexing, sparse=sparse)
        for mine, theirs in zip(found, wanted, strict=True):
            assert isinstance(mine, gg.Tensor)
            np.testing.assert_array_equal(mine.numpy(), theirs)


@pytest.mark.parametrize("shape", [(7, 2), (5, 3), (3, 3), (2, 5), (1, 1)])
@pytest.mark.parametrize("wrap", [False, True])
def test_a_diagonal_that_begins_again_is_pytorchs(shape: tuple[int, int], wrap: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    wanted = torch.zeros(shape).fill_diagonal_(1.0, wrap=wrap)
    np.testing.assert_array_equal(gg.zeros(shape).fill_diagonal_(1.0, wrap=wrap).numpy(), wanted.numpy())


@pytest.mark.parametrize(
    ("use", "kind", "message"),
    [
        (lambda: gg.multinomial(gg.tensor([[1.0, 1.0], [-1.0, 2.0]]), 1), ValueError, r"input=\[-1.0, 2.0\]"),
        (lambda: gg.multinomial(gg.tensor([float("nan"), 2.0]), 1), ValueError, "finite weights"),
        (lambda: gg.multinomial(gg.tensor([0.0, 0.0]), 1), ValueError, "not all zero"),
        (lambda: gg.multinomial(gg.tensor([1.0, 2.0]), 3), ValueError, "num_samples=3 .*at most 2, or replacement"),
        (
            lambda: F.cross_entropy(gg.ones(2, 3), gg.tensor([0, 1]), weight=gg.ones(2)),
            ValueError,
            r"cross_entropy: weight.shape=\(2,\) .*\(3,\)",
        ),
        (
            lambda: F.cross_entropy(gg.ones(2, 3), gg.ones(2, 3) / 3, weight=gg.ones(1)),
            ValueError,
            r"cross_entropy: weight.shape=\(1,\)",
        ),
        (lambda: F.nll_loss(gg.ones(2, 3), gg.tensor([0, 1]), weight=gg.ones(4)), ValueError, "nll_loss: weight.shape"),
        (lambda: F.gaussian_nll_loss(gg.ones(2), gg.ones(2), -gg.ones(2)), ValueError, "var=-1.0"),
        (lambda: F.conv1d(gg.ones(1, 2, 3), gg.ones(2, 2, 1), padding=-1), ValueError, "padding=-1 .*at least 0"),
        (lambda: F.conv1d(gg.ones(1, 2, 3), gg.ones(2, 2, 1), dilation=0), ValueError, "dilation=0 .*at least 1"),
        (lambda: F.max_pool1d(gg.ones(1, 1, 3), 0), ValueError, "kernel_size=0"),
        (
            lambda: F.interpolate(gg.ones(1, 1, 3), size=4, align_corners=True),
            ValueError,
            "align_corners=True .*'nearest', which has no corners",
        ),
        (lambda: F.rrelu(gg.ones(2), lower=0.5, upper=0.1), ValueError, "lower=0.5 .*upper=0.1"),
        (
            lambda: gg.optim.SGD([gg.ones(1, requires_grad=True)], lr=1.0, nesterov=True),
            ValueError,
            "SGD: nesterov=True .*a momentum above 0",
        ),
        (lambda: gg.bernoulli(gg.tensor([0.5, 2.0])), ValueError, "input=2.0 .*between 0 and 1"),
        (lambda: gg.normal(0.0, -1.0, (2,)), ValueError, "std=-1.0"),
        (lambda: gg.randint(5, 2, (2,)), ValueError, "high=2 .*more than low=5"),
        (lambda: gg.randperm(-1), ValueError, "n=-1"),
        (lambda: nn.Embedding(3, 2, padding_idx=7), ValueError, "padding_idx=7 .*-3 to 2"),
        (lambda: nn.Module().register_buffer("a.b", gg.ones(1)), ValueError, "under the key 'a.b'"),
        (lambda: nn.Module().register_parameter("forward", None), ValueError, "under the key 'forward'"),
        (lambda: nn.Module().register_parameter("a", gg.ones(1)), TypeError, "of type Parameter, given a Tensor"),
        (lambda: nn.Module().add_module("a", 3), TypeError, "of type Module, given a int"),
        (lambda: data.DataLoader(range(4), num_workers=-1), ValueError, "num_workers=-1"),
        (lambda: data.DataLoader(range(4), prefetch_factor=2), ValueError, "num_workers=0 excludes prefetch_factor"),
        (lambda: data.DataLoader(range(4), persistent_workers=True), ValueError, "excludes persistent_workers"),
        (
            lambda: data.WeightedRandomSampler([0.0, 2.0], 2, replacement=False),
            ValueError,
            "num_samples=2 .*at most 1 without",
        ),
        (lambda: gg.tensor([[1.0, 2.0], [1.0]]), ValueError, "rows of different lengths .*pad_sequence"),
        (lambda: gg.tensor([1.0, None]), TypeError, "this list .*not a number"),
        (lambda: gg.tensor("1"), TypeError, "this str .*not a number"),
        (lambda: gg.from_numpy([1.0]), TypeError, "expects a NumPy array, given list"),
        (
            lambda: gg.autograd.grad([gg.ones(1, requires_grad=True) * 2], [gg.ones(1)], [gg.ones(1), gg.ones(1)]),
            ValueError,
            "given 2 gradients for 1 tensors",
        ),
    ],
)
def test_messages_name_the_line(use: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind) as caught:
        use()
    text = " ".join(str(caught.value).split())
    assert isinstance(caught.value, errors.GlassgradError)
    assert "test_arguments_nobody_reads.py:" in text
    assert re.search(message, text), text
