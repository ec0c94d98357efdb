"""Tensors and other libraries: DLPack, pickle, copy, einops, the array API."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

torch = pytest.importorskip("torch", reason="PyTorch is the other side of the exchange")


# --- memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
def test_dlpack_both_ways_without_a_copy(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    ours = gg.from_numpy(array)
    theirs = torch.from_dlpack(ours)
    assert theirs.data_ptr() == ours.data_ptr()
    theirs[0, 0] = 1
    assert ours[0, 0].item() == 1
    back = gg.from_dlpack(torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)).T)
    assert back.shape == (3, 2)
    source = torch.ones(3)
    shared = gg.from_dlpack(source)
    source[1] = 5
    assert shared.tolist() == [1.0, 5.0, 1.0]
    shared.mul_(2)
    assert source.tolist() == [2.0, 10.0, 2.0]


def test_numbers_in_another_order_of_bytes_are_converted_or_refused() -> None:
    swapped = np.arange(3).astype(np.dtype("float32").newbyteorder())
    for made in (gg.tensor(swapped), gg.as_tensor(swapped), gg.Tensor(swapped)):
        assert made.array.dtype.isnative
        assert made.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(errors.KindError, match="from_numpy shares the array's memory and cannot share dtype"):
        gg.from_numpy(swapped)
    for nothing in (np.array(["a"]), np.array([None]), np.zeros(1, "M8[s]")):
        for take in (gg.tensor, gg.Tensor, gg.from_numpy):
            with pytest.raises(errors.KindError):
                take(nothing)


def test_dlpack_refuses_memory_that_runs_backwards() -> None:
    torch = pytest.importorskip("torch", reason="it ends the process when it is given such memory")
    x = gg.arange(4.0)
    with pytest.raises(errors.KindError, match=r"lie backwards in memory[\s\S]*contiguous"):
        torch.from_dlpack(x[::-1])
    assert torch.from_dlpack(x[::-1].contiguous()).tolist() == [3.0, 2.0, 1.0, 0.0]
    assert torch.from_dlpack(x[::2]).tolist() == [0.0, 2.0]


def test_dlpack_refuses_what_would_lose_a_gradient_and_other_devices() -> None:
    with pytest.raises(errors.KindError, match="would drop the gradient"):
        torch.from_dlpack(gg.ones(2, requires_grad=True))
    with pytest.raises(errors.KindError, match="__dlpack__"):
        gg.from_dlpack([1, 2])

    class Elsewhere:
        def __dlpack__(self) -> None: ...

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(errors.KindError, match="on device 2:0"):
        gg.from_dlpack(Elsewhere())
    assert np.from_dlpack(gg.ones(2)).tolist() == [1.0, 1.0]


def test_pickle_and_copies() -> None:
    w = gg.tensor([1.0, 2.0], requires_grad=True)
    again = pickle.loads(pickle.dumps(w))  # noqa: S301 - our own bytes
    assert again.tolist() == [1.0, 2.0]
    assert again.requires_grad
    assert again.is_leaf
    (w * w).sum().backward()
    deep = copy.deepcopy(w)
    deep.data.add_(1)
    assert w.tolist() == [1.0, 2.0]
    assert deep.grad.tolist() == [2.0, 4.0]
    h = w * 3
    twin = copy.copy(h)
    assert twin.requires_grad
    (g,) = gg.autograd.grad(twin.sum(), w)
    assert g.tolist() == [3.0, 3.0]
    with pytest.raises(errors.AutogradError, match="deep copy"):
        copy.deepcopy(h)
    assert pickle.loads(pickle.dumps(gg.float32)) == gg.float32  # noqa: S301 - our own bytes


# --- einops -------------------------------------------------------------------------------------------------


def test_einops_records_gradients() -> None:
    einops = pytest.importorskip("einops", reason="einops is the library under test")
    start = np.random.default_rng(0).normal(size=(2, 3, 4, 6))
    programs = [
        lambda x: einops.rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=2, q=3),
        lambda x: einops.reduce(x, "b c h w -> b c", "mean"),
        lambda x: einops.reduce(x, "b c (h p) w -> b h c", "max", p=2),
        lambda x: einops.repeat(x[0, 0], "h w -> h (w r) c", r=2, c=3),
        lambda x: einops.einsum(x, x, "b c h w, b d h w -> b c d"),
        lambda x: einops.pack([x, x[:, 0]], "b * h w")[0],
        lambda x: einops.rearrange([x[0], x[1]], "b c h w -> h (b c) w"),
    ]
    for program in programs:
        results = []
        for lib in (gg, torch):
            x = lib.tensor(start, requires_grad=True)
            y = program(x)
            (y**2).sum().backward()
            results.append((y.detach().numpy(), x.grad.numpy()))
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
        np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-12)


@pytest.mark.parametrize("order", ["import einops, glassgrad as gg", "import glassgrad as gg, einops"])
def test_einops_in_either_order_of_imports(order: str) -> None:
    code = f"{order}\nprint(einops.rearrange(gg.ones(2, 3), 'a b -> b a').shape)"
    pytest.importorskip("einops", reason="einops is the library under test")
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stdout.strip() == "(3, 2)", process.stderr


# --- the array API ------------------------------------------------------------------------------------------


def test_the_namespace_of_the_standard() -> None:
    compat = pytest.importorskip("array_api_compat", reason="the usual way to find a namespace")
    x = gg.tensor([[3.0, 1.0], [2.0, 2.0]], requires_grad=True)
    xp = compat.array_namespace(x)
    assert xp is x.__array_namespace__(api_version="2024.12")
    assert xp.max(x, axis=0).shape == (2,)
    assert xp.std(x).item() == pytest.approx(np.std(x.detach().numpy()))
    assert xp.sort(x, axis=1).tolist() == [[1.0, 3.0], [2.0, 2.0]]
    assert xp.concat([x, x], axis=None).shape == (8,)
    assert xp.unique_values(x).tolist() == [1.0, 2.0, 3.0]
    assert [part.tolist() for part in xp.unique_counts(x)] == [[1.0, 2.0, 3.0], [1, 2, 1]]
    assert xp.unique_inverse(x).inverse_indices.tolist() == [[2, 0], [1, 1]]
    assert xp.unique_all(x).indices.tolist() == [1, 2, 0]
    assert xp.cumulative_sum(x, axis=1, include_initial=True).tolist() == [[0.0, 3.0, 4.0], [0.0, 2.0, 4.0]]
    assert xp.cumulative_prod(x, axis=0).tolist() == [[3.0, 1.0], [6.0, 2.0]]
    assert xp.linalg.vector_norm(x, axis=1).shape == (2,)
    assert xp.take(x, xp.asarray([1]), axis=1).tolist() == [[1.0], [2.0]]
    assert xp.equal(x, 2.0).tolist() == [[False, False], [True, True]]
    assert xp.searchsorted(xp.asarray([1.0, 2.0]), xp.asarray([1.5])).tolist() == [1]
    assert xp.linspace(0.0, 1.0, 3).tolist() == [0.0, 0.5, 1.0]
    assert xp.result_type(x, xp.float64) == np.float64
    assert xp.isdtype(x.dtype, "real floating")
    assert xp.finfo(x.dtype).bits == 32
    assert xp.can_cast(x, xp.float64)
    assert xp.asarray(x) is x
    assert xp.astype(x, xp.float64).requires_grad
    assert xp.reshape(x, (4,), copy=True).requires_grad
    assert xp.nonzero(x > 2)[0].tolist() == [0]
    assert xp.tile(x, (2, 1)).shape == (4, 2)
    assert xp.where(x > 2, x, 0.0).sum().item() == 3.0
    assert (xp.pi, xp.newaxis, xp.bool) == (np.pi, None, np.dtype(bool))
    info = xp.__array_namespace_info__()
    assert info.default_device() == "cpu"
    assert info.default_dtypes()["real floating"] == np.float32
    assert set(info.dtypes(kind="bool")) == {"bool"}
    assert "boolean indexing" in info.capabilities()
    assert info.devices() == ["cpu"]
    with pytest.raises(AttributeError, match="no_such_function"):
        _ = xp.no_such_function
    with pytest.raises(errors.ArgumentError, match="api_version"):
        x.__array_namespace__(api_version="1999.1")
    assert "matmul" in dir(xp)


def test_safetensors_own_functions_take_a_state_dict(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    layer = gg.nn.Linear(2, 3)
    save_file(layer.state_dict(), tmp_path / "layer.safetensors")
    for name, array in load_file(tmp_path / "layer.safetensors").items():
        np.testing.assert_array_equal(array, layer.state_dict()[name].numpy())


def test_what_has_a_dtype_keeps_it() -> None:
    class Series:  # as those of pandas
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([1.0, 2.0], dtype or np.float64)

    for make in (gg.tensor, gg.as_tensor):
        assert make(Series()).dtype == np.float64
        assert make([1.0, 2.0]).dtype == np.float32
    assert gg.tensor(Series(), dtype=gg.float32).dtype == np.float32
