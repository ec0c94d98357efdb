"""Properties beyond the comparison of single layers: randomness, packing, rotation, transforms, summary."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.nn import functional as F
from glassgrad.nn.utils import rnn

# --- dropout --------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean_and_drops_the_share() -> None:
    gg.manual_seed(0)
    x = gg.ones(400, 500, requires_grad=True)
    y = nn.Dropout(0.3)(x)
    dropped = (y.detach().numpy() == 0).mean()
    assert dropped == pytest.approx(0.3, abs=0.005)
    assert set(np.unique(y.detach().numpy())) == {0, np.float32(1 / 0.7)}
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy())
    assert nn.Dropout(1.0)(x).detach().numpy().max() == 0
    assert nn.Dropout(0.3).eval()(x) is x


def test_dropout_of_channels_drops_all_or_nothing() -> None:
    gg.manual_seed(0)
    y = nn.Dropout2d(0.5)(gg.ones(50, 40, 3, 3)).numpy().reshape(2000, 9)
    assert (y.min(1) == y.max(1)).all()
    assert (y[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.05)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    gg.manual_seed(0)
    y = nn.AlphaDropout(0.2)(gg.randn(1000, 1000)).numpy()
    assert y.mean() == pytest.approx(0, abs=0.01)
    assert y.std() == pytest.approx(1, abs=0.01)


def test_attention_dropout_scales_weights() -> None:
    gg.manual_seed(0)
    q = gg.zeros(1, 400, 2)
    y = F.scaled_dot_product_attention(q, q, gg.ones(1, 400, 1), dropout_p=0.5).numpy()
    assert y.mean() == pytest.approx(1, abs=0.01)
    assert y.std() > 0.01


def test_dropout_is_the_same_compiled() -> None:
    layer = nn.Dropout(0.4)
    x = gg.ones(8, 8)
    compiled = gg.compile(layer.forward, backend="numpy")
    for seed in (1, 2):
        gg.manual_seed(seed)
        expected = [layer(x).numpy() for _ in range(3)]
        gg.manual_seed(seed)
        for one in expected:
            np.testing.assert_array_equal(compiled(x).numpy(), one)


def test_gumbel_softmax_draws_in_proportion() -> None:
    gg.manual_seed(0)
    logits = gg.tensor(np.log([[0.1, 0.2, 0.7]]).repeat(20000, 0).astype(np.float32), requires_grad=True)
    drawn = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert set(np.unique(drawn.detach().numpy())) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.detach().numpy().mean(0), [0.1, 0.2, 0.7], atol=0.02)
    (drawn * gg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0


# --- attention ------------------------------------------------------------------------------------


def test_a_row_that_may_look_nowhere_gives_zero_and_no_nan() -> None:
    q = gg.randn(2, 3, 4, requires_grad=True)
    mask = gg.tensor([[True, True, False], [False, False, False], [True, False, True]])
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert (y.detach().numpy()[:, 1] == 0).all()
    y.sum().backward()
    assert np.isfinite(q.grad.numpy()).all()


def test_attention_with_large_scores_and_shared_heads() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    from tests.ops.against_torch import conditions, near_truth

    rng = np.random.default_rng(0)
    single = [rng.normal(size=(2, heads, 5, 4)).astype(np.float32) for heads in (4, 2, 2)]
    double = [x.astype(np.float64) for x in single]

    def run(library: Any, inputs: list[Any], scale: float | None) -> list[Any]:
        tensors = [library.tensor(x, requires_grad=True) for x in inputs]
        attend = library.nn.functional.scaled_dot_product_attention
        y = attend(*tensors, is_causal=True, scale=scale, enable_gqa=True)
        (y * y).sum().backward()
        return [y.detach().numpy(), *(t.grad.numpy() for t in tensors)]

    for scale in (None, 60.0):
        worst = conditions(lambda inputs, scale=scale: run(torch, inputs, scale), double)
        truths = run(torch, double, scale)
        for name, y, truth, condition in zip("yqkv", run(gg, single, scale), truths, worst, strict=True):
            near_truth(y, truth, condition=condition, what=f"{name} with scale {scale}")


def test_rotary() -> None:
    """Against complex numbers: pair j at place t is multiplied by exp(i t base**(-2 j / dim))."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 7, 8))
    angles = np.arange(7)[:, None] * 10000.0 ** (-np.arange(0, 8, 2) / 8)
    for interleaved in (True, False):
        even, odd = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :4], x[..., 4:])
        turned = (even + 1j * odd) * np.exp(1j * angles)
        y = nn.RoPE(8, interleaved=interleaved)(gg.tensor(x)).numpy()
        found = (y[..., 0::2], y[..., 1::2]) if interleaved else (y[..., :4], y[..., 4:])
        np.testing.assert_allclose(found[0] + 1j * found[1], turned, rtol=1e-12)
    rope = nn.RoPE(8)
    later = rope(gg.tensor(x[..., 2:, :]), offset=2).numpy()
    np.testing.assert_allclose(later, rope(gg.tensor(x)).numpy()[..., 2:, :], rtol=1e-12)
    part = nn.RoPE(4)(gg.tensor(x)).numpy()
    np.testing.assert_array_equal(part[..., 4:], x[..., 4:])


# --- sequences of different lengths ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("in_order", [True, False])
def test_packed_sequences(kind: str, in_order: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    from tests.ops.against_torch import near_truth

    rng = np.random.default_rng(0)
    lengths = [5, 3, 3, 1] if in_order else [2, 5, 1, 4]
    x = rng.normal(size=(4, 5, 3)).astype(np.float32)
    start = rng.normal(size=(4, 4, 6)).astype(np.float32)
    torch.manual_seed(0)
    theirs = getattr(torch.nn, kind)(3, 6, 2, bidirectional=True)
    ours = getattr(nn, kind)(3, 6, 2, bidirectional=True)
    ours.load_state_dict(theirs.state_dict())

    def run(library: Any, layer: Any, tools: Any, dtype: Any) -> list[Any]:
        data = library.tensor(x.astype(dtype), requires_grad=True)
        states = library.tensor(start.astype(dtype), requires_grad=True)
        packed = tools.pack_padded_sequence(data, lengths, batch_first=True, enforce_sorted=in_order)
        packed, last = layer(packed, (states, states) if kind == "LSTM" else states)
        y, sizes = tools.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=6)
        last = last if isinstance(last, tuple) else (last,)
        ((y * y).sum() + sum((h * h).sum() for h in last)).backward()
        return [
            packed.data.detach().numpy(), packed.batch_sizes.numpy(), y.detach().numpy(), sizes.numpy(),
            *(h.detach().numpy() for h in last), data.grad.numpy(), states.grad.numpy(),
            *(p.grad.numpy() for p in layer.parameters()),
        ]  # fmt: skip  # a table

    truths = run(torch, theirs.double(), torch.nn.utils.rnn, np.float64)
    for at, (y, truth) in enumerate(zip(run(gg, ours, rnn, np.float32), truths, strict=True)):
        near_truth(y, truth, what=str(at))  # contractions: the condition is about 1


def test_padding_and_unpadding() -> None:
    rows = [gg.arange(3), gg.arange(5), gg.arange(1)]
    assert rnn.pad_sequence(rows, batch_first=True, padding_value=9).tolist()[2] == [0, 9, 9, 9, 9]
    assert rnn.pad_sequence(rows, padding_side="left").shape == (5, 3)
    packed = rnn.pack_sequence(rows, enforce_sorted=False)
    assert packed.data.tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 4]
    assert [one.tolist() for one in rnn.unpack_sequence(packed)] == [one.tolist() for one in rows]
    with pytest.raises(ValueError, match="longest first"):
        rnn.pack_padded_sequence(gg.zeros(5, 2), [3, 5])


# --- transforms -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU()), (5, 3)),
        (lambda: nn.LSTM(3, 4, batch_first=True), (2, 5, 3)),
        (lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2)), (1, 2, 6, 6)),
        (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), (2, 3, 4)),
        (lambda: nn.GroupNorm(2, 4), (2, 4, 5)),
    ],
    ids=["mlp", "lstm", "cnn", "transformer", "group norm"],
)
def test_per_example_gradients_by_vmap(layer: Any, shape: tuple[int, ...]) -> None:
    gg.manual_seed(3)
    model = layer()
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    batch = gg.tensor(np.random.default_rng(0).normal(size=(3, *shape)).astype(np.float32))

    def loss(values: Any, x: Any) -> Any:
        y = gg.func.functional_call(model, values, (x,))
        y = y[0] if isinstance(y, tuple) else y
        return (y * y).sum()

    together = gg.func.vmap(gg.func.grad(loss), in_dims=(None, 0))(parameters, batch)
    for at in range(3):
        model.zero_grad()
        y = model(batch[at])
        y = y[0] if isinstance(y, tuple) else y
        (y * y).sum().backward()
        for name, p in model.named_parameters():
            np.testing.assert_allclose(together[name][at].numpy(), p.grad.numpy(), rtol=2e-4, atol=2e-5)


def test_second_order_through_fused_layers() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 1)).double()
    x = gg.tensor(np.random.default_rng(0).normal(size=(2, 3)))
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(values: Any) -> Any:
        return (gg.func.functional_call(model, values, (x,)) ** 2).sum()

    direction = {name: gg.ones_like(value) for name, value in parameters.items()}
    _, found = gg.func.jvp(gg.func.grad(loss), (parameters,), (direction,))
    step = 1e-6
    ahead, behind = (
        gg.func.grad(loss)({name: value + sign * step for name, value in parameters.items()}) for sign in (1, -1)
    )
    for name, value in found.items():
        expected = (ahead[name].numpy() - behind[name].numpy()) / (2 * step)
        np.testing.assert_allclose(value.numpy(), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_parameters_with_equal_gradients_each_get_theirs(backend: str) -> None:
    """The two biases of a recurrent layer: one value is written to several places."""
    cell = nn.RNNCell(3, 4)
    x, h = gg.randn(2, 3), gg.randn(2, 4)

    def step(x: Any, h: Any) -> Any:
        loss = (cell(x, h) ** 2).sum()
        loss.backward()
        return loss

    step(x, h)
    expected = [p.grad.numpy().copy() for p in cell.parameters()]
    cell.zero_grad()
    gg.compile(step, backend=backend)(x, h)
    np.testing.assert_array_equal(expected[2], expected[3])
    for p, g in zip(cell.parameters(), expected, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-5, atol=1e-6)


# --- gradients of a loop --------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [2.0, 1.0, math.inf, 3.0])
def test_clipping(norm: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for shape in ((3, 4), (5,), ())]
    for limit in (0.5, 100.0):
        found = []
        for library in (gg, torch):
            parameters = [library.zeros(x.shape, dtype=library.float64) for x in arrays]
            for p, x in zip(parameters, arrays, strict=True):
                p.requires_grad = True
                p.grad = library.tensor(x)
            parameters.append(library.zeros(2))  # without a gradient
            total = library.nn.utils.clip_grad_norm_(parameters, limit, norm_type=norm)
            found.append([float(total), *(p.grad.numpy().copy() for p in parameters[:3])])
            library.nn.utils.clip_grad_value_(parameters, 0.1)
            found[-1].extend(p.grad.numpy() for p in parameters[:3])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


def test_clipping_compiled_and_a_norm_that_is_not_finite() -> None:
    p = gg.tensor([3.0, 4.0], requires_grad=True)

    @gg.compile(backend="numpy")
    def step() -> Any:
        p.grad = None
        (p * p / 2).sum().backward()
        total = nn.utils.clip_grad_norm_([p], 1.0)
        nn.utils.clip_grad_value_([p], 0.7)
        return total

    assert step().item() == 5
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.7], rtol=1e-5)
    p.grad = gg.tensor([np.nan, 1.0])
    with pytest.raises(RuntimeError, match="norm of all gradients is nan"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector() -> None:
    model = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (9,)
    nn.utils.vector_to_parameters(gg.arange(9).float(), model.parameters())
    assert model.bias.tolist() == [6, 7, 8]


# --- summary --------------------------------------------------------------------------------------


def test_summary_counts_parameters_and_products() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 16, 10),
    ).requires_grad_(True)
    model[0].requires_grad_(False)
    found = nn.summary(model, (2, 3, 8, 8))
    assert found.parameters == 8 * 27 + 8 + 16 + 1290
    assert found.trainable == 16 + 1290
    by_name = {row.name: row for row in found.rows}
    assert by_name["0"].output == [(2, 8, 8, 8)]
    assert by_name["0"].flops == 2 * 8 * 64 * (2 * 27 + 1)
    assert by_name["5"].flops == 2 * 10 * (2 * 128 + 1)
    assert by_name[""].parameters == 0
    text = str(found)
    assert "0: Conv2d" in text
    assert "1,530 parameters, 224 of them frozen" in text
    assert model.training
    assert model[0]._hooks is None or not model[0]._hooks.after


def test_summary_of_a_model_with_several_inputs_prints_with_rich() -> None:
    from rich.console import Console

    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    x = gg.zeros(2, 5, 8)
    found = nn.summary(attention, x, x, x)
    assert found.rows[0].flops == 2 * 8 * 8 * 10 * 3 + 2 * 25 * (4 * 8 + 5 * 2)
    out = io.StringIO()
    Console(file=out, width=100).print(found)
    assert "MultiheadAttention" in out.getvalue()
    lstm = nn.summary(nn.LSTM(3, 4), (5, 2, 3))
    assert lstm.rows[0].output == [(5, 2, 4), (1, 2, 4), (1, 2, 4)]
    assert lstm.flops == 2 * 10 * (16 * 3 + 16 * 4)


def test_normalize_writes_where_it_is_told() -> None:
    x = gg.tensor([[3.0, 4.0]])
    out = gg.zeros(1, 2)
    assert gg.nn.functional.normalize(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), [[0.6, 0.8]], rtol=1e-6)
