"""The loops over time of recurrent layers: native code and NumPy's version against PyTorch in float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.ops.fused_recurrent import gru_p, lstm_p, rnn_p
from glassgrad.ops.kernels import recurrent
from glassgrad.ops.kernels.recurrent import Form
from glassgrad.ops.recurrent_loops import Scan, backward, before, forward
from glassgrad.ops.recurrent_scan import SCANS

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

KINDS = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN", "relu": "RNN"}
SIZES = [(1, 1, 1), (5, 3, 4), (8, 1, 9), (16, 7, 2), (19, 32, 5), (33, 14, 3)]  # hidden, batch, steps
BOUND = {"float32": 3e-5, "float64": 1e-11}


class Wanted(NamedTuple):
    """A layer of PyTorch's in float64: what the loop gets, and what comes out of it."""

    form: Form
    a: Any
    states: list[Any]
    w: Any
    bias: Any
    cotangents: list[Any]
    results: list[Any]
    gradients: dict[str, Any]


def wanted(kind: str, sizes: tuple[int, int, int], reverse: bool, batch_first: bool) -> Wanted:
    hidden, batch, steps = sizes
    rng = np.random.default_rng(hidden + batch + steps)
    torch.manual_seed(hidden)
    options = {"nonlinearity": "relu"} if kind == "relu" else {}
    layer = getattr(torch.nn, KINDS[kind])(3, hidden, batch_first=batch_first, **options).double()
    x = torch.tensor(rng.standard_normal((batch, steps, 3) if batch_first else (steps, batch, 3)))
    states = [torch.tensor(rng.standard_normal((1, batch, hidden))) for _ in range(1 + (kind == "lstm"))]
    for one in states:
        one.requires_grad_()
    time = int(batch_first)
    y, last = layer(x.flip(time) if reverse else x, tuple(states) if kind == "lstm" else states[0])
    y = y.flip(time) if reverse else y
    results = [y, *(last if kind == "lstm" else [last])]
    cotangents = [torch.tensor(rng.standard_normal(tuple(one.shape))) for one in results]
    weights = [layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0]
    found = torch.autograd.grad(results, [*weights, *states], cotangents)
    w_ih, w_hh, b_ih, b_hh = [one.detach().numpy() for one in weights]
    a = x.numpy() @ w_ih.T + b_ih + (0 if kind == "gru" else b_hh)
    gradients = dict(zip(("w_ih", "w_hh", "b_ih", "b_hh", "h", "c"), [one.numpy() for one in found], strict=False))
    arrays = [[one.detach().numpy() for one in group] for group in (states, cotangents, results)]
    arrays = [[group[0] if at else group[0][0], *[one[0] for one in group[1:]]] for at, group in enumerate(arrays)]
    bias = b_hh if kind == "gru" else None
    return Wanted(Form(kind, reverse, batch_first), a, arrays[0], w_hh, bias, *arrays[1:], gradients | {"x": x.numpy()})


def error(found: Any, expected: Any) -> float:
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-9))


def agrees(case: Wanted, dtype: str) -> None:
    """Hold both directions of a loop against PyTorch's layer."""
    single = [np.ascontiguousarray(one, dtype) for one in (case.a, case.w, *case.states, *case.cotangents)]
    a, w, *rest = single
    states, g = tuple(rest[: len(case.states)]), rest[len(case.states) :]
    bias = None if case.bias is None else case.bias.astype(dtype)
    scan = Scan(case.form, a, states, w, bias)
    results, kept = forward(scan)
    assert np.array_equal(a, single[0]), "what is given stays as it is"
    da, dhidden, dstates = backward(scan, g, kept)
    rows, hidden = da.reshape(-1, da.shape[2]), dhidden.reshape(-1, dhidden.shape[2])
    earlier = before(kept.y, states[0], case.form)
    found = {
        "w_ih": rows.T @ case.gradients["x"].reshape(-1, 3), "b_ih": rows.sum(0), "b_hh": hidden.sum(0),
        "w_hh": hidden.T @ earlier.reshape(-1, earlier.shape[2]), "h": dstates[0][None],
    }  # fmt: skip  # a table
    if len(dstates) > 1:
        found["c"] = dstates[1][None]
    for one, expected in zip(results, case.results, strict=True):
        assert error(one, expected) < BOUND[dtype]
    for name, one in found.items():
        assert error(one, case.gradients[name]) < BOUND[dtype], name


@pytest.fixture
def native_loops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let native code run loops of any size; the list grows by the name of each that it ran."""
    pytest.importorskip("llvmlite", reason="native code is made with llvmlite")
    monkeypatch.setattr("glassgrad.ops.kernels.native.kernels.off", False)
    monkeypatch.setattr(recurrent, "FROM", 0)
    monkeypatch.setattr(recurrent, "PACKED_FOR", 0)
    ran: list[str] = []
    made = recurrent.source()
    assert made is not None

    def job(function: str, shares: int) -> Any:
        ran.append(f"{function} {shares}")
        return made[0](function, shares)

    monkeypatch.setattr(recurrent, "source", lambda: (job, made[1]))
    return ran


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_native_loops_are_those_of_pytorch(
    kind: str, threads: int, dtype: str, native_loops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrent, "threads_for", lambda a, w: threads)
    monkeypatch.setattr(recurrent, "A_TURN", 1)  # few rows are cut by columns, however few these are
    recurrent._plan.cache_clear()
    for sizes, reverse, batch_first in itertools.product(SIZES, (False, True), (False, True)):
        native_loops.clear()
        agrees(wanted(kind, sizes, reverse, batch_first), dtype)
        assert len(native_loops) == 2, "one call for each direction"
        if sizes[0] > 32 or sizes[1] > 8:
            assert all(one.endswith(str(threads)) for one in native_loops)
    recurrent._plan.cache_clear()


@pytest.fixture
def other_vectors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let native code be written for vectors of a width that the processor may not have."""
    pytest.importorskip("llvmlite", reason="native code is made with llvmlite")
    from glassgrad.compile.llvm.module.target import host
    from glassgrad.compile.native import products

    kept = (products.code, products.object_code, recurrent._layers)
    monkeypatch.setattr(host(), "vector_bytes", request.param)
    products._JOBS.clear()
    for one in kept:
        one.cache_clear()
    yield
    products._JOBS.clear()
    for one in kept:
        one.cache_clear()


@pytest.mark.parametrize(
    ("kind", "other_vectors"),
    # Of vectors of 64 bytes the exponential is an instruction, which not every processor has; ReLU needs none.
    [("lstm", 16), ("gru", 16), ("rnn", 16), ("relu", 16), ("relu", 64)],
    indirect=["other_vectors"],
)
@pytest.mark.usefixtures("other_vectors")
def test_loops_in_vectors_of_another_width(kind: str, native_loops: list[str]) -> None:
    for sizes in SIZES:
        agrees(wanted(kind, sizes, False, False), "float32")
    assert len(native_loops) == 2 * len(SIZES)


@pytest.mark.parametrize("kind", KINDS)
def test_numpys_loops_are_those_of_pytorch(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "source", lambda: None)
    for sizes, reverse, batch_first in itertools.product(SIZES, (False, True), (False, True)):
        agrees(wanted(kind, sizes, reverse, batch_first), "float64")


@pytest.mark.parametrize("kind", KINDS)
def test_missing_cotangents_are_zeros(kind: str, native_loops: list[str]) -> None:
    case = wanted(kind, (9, 3, 4), False, True)
    scan = Scan(case.form, case.a, tuple(case.states), case.w, case.bias)
    _, kept = forward(scan)
    count = len(case.cotangents)
    for there in itertools.product((False, True), repeat=count):
        some = [one if is_there else None for one, is_there in zip(case.cotangents, there, strict=True)]
        full = [np.zeros_like(one) if part is None else part for one, part in zip(case.cotangents, some, strict=True)]
        found, expected = backward(scan, some, kept), backward(scan, full, kept)
        for one, other in zip([*found[:2], *found[2]], [*expected[:2], *expected[2]], strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(native_loops) == 1 + 2 * 2**count


def test_threads_change_nothing_but_rounding(native_loops: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for threads in (1, 2, 2):
        monkeypatch.setattr(recurrent, "threads_for", lambda a, w, threads=threads: threads)
        case = wanted("lstm", (40, 20, 6), False, False)
        scan = Scan(case.form, case.a, tuple(case.states), case.w)
        results.append(forward(scan)[0][0])
    np.testing.assert_array_equal(results[1], results[2])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-13, atol=1e-14)


def sample(name: str, dtype: str = "float64", **options: Any) -> tuple[list[Any], dict[str, Any]]:
    rng = np.random.default_rng(3)
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[name]
    states = 2 if name == "lstm" else 1
    lead = (2, 3) if options.get("batch_first") else (3, 2)
    shapes = [(*lead, gates * 2), *[(2, 2)] * states, (gates * 2, 2), *([(gates * 2,)] if name == "gru" else [])]
    arrays = [0.5 * rng.standard_normal(shape).astype(dtype) for shape in shapes]
    return arrays, {"reverse": False, "batch_first": False, **options}


CALLS = [
    ("lstm", {}), ("lstm", {"reverse": True}), ("lstm", {"batch_first": True}), ("gru", {}), ("gru", {"reverse": True}),
    ("rnn", {"rectified": False}), ("rnn", {"rectified": True, "batch_first": True}),
]  # fmt: skip  # a table


@pytest.mark.parametrize(("name", "options"), CALLS)
def test_a_loop_as_a_primitive_agrees_with_its_steps(name: str, options: dict[str, Any]) -> None:
    arrays, params = sample(name, **options)
    scan = SCANS[name]
    assert scan.decompose is not None
    found, steps = scan(*arrays, **params), scan.decompose(*arrays, **params)
    assert len(found) == len(steps)
    for one, other, aval in zip(found, steps, scan.abstract(*arrays, **params), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
        assert (one.shape, one.dtype) == aval


@pytest.mark.parametrize(("name", "options"), CALLS)
def test_derivatives_of_loops_are_central_differences(name: str, options: dict[str, Any]) -> None:
    arrays, params = sample(name, **options)
    companions = SCANS[name].companions

    def function(*args: Any) -> Any:
        found = SCANS[name](*args, **params)
        return tuple(found[: len(found) - companions])

    assert gg.autograd.gradcheck(function, [gg.tensor(one, requires_grad=True) for one in arrays])
    assert gg.autograd.gradgradcheck(function, [gg.tensor(one, requires_grad=True) for one in arrays])


@pytest.mark.parametrize(("name", "options"), CALLS)
def test_loops_under_vmap_and_in_forward_mode(name: str, options: dict[str, Any]) -> None:
    arrays, params = sample(name, **options)
    tensors = [gg.tensor(one) for one in arrays]

    def function(*args: Any) -> Any:
        y = SCANS[name](*args, **params)[0]
        return (y * y).sum()

    several = [gg.stack([one, 2 * one]) for one in tensors]
    found = gg.func.vmap(function)(*several)
    for at in range(2):
        np.testing.assert_allclose(found[at].numpy(), function(*[one[at] for one in several]).numpy(), rtol=1e-12)
    tangents = [gg.ones_like(one) for one in tensors]
    _, pushed = gg.func.jvp(function, tuple(tensors), tuple(tangents))
    gradients = gg.func.grad(function, argnums=tuple(range(len(tensors))))(*tensors)
    np.testing.assert_allclose(pushed.numpy(), sum(float(g.sum()) for g in gradients), rtol=1e-10)


@pytest.mark.parametrize(("prim", "states"), [(lstm_p, 2), (gru_p, 1), (rnn_p, 1)])
def test_no_steps_leave_the_states_as_they_are(prim: Any, states: int) -> None:
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[prim.name]
    extra = {"rectified": False} if prim is rnn_p else {}
    first = [gg.tensor(np.full((2, 3), at + 1.0), requires_grad=True) for at in range(states)]
    weights = [gg.ones(gates * 3, 4, dtype=gg.float64), gg.ones(gates * 3, 3, dtype=gg.float64)]
    for shape, batch_first in (((0, 2, 4), False), ((2, 0, 4), True)):
        y, *last = prim(
            gg.zeros(*shape, dtype=gg.float64), *first, *weights, reverse=False, biased=False, ragged=False,
            batch_first=batch_first, **extra,
        )  # fmt: skip  # one call
        assert y.shape == (*shape[:2], 3)
        for one, start in zip(last, first, strict=True):
            np.testing.assert_array_equal(one.numpy(force=True), start.numpy(force=True))
            (g,) = gg.autograd.grad(one.sum(), [start], retain_graph=True)
            np.testing.assert_array_equal(g.numpy(), np.ones((2, 3)))


def test_rows_and_gates_of_another_memory_are_read_right(native_loops: list[str]) -> None:
    case = wanted("gru", (9, 3, 4), False, False)
    a = np.asfortranarray(case.a)
    w = np.asfortranarray(case.w)
    found = forward(Scan(case.form, a, tuple(case.states), w, case.bias))[0]
    assert error(found[0], case.results[0]) < 1e-11
    assert native_loops


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_a_layer_runs_native_loops_and_agrees_with_pytorch(layer: str, native_loops: list[str]) -> None:
    theirs = getattr(torch.nn, layer)(4, 24, 2, batch_first=True, bidirectional=True)
    ours = getattr(nn, layer)(4, 24, 2, batch_first=True, bidirectional=True)
    ours.load_state_dict({name: gg.tensor(one.numpy()) for name, one in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((9, 7, 4)).astype("float32")
    here, there = gg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, state = ours(here)
    expected, their_state = theirs(there)
    state, their_state = (one if isinstance(one, tuple) else (one,) for one in (state, their_state))
    ((y**2).sum() + sum((one**3).sum() for one in state)).backward()
    ((expected**2).sum() + sum((one**3).sum() for one in their_state)).backward()
    np.testing.assert_allclose(y.numpy(force=True), expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(here.grad.numpy(), there.grad.numpy(), rtol=1e-4, atol=1e-5)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=2e-5)
    assert len(native_loops) == 8
