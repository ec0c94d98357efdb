"""The names network in its chunked form: 26 intermediates, the gradient of each held against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")

BATCH, CONTEXT, WIDTH, HIDDEN, CLASSES = 32, 3, 10, 64, 27


def parameters(dtype: Any) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(2147483647)
    shapes = {
        "C": (CLASSES, WIDTH), "W1": (CONTEXT * WIDTH, HIDDEN), "b1": (HIDDEN,), "W2": (HIDDEN, CLASSES),
        "b2": (CLASSES,), "bngain": (1, HIDDEN), "bnbias": (1, HIDDEN),
    }  # fmt: skip
    drawn = {name: rng.normal(size=shape) * 0.1 for name, shape in shapes.items()}
    drawn["bngain"] += 1
    drawn["W1"] *= 10 * (5 / 3) / np.sqrt(CONTEXT * WIDTH)
    drawn["C"] *= 10
    return {name: value.astype(dtype) for name, value in drawn.items()}


def chunked(p: dict[str, Any], x: Any, y: Any, rows: Any) -> dict[str, Any]:
    """Return every intermediate of the forward pass by name, written with what both libraries share."""
    n = BATCH
    kept: dict[str, Any] = {}

    def keep(name: str, value: Any) -> Any:
        kept[name] = value
        value.retain_grad()
        return value

    emb = keep("emb", p["C"][x])
    embcat = keep("embcat", emb.view(emb.shape[0], -1))
    hprebn = keep("hprebn", embcat @ p["W1"] + p["b1"])
    bnsum = keep("bnsum", hprebn.sum(0, keepdim=True))
    bnmeani = keep("bnmeani", bnsum * (1 / n))
    bndiff = keep("bndiff", hprebn - bnmeani)
    bndiff2 = keep("bndiff2", bndiff**2)
    bnvarsum = keep("bnvarsum", bndiff2.sum(0, keepdim=True))
    bnvar = keep("bnvar", bnvarsum * (1 / (n - 1)))
    bnvareps = keep("bnvareps", bnvar + 1e-5)
    bnvar_inv = keep("bnvar_inv", bnvareps**-0.5)
    bnraw = keep("bnraw", bndiff * bnvar_inv)
    bnscaled = keep("bnscaled", p["bngain"] * bnraw)
    hpreact = keep("hpreact", bnscaled + p["bnbias"])
    h = keep("h", hpreact.tanh())
    product = keep("product", h @ p["W2"])
    logits = keep("logits", product + p["b2"])
    logit_maxes = keep("logit_maxes", logits.max(1, keepdim=True).values)
    norm_logits = keep("norm_logits", logits - logit_maxes)
    counts = keep("counts", norm_logits.exp())
    counts_sum = keep("counts_sum", counts.sum(1, keepdim=True))
    counts_sum_inv = keep("counts_sum_inv", counts_sum**-1)
    probs = keep("probs", counts * counts_sum_inv)
    logprobs = keep("logprobs", probs.log())
    picked = keep("picked", logprobs[rows, y])
    keep("loss", -picked.mean())
    return kept


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-12)], ids=["float32", "float64"])
def test_every_intermediate_gradient_agrees_with_pytorch(dtype: Any, tolerance: float) -> None:
    drawn = parameters(dtype)
    rng = np.random.default_rng(42)
    x, y, rows = rng.integers(0, CLASSES, (BATCH, CONTEXT)), rng.integers(0, CLASSES, BATCH), np.arange(BATCH)
    ours = {name: gg.tensor(value, requires_grad=True) for name, value in drawn.items()}
    theirs = {name: torch.tensor(value, requires_grad=True) for name, value in drawn.items()}
    kept = chunked(ours, gg.tensor(x), gg.tensor(y), gg.tensor(rows))
    expected = chunked(theirs, torch.tensor(x), torch.tensor(y), torch.tensor(rows))
    kept["loss"].backward()
    expected["loss"].backward()
    assert len(kept) == 26
    for name, tensor in {**kept, **ours}.items():
        reference = {**expected, **theirs}[name].grad.numpy()
        assert tensor.grad.dtype == dtype
        np.testing.assert_allclose(tensor.grad.numpy(), reference, atol=tolerance, rtol=10 * tolerance, err_msg=name)


def test_layers_agree_with_pytorch_over_fifty_steps() -> None:
    def build(lib: Any) -> Any:
        nn = lib.nn
        return nn.Sequential(
            nn.Embedding(CLASSES, WIDTH), nn.Flatten(), nn.Linear(CONTEXT * WIDTH, HIDDEN), nn.BatchNorm1d(HIDDEN),
            nn.Tanh(), nn.Linear(HIDDEN, CLASSES),
        )  # fmt: skip

    theirs = build(torch).double()
    ours = build(gg).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    optimizers = gg.optim.SGD(ours.parameters(), lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    rng = np.random.default_rng(1)
    for _ in range(50):
        x, y = rng.integers(0, CLASSES, (BATCH, CONTEXT)), rng.integers(0, CLASSES, BATCH)
        losses = []
        for lib, model, optimizer in ((gg, ours, optimizers[0]), (torch, theirs, optimizers[1])):
            loss = lib.nn.functional.cross_entropy(model(lib.tensor(x)), lib.tensor(y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-10)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-9, atol=1e-11, err_msg=name)
