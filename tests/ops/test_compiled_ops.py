"""Eager ops that run as native code if there is enough work: they agree with PyTorch, and fall back to NumPy."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.nn import functional as F
from glassgrad.ops import conv
from glassgrad.ops.kernels import blocks, native
from tests.ops.against_torch import compare, real

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
pytest.importorskip("llvmlite", reason="native code needs llvmlite")


class Counted(native.Kernels):
    """Kernels that note which op was computed by one of them."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(**limits)
        self.computed: list[str] = []

    def find(self, op: str, *rest: Any) -> Any:
        kernel = super().find(op, *rest)
        if kernel is not None:
            self.computed.append(op)
        return kernel


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Native code however little there is to do."""
    counted = Counted(least_work=1)
    monkeypatch.setattr(native, "kernels", counted)
    return counted


OPTIONS = [
    {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    for stride, padding, dilation, groups in [
        (1, 0, 1, 1),
        (1, 1, 1, 2),
        (2, 1, 1, 1),
        ((3, 2), (0, 2), 1, 2),
        (1, (2, 1), (2, 1), 1),
        (1, 1, 1, 4),
        (2, 1, 1, 4),
    ]
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_convolutions_and_their_transposes(options: dict[str, Any], kernels: Counted) -> None:
    x, w, bias = real(3, 4, 9, 8), real(8, 4 // options["groups"], 3, 2), real(8)
    compare(
        lambda *xs: F.conv2d(*xs, **options),
        lambda *xs: torch.nn.functional.conv2d(*xs, **options),
        x,
        w,
        bias,
        rtol=1e-8,
    )
    assert kernels.computed == ["conv2d", "conv2d_input", "conv2d_weight"]


def test_gradients_of_large_weights(kernels: Counted) -> None:
    """More than a megabyte, which products ask for before their sums are ready."""
    x, w, g = real(4, 64, 4, 4), real(256, 64, 3, 3), real(4, 256, 4, 4)
    leaves = [torch.tensor(part, requires_grad=True) for part in (x, w)]
    torch.nn.functional.conv2d(*leaves, padding=1).backward(torch.tensor(g))
    mine = [gg.tensor(part, requires_grad=True) for part in (x, w)]
    F.conv2d(*mine, padding=1).backward(gg.tensor(g))
    for one, expected in zip(mine, leaves, strict=True):
        np.testing.assert_allclose(one.grad.numpy(), expected.grad.numpy(), rtol=1e-9, atol=1e-9)
    assert kernels.computed == ["conv2d", "conv2d_input", "conv2d_weight"]


@pytest.mark.parametrize("stride", [1, 2])
def test_kernels_of_one_element(stride: int, kernels: Counted) -> None:
    x, w = real(3, 4, 9, 8), real(6, 4, 1, 1)
    theirs = torch.nn.functional.conv2d
    compare(lambda *xs: F.conv2d(*xs, stride=stride), lambda *xs: theirs(*xs, stride=stride), x, w, rtol=1e-8)
    assert kernels.computed == ["conv2d", "conv2d_input", "conv2d_weight"]


POOLS = [
    {"kernel_size": 2},
    {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)},
    {"kernel_size": 2, "stride": 3, "ceil_mode": True},
    {"kernel_size": 2, "stride": 1, "dilation": (2, 3)},
]


@pytest.mark.parametrize("options", POOLS, ids=str)
def test_pooling_by_the_maximum(options: dict[str, Any], kernels: Counted) -> None:
    x = np.round(real(3, 4, 11, 10), 1)  # ties are common
    theirs = torch.nn.functional.max_pool2d
    compare(lambda x: F.max_pool2d(x, **options), lambda x: theirs(x, **options), x)
    assert kernels.computed == ["max_pool2d", "max_pool2d_scatter"]
    with_nan = x.copy()
    with_nan[0, 0, 3, 3] = np.nan
    found = F.max_pool2d(gg.tensor(with_nan), **options).numpy()
    np.testing.assert_array_equal(found, theirs(torch.tensor(with_nan), **options).numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_native_code_and_numpy_agree(dtype: Any, kernels: Counted) -> None:
    x, w, g = (real(*shape).astype(dtype) for shape in ((5, 3, 10, 7), (4, 3, 3, 3), (5, 4, 10, 7)))
    settings = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}

    def all_three() -> list[Any]:
        return [
            conv.conv2d_p(x, w, **settings),
            conv.conv2d_input_p(g, w, size=(10, 7), **settings),
            conv.conv2d_weight_p(x, g, kernel=(3, 3), **settings),
        ]

    found, again = all_three(), all_three()
    assert len(kernels.computed) == 6
    kernels.least_work = 10**9
    for mine, repeated, expected in zip(found, again, all_three(), strict=True):
        assert mine.dtype == dtype
        np.testing.assert_array_equal(mine, repeated)
        np.testing.assert_allclose(mine, expected, rtol=100 * np.finfo(dtype).eps, atol=200 * np.finfo(dtype).eps)
    assert len(kernels.computed) == 6


def test_derivatives_of_derivatives_and_vmap(kernels: Counted) -> None:
    x, w = real(2, 2, 5, 5), real(3, 2, 3, 3)
    gg.verify.gradgradcheck(lambda x, w: (F.conv2d(x, w) ** 2).sum(), (gg.tensor(x), gg.tensor(w)))
    batched = gg.func.vmap(lambda x: F.conv2d(x, gg.tensor(w)))(gg.tensor(np.stack([x, 2 * x])))
    np.testing.assert_allclose(batched[1].numpy(), 2 * F.conv2d(gg.tensor(x), gg.tensor(w)).numpy(), rtol=1e-12)
    assert len(set(kernels.computed)) == 3


def test_arrays_as_they_lie(kernels: Counted) -> None:
    """Views, negative strides, other orders of axes and read-only memory."""
    x, w = real(8, 9, 4, 6).transpose(0, 2, 1, 3)[::2, :, ::-1], real(5, 4, 3, 6)[..., ::2]
    x.flags.writeable = w.flags.writeable = False
    expected = torch.nn.functional.conv2d(torch.tensor(x.copy()), torch.tensor(w.copy())).numpy()
    np.testing.assert_allclose(F.conv2d(gg.tensor(x), gg.tensor(w)).numpy(), expected, rtol=1e-10, atol=1e-12)
    assert kernels.computed == ["conv2d"]


@pytest.mark.parametrize("stride", [1, 2])
def test_a_single_image(stride: int, kernels: Counted) -> None:
    compare(
        lambda *xs: F.conv2d(*xs, stride=stride, padding=1),
        lambda *xs: torch.nn.functional.conv2d(*xs, stride=stride, padding=1),
        real(1, 4, 9, 8),
        real(8, 4, 3, 3),
        rtol=1e-8,
    )
    assert kernels.computed == ["conv2d", "conv2d_input", "conv2d_weight"]


@pytest.mark.parametrize("what", ["dtypes", "empty", "int"])
def test_numpy_computes_what_is_not_for_native_code(what: str, kernels: Counted) -> None:
    x, w = real(2, 4, 6, 6), real(4, 4, 3, 3)
    match what:
        case "dtypes":
            w = w.astype(np.float32)
        case "empty":
            x = x[:0]
        case "int":
            x, w = x.astype(np.int64), w.astype(np.int64)
    y = F.conv2d(gg.tensor(x), gg.tensor(w))
    wide = [torch.tensor(part.astype(np.float64)) for part in (x, w)]
    expected = torch.nn.functional.conv2d(*wide).numpy()
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6, atol=1e-6)
    assert kernels.computed == []


def test_wrong_sizes_are_refused_as_ever(kernels: Counted) -> None:
    with pytest.raises(errors.GlassgradError, match="the input has 3 channels, the weight"):
        F.conv2d(gg.ones(1, 3, 5, 5), gg.ones(2, 4, 3, 3))
    assert kernels.computed == []


def large() -> Any:
    return F.conv2d(gg.tensor(real(2, 3, 6, 6)), gg.tensor(real(4, 3, 3, 3))).numpy()


def test_without_llvmlite_numpy_computes_and_nobody_is_bothered(
    kernels: Counted, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    expected = large()
    bare = Counted(least_work=1, maker=("glassgrad.compile.no_such_module", "kernel_for"))
    monkeypatch.setattr(native, "kernels", bare)
    np.testing.assert_allclose(large(), expected, rtol=1e-12)
    assert bare.off
    assert not bare.computed
    assert not recwarn.list


def test_where_native_code_fails_one_warning_says_so(kernels: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    from glassgrad.compile import backends

    def refused(*_: Any, **__: Any) -> Any:
        raise OSError("no executable memory")

    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")  # a kernel on the disk need not be made
    monkeypatch.setattr(backends, "build", refused)
    with pytest.warns(errors.CompileWarning, match=r"native code for conv2d could not be made here .no executable m"):
        first = large()
    np.testing.assert_array_equal(large(), first)
    assert not kernels.computed


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSGRAD_NATIVE", "0")
    off = Counted(least_work=1)
    monkeypatch.setattr(native, "kernels", off)
    assert large().shape == (2, 4, 4, 4)
    assert not off.computed


def test_ever_new_sizes_stop_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = Counted(least_work=1, made_freely=2, uses_for_another=3)
    monkeypatch.setattr(native, "kernels", kernels)

    def run(size: int) -> int:
        before = len(kernels.computed)
        F.conv2d(gg.ones(2, 1, size, size), gg.ones(1, 1, 2, 2))
        return len(kernels.computed) - before

    assert [run(size) for size in (4, 5, 6)] == [1, 1, 0]
    assert [run(5), run(6)] == [1, 1]  # the third use pays for a third kernel


def test_many_threads_at_once(kernels: Counted) -> None:
    x, w = real(4, 3, 12, 12), real(5, 3, 3, 3)
    expected = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w)).numpy()
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.extend(F.conv2d(gg.tensor(x), gg.tensor(w)).numpy() for _ in range(20)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160
    assert all(np.allclose(one, expected, rtol=1e-10, atol=1e-12) for one in found)


def test_small_convolutions_load_no_compiler() -> None:
    program = (
        "import sys, glassgrad as gg; from glassgrad.nn import functional as F;"
        "w = gg.ones(2, 1, 3, 3, requires_grad=True); F.conv2d(gg.ones(4, 1, 8, 8), w).sum().backward();"
        "print(sorted(m for m in sys.modules if m == 'llvmlite' or m.startswith('glassgrad.compile')))"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_the_bar_is_crossed_by_real_work(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    monkeypatch.setattr(native, "kernels", counted)
    x, w = (gg.tensor(real(*shape).astype(np.float32)) for shape in ((64, 32, 14, 14), (64, 32, 3, 3)))
    F.conv2d(x, w, padding=1)
    F.conv2d(x[:1, :4, :8, :8], w[:8, :4], padding=1)
    F.conv2d(x[:2, :4, :8, :8], w[:8, :4], padding=1)
    assert counted.computed == ["conv2d"]


def test_options_are_part_of_what_a_kernel_is_for(kernels: Counted) -> None:
    x, w = real(2, 2, 9, 9), real(2, 2, 2, 2)
    for stride, padding in ((1, 0), (2, 0), (2, 1), (1, 0)):
        found = F.conv2d(gg.tensor(x), gg.tensor(w), stride=stride, padding=padding).numpy()
        expected = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), stride=stride, padding=padding)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-10, atol=1e-12)
    assert len(kernels.computed) == 4


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "sqrt", "rsqrt", "reciprocal", "exp2"])
@pytest.mark.parametrize("leaf", [True, False])
def test_slopes_that_read_the_result_alone_share_a_kernel(name: str, leaf: bool, kernels: Counted) -> None:
    """They are given what x came from in its place: a leaf, or a node, which the kernel must not keep."""
    numbers = np.linspace(0.3, 2, 3 * blocks.NATIVE_BLOCK + 7, dtype=np.float32)
    nodes = []
    for _ in range(3):
        x = gg.tensor(numbers, requires_grad=True)
        given = x if leaf else x.view(-1)
        y = getattr(gg, name)(given)
        nodes.append(weakref.ref(y.node))
        y.backward(gg.full_like(y, 2))
        wide = gg.tensor(numbers.astype(np.float64), requires_grad=True)
        getattr(gg, name)(wide[:]).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * wide.grad.numpy(), rtol=2e-6)
        del y, given
    assert sum(map(callable, kernels.computed)) >= 3, "native code computed the slopes"
    assert len(kernels._known) <= 4, "the result and the slope, for each of two dtypes"
    assert all(node() is None for node in nodes)
