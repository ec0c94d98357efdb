"""The dtype bfloat16: PyTorch's promotion and rounding, float32 inside ops and their rules, files, refusals."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F

BF16 = gg.bfloat16
EPS = 2.0**-8  # half the distance of neighbours, beside their size


def rounded(x: np.ndarray) -> np.ndarray:
    """Round to the nearest bfloat16 by integer arithmetic, a tie to the even one: the oracle of this file."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    up = bits + 0x7FFF + ((bits >> 16) & 1)
    return ((up >> 16) << 16).astype(np.uint32).view(np.float32)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def plain(x: Any) -> np.ndarray:
    return np.asarray(x.detach().numpy()).astype(np.float64)


def test_casts_round_to_the_nearest() -> None:
    x = drawn(1000) * np.float32(10.0) ** np.random.default_rng(1).integers(-30, 30, 1000).astype(np.float32)
    assert np.array_equal(plain(gg.tensor(x).bfloat16()), rounded(x).astype(np.float64))
    assert gg.tensor(x).to(BF16).float().dtype == np.float32
    assert gg.tensor([1.0], dtype=BF16).bfloat16().dtype == BF16


@pytest.mark.parametrize(
    ("other", "wanted"),
    [("float32", "float32"), ("float16", "float32"), ("float64", "float64"), ("int64", "bfloat16"),
     ("bool", "bfloat16"), ("uint8", "bfloat16"), ("complex64", "complex64"),
     (1.5, "bfloat16"), (2, "bfloat16"), (True, "bfloat16")],
)  # fmt: skip  # a table
def test_promotion_is_pytorchs(other: Any, wanted: str) -> None:
    x = gg.tensor([1.0, 2.0], dtype=BF16)
    beside = gg.tensor([1, 2]).to(np.dtype(other)) if isinstance(other, str) else other
    for y in (x * beside, beside * x, gg.where(x > 1, x, beside)):
        assert y.dtype.name == wanted
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    theirs = torch.ones(2, dtype=torch.bfloat16)
    theirs = theirs * (torch.ones(2, dtype=getattr(torch, other)) if isinstance(other, str) else other)
    assert str(theirs.dtype) == f"torch.{wanted}"


def test_what_a_tensor_does() -> None:
    x = gg.tensor([[1.0, 2.5], [-3.1415, 0.5]], dtype=BF16, requires_grad=True)
    assert repr(x.detach()) == "tensor([[ 1.    ,  2.5   ],\n        [-3.1406,  0.5   ]], dtype=bfloat16)"
    assert x[1, 0].item() == -3.140625
    assert (x > 1).tolist() == [[False, True], [False, False]]
    assert x.detach().numpy().dtype == BF16
    assert x.is_floating_point()
    assert x.is_signed()
    assert gg.zeros(2, dtype=BF16).dtype == gg.randn(2, dtype=BF16).dtype == gg.ones_like(x).dtype == BF16
    assert float(gg.finfo(BF16).eps) == 2.0**-7
    y = x.detach().clone()
    y += 1.0
    y[0] = 7.0
    assert y.dtype == BF16
    assert y[0].tolist() == [7.0, 7.0]
    assert gg.cat([y, y]).dtype == gg.stack([y, y]).dtype == y.masked_fill(y > 0, 0.5).dtype == BF16
    assert gg.tensor(np.array([1.5], BF16)).dtype == gg.from_numpy(np.array([1.5], BF16)).dtype == BF16
    with pytest.raises(TypeError, match="not a number"):
        gg.tensor(np.zeros(2, [("a", "f4")]))


def test_sums_are_in_float32() -> None:
    x = gg.ones(4096, dtype=BF16)
    assert x.sum().item() == 4096.0  # in bfloat16 itself, 256 + 1 is 256
    assert x.cumsum(0)[-1].item() == 4096.0
    assert (x @ x).item() == 4096.0
    assert x.mean().item() == 1.0


OPS: dict[str, Callable[..., Any]] = {
    "exp": lambda L, x: x.exp(), "tanh": lambda L, x: x.tanh(), "sigmoid": lambda L, x: x.sigmoid(),
    "divide": lambda L, x: x / (x * x + 1.5), "softmax": lambda L, x: x.softmax(-1), "max": lambda L, x: x.amax(-1),
    "log_softmax": lambda L, x: x.log_softmax(-1), "matmul": lambda L, x: x @ x.T, "sum": lambda L, x: x.sum(0),
    "getitem": lambda L, x: x[:, 1:3], "mean": lambda L, x: x.mean(1), "var": lambda L, x: x.var(1),
    "gelu": lambda L, x: L.gelu(x), "relu": lambda L, x: x.relu(), "layer_norm": lambda L, x: L.layer_norm(x, (6,)),
}  # fmt: skip  # a table


@pytest.mark.parametrize("name", OPS)
def test_ops_and_gradients_are_within_rounding_of_float64(name: str) -> None:
    """One rounding of the result; of a gradient, one for each op on its way, of which there are at most three."""
    op, x = OPS[name], rounded(drawn(5, 6))
    narrow = gg.tensor(x, dtype=BF16, requires_grad=True)
    exact = gg.tensor(x.astype(np.float64), requires_grad=True)
    y, truth = op(F, narrow), op(F, exact)
    assert y.dtype == BF16
    roundings = 3 if name == "divide" else 1
    np.testing.assert_allclose(plain(y), plain(truth), rtol=roundings * EPS, atol=1e-6)
    weights = rounded(drawn(*truth.shape, seed=3))
    (y * gg.tensor(weights, dtype=BF16)).sum().backward()
    (truth * gg.tensor(weights.astype(np.float64))).sum().backward()
    assert narrow.grad.dtype == BF16
    scale = np.abs(plain(exact.grad)).max()
    np.testing.assert_allclose(plain(narrow.grad), plain(exact.grad), rtol=4 * EPS, atol=4 * EPS * scale)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_compiled_steps_round_where_eager_mode_does(backend: str) -> None:
    def step(x: Any, w: Any) -> Any:
        return ((x @ w.T).tanh() * 0.3 + x[:, :1]).softmax(-1)

    x, w = gg.tensor(drawn(9, 7), dtype=BF16), gg.tensor(drawn(5, 7, seed=1), dtype=BF16)
    found, wanted = gg.compile(step, backend=backend, strict=True)(x, w), step(x, w)
    assert found.dtype == wanted.dtype == BF16
    np.testing.assert_allclose(plain(found), plain(wanted), rtol=2 * EPS, atol=1e-6)


PLACES, COLUMNS = np.array([0, 3, 1, 5, 2, 4]), np.array([[1], [7], [0], [3], [3], [5]])
# Forms of native code: moves, gathers out of loops, scatters, reductions, casts, products in shares, gradients.
NATIVE: tuple[Callable[[Any], Any], ...] = (
    lambda x: gg.cat([x, x * 2], 1), lambda x: gg.stack([x, x + 1]), lambda x: F.pad(x * 2, (1, 1)),
    lambda x: (x * 2).flip(0), lambda x: (x + 1).roll(2, 1), lambda x: (x * 2).gather(1, gg.tensor(COLUMNS)),
    lambda x: (x * 2)[gg.arange(6), gg.tensor(PLACES)], lambda x: (x * 2)[gg.tensor(PLACES)],
    lambda x: gg.where(x > 0, x, 0), lambda x: (x * 1).index_fill(0, gg.tensor([1]), 3.0), lambda x: x.amax(1),
    lambda x: (x * 2).argmax(1), lambda x: x.cumsum(1), lambda x: x.sum(), lambda x: x.tril(),
    lambda x: (x * 10).long(), lambda x: (x * 10).half(), lambda x: x > 0, lambda x: x.double(),
    lambda x: x[::2, 1:5].contiguous(),
    lambda x: F.conv2d(x.reshape(1, 1, 6, 8), x[:3, :3].reshape(1, 1, 3, 3)),
    lambda x: F.max_pool2d(x.reshape(1, 1, 6, 8), 2), lambda x: F.embedding(gg.tensor(PLACES), x),
    lambda x: x.clone().add_(1), lambda x: x[:6, :6].diagonal(), lambda x: x.unfold(1, 3, 2), lambda x: x @ x[0],
    gg.func.grad(lambda a: (a[gg.tensor(PLACES)] * a.gather(1, gg.tensor(COLUMNS))).sum()),
    gg.func.grad(lambda a: ((a.detach().repeat(100, 1) @ a.T) ** 2).sum()),
)  # fmt: skip  # a table


@pytest.mark.parametrize("threads", [1, 2])
def test_every_form_of_native_code_takes_it(threads: int) -> None:
    x = gg.tensor(drawn(6, 8), dtype=BF16)
    step = gg.compile(lambda x: [function(x) for function in NATIVE], strict=True, threads=threads)
    for number, (function, found) in enumerate(zip(NATIVE, step(x), strict=True)):
        wanted = function(x)
        assert found.dtype == wanted.dtype, number
        size = np.abs(plain(wanted)).max()
        np.testing.assert_allclose(plain(found), plain(wanted), rtol=0, atol=EPS * size, err_msg=str(number))


def test_native_casts_are_numpys() -> None:
    specials = np.array([0.0, -0.0, np.inf, -np.inf, 1.0039062, 1.0117188, 3.3895e38, 65504.0, 1e-30], np.float32)
    x = np.concatenate([drawn(100), specials])
    back = gg.compile(lambda x: x.to(BF16), strict=True)(gg.tensor(x))
    assert np.array_equal(back.numpy().view(np.uint16), x.astype(BF16).view(np.uint16))
    assert np.isnan(plain(gg.compile(lambda x: x.to(BF16), strict=True)(gg.full(20, float("nan"))))).all()
    again = gg.compile(lambda x: x.to(np.float32), strict=True)(back)
    assert np.array_equal(again.numpy(), rounded(x))


def test_files_both_ways(tmp_path: Any) -> None:
    file = io.BytesIO()
    values = gg.tensor(drawn(3, 2), dtype=BF16)
    gg.save({"w": values, "b": gg.ones(2)}, file)
    file.seek(0)
    back = gg.load(file)
    assert back["w"].dtype == BF16
    assert back["w"].shape == (3, 2)
    assert back["w"].tolist() == values.tolist()
    torch = pytest.importorskip("torch", reason="PyTorch reads and writes the same files")
    from safetensors.torch import load, save_file

    theirs = load(file.getvalue())["w"]
    assert theirs.dtype == torch.bfloat16
    assert theirs.float().tolist() == values.tolist()
    save_file({"w": theirs}, tmp_path / "theirs.safetensors")
    assert gg.load(tmp_path / "theirs.safetensors")["w"].tolist() == values.tolist()


def test_memory_is_shared_with_pytorch_both_ways() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is who it is exchanged with")
    ours = gg.tensor(drawn(2, 3), dtype=BF16)
    theirs = torch.from_dlpack(ours)
    assert theirs.dtype == torch.bfloat16
    assert theirs.tolist() == ours.tolist()
    theirs[0, 0] = 5.0
    assert ours[0, 0].item() == 5.0
    back = gg.from_dlpack(theirs.T)
    assert back.dtype == BF16
    assert back.tolist() == ours.T.tolist()
    copied = gg.tensor(theirs)
    theirs[0, 0] = 6.0
    assert back[0, 0].item() == 6.0
    assert copied[0, 0].item() == 5.0
    assert gg.from_dlpack(torch.ones(2)).dtype == np.float32


def test_result_types_and_checks() -> None:
    assert gg.result_type(gg.ones(1, dtype=BF16), 1.5) == gg.promote_types(BF16, np.int64) == BF16
    assert gg.promote_types(BF16, np.float16) == np.float32
    assert gg.promote_types(BF16, np.complex128) == np.complex128
    assert gg.promote_types(np.float16, np.float32) == np.float32
    x = gg.tensor(drawn(3), dtype=BF16, requires_grad=True)
    assert gg.autograd.gradcheck(lambda a: (a * a).sum(), (x,))
    assert gg.func.jvp(lambda a: a.tanh(), (x.detach(),), (x.detach(),))[1].dtype == BF16
    assert gg.vmap(lambda a: a.exp())(x.detach()).dtype == BF16


def test_layers_convert() -> None:
    layer = gg.nn.Linear(3, 2).bfloat16()
    assert layer.weight.dtype == BF16
    y = layer(gg.ones(4, 3, dtype=BF16))
    y.sum().backward()
    assert y.dtype == layer.weight.grad.dtype == BF16
