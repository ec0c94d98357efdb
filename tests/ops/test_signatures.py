"""PyTorch's forms of calls and NumPy's names of arguments, with PyTorch's values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import as_tuple, compare, real, torch

# Programs of (lib, x, y): they run in both libraries as they stand. x is (3, 4), y is (3, 4).
CALLS: dict[str, Any] = {
    "alpha": lambda lib, x, y: lib.add(x, y, alpha=2) + lib.sub(x, y, alpha=0.5) + x.add(other=y) + lib.rsub(x, y),
    "rounding": lambda lib, x, y: (
        lib.div(x, y, rounding_mode="floor") + lib.div(x, y, rounding_mode="trunc") * 2 + x / y
    ),
    "input keyword": lambda lib, x, y: (
        lib.sum(input=x, dim=1, keepdim=True) + lib.mul(input=x, other=y) + lib.exp(input=x)
    ),
    "sum": lambda lib, x, y: x.sum() + x.sum(0).sum() + x.sum((0, 1)) + x.sum(dim=-1, keepdim=True).sum(),
    "mean var std": lambda lib, x, y: (
        x.mean(-1) + x.var(1) + x.std(dim=1) + x.var(1, unbiased=False) + x.std(1, correction=0)
    ),
    "var old forms": lambda lib, x, y: x.var(False) + x.var(0, False).sum() + x.std(0, True, True).sum(),
    "var_mean": lambda lib, x, y: lib.var_mean(x, 1)[0] * lib.std_mean(x, dim=1)[1],
    "max min": lambda lib, x, y: x.max(1).values + x.min(dim=1)[0] + lib.max(x, y).sum(1) + x.max() + x.amax((0, 1)),
    "clamp": lambda lib, x, y: (
        x.clamp(-0.5, 0.5) + x.clamp(min=0) + x.clamp(max=0.3) + lib.clamp(x, min=y) + x.clamp_min(0.1)
    ),
    "norm": lambda lib, x, y: x.norm() + x.norm(1) + x.norm(p=3, dim=1).sum() + x.norm(dim=0, keepdim=True).sum(),
    "view": lambda lib, x, y: x.view(-1)[:6].reshape(2, 3).T.flatten() * x.view(4, 3).permute(1, 0).reshape((12,))[:6],
    "transposes": lambda lib, x, y: x.t() * x.transpose(0, 1) + x.mT.swapaxes(0, 1).T + x.movedim(0, 1),
    "expand": lambda lib, x, y: (
        x[:, None].expand(-1, 2, -1) * x.unsqueeze(1).expand(3, 2, 4) + x.expand(2, 3, 4).sum(0)[:, None]
    ),
    "expand_as": lambda lib, x, y: x[:1].expand_as(y) * y + x.view_as(y) + x.reshape_as(y),
    "repeat": lambda lib, x, y: x.repeat(2, 1, 3).sum(0) + lib.tile(x, (1, 3)) + x.tile(3),
    "repeat_interleave": lambda lib, x, y: x.repeat_interleave(2, dim=1).sum(0)[:3] + lib.repeat_interleave(x, 2)[:3],
    "stacking": lambda lib, x, y: (
        lib.cat([x, y], dim=1) + lib.cat((y, x), -1) + lib.hstack([x, y]) + lib.stack([x, y], 1).view(3, 8)
    ),
    "vstack": lambda lib, x, y: lib.vstack([x, y]) + lib.concat([x, y]) + lib.dstack([x, y]).sum(-1).repeat(2, 1),
    "split": lambda lib, x, y: (
        x.split(3, dim=1)[1] + x.chunk(2, 1)[0][:, :1] + x.split([1, 3], 1)[0] + lib.tensor_split(x, 2, 1)[1][:, :1]
    ),
    "unbind": lambda lib, x, y: x.unbind(1)[2] * lib.unbind(y)[1][:3] + x.narrow(1, 1, 2).sum(1) + x.select(1, 0),
    "flip roll": lambda lib, x, y: (
        x.flip(0) + x.flip(dims=(0, 1)) + lib.flip(x, [1]) + x.roll(1, 0) + x.roll((1, 2), (0, 1)) + x.roll(5)
    ),
    "rot90": lambda lib, x, y: lib.rot90(x, 1, (0, 1)) + lib.rot90(x, -1) + lib.fliplr(x).T + lib.flipud(x).T,
    "diag": lambda lib, x, y: (
        x.diag() + x.diagonal(offset=1)[:3] + lib.diag(x[0, :3]).sum(0) + lib.diag_embed(x)[:, 1, 1]
    ),
    "tril": lambda lib, x, y: x.tril() + lib.triu(x, diagonal=1) + x.tril(-1),
    "unfold": lambda lib, x, y: x.unfold(1, 2, 1) * lib.ones(2, dtype=x.dtype) + x.unfold(0, 3, 1).sum(),
    "meshgrid": lambda lib, x, y: (
        lib.meshgrid(x[0], y[:, 0], indexing="xy")[0] * lib.meshgrid(x[0], y[:, 0], indexing="xy")[1]
    ),
    "diff": lambda lib, x, y: (
        lib.diff(x) + lib.diff(x, dim=0).sum() + lib.diff(x, n=2).sum() + lib.diff(x, prepend=y[:, :1]).sum()
    ),
    "scans": lambda lib, x, y: (
        x.cumsum(0) + x.cumsum(dim=1) * x.cumprod(1) + lib.logcumsumexp(x, 1) + x.cummax(0).values + x.cummin(1)[0]
    ),
    "sort": lambda lib, x, y: x.sort().values + x.sort(0, descending=True)[0] * x.sort(dim=1, descending=True).values,
    "topk": lambda lib, x, y: (
        x.topk(2)[0] + lib.topk(x, 2, dim=1, largest=False).values + x.kthvalue(2, 1, keepdim=True).values
    ),
    "median": lambda lib, x, y: (
        x.median()
        + x.median(1).values
        + lib.quantile(x, 0.3)
        + lib.quantile(x, lib.tensor([0.1, 0.6], dtype=x.dtype), dim=1).sum(0)
    ),
    "prod": lambda lib, x, y: x.prod() + x.prod(1) + lib.prod(x, dim=0, keepdim=True).sum(),
    "nan": lambda lib, x, y: lib.nansum(x, 1) + lib.nanmean(x, dim=1) + lib.nan_to_num(x, nan=1.0).sum(1),
    "logsumexp": lambda lib, x, y: (
        x.logsumexp(1) + lib.logsumexp(x, dim=(0, 1)) + x.softmax(-1).sum() + x.log_softmax(dim=0).sum()
    ),
    "lerp": lambda lib, x, y: (
        lib.lerp(x, y, 0.3) + x.lerp(y, x) + lib.addcmul(x, x, y, value=0.5) + lib.addcdiv(x, x, y, value=2)
    ),
    "where": lambda lib, x, y: lib.where(x > 0, x, y) + x.where(x > 0, y) + lib.where(x > 0, x, 0.0),
    "comparisons": lambda lib, x, y: x * (x.gt(0) & x.lt(1)) + y * (x.ge(y) | x.eq(y)) + x * (~(x != y)),
    "special": lambda lib, x, y: (
        lib.erf(x) + lib.lgamma(y.abs() + 1) + lib.digamma(y.abs() + 1) + lib.xlogy(x, y.abs()) + lib.logit(x.sigmoid())
    ),
    "types": lambda lib, x, y: (
        x.float().double() + x.to(lib.float64) + x.type_as(y) + x.contiguous() + x.clone() + x.cpu()
    ),
    "powers": lambda lib, x, y: (
        x.pow(2) + lib.pow(x.abs(), 1.5) + lib.pow(2, x) + x.square() + x**3 + 2**x + (x * x + 1).rsqrt()
    ),
    "reversed": lambda lib, x, y: 1 - x + 2 / (x.abs() + 1) + 3 * x + 1.5 + x + (-x) % 2,
    "outer": lambda lib, x, y: lib.outer(x[0], y[0]) + lib.dot(x[0], y[1]) + x.T @ y,
    "broadcast": lambda lib, x, y: sum(lib.broadcast_tensors(x[:1], y)) + lib.broadcast_to(x[0], (3, 4)),
    "flatten": lambda lib, x, y: x.view(3, 2, 2).flatten(1) * x.flatten().unflatten(0, (3, -1)) + x.ravel().view(3, 4),
    "squeeze": lambda lib, x, y: (
        x.unsqueeze(0).squeeze() + x[:, :, None].squeeze(-1) + x[None, :, None].squeeze((0, 2))
    ),
    "activations": lambda lib, x, y: (
        lib.nn.functional.gelu(x, approximate="tanh")
        + lib.nn.functional.leaky_relu(x, 0.2)
        + lib.nn.functional.elu(x, alpha=0.5)
        + lib.nn.functional.softplus(x, beta=2)
        + lib.nn.functional.hardtanh(x, -0.5, 0.5)
        + lib.nn.functional.silu(x)
        + lib.nn.functional.mish(x)
        + lib.nn.functional.selu(x)
        + lib.relu(x)
        + lib.sigmoid(x)
    ),
    "names of functional": lambda lib, x, y: (
        sum(
            getattr(lib.nn.functional, name)(input=x)
            for name in ("gelu", "softplus", "logsigmoid", "sigmoid", "tanh", "softsign", "tanhshrink", "hardshrink")
        )
        + lib.nn.functional.pad(input=x, pad=(0, 0))
        + lib.nn.functional.glu(input=x, dim=1).repeat(1, 2)
    ),
    "names of linalg": lambda lib, x, y: (
        lib.linalg.solve(A=x[:, :3], B=y)
        + lib.linalg.norm(input=x, ord=2, dtype=lib.float64)
        + lib.linalg.inv(A=x[:, :3]) @ y
        + lib.linalg.vecdot(x=x, y=y)[:, None]
        + lib.linalg.pinv(x, atol=1.0).T
        + lib.linalg.diagonal(x.reshape(2, 2, 3)).sum()
        + lib.linalg.cross(input=x[:, :3], other=y[:, :3]).sum()
    ),
    "names of products": lambda lib, x, y: (
        lib.mm(x, mat2=y.T)
        + lib.addmm(x[:, :3], mat1=x, mat2=y.T)
        + lib.outer(x[:, 0], vec2=y[:, 1])
        + lib.mv(x, vec=y[0])
        + lib.dot(x[0], tensor=y[0])
        + lib.inner(x, other=y)
        + lib.kron(x[:, :1], other=y[:1, :3])
    ),
    "names of the rest": lambda lib, x, y: (
        lib.where(condition=x > 0, input=x, other=y)
        + lib.max(x, other=y)
        + lib.min(input=x, other=y)
        + lib.split(tensor=x, split_size_or_sections=[1, 3], dim=1)[0]
        + lib.tensor_split(x, sections=3)[0]
        + lib.tensor_split(x, indices=(1,))[0]
        + lib.swapaxes(x, axis0=0, axis1=1).T
        + lib.full_like(input=x, fill_value=2)
        + lib.broadcast_to(x[0], size=(3, 4))
        + lib.softmax(x, 0, lib.float64)
        + lib.log_softmax(x, 1, lib.float64)
    ),
    "bits": lambda lib, x, y: x + y.detach().view(lib.int32).sum(1, keepdim=True) % 7 + y.detach().view(lib.int64) % 5,
    "several": lambda lib, x, y: lib.atleast_2d([x[0], x[1]])[1] + lib.atleast_3d(x, y)[1][..., 0],
    "empty": lambda lib, x, y: (
        x + lib.nan_to_num(x[:0].median()) + lib.cat([lib.zeros(0, dtype=x.dtype), y], 1) + (x[:, :0] @ y[:0])
    ),
}
# The same with whole numbers: i is (3, 4) of uint8, k int64, x as above.
WHOLE: dict[str, Any] = {
    "shifts": lambda lib, i, k, x: (i << 1) + (i >> 2) + (1 << k % 3),
    "softmax": lambda lib, i, k, x: i.double().softmax(0) * 0 + lib.softmax(i.double(), 0) + lib.logsumexp(i, 0),
    "wrapping": lambda lib, i, k, x: lib.addcmul(x, i, i, value=2) + lib.addcmul(x, i, k),
    "filling": lambda lib, i, k, x: (i > 3).masked_fill(k > 0, 1) | (k.masked_fill(k > 0, 2.0) == 2),
    "sets": lambda lib, i, k, x: lib.isin(k, k[0], invert=True) | lib.isin(elements=i, test_elements=i[1]),
    "differences of truth": lambda lib, i, k, x: lib.diff(k > 0),
    "over no dimension": lambda lib, i, k, x: k.all(dim=()) | lib.any(x, dim=()),
    "numbers of a choice": lambda lib, i, k, x: lib.where(k > 0, 1.0, 0.5),
    "runs": lambda lib, i, k, x: lib.unique_consecutive(k.clamp(0, 1), return_inverse=True, return_counts=True, dim=0),
    "histogram": lambda lib, i, k, x: lib.histogram(x.float().detach(), 4, range=(-2.0, 2.0), density=True),
}


@pytest.mark.parametrize("name", WHOLE)
def test_calls_of_whole_numbers(name: str) -> None:
    i = np.array([[3, 200, 17, 0], [9, 9, 255, 1], [4, 128, 2, 90]], np.uint8)
    k = np.array([[1, 0, -3, 2], [1, 0, -3, 2], [0, 5, 1, -1]])
    found = WHOLE[name](gg, gg.tensor(i), gg.tensor(k), gg.tensor(real(3, 4)))
    expected = WHOLE[name](torch, torch.tensor(i), torch.tensor(k), torch.tensor(real(3, 4)))
    for y, y_expected in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert y.shape == tuple(y_expected.shape)
        assert y.dtype.kind == y_expected.numpy().dtype.kind or name == "shifts"
        np.testing.assert_allclose(y.numpy(), y_expected.numpy(), rtol=1e-6)
    assert name != "numbers of a choice" or found.dtype == np.float32


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    program = CALLS[name]
    ours, theirs = (lambda x, y, lib=lib: program(lib, x, y) + 0 * (x.sum() + y.sum()) for lib in (gg, torch))
    compare(ours, theirs, real(3, 4), real(3, 4, seed=1))


PADS: list[tuple[Any, ...]] = [
    ((1, 2),),
    ((1, 0, 2, 1),),
    ((1, 2), "constant", 3.0),
    ((-1, 2),),
    ((2, 1), "reflect"),
    ((2, 2, 1, 0), "reflect"),
    ((1, 2), "replicate"),
    ((3, 1), "circular"),
    ((0, -1, 1, 1),),
]


@pytest.mark.parametrize("arguments", PADS, ids=str)
def test_padding_as_pytorch(arguments: tuple[Any, ...]) -> None:
    compare(lambda x: gg.pad(x, *arguments), lambda x: torch.nn.functional.pad(x, *arguments), real(2, 3, 4))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "symmetric"])
def test_padding_as_numpy(mode: str) -> None:
    x = real(3, 4)
    ours = gg.pad(gg.tensor(x), ((1, 2), (2, 0)), mode=mode).numpy()
    np.testing.assert_array_equal(ours, np.pad(x, ((1, 2), (2, 0)), mode=mode))


def test_numpys_names_of_arguments() -> None:
    x = gg.tensor(real(3, 4))
    a = x.numpy()
    np.testing.assert_allclose(x.sum(axis=0, keepdims=True).numpy(), a.sum(axis=0, keepdims=True))
    np.testing.assert_allclose(x.std(axis=1, ddof=0).numpy(), a.std(axis=1))
    np.testing.assert_allclose(x.max(axis=(0, 1)).numpy(), a.max())
    np.testing.assert_allclose(x.clip(a_min=-0.5, a_max=0.5).numpy(), a.clip(-0.5, 0.5))
    np.testing.assert_allclose(gg.concatenate([x, x], axis=1).numpy(), np.concatenate([a, a], axis=1))
    np.testing.assert_allclose(gg.take(x, gg.tensor([0, 2]), axis=0).numpy(), a[[0, 2]])
    np.testing.assert_allclose(x.reshape(shape=(4, 3)).numpy(), a.reshape(4, 3))
    np.testing.assert_allclose(x.permute(dims=(1, 0)).numpy(), a.T)
    np.testing.assert_allclose(x.astype(np.float32).numpy(), a.astype(np.float32))
    np.testing.assert_allclose(gg.expand_dims(x, axis=1).numpy(), a[:, None])


def test_unknown_keywords_are_refused_with_the_nearest() -> None:
    x = gg.ones(2)
    with pytest.raises(errors.KindError, match=r"unexpected keyword 'keepdimz'[\s\S]*did you mean 'keepdim'"):
        x.sum(keepdimz=True)
    with pytest.raises(errors.KindError, match=r"add\(out=...\) is not possible"):
        gg.add(x, x, out=gg.zeros(2))
    with pytest.raises(TypeError):
        gg.exp(x, x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: gg.div(x, 2, rounding_mode="up"),
        lambda x: x.clip(),
        lambda x: gg.pad(x, (1, 1), "mirror"),
        lambda x: gg.pad(x, (9, 9), "reflect"),
        lambda x: x.topk(9),
        lambda x: x.kthvalue(0),
        lambda x: gg.gelu(x, "fast"),
        lambda x: x.narrow(0, 1, 5),
        lambda x: x.scatter_reduce(0, gg.tensor([0]), x[:1], "median"),
        lambda x: x.norm("nuc2"),
        lambda x: gg.meshgrid(x, indexing="yx"),
        lambda x: gg.quantile(x, 0.5, interpolation="cubic"),
        lambda x: x.unfold(0, 9),
        lambda x: gg.glu(x[:3]),
        lambda x: gg.cat([]),
        lambda x: x.expand(-1, 4),
        lambda x: x[:3].view(gg.float64),
        lambda x: gg.tensor_split(x, 0),
        lambda x: gg.searchsorted(x, x, side="middle"),
    ],
)
def test_options_that_cannot_be(call: Any) -> None:
    with pytest.raises(errors.ArgumentError, match=r"is not possible|Expected"):
        call(gg.ones(4))


def test_conversions_and_descriptions() -> None:
    x = gg.ones(2, 3, requires_grad=True)
    assert [x.double().dtype, x.half().dtype, x.long().dtype, x.int().dtype, x.bool().dtype] == [
        np.dtype(name) for name in ("f8", "f2", "i8", "i4", "?")
    ]
    x.double().sum().backward()
    assert x.grad.dtype == np.float32
    assert x.to("cpu") is x
    assert x.to(gg.float64, copy=True).dtype == gg.float64
    assert (str(x.device), x.is_cuda, x.is_floating_point(), x.nelement(), x.ndimension()) == ("cpu", False, True, 6, 2)
    assert x.T.stride() == (1, 3)
    assert not x.T.is_contiguous()
    assert x.T.contiguous().stride() == (2, 1)
    assert x.new_zeros(2).dtype == x.dtype
    assert x.double().new_full((2,), 3).tolist() == [3.0, 3.0]
    assert gg.bool == np.dtype(bool)
    assert gg.equal(x, gg.ones(2, 3)) is True
    assert gg.equal(x, gg.ones(3)) is False
    for wanted in (x.cuda, lambda: x.to("cuda:0"), lambda: x.new_zeros(2, device="cuda")):
        with pytest.raises(errors.ArgumentError, match="computes on the cpu"):
            wanted()


def test_companions_without_a_derivative() -> None:
    x = np.array([0.5, 2.0, 1.0, 2.0])
    t, u = gg.tensor(x), torch.tensor(x)
    edges = np.array([0.0, 1.0, 2.0])
    assert gg.searchsorted(gg.tensor(edges), t).tolist() == torch.searchsorted(torch.tensor(edges), u).tolist()
    assert (
        gg.bucketize(t, gg.tensor(edges), right=True).tolist()
        == torch.bucketize(u, torch.tensor(edges), right=True).tolist()
    )
    assert gg.bincount(gg.tensor([1, 3, 1])).tolist() == [0, 2, 0, 1]
    assert gg.histc(t, 4, 0, 2).tolist() == torch.histc(u, 4, 0, 2).tolist()
    assert gg.isin(t, gg.tensor([2.0])).tolist() == [False, True, False, True]
    assert gg.count_nonzero(gg.tensor([[0, 1], [2, 0]]), dim=0).tolist() == [1, 1]
    assert t.isclose(t + 1e-9).all()
    assert gg.allclose(t, t)
    assert (t.argmax().item(), t.argmin(dim=0).item()) == (1, 0)
    assert gg.signbit(-t).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: gg.zeros(2, **k),
        lambda **k: gg.eye(2, **k),
        lambda **k: gg.linspace(0, 1, 3, **k),
        lambda **k: gg.arange(3, **k),
        lambda **k: gg.full((2,), 1.0, **k),
        lambda **k: gg.tensor([1.0], **k),
        lambda **k: gg.as_tensor(gg.ones(2), **k),
        lambda **k: gg.zeros_like(gg.ones(2), **k),
        lambda **k: gg.ones_like(gg.ones(2), **k),
        lambda **k: gg.full_like(gg.ones(2), 3.0, **k),
        lambda **k: gg.empty_like(gg.ones(2), **k),
        lambda **k: gg.rand(2, **k),
        lambda **k: gg.randn(2, **k),
        lambda **k: gg.randint(3, (2,), **k),
        lambda **k: gg.randperm(3, **k),
    ],
)
def test_whatever_makes_a_tensor_takes_the_only_device(make: Any) -> None:
    for device in ("cpu", "cpu:0", gg.device("cpu"), None):
        assert make(device=device).shape == make().shape
    with pytest.raises(errors.ArgumentError, match="'cuda' is not available"):
        make(device="cuda")


@pytest.mark.parametrize("make", [gg.zeros, gg.ones, gg.empty, gg.rand, gg.randn], ids=lambda make: make.__name__)
def test_sizes_by_name(make: Any) -> None:
    assert make(size=(2, 3)).shape == make(2, 3).shape == make((2, 3)).shape == make([2, 3]).shape == (2, 3)


def test_as_tensor_with_a_device_keeps_the_history() -> None:
    x = gg.ones(2, requires_grad=True)
    assert gg.as_tensor(x * 2, device="cpu").requires_grad


def test_checkpoint_is_the_function() -> None:
    x = gg.tensor(2.0, requires_grad=True)
    gg.checkpoint(gg.exp, x).backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(float(np.exp(2)), rel=1e-6)
