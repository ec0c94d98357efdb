"""Recorded NumPy calls that native code makes: the same bits, and NumPy wherever a record does not fit."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops import fused
from glassgrad.ops.core import REGISTRY, Elementwise
from glassgrad.ops.kernels import recording, replay
from glassgrad.ops.kernels.replay import Replay

pytest.importorskip("llvmlite", reason="recorded calls are made by native code")
Array = Any
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Record what runs twice."""
    for name, value in (("first", 0), ("repeats", 1), ("off", False)):
        monkeypatch.setattr(replay.settings, name, value)
    yield
    assert not replay.settings.off, "native code could not be loaded"


def drawn(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def recorded(
    function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], written: tuple[int, ...] = ()
) -> Replay:
    """Return a replay of a function that has run on such arguments until it is native."""
    found = Replay(function, written)
    for _ in range(3):
        found.run(*make())
    return found


def is_native(found: Replay) -> bool:
    return found.records > 0 and type(found.run) is type(len)


def listed(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def expect_same(found: Any, expected: Any) -> None:
    pairs = list(zip(listed(found), listed(expected), strict=True))
    assert pairs
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def are_same(found: Any, expected: Any) -> bool:
    return all(one.tobytes() == other.tobytes() for one, other in zip(found, expected, strict=True))


def labels(rows: int, classes: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, classes, rows)


def losses_back(g: Array, logits: Array, target: Array) -> Array:
    _, exponentials, total, picked_at = fused._losses(logits, target, "mean")
    return fused._losses_back(g, exponentials, total, picked_at, 0.25)


# name -> function, and its arguments from a number of rows, of columns, and a dtype
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[int, int, Any], tuple[Any, ...]]]] = {
    "product": (
        fused._product_and_bias,
        lambda n, m, t: (drawn(n, 7, dtype=t), drawn(m, 7, dtype=t, seed=1), drawn(m, dtype=t, seed=2)),
    ),
    "products": (
        fused._cotangents,
        lambda n, m, t: (drawn(n, m, dtype=t), drawn(n, 7, dtype=t, seed=1), drawn(m, 7, dtype=t, seed=2)),
    ),
    "batch norm": (
        partial(fused._normalised, eps=1e-5),
        lambda n, m, t: (drawn(n, m, dtype=t), drawn(m, dtype=t, seed=1), drawn(m, dtype=t, seed=2)),
    ),
    "batch norm, back": (
        fused._normalised_back,
        lambda n, m, t: (
            drawn(n, m, dtype=t), drawn(n, m, dtype=t, seed=1), abs(drawn(m, dtype=t)), drawn(m, dtype=t, seed=2),
        ),
    ),
    "cross entropy": (partial(fused._losses, reduction="mean"), lambda n, m, t: (drawn(n, m, dtype=t), labels(n, m))),
    "each loss": (partial(fused._losses, reduction="none"), lambda n, m, t: (drawn(n, m, dtype=t), labels(n, m))),
    "cross entropy, back": (losses_back, lambda n, m, t: (drawn(dtype=t) + t(0), drawn(n, m, dtype=t), labels(n, m))),
}  # fmt: skip  # a table


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 5), (32, 27), (33, 200), (64, 64), (130, 17)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_the_same_to_the_last_bit(name: str, sizes: tuple[int, int], dtype: Any) -> None:
    function, make = FUNCTIONS[name]
    args = tuple([np.asarray(one) for one in make(*sizes, dtype)])
    found = recorded(function, lambda: args)
    assert is_native(found)
    for seed in range(3):  # other numbers than the record was made with
        scale = dtype(1 + seed)
        others = tuple([one * scale if one.dtype == dtype else one[::-1].copy() for one in args])
        expect_same(found.run(*others), function(*others))
    assert found.records == 1


def test_the_true_numbers() -> None:
    """Against the formulas in double precision, not against the function that was recorded."""
    x, w, b = drawn(32, 20), drawn(20, seed=1), drawn(20, seed=2)
    found = recorded(partial(fused._normalised, eps=1e-5), lambda: (x, w, b))
    assert is_native(found)
    y, mean, var, *_ = found.run(x, w, b)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)
    np.testing.assert_allclose(y, normal * w + b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mean, wide.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(var, wide.var(0), rtol=1e-5)
    target = labels(32, 20)
    loss, *_ = recorded(partial(fused._losses, reduction="mean"), lambda: (x, target)).run(x, target)
    expected = (np.log(np.exp(wide).sum(1)) - wide[np.arange(32), target]).mean()
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def moved(p: Array, g: Array, rate: float) -> None:
    p -= g * rate


def test_arrays_are_written_in_place() -> None:
    def make() -> tuple[Any, ...]:
        return drawn(4, 5), drawn(4, 5, seed=1), 0.125

    found = recorded(moved, make, written=(0,))
    assert is_native(found)
    p, g, _ = make()
    kept = p.copy()
    found.run(p, g, 0.5)  # numbers are arguments, not part of the record
    np.testing.assert_array_equal(p, kept - g * np.float32(0.5))
    column = np.zeros((4, 9), np.float32)[:, ::2]  # other strides
    found.run(column, g, 0.5)
    np.testing.assert_array_equal(column, -g * np.float32(0.5))
    for _ in range(3):
        found.run(column, g, 0.5)
    np.testing.assert_array_equal(column, -4 * (g * np.float32(0.5)))
    assert found.records == 2


@pytest.mark.parametrize(
    "args",
    [
        (drawn(3, 5), drawn(3, 5), 0.1),  # another shape
        (drawn(4, 5), drawn(5), 0.1),  # broadcast
        (drawn(4, 5, dtype=np.float64), drawn(4, 5, dtype=np.float64), 0.1),
        (drawn(5, 4).T, drawn(4, 5), 0.1),
        (drawn(4, 5)[::-1], drawn(4, 5), 0.1),
        (drawn(0, 5), drawn(0, 5), 0.1),
        (drawn(4, 5), drawn(4, 5), 2),
        (drawn(4, 5), drawn(4, 5), np.float64(0.5)),
        (drawn(4, 5), drawn(4, 5).astype(">f4"), 0.1),
        (drawn(4, 5), np.frombuffer(b"\0" + drawn(20).tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 5), 0.1),
        (drawn(200, 300), drawn(200, 300), 0.1),
    ],
    ids=range(11),
)
def test_other_arguments_are_left_to_the_function(args: tuple[Any, ...]) -> None:
    found = recorded(moved, lambda: (drawn(4, 5), drawn(4, 5, seed=1), 0.125), written=(0,))
    assert is_native(found)
    p, g, rate = args
    expected = p.copy()
    for _ in range(4):
        moved(expected, g, rate)
        found.run(p, g, rate)
    np.testing.assert_array_equal(p, expected)


def test_arguments_that_share_memory() -> None:
    found = recorded(moved, lambda: (drawn(20), drawn(20, seed=1), 0.125), written=(0,))
    assert is_native(found)
    memory, other = drawn(40), drawn(40)
    moved(other[3:23], other[1:21], 0.5)
    found.run(memory[3:23], memory[1:21], 0.5)
    np.testing.assert_array_equal(memory, other)
    found.run(memory[:20], memory[:20], 1.0)
    np.testing.assert_array_equal(memory[:20], np.zeros(20, np.float32))


def test_wrong_calls_fail_as_the_function_does() -> None:
    found = recorded(moved, lambda: (drawn(4, 5), drawn(4, 5, seed=1), 0.125), written=(0,))
    p, g = drawn(4, 5), drawn(4, 5, seed=1)
    p.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        found.run(p, g, 0.5)
    with pytest.raises(TypeError):
        found.run(g)
    with pytest.raises(ValueError, match="broadcast"):
        found.run(drawn(4, 5), drawn(3, 5), 0.5)
    picked = recorded(lambda x, at: x.reshape(-1).take(at) * 2, lambda: (drawn(4, 5), labels(6, 20)))
    assert is_native(picked)
    with pytest.raises(IndexError):
        picked.run(drawn(4, 5), np.array([0, 1, 2, 3, 4, 20]))


# --- what NumPy warns of ------------------------------------------------------------------------------


def test_numpy_warns_and_computes_once() -> None:
    found = recorded(moved, lambda: (drawn(4), drawn(4, seed=1), 0.125), written=(0,))
    assert is_native(found)
    p, g = np.full(4, -3e38, np.float32), np.array([1, 2, 3, 3e38], np.float32)
    with pytest.warns(RuntimeWarning, match="overflow"):
        found.run(p, g, 1.0)
    np.testing.assert_array_equal(p[:3], np.full(3, -3e38, np.float32))
    assert p[3] == -np.inf
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast|overflow"):
        found.run(drawn(4), drawn(4), 1e39)
    with np.errstate(all="ignore"):
        found.run(drawn(4), drawn(4), 1e39)


def test_numpys_treatment_of_errors_holds() -> None:
    found = recorded(lambda x, y: x / y + 1, lambda: (drawn(4), drawn(4, seed=1)))
    assert is_native(found)
    x, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        found.run(x, zeros)
    with np.errstate(divide="ignore"):
        assert np.isinf(found.run(x, zeros)).all()
    tiny = np.full(4, 1e-30, np.float32)
    with np.errstate(under="raise"), pytest.raises(FloatingPointError):
        found.run(tiny, 1 / tiny)
    assert not (found.run(tiny, 1 / tiny) - 1).any()


# --- what is not recorded -----------------------------------------------------------------------------


def reads_a_number(x: Array) -> Array:
    return x * float(x[0])


def decides(x: Array) -> Array:
    return x * 2 if x[0] > 0 else x * 3


def searches(x: Array) -> Array:
    return x * x.argmax()


def sums(x: Array) -> Array:
    return x * x.sum()


def adds_up(x: Array) -> Array:
    return x + np.cumsum(x)


def returns_a_view(x: Array) -> Array:
    return (x * 2)[1:]


def returns_its_argument(x: Array) -> tuple[Array, Array]:
    return x, x * 2


def writes_to_its_argument(x: Array) -> Array:
    x *= 1.5
    return x + 1


def copies(x: Array) -> Array:
    return x * np.array(x, np.float64).astype(x.dtype)


def mends(x: Array) -> Array:
    y = np.asarray(x * 2)
    y[y < -70] = 0
    return y


def looks_ahead(x: Array) -> Array:
    return x * 2 if np.asarray(x * 1)[0] < 0 else x * 3


@pytest.mark.parametrize(
    "function",
    [copies, mends, looks_ahead, reads_a_number, decides, searches, sums, adds_up, returns_a_view, returns_its_argument,
     writes_to_its_argument],
)  # fmt: skip  # a list
def test_what_a_record_cannot_hold_is_not_recorded(function: Callable[..., Any]) -> None:
    found = Replay(function)
    for _ in range(4):
        expect_same(found.run(drawn(4, seed=3)), function(drawn(4, seed=3)))
    assert not found.records


def test_a_function_of_which_nothing_can_be_recorded_is_called_directly() -> None:
    found = Replay(decides)
    for size in range(2, 8):
        for _ in range(2):
            found.run(drawn(size))
    assert found.run is decides


def test_a_record_that_differs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a recorder might get wrong shows before the record is used."""

    def wrong(function: Any, args: Any, written: Any) -> Any:
        made = recording.record(function, args, written)
        return made._replace(calls=made.calls[:-1])

    monkeypatch.setattr(replay, "record", wrong)
    found = recorded(lambda x: x * 2 + 1, lambda: (drawn(4),))
    assert not found.records
    np.testing.assert_array_equal(found.run(np.ones(4, np.float32)), np.full(4, 3, np.float32))


def test_nothing_is_recorded_before_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay.settings, "first", replay.settings.runs + 10)
    found = Replay(lambda x: x * 2 + 1)
    for _ in range(8):
        found.run(drawn(4))
    assert not found.records
    for _ in range(6):
        found.run(drawn(4))
    assert found.records == 1


def test_without_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "glassgrad.compile.native.replay", None)
    found = recorded(lambda x: x * 2 + 1, lambda: (drawn(4),))
    assert not found.records
    np.testing.assert_array_equal(found.run(np.ones(4, np.float32)), np.full(4, 3, np.float32))
    monkeypatch.setattr(replay.settings, "off", False)


# --- elementwise ops ----------------------------------------------------------------------------------

SHAPES = ((), (1,), (7,), (4, 1, 5), (300,))
OPS = [prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and prim.arity == 1 and prim.samples]


def bits_of(result: Any) -> bytes:
    value = np.asarray(result)
    return np.where(np.isnan(value), 1, value).astype(value.dtype).tobytes() if value.dtype.kind in "fc" else b""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("prim", OPS, ids=lambda prim: prim.name)
def test_elementwise_ops_give_the_same_bits(prim: Any, dtype: Any) -> None:
    """Forward and backward; for other numbers than those of the record, before and after it was made."""
    domain, differentiable = prim.samples[0], not prim.samples[0].boolean
    for shape in SHAPES:
        values = [domain.draw(np.random.default_rng(seed), shape, dtype) for seed in range(4)]
        cotangent = gg.tensor(drawn(*shape, dtype=dtype) + dtype(0))

        def computed(value: Array, cotangent: Any = cotangent) -> list[bytes]:
            x = gg.tensor(value, requires_grad=differentiable)
            y = prim(x, **prim.sample_params)
            grads = gg.autograd.grad(y, x, cotangent) if y.requires_grad else ()
            return [bits_of(one.detach().numpy()) for one in (y, *grads)]

        before = [computed(value) for value in values[:1]]
        for _ in range(2):
            computed(values[0])
        with np.errstate(all="ignore"):  # where NumPy makes the calls
            expected = [computed(value) for value in values]
        assert before == expected[:1]
        assert [computed(value) for value in values] == expected, shape


def test_ops_with_options_have_records_of_their_own() -> None:
    x = gg.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    for alpha in (0.5, 2.0, 0.0, 1):
        for _ in range(5):
            y = F.elu(x, alpha)
            expected = [float(alpha * np.expm1(np.float32(-2.0))), 0.5, 3.0]
            np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-6)
            (g,) = gg.autograd.grad(y.sum(), x)
            np.testing.assert_allclose(g.numpy(), [alpha * np.exp(-2.0), 1.0, 1.0], rtol=1e-6)


def test_higher_derivatives_and_transforms_stay_on_the_tape() -> None:
    x = gg.tensor([0.3, -0.7], requires_grad=True)
    for _ in range(5):
        (g,) = gg.autograd.grad(gg.tanh(x).sum(), x, create_graph=True)
        (h,) = gg.autograd.grad(g.sum(), x)
        t = np.tanh(x.detach().numpy().astype(np.float64))
        np.testing.assert_allclose(h.numpy(), -2 * t * (1 - t * t), rtol=1e-5)
        batch = gg.func.vmap(gg.func.grad(lambda one: gg.tanh(one * one)))(x.detach())
        u = np.tanh((x.detach().numpy().astype(np.float64)) ** 2)
        np.testing.assert_allclose(batch.numpy(), (1 - u * u) * 2 * x.detach().numpy(), rtol=1e-5)


# --- around it ----------------------------------------------------------------------------------------


def trained(steps: int) -> list[bytes]:
    gg.manual_seed(3)
    model = gg.nn.Sequential(
        gg.nn.Embedding(27, 10), gg.nn.Flatten(), gg.nn.Linear(30, 20), gg.nn.BatchNorm1d(20), gg.nn.Tanh(),
        gg.nn.Linear(20, 27),
    )  # fmt: skip  # a list of layers
    optimizer = gg.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        x, y = gg.tensor(labels(96, 27, step).reshape(32, 3)), gg.tensor(labels(32, 27, step + 100))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [value.detach().numpy().tobytes() for value in model.state_dict().values()]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_training_ends_with_the_same_bits(threads: str) -> None:
    bits = {}
    for off in (False, True):
        lines = [
            "from glassgrad.ops import fused",
            "from glassgrad.ops.kernels.replay import settings",
            f"settings.first, settings.repeats, settings.off = 0, 4, {off}",
            "from tests.ops.test_replay import trained",
            "bits = trained(20)",
            "print(fused._PRODUCTS.records, bits)",
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        command = [sys.executable, "-c", "\n".join(lines)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
        records, bits[off] = done.stdout.split(" ", 1)
        assert records == ("0" if off else "2")
    assert bits[True] == bits[False]
    assert len(bits[True]) > 10_000


def test_threads_share_a_record() -> None:
    function, make = FUNCTIONS["batch norm"]
    found = Replay(function)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x, w, b = make(16, 9, np.float32)
        x = x * np.float32(seed)
        expected = function(x, w, b)
        wrong.extend(seed for _ in range(300) if not are_same(found.run(x, w, b), expected))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert found.records


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_replays() -> None:
    function, make = FUNCTIONS["cross entropy"]
    found = recorded(function, lambda: make(8, 5, np.float32))
    expected = function(*make(8, 5, np.float32))
    child = os.fork()
    if not child:
        same = all(
            a.tobytes() == b.tobytes() for a, b in zip(found.run(*make(8, 5, np.float32)), expected, strict=True)
        )
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_collector_may_run_the_same_record() -> None:
    """Making a tuple may start a collection, and with it any code."""
    function, make = FUNCTIONS["batch norm"]
    args = make(6, 4, np.float32)
    found = recorded(function, lambda: args)
    expected = function(*args)
    other = tuple([one * 2 for one in args])
    calls = 0

    class Last:
        def __init__(self) -> None:
            self.circle = self

        def __del__(self) -> None:
            nonlocal calls
            calls += 1
            found.run(*other)

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Last()
            expect_same(found.run(*args), expected)
    finally:
        gc.set_threshold(*before)
    assert calls > 100


def test_nothing_is_left_behind() -> None:
    x, w, b = args = FUNCTIONS["batch norm"][1](6, 4, np.float32)
    several = recorded(FUNCTIONS["batch norm"][0], lambda: args)
    single = recorded(lambda x: x * 2 + 1, lambda: (x,))
    none = recorded(moved, lambda: (w, b, 0.0), written=(0,))
    counted = [x, w, b, None, True, np.dtype(np.float32), np.ndarray, float]
    bad = np.full_like(x, np.inf)

    def counts() -> list[int]:
        return [sys.getrefcount(one) for one in counted]

    before = counts()
    for _ in range(500):
        several.run(x, w, b)
        single.run(x)
        none.run(w, b, 0.0)
    with np.errstate(all="ignore"):
        several.run(bad, w, b)
    assert max(abs(now - then) for now, then in zip(counts(), before, strict=True)) < 20
    made = several.run(x, w, b)
    plain = FUNCTIONS["batch norm"][0](x, w, b)
    assert [sys.getrefcount(one) for one in made] == [sys.getrefcount(one) for one in plain]
    assert all(one.flags.owndata and one.flags.c_contiguous and one.flags.writeable for one in made)
