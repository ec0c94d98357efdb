"""Every op that PyTorch has samples for, under both libraries' autocast: dtypes, values and gradients.

Only differences are listed here: a new op in a list of `autocasting` runs as soon as PyTorch's table of samples has it.
"""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch's autocast is what ours is compared with")
pytest.importorskip("expecttest", reason="PyTorch's table of samples imports it")

from torch.testing._internal.autocast_test_lists import AutocastCPUTestLists  # noqa: E402 - after the checks above

import glassgrad as gg  # noqa: E402 - after the checks above
from glassgrad import amp  # noqa: E402 - after the checks above
from glassgrad.engine import autocasting, record  # noqa: E402 - after the checks above
from glassgrad.engine.tree import tree_map  # noqa: E402 - after the checks above
from glassgrad.nn.functional import losses as functional_losses  # noqa: E402 - after the checks above
from tests.ops import opinfo  # noqa: E402 - after the checks above

SAMPLES = 2  # of each op and dtype
EPS = 2.0**-8

# Results of another dtype than PyTorch's. Those in float32 are more exact; those in bfloat16 are products as others
# are, or have no digits to lose: they move numbers, choose among them or round one sum once.
NARROWER = {
    "a product, though not in PyTorch's list": {"dot", "vdot", "mv", "inner", "tensordot", "addmv"},
    "moves, chooses or averages numbers": {
        "nn.functional.adaptive_avg_pool3d", "nn.functional.adaptive_max_pool3d", "nn.functional.max_pool3d",
        "nn.functional.max_unpool1d", "nn.functional.max_unpool2d",
        "nn.functional.max_unpool3d", "nn.functional.pad", "trace",
    },
}  # fmt: skip  # a table
WIDER = {
    "the last operation is a sum or a solver in float32, PyTorch's a product": {
        "corrcoef", "linalg.vecdot", "linalg.pinv",
    },
    "a loss that PyTorch makes of ops which are in no list": {
        "nn.functional.multilabel_soft_margin_loss", "nn.functional.triplet_margin_with_distance_loss",
        "nn.functional.gaussian_nll_loss",
    },
    "an op of two arguments, which keeps float32": {"nn.functional.prelu"},
}  # fmt: skip  # a table
REASONS = {name: "narrower" for names in NARROWER.values() for name in names}
REASONS |= {name: "wider" for names in WIDER.values() for name in names}
# Values that are not unique; a series that PyTorch adds up in bfloat16.
OTHERS = {"linalg.eig", "linalg.eigh", "as_strided (partial_views)", "to_sparse", "matrix_exp"}
# Primitives of the lists that run under autocast in other ways: in losses, which are in float32 as a whole, or in
# layers, whose test is beside this one; gradients of convolutions; matrices that PyTorch has no samples of.
UNSEEN = {
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "ctc_loss", "mse_loss",
    "lstm", "gru", "rnn", "recurrence", "conv2d_weight", "sparse_product",
    "matrix_exp",
}  # fmt: skip  # a table


@pytest.fixture(autouse=True)
def units(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rounded does not depend on the processor: these tests run on any."""
    monkeypatch.setattr(amp, "processor_multiplies", lambda: True)


def translated(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype is torch.bfloat16 and not value.is_sparse:
        return gg.tensor(opinfo.array_of(value).copy(), requires_grad=bool(value.requires_grad))
    return opinfo.translated(value)


def samples(info: Any, kind: Any) -> list[Any]:
    from torch.testing._internal import common_utils

    opinfo.seeded(0)
    tracked = kind in info.supported_backward_dtypes("cpu")
    with mock.patch.multiple(common_utils, set_rng_seed=opinfo.seeded, extract_test_fn=lambda: None):
        return list(itertools.islice(info.sample_inputs("cpu", kind, requires_grad=tracked), SAMPLES))


def both(info: Any, function: Any, sample: Any) -> tuple[list[Any], list[Any], list[Any], list[Any]] | None:
    """Return both libraries' results and arguments; None where PyTorch's autocast, or ours, has no such call."""
    given = (sample.input, tuple(sample.args), dict(sample.kwargs))
    try:
        with torch.autocast("cpu"):
            theirs = opinfo.flat(info.op(given[0], *given[1], **given[2]))
        first, others, named = tree_map(translated, given)
    except (RuntimeError, NotImplementedError, opinfo.NotOurs):
        return None
    named = {name: value for name, value in named.items() if value is not opinfo.LEFT_OUT}
    with gg.autocast("cpu"):
        mine = opinfo.flat(function(first, *others, **named))
    return mine, theirs, opinfo.leaves((first, others, named)), opinfo.leaves(given)


def wide(value: Any) -> np.ndarray:
    array = opinfo.array_of(value)
    return array.astype(np.float64) if array.dtype == gg.bfloat16 else array


def far(mine: Any, theirs: Any, roundings: int, size: float = 0.0) -> bool:
    """Tell whether two results differ by more than some roundings to bfloat16 of the largest, or of `size`."""
    a, b = wide(mine), wide(theirs)
    if a.shape != b.shape or a.dtype.kind not in "fc" or b.dtype.kind not in "fc":
        return a.shape != b.shape or not np.array_equal(a, b)
    scale = np.abs(b[np.isfinite(b)]).max(initial=size)
    return not np.allclose(a, b, rtol=roundings * EPS, atol=roundings * EPS * scale, equal_nan=True)


def differences(info: Any, function: Any, sample: Any, kind: str) -> Iterator[str]:
    """Yield how the two differ; nothing for an op that autocast leaves alone: its results are of the inputs' dtype."""
    found = both(info, function, sample)
    if found is None or any(isinstance(y, torch.Tensor) and y.layout is not torch.strided for y in found[1]):
        return
    mine, theirs, my_leaves, their_leaves = found
    dtypes = [(opinfo.array_of(y).dtype.name, opinfo.array_of(z).dtype.name) for y, z in zip(mine, theirs, strict=True)]
    if not {"bfloat16", "float32"} - {kind} & {name for names in dtypes for name in names}:
        return
    # Terms of a product may cancel, whose roundings remain.
    sizes = sorted(float(np.abs(wide(leaf)).max(initial=0)) for leaf in my_leaves)
    for y, expected, (ours, wanted) in zip(mine, theirs, dtypes, strict=True):
        if ours != wanted:
            narrow = (ours == "bfloat16", wanted == "bfloat16")
            yield {(True, False): "narrower", (False, True): "wider"}.get(narrow, f"{ours}, not {wanted}")
        if far(y, expected, 4, float(np.prod(sizes[-2:])) if ours == "bfloat16" else 0.0):
            yield "value"
    yield from of_gradients(mine, theirs, my_leaves, their_leaves)


def of_gradients(mine: list[Any], theirs: list[Any], my_leaves: list[Any], their_leaves: list[Any]) -> Iterator[str]:
    chosen = [at for at, y in enumerate(theirs) if getattr(y, "requires_grad", False)]
    if not chosen or not their_leaves:
        return
    seeds = [np.cos(np.arange(theirs[at].numel())).reshape(theirs[at].shape) for at in chosen]
    cotangents = [torch.tensor(seed).to(theirs[at].dtype) for at, seed in zip(chosen, seeds, strict=True)]
    try:
        expected = torch.autograd.grad([theirs[at] for at in chosen], their_leaves, cotangents, allow_unused=True)
    except RuntimeError:  # PyTorch's rule multiplies two dtypes
        return
    cotangents = [gg.tensor(seed).to(mine[at].dtype) for at, seed in zip(chosen, seeds, strict=True)]
    gradients = gg.autograd.grad([mine[at] for at in chosen], my_leaves, cotangents, allow_unused=True)
    for g, wanted, x in zip(gradients, expected, my_leaves, strict=True):
        if g is not None and g.dtype != x.dtype:
            yield f"gradient in {g.dtype} of {x.dtype}"
        none = np.zeros(x.shape)
        if far(none if g is None else g, none if wanted is None else wanted, 8):
            yield "gradient"


def walk(
    names: frozenset[str] | None, kinds: tuple[str, ...] = ("float32", "bfloat16")
) -> tuple[dict[str, set[str]], set[str], int]:
    """Return how ops differ, the primitives that ran under autocast, and how many ops were compared: some, or all."""
    found, ran, count = defaultdict(set), set(), 0
    cast_for = record.cast_for

    def noting(prim: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        ran.add(prim.name)
        return cast_for(prim, args)

    with mock.patch.object(record, "cast_for", noting), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for info in opinfo.op_infos():
            name = opinfo.title(info)
            if names is not None and info.name.rpartition(".")[2] not in names:
                continue
            ours = opinfo.ours(info)
            if ours is None or info.name in opinfo.DRAWN or name in opinfo.REASONS or name in OTHERS:
                continue
            count += 1
            for kind in kinds:
                if getattr(torch, kind) in info.dtypes:
                    for sample in samples(info, getattr(torch, kind)):
                        found[info.name] |= set(differences(info, ours[1], sample, kind))
    return {name: how for name, how in found.items() if how}, ran, count


def test_ops_of_both_lists_are_within_bfloat16s_rounding_of_pytorchs(single_threaded_torch: None) -> None:
    table = AutocastCPUTestLists("cpu")
    theirs = {entry[0] for entry in (*table.nn_16, *table.torch_16, *table.nn_fp32, *table.torch_fp32)}
    names = theirs | autocasting.LOWER | autocasting.SINGLE | set(functional_losses.__all__)
    found, _, count = walk(frozenset(names), ("float32",))
    assert count > 50
    assert not unexplained(found)


def unexplained(found: dict[str, set[str]]) -> dict[str, set[str]]:
    return {name: how - {REASONS.get(name, "")} for name, how in found.items() if how - {REASONS.get(name, "")}}


@pytest.mark.slow
def test_every_op_is_within_bfloat16s_rounding_of_pytorchs(single_threaded_torch: None) -> None:
    found, ran, count = walk(None)
    assert count > 400
    assert not unexplained(found)
    idle = {name for name, reason in REASONS.items() if reason not in found.get(name, ())}
    assert not idle, "these have a reason to differ, and do not"
    assert (autocasting.LOWER | autocasting.SINGLE) - ran == UNSEEN
