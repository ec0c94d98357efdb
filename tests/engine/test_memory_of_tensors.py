"""Storages, tensors with replaced memory, random fills and hooks after a gradient: PyTorch is the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these programs")


def storages(lib: Any) -> Any:
    x = lib.arange(12, dtype=lib.float32).reshape(3, 4)
    row, turned = x[1], x.t()
    storage = x.untyped_storage()
    return (
        row.storage_offset(), turned[1:].storage_offset(), storage.nbytes(), len(storage),
        row.untyped_storage().nbytes(),
        storage.data_ptr() == row.untyped_storage().data_ptr() == x.data_ptr(), x[1:, 2:].storage_offset(),
        turned.is_set_to(x.t()), row.is_set_to(x), turned.dim_order(), x.dim_order(), x.clone().storage_offset(),
    )  # fmt: skip  # a table


def resizing(lib: Any) -> Any:
    x = lib.arange(6, dtype=lib.float32)
    seen = x[:4]
    smaller = x.resize_(2, 2)
    same = smaller is x
    x[0, 0] = 9
    larger = lib.tensor([1.0, 2.0]).resize_as_(lib.zeros(2, 2))
    column = lib.arange(6).reshape(2, 3).t().resize_(2, 2)
    return same, x.tolist(), seen.tolist(), list(larger.shape), larger[0].tolist(), column.tolist()


def setting(lib: Any) -> Any:
    source = lib.arange(6, dtype=lib.float32)
    x = lib.zeros(3)
    x.set_(source)
    x[0] = 7
    part = lib.zeros(1).set_(source, 1, (2, 2), (1, 2))
    part[1, 1] = -1
    whole = lib.zeros(0).set_(source.storage() if lib is gg else source.untyped_storage(), 2, (3,), (1,))
    return source.tolist(), part.tolist(), whole.tolist(), list(lib.zeros(2).set_().shape)


def viewing_in_place(lib: Any) -> Any:
    x = lib.arange(8, dtype=lib.float32)
    x.as_strided_((2, 2), (4, 1), 1)
    return x.tolist()


def functions_of_python(lib: Any) -> Any:
    x, y = lib.tensor([[1.0, 2.0], [3.0, 4.0]]), lib.tensor([[10.0, 20.0], [30.0, 40.0]])
    applied = x.clone().apply_(lambda a: a * a + 1)
    mapped = x.clone().map_(y, lambda a, b: a - b)
    third = x.clone().map2_(y, x, lambda a, b, c: a + b * c)
    return applied.tolist(), mapped.tolist(), third.tolist(), lib.tensor([1, 2]).apply_(lambda a: a / 2).tolist()


def kinds(lib: Any) -> Any:
    x = lib.zeros(2, 3)
    flags = ["is_sparse_csr", "is_quantized", "is_meta", "is_mkldnn", "is_nested", "is_xpu", "is_vulkan"]
    asked = [x.is_conj(), x.is_neg(), x.is_inference(), x.is_distributed()]
    strided = x.layout == lib.strided
    wide = [str(made.dtype).rpartition(".")[2] for made in (x.cfloat(), x.cdouble())]
    z = lib.tensor([[1 + 2j, 3 - 1j]])
    return [getattr(x, name) for name in flags], asked, strided, wide, z.H.tolist(), z.adjoint().tolist()


def hooks_after_gradients(lib: Any) -> Any:
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    seen: list[Any] = []

    def step(p: Any) -> None:
        seen.append(p.grad.tolist())
        with lib.no_grad():
            p -= 0.5 * p.grad
        p.grad = None

    handle = w.register_post_accumulate_grad_hook(step)
    w.register_hook(lambda g: g * 2)
    for _ in range(2):
        (w * w).sum().backward()
    lib.autograd.grad((w * w).sum(), [w])
    handle.remove()
    (w * w).sum().backward()
    return seen, w.tolist(), w.grad.tolist()


PROGRAMS = (
    storages, resizing, setting, viewing_in_place, functions_of_python, kinds, hooks_after_gradients,
)  # fmt: skip  # a table


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program: Callable[[Any], Any]) -> None:
    assert program(gg) == program(torch)


def test_what_requires_a_gradient_gets_no_other_memory() -> None:
    w = gg.ones(2, requires_grad=True)
    for change in (
        lambda: w.resize_(1),
        lambda: w.set_(gg.zeros(2)),
        lambda: w.apply_(abs),
        lambda: w.map_(gg.zeros(2), max),
    ):
        with pytest.raises(errors.AutogradError, match="requires a gradient"):
            change()
    with pytest.raises(errors.AutogradError, match="is not a leaf"):
        (w * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(errors.AutogradError, match="is not a leaf"):
        gg.ones(2).register_post_accumulate_grad_hook(print)
    with pytest.raises(ValueError, match="float64"):
        gg.zeros(1).set_(gg.zeros(1, dtype=gg.float64))
    with pytest.raises(ValueError, match="mH"):
        gg.zeros(2, 2, 2).H  # noqa: B018 - the access is what is tested


def test_a_hook_after_gradients_steps_inside_a_compiled_step() -> None:
    w = gg.tensor([1.0, 2.0], requires_grad=True)

    def step(p: Any) -> None:
        with gg.no_grad():
            p -= 0.25 * p.grad
        p.grad = None

    w.register_post_accumulate_grad_hook(step)

    @gg.compile(backend="numpy")
    def train(x: Any) -> Any:
        loss = (w * w * x).sum()
        loss.backward()
        return loss

    losses = [train(gg.ones(2)).item() for _ in range(3)]
    assert losses == [5.0, 1.25, 0.3125]
    assert w.tolist() == [0.125, 0.25]


DRAWN = {
    "log_normal_": ((0.5, 0.25), lambda x: (np.log(x).mean(), np.log(x).std()), (0.5, 0.25)),
    "cauchy_": ((1.0, 2.0), lambda x: tuple(np.quantile(x, (0.25, 0.5, 0.75))), (-1.0, 1.0, 3.0)),
    "geometric_": ((0.3,), lambda x: (x.mean(), x.min(), (x == 1).mean()), (1 / 0.3, 1.0, 0.3)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_fills_have_the_distribution(name: str) -> None:
    given, facts, expected = DRAWN[name]
    drawn = []
    for _ in range(2):
        x = gg.zeros(40_000, dtype=gg.float64)
        assert getattr(x, name)(*given, generator=gg.Generator().manual_seed(0)) is x
        drawn.append(x.numpy())
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_allclose(facts(drawn[0]), expected, atol=0.06)
    np.testing.assert_allclose(facts(getattr(torch.zeros(40_000), name)(*given).numpy()), expected, atol=0.1)
    if name == "geometric_":
        assert gg.zeros(5, dtype=gg.int64).geometric_(0.5).dtype == gg.int64
        with pytest.raises(ValueError, match="between 0 and 1"):
            gg.zeros(1).geometric_(1.5)
