"""Results that share memory with their argument: as in PyTorch, in eager and in compiled code.

Most cases are calls with parameters that change nothing, which can easily return a view or the argument itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from tests.ops.against_torch import torch

pytestmark = pytest.mark.filterwarnings("ignore")

Case = Callable[[Any, Any], Any]

SQUARE = np.arange(1.0, 10.0).reshape(3, 3)
IMAGE = np.arange(1.0, 17.0).reshape(1, 1, 4, 4)
ONE = np.array([[3.0]])


def whole(T: Any, n: int = 3) -> Any:
    return T.arange(n)


ON_SQUARES: dict[str, Case] = {
    "view": lambda T, x: x.view(9),
    "view same": lambda T, x: x.view(3, 3),
    "reshape": lambda T, x: x.reshape(9),
    "reshape same": lambda T, x: x.reshape(3, 3),
    "reshape transposed": lambda T, x: x.T.reshape(9),
    "flatten": lambda T, x: x.flatten(),
    "flatten same": lambda T, x: x[0].flatten(),
    "ravel": lambda T, x: x.ravel(),
    "unflatten": lambda T, x: x.unflatten(1, (3, 1)),
    "squeeze none": lambda T, x: x.squeeze(),
    "squeeze": lambda T, x: x.unsqueeze(0).squeeze(0),
    "unsqueeze": lambda T, x: x.unsqueeze(1),
    "T": lambda T, x: x.T,
    "mT": lambda T, x: x.mT,
    "transpose same": lambda T, x: x.transpose(0, 0),
    "permute same": lambda T, x: x.permute(0, 1),
    "movedim": lambda T, x: x.movedim(0, 1),
    "swapaxes": lambda T, x: x.swapaxes(0, 1),
    "expand same": lambda T, x: x.expand(3, 3),
    "expand": lambda T, x: x.expand(2, 3, 3),
    "broadcast_to": lambda T, x: T.broadcast_to(x, (3, 3)),
    "broadcast_tensors": lambda T, x: T.broadcast_tensors(x, T.ones(3, 3))[0],
    "atleast_2d": lambda T, x: T.atleast_2d(x),
    "atleast_3d": lambda T, x: T.atleast_3d(x),
    "diagonal": lambda T, x: x.diagonal(),
    "diag": lambda T, x: T.diag(x),
    "diag of one": lambda T, x: T.diag(x[0]),
    "narrow": lambda T, x: x.narrow(0, 0, 3),
    "select": lambda T, x: x.select(0, 1),
    "chunk": lambda T, x: x.chunk(1)[0],
    "split": lambda T, x: x.split(3)[0],
    "tensor_split": lambda T, x: T.tensor_split(x, 1)[0],
    "unbind": lambda T, x: x.unbind(0)[1],
    "index": lambda T, x: x[1],
    "index of a tensor": lambda T, x: x[T.tensor(1)],
    "ellipsis": lambda T, x: x[...],
    "empty slice": lambda T, x: x[:],
    "list": lambda T, x: x[[0, 1, 2]],
    "mask": lambda T, x: x[x > -1],
    "index_select": lambda T, x: x.index_select(0, whole(T)),
    "take": lambda T, x: T.take(x, T.arange(9)),
    "take_along_dim": lambda T, x: T.take_along_dim(x, T.zeros(3, 3, dtype=T.int64), 1),
    "gather": lambda T, x: x.gather(0, T.zeros(3, 3, dtype=T.int64)),
    "masked_select": lambda T, x: x.masked_select(x > -1),
    "masked_fill": lambda T, x: x.masked_fill(x < -1, 0.0),
    "where": lambda T, x: T.where(x > -1, x, x),
    "repeat": lambda T, x: x.repeat(1, 1),
    "repeat once": lambda T, x: x.repeat(1, 1, 1),
    "repeat rows": lambda T, x: x.repeat(2, 1),
    "tile": lambda T, x: T.tile(x, (1, 1)),
    "tile of none": lambda T, x: T.tile(x, ()),
    "repeat_interleave": lambda T, x: x.repeat_interleave(1, 0),
    "repeat_interleave flat": lambda T, x: x.repeat_interleave(1),
    "rot90 0": lambda T, x: T.rot90(x, 0),
    "rot90 4": lambda T, x: T.rot90(x, 4),
    "rot90": lambda T, x: T.rot90(x),
    "rot90 2": lambda T, x: T.rot90(x, 2),
    "rot90 3": lambda T, x: T.rot90(x, 3),
    "flip of none": lambda T, x: x.flip(()),
    "flip": lambda T, x: x.flip(0),
    "fliplr": lambda T, x: T.fliplr(x),
    "roll 0": lambda T, x: x.roll(0, 0),
    "roll": lambda T, x: x.roll(1, 0),
    "diff 0": lambda T, x: T.diff(x, n=0),
    "matrix_power 1": lambda T, x: T.linalg.matrix_power(x, 1),
    "matrix_power 0": lambda T, x: T.linalg.matrix_power(x, 0),
    "matrix_power 2": lambda T, x: T.linalg.matrix_power(x, 2),
    "multi_dot": lambda T, x: T.linalg.multi_dot([x, T.eye(3, dtype=T.float64)]),
    "pad 0": lambda T, x: T.nn.functional.pad(x, (0, 0)),
    "pad 0 circular": lambda T, x: T.nn.functional.pad(x[None], (0, 0), mode="circular"),
    "pad 0 reflect": lambda T, x: T.nn.functional.pad(x[None], (0, 0), mode="reflect"),
    "pad 0 replicate": lambda T, x: T.nn.functional.pad(x[None], (0, 0), mode="replicate"),
    "pad -1": lambda T, x: T.nn.functional.pad(x, (-1, 0)),
    "to": lambda T, x: x.to(T.float64),
    "to device": lambda T, x: x.to("cpu"),
    "type": lambda T, x: x.type(T.float64),
    "double": lambda T, x: x.double(),
    "type_as": lambda T, x: x.type_as(x),
    "cpu": lambda T, x: x.cpu(),
    "contiguous": lambda T, x: x.contiguous(),
    "contiguous transposed": lambda T, x: x.T.contiguous(),
    "clone": lambda T, x: x.clone(),
    "detach": lambda T, x: x.detach(),
    "data": lambda T, x: x.data,
    "real": lambda T, x: x.real,
    "conj": lambda T, x: x.conj(),
    "positive": lambda T, x: T.positive(x),
    "plus": lambda T, x: +x,
    "as_tensor": lambda T, x: T.as_tensor(x),
    "clamp": lambda T, x: x.clamp(-100.0, 100.0),
    "round": lambda T, x: x.round(),
    "floor": lambda T, x: x.floor(),
    "abs": lambda T, x: x.abs(),
    "times 1": lambda T, x: x * 1,
    "plus 0": lambda T, x: x + 0,
    "power 1": lambda T, x: x**1,
    "nan_to_num": lambda T, x: x.nan_to_num(),
    "dropout 0": lambda T, x: T.nn.functional.dropout(x, 0.0),
    "dropout eval": lambda T, x: T.nn.functional.dropout(x, 0.5, training=False),
    "alpha_dropout eval": lambda T, x: T.nn.functional.alpha_dropout(x, 0.5, training=False),
    "Dropout eval": lambda T, x: T.nn.Dropout(0.5).eval()(x),
    "Identity": lambda T, x: T.nn.Identity()(x),
    "Flatten": lambda T, x: T.nn.Flatten()(x),
    "relu": lambda T, x: T.nn.functional.relu(x),
    "leaky_relu 1": lambda T, x: T.nn.functional.leaky_relu(x, 1.0),
    "cat": lambda T, x: T.cat([x]),
    "cat of one with nothing": lambda T, x: T.cat([x, x[:0]]),
    "stack": lambda T, x: T.stack([x]),
    "hstack": lambda T, x: T.hstack([x]),
    "vstack": lambda T, x: T.vstack([x]),
    "sum of no dims": lambda T, x: x[None].sum(0),
    "mean of one": lambda T, x: x[None].mean(0),
    "prod of one": lambda T, x: x[None].prod(0),
    "amax of one": lambda T, x: x[None].amax(0),
    "max of one": lambda T, x: x[None].max(0)[0],
    "min of one": lambda T, x: x[None].min(0)[0],
    "median of one": lambda T, x: x[None].median(0)[0],
    "logsumexp of one": lambda T, x: x[None].logsumexp(0),
    "cumsum of one": lambda T, x: x[None].cumsum(0),
    "cumprod of one": lambda T, x: x[None].cumprod(0),
    "cummax of one": lambda T, x: x[None].cummax(0)[0],
    "sort of one": lambda T, x: x[None].sort(0)[0],
    "sort of sorted": lambda T, x: x.sort(1)[0],
    "topk of all": lambda T, x: x.topk(3)[0],
    "unique": lambda T, x: x.unique(),
    "tril": lambda T, x: x.tril(5),
    "triu": lambda T, x: x.triu(-5),
    "einsum same": lambda T, x: T.einsum("ij->ij", x),
    "einsum turned": lambda T, x: T.einsum("ij->ji", x),
    "einsum diagonal": lambda T, x: T.einsum("ii->i", x),
    "meshgrid": lambda T, x: T.meshgrid(x[0], x[0], indexing="ij")[0],
    "unfold": lambda T, x: x.unfold(0, 3, 1),
    "nonzero": lambda T, x: x[x.nonzero(as_tuple=True)],
    "scatter nothing": lambda T, x: x.scatter(0, T.zeros(0, 3, dtype=T.int64), 1.0),
    "index_fill nothing": lambda T, x: x.index_fill(0, T.zeros(0, dtype=T.int64), 1.0),
    "index_add nothing": lambda T, x: x.index_add(0, T.zeros(0, dtype=T.int64), x[:0]),
    "lerp 0": lambda T, x: x.lerp(x, 0.0),
    "addcmul 0": lambda T, x: x.addcmul(x, x, value=0.0),
    "block_diag": lambda T, x: T.block_diag(x),
    "maximum of itself": lambda T, x: T.maximum(x, x),
    "gradient": lambda T, x: T.gradient(x[0])[0],
    "dot of one": lambda T, x: x @ T.eye(3, dtype=T.float64),
    "softshrink 0": lambda T, x: T.nn.functional.softshrink(x, 0.0),
    "hardshrink 0": lambda T, x: T.nn.functional.hardshrink(x, 0.0),
    "threshold": lambda T, x: T.nn.functional.threshold(x, -9.0, 0.0),
    "batch_norm eval": lambda T, x: T.nn.functional.batch_norm(x, x[0] * 0, x[0] * 0 + 1, eps=0.0),
    "vsplit": lambda T, x: x.vsplit(1)[0] if hasattr(x, "vsplit") else x[:],
}
ON_IMAGES: dict[str, Case] = {
    "interpolate 1": lambda T, x: T.nn.functional.interpolate(x, scale_factor=1),
    "interpolate same": lambda T, x: T.nn.functional.interpolate(x, size=(4, 4)),
    "interpolate bilinear": lambda T, x: T.nn.functional.interpolate(x, size=(4, 4), mode="bilinear"),
    "interpolate bicubic": lambda T, x: T.nn.functional.interpolate(x, size=(4, 4), mode="bicubic"),
    "interpolate area": lambda T, x: T.nn.functional.interpolate(x, size=(4, 4), mode="area"),
    "Upsample 1": lambda T, x: T.nn.Upsample(scale_factor=1)(x),
    "adaptive_avg_pool2d": lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, (4, 4)),
    "adaptive_avg_pool2d of none": lambda T, x: T.nn.functional.adaptive_avg_pool2d(x, (None, None)),
    "avg_pool2d 1": lambda T, x: T.nn.functional.avg_pool2d(x, 1),
    "max_pool2d 1": lambda T, x: T.nn.functional.max_pool2d(x, 1),
    "lp_pool2d 1": lambda T, x: T.nn.functional.lp_pool2d(x, 1.0, 1),
    "pixel_shuffle 1": lambda T, x: T.nn.functional.pixel_shuffle(x, 1),
    "pixel_unshuffle 1": lambda T, x: T.nn.functional.pixel_unshuffle(x, 1),
    "unfold 1": lambda T, x: T.nn.functional.unfold(x, 1),
    "fold 1": lambda T, x: T.nn.functional.fold(x.reshape(1, 1, 16), (4, 4), 1),
    "ZeroPad2d": lambda T, x: T.nn.ZeroPad2d(0)(x),
    "ReflectionPad2d": lambda T, x: T.nn.ReflectionPad2d(0)(x),
    "Dropout2d eval": lambda T, x: T.nn.Dropout2d(0.5).eval()(x),
    "squeeze": lambda T, x: x.squeeze(),
}
ON_ONE: dict[str, Case] = {
    "sum": lambda T, x: x.sum(),
    "mean": lambda T, x: x.mean(),
    "max": lambda T, x: x.max(),
    "prod": lambda T, x: x.prod(),
    "norm": lambda T, x: x.norm(p=1),
    "trace": lambda T, x: x.trace(),
    "item by index": lambda T, x: x[0, 0],
    "squeeze": lambda T, x: x.squeeze(),
    "logsumexp": lambda T, x: x.logsumexp((0, 1)),
    "flip": lambda T, x: x.flip(0, 1),
    "matmul": lambda T, x: x @ T.ones(1, 1, dtype=T.float64),
    "cumsum": lambda T, x: x.cumsum(0),
    "sort": lambda T, x: x.sort()[0],
    "median": lambda T, x: x.median(),
    "quantile": lambda T, x: x.quantile(0.5),
    "det": lambda T, x: T.linalg.det(x),
    "inv": lambda T, x: T.linalg.inv(x),
    "kron": lambda T, x: T.kron(x, x * 0 + 1),
}
CASES = {
    f"{name} {kind}": (case, array)
    for kind, cases, array in (("3x3", ON_SQUARES, SQUARE), ("image", ON_IMAGES, IMAGE), ("1x1", ON_ONE, ONE))
    for name, case in cases.items()
}

# Where we differ from PyTorch on purpose: NumPy makes a number of all that an index of numbers picks.
DIFFERENT = {"index of a tensor 3x3": "an index that is a tensor is read when the program runs; it selects, and copies"}


def call(lib: Any, case: Case, array: Any) -> tuple[Any, Any, Any]:
    """Return argument, result, and the result after a write to the argument."""
    x = lib.tensor(array)
    y = case(lib, x)
    before = np.array(y.detach())
    x.add_(100.0)
    return x, before, np.array(y.detach())


@pytest.mark.parametrize("name", CASES)
def test_what_shares_memory_is_what_shares_it_in_pytorch(name: str) -> None:
    case, array = CASES[name]
    _, before, after = call(gg, case, array)
    _, expected_before, expected_after = call(torch, case, array)
    np.testing.assert_allclose(before, expected_before, rtol=1e-6)
    shares, expected = not np.array_equal(before, after), not np.array_equal(expected_before, expected_after)
    assert (shares != expected) == (name in DIFFERENT), f"shares memory: {shares}, in PyTorch {expected}"


AT_ONCE = 12


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("first", range(0, len(CASES), AT_ONCE))
def test_compiled_code_shares_what_eager_code_shares(first: int, backend: str) -> None:
    names = list(CASES)[first : first + AT_ONCE]
    some = [CASES[name] for name in names]

    def step(*xs: Any) -> Any:
        results = []
        for (case, _), x in zip(some, xs, strict=True):
            y = case(gg, x)
            x.add_(100.0)
            results.append((y * 1, y))
        return results

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = gg.compile(step, backend=backend)(*[gg.tensor(array) for _, array in some])
    for name, (case, array), results in zip(names, some, found, strict=True):
        _, _, expected = call(gg, case, array)
        for y in results:
            np.testing.assert_allclose(np.array(y.detach()), expected, rtol=1e-6, err_msg=name)
