"""`watch(nan=True)`: the first NaN of a loop is named with op, line and operands, and its step undone."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import doctor, errors, nn
from glassgrad.doctor.nans.largest import UNKNOWN, is_number, largest, reader
from glassgrad.engine.mode import FINITE, MODE
from glassgrad.nn import functional as F

HERE = Path(__file__).name


def entropy(logits: Any, targets: Any) -> Any:
    p = F.softmax(logits * 1e6, 1)
    return -(p * p.log()).sum(1).mean()


def hidden_root(logits: Any, targets: Any) -> Any:
    square = (logits - logits) ** 2
    return gg.where(square > 0, square.sqrt(), 0.0).sum() + F.cross_entropy(logits, targets)


def nothing(logits: Any, targets: Any) -> Any:
    return F.cross_entropy(logits * 0.0, targets)


# What the loss is, how the optimizer divides, the title, and words of the report.
BAD: dict[str, tuple[Callable[[Any, Any], Any], float, str, tuple[str, ...]]] = {
    "forward": (entropy, 1e-8, "NaN in the forward pass", ("p = 0.0, p.log() = -inf", "log_softmax", "-> sum")),
    "backward": (hidden_root, 1e-8, "NaN in the backward pass", ("square = 0.0", "where -> sqrt", "safe_where")),
    "optimizer": (nothing, 0.0, "NaN in the step of Adam", ("gradient 0", "eps=1e-8")),
    "data": (F.cross_entropy, 1e-8, "NaN in the data", ("'x'", "first at [3, 1]", "linear")),
}


class Loop:
    """A small training whose state can be compared."""

    def __init__(self, compiled: bool, loss_fn: Callable[[Any, Any], Any] = F.cross_entropy, eps: float = 1e-8) -> None:
        gg.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
        self.optimizer = gg.optim.Adam(self.model.parameters(), lr=0.01, eps=eps)
        self.batches = [(gg.randn(6, 4), gg.randint(0, 3, (6,))) for _ in range(10)]

        def step(x: Any, y: Any) -> Any:
            loss = loss_fn(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            return loss

        self.step = gg.compile(step, backend="numpy") if compiled else step

    def everything(self) -> list[Any]:
        entries = [part for held in self.optimizer.state.values() for part in held.values()]
        tensors = [*self.model.parameters(), *self.model.buffers(), *entries]
        numbers = [np.asarray(t.detach()).tobytes() if isinstance(t, gg.Tensor) else repr(t) for t in tensors]
        return [*numbers, gg.get_rng_state()]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", BAD)
def test_the_producer_is_named_and_the_step_undone(name: str, compiled: bool) -> None:
    loss_fn, eps, rule, words = BAD[name]
    loop = Loop(compiled, loss_fn, eps)
    bad = {"data": 5}.get(name, 0)
    loop.batches[5][0][3, 1] = float("nan" if name == "data" else 1)
    before: list[Any] = []

    def run() -> None:
        for batch in loop.batches:
            before[:] = loop.everything()
            loop.step(*batch)

    watched = doctor.watch(loop.model, loop.optimizer, nan=True, report=False)
    with np.errstate(all="ignore"), watched as seen, pytest.raises(errors.AutogradError) as info:
        run()
    assert str(info.value).startswith(f"step {bad}: {rule}")
    text = str(info.value)
    assert [word for word in (*words, HERE) if word not in text] == []
    assert loop.everything() == before
    assert seen.findings[0].rule.startswith(rule)
    assert (MODE.witness, gg.is_anomaly_enabled()) == (None, False)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_healthy_loop_is_the_same_bit_for_bit(compiled: bool) -> None:
    plain, watched = Loop(compiled), Loop(compiled)
    for batch in plain.batches:
        plain.step(*batch)
    expected = plain.everything()
    watched = Loop(compiled)
    with doctor.watch(watched.model, watched.optimizer, nan=True, inf=True, report=False) as seen:
        for batch in watched.batches:
            loss = watched.step(*batch)
    assert watched.everything() == expected
    assert not any("NaN" in one.rule for one in seen.findings)
    if not compiled:
        with pytest.raises(errors.AutogradError, match="freed"):
            loss.backward()


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_compiled_step_tells_of_weights_that_its_loss_does_not_show(backend: str) -> None:
    """Weights that turn NaN in a step whose loss is fine are seen in that step, after others that were fine."""
    loop = Loop(True, eps=0.0)
    step = gg.compile(loop.step.function, backend=backend)
    states = []

    def run() -> None:
        for at, (x, y) in enumerate(loop.batches):
            x[:, 0] = 0.0  # the gradient of these weights is 0 throughout, and so are its averages
            loop.optimizer.param_groups[0]["eps"] = 0.0 if at == 2 else 1e-8
            states.append(loop.everything())
            step(x, y)

    watched = doctor.watch(loop.model, loop.optimizer, nan=True, report=False)
    with np.errstate(all="ignore"), watched, pytest.raises(errors.AutogradError) as info:
        run()
    assert str(info.value).startswith("step 2: NaN in the step of Adam")
    assert loop.everything() == states[2]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_the_check_in_a_compiled_step_changes_no_bit(optimizer: str) -> None:
    """A sum over new weights joins their loops, which must add up nothing in another order for it."""

    def weights(flags: int) -> tuple[list[bytes], Any]:
        gg.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(600, 3))
        used = getattr(gg.optim, optimizer)(model.parameters(), lr=0.1)

        @gg.compile(threads=1)
        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(model(x), y)
            used.zero_grad()
            loss.backward()
            used.step()
            return loss

        x, y = gg.randn(4, 1, 12, 12), gg.randint(0, 3, (4,))
        before, MODE.finite = MODE.flags, None
        MODE.flags |= flags
        try:
            for _ in range(2):
                step(x, y)
            found = [p.detach().numpy().tobytes() for p in model.parameters()]
            model[0].weight.detach()[5, 0, 1, 2] = float("nan") if flags else 0.0
            told = MODE.finite
            step(x, y)
        finally:
            MODE.flags = before
        assert step.traces == 1
        return found, None if told is None else (told.item(), np.isnan(MODE.finite))

    plain, checked = weights(0), weights(FINITE)
    assert plain == (checked[0], None)
    assert checked[1] == (0.0, True)


def test_arguments_that_were_overwritten_are_told() -> None:
    loop = Loop(True)
    x, y = loop.batches[0]

    def run() -> None:
        for at in range(20):
            x[...] = gg.randn(6, 4) if at < 12 else float("nan")
            loop.step(x, y)

    watched = doctor.watch(loop.model, loop.optimizer, nan=True, report=False)
    with np.errstate(all="ignore"), watched as seen, pytest.raises(errors.AutogradError, match="overwritten"):
        run()
    assert seen.findings[0].rule == "NaN in the data"


def test_a_loop_that_catches_the_error_goes_on() -> None:
    loop = Loop(False)
    loop.batches[4][0][0, 0] = float("nan")
    caught = 0
    with np.errstate(all="ignore"), doctor.watch(loop.model, loop.optimizer, nan=True, report=False) as seen:
        for batch in loop.batches:
            try:
                loop.step(*batch)
            except errors.AutogradError:
                caught += 1
    assert (caught, seen.calls.steps) == (1, 9)
    assert all(np.isfinite(p.detach().numpy()).all() for p in loop.model.parameters())


@pytest.mark.parametrize("way", ["op", "module", "block", "neither"])
def test_infinities_on_request_and_those_that_are_meant(way: str) -> None:
    class Masked(nn.Module):
        def forward(self, scores: Any) -> Any:
            return scores + gg.tensor([1.0, 0.0, 1.0]).log()  # a mask of 0 and -inf

    gg.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), Masked())
    batch = gg.randn(2, 4), gg.tensor([0, 2])

    def loss_fn(scores: Any, y: Any) -> Any:
        return F.cross_entropy(scores, y)

    allow = {"op": ["log"], "module": ["1"]}.get(way, [])
    if way == "block":
        inner = model[1].forward
        model[1].forward = lambda scores: _meant(inner, scores)
    found = doctor.nan_origin(model, batch, loss_fn, inf=True, allow=allow)
    assert (found is None) == (way != "neither")
    if found is not None:
        assert found.rule == "inf in the forward pass of the model"
        assert "log at " in found.what
        assert "in 1 (Masked) made 1 of 3 elements infinite, the first at [1]" in found.what
    assert doctor.nan_origin(model, batch, loss_fn) is None
    with pytest.raises(errors.ArgumentError, match="neither an op nor a module of the model; its modules: 0, 1"):
        doctor.nan_origin(model, batch, loss_fn, allow=["masks"])


def _meant(function: Callable[[Any], Any], scores: Any) -> Any:
    with doctor.allow_nonfinite():
        return function(scores)


# What is done to a loop of PyTorch's, the step that is bad, its title, and words of the report.
TORCH: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "data": (2, "NaN in the data", ("input 1 of the model", "first at [3, 1]")),
    "loss": (
        2,
        "NaN in the forward pass of the loss",
        ("log at", "; mul at", "log_softmax", "log -> mul -> sum -> mean"),
    ),
    "branch": (2, "NaN in the backward pass", ("where() does not take", "loss by add -> sum -> where -> sqrt", HERE)),
    "optimizer": (0, "NaN in the step of Adam", ("gradient 0", "eps=1e-8")),
    "nothing": (-1, "", ()),
}


@pytest.mark.parametrize("name", TORCH)
def test_a_loop_of_pytorch_is_guarded(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the model is PyTorch's")
    functional, layers = torch.nn.functional, torch.nn
    torch.manual_seed(0)
    model = layers.Sequential(layers.Linear(4, 6), layers.BatchNorm1d(6), layers.ReLU(), layers.Linear(6, 3))
    optimizer = torch.optim.Adam(model.parameters(), eps=0.0 if name == "optimizer" else 1e-8)
    bad, title, words = TORCH[name]
    before: list[Any] = []

    def run() -> None:
        for at in range(4):
            x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
            x = x * 0 if name == "optimizer" else x
            if at == bad and name == "data":
                x[3, 1] = float("nan")
            before[:] = [part.clone() for part in model.state_dict().values()]
            optimizer.zero_grad()
            out = model(x)
            if at == bad and name == "loss":
                p = (out * 1e6).softmax(1)
                loss = (p * p.log()).sum(1).mean()
            elif at == bad and name == "branch":
                square = (out - out) ** 2
                loss = torch.where(square > 0, square.sqrt(), 0.0).sum() + functional.cross_entropy(out, y)
            else:
                loss = functional.cross_entropy(out, y)
            loss.backward()
            optimizer.step()

    with doctor.watch(model, optimizer, nan=True, report=False) as seen:
        if bad < 0:
            run()
            assert not any("NaN" in one.rule for one in seen.findings)
            return
        with pytest.raises(errors.AutogradError) as info:
            run()
    text = str(info.value)
    assert text.startswith(f"step {bad}: {title}")
    assert [word for word in words if word not in text] == []
    assert all(torch.equal(one, part) for one, part in zip(model.state_dict().values(), before, strict=True))
    assert seen.findings[0].rule.startswith(title)
    assert torch.overrides._get_current_function_mode() is None


def test_layers_by_hand_are_not_guarded() -> None:
    from glassgrad import manual

    with pytest.raises(errors.KindError, match="hand-written layers"):
        doctor.watch(manual.Net(manual.Linear(2, 1)), nan=True)


def test_gradients_under_a_scaler_are_its_own_business() -> None:
    loop = Loop(False)
    scaler = gg.amp.GradScaler(init_scale=3e38)
    with np.errstate(all="ignore"), doctor.watch(loop.model, loop.optimizer, nan=True, report=False) as seen:
        for x, y in loop.batches[:4]:
            loop.optimizer.zero_grad()
            scaler.scale(F.cross_entropy(loop.model(x), y) * 100).backward()
            scaler.step(loop.optimizer)
            scaler.update()
    assert not any("NaN" in one.rule for one in seen.findings)


@pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.complex64])
def test_one_look_tells_nan_infinity_and_large_numbers_apart(
    dtype: Any, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr("glassgrad.doctor.nans.largest.reader", lambda: lambda *arrays: UNKNOWN)
    with np.errstate(all="raise", under="ignore", over="ignore"):
        for bad, plain, strict in ((1.0, True, True), (6e4, True, True), (np.inf, True, False), (np.nan, False, False)):
            array = np.ones((3, 5), dtype)
            array[1, 2] = bad
            for view in (array, array.T, array[:, ::2]):
                size = largest(np.ones(3, np.float32), view)
                assert (is_number(size, False), is_number(size, True)) == (plain, strict)
    assert largest(np.full(4, 1e30, np.float32)) == pytest.approx(1e30)
    assert largest(np.arange(3), np.full(1, 2.0)) == 2
    assert largest() == largest(np.empty((0, 3), np.float32)) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_native_code_finds_the_largest_at_every_place(dtype: Any) -> None:
    pytest.importorskip("llvmlite", reason="native code is made with llvmlite")
    read = reader()
    for count in (1, 2, 7, 16, 63, 64, 65, 200):
        array = np.random.default_rng(count).normal(size=count).astype(dtype)
        assert read(array) == np.abs(array).max()
        for at in range(count):
            for bad in (-1e9, -np.inf, -np.nan):
                spoilt = array.copy()
                spoilt[at] = bad
                np.testing.assert_equal(read(array, spoilt, array), np.abs(spoilt[at]).astype(dtype))
    assert read(array[::2]) == read(array.astype(">f4")) == read([1.0]) == UNKNOWN


def test_a_step_that_is_not_sampled_makes_few_calls_more_whatever_the_number_of_weights() -> None:
    def calls(layers: int, watched: bool) -> int:
        model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(layers)])
        x, optimizer = gg.randn(3, 4), gg.optim.SGD(model.parameters(), lr=0.01)

        def step() -> None:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        counted: list[str] = []
        with doctor.watch(model, optimizer, every=10**6, nan=True, report=False) if watched else nullcontext():
            for _ in range(71):  # the first calls are named; copies are made every eighth step
                step()
            gc.disable()  # what other tests left behind is not collected, and calls nothing, within the counted step
            sys.setprofile(lambda frame, event, _: counted.append(frame.f_code.co_name) if event == "call" else None)
            step()
            sys.setprofile(None)
            gc.enable()
        return len(counted)

    few, many = (calls(layers, True) - calls(layers, False) for layers in (2, 6))
    assert few == many < 20


def test_a_guard_inside_of_a_plain_watch_sees_the_gradients() -> None:
    model = nn.Linear(3, 1)
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    with doctor.watch(model, report=False), doctor.watch(model, optimizer, nan=True, report=False) as seen:
        for _ in range(3):
            optimizer.zero_grad()
            model(gg.ones(2, 3)).square().mean().backward()
            optimizer.step()
        with np.errstate(all="ignore"), pytest.raises(errors.AutogradError, match="NaN in the backward pass"):
            (model(gg.ones(2, 3)) * 0.0).sqrt().sum().backward()
    assert seen.calls.steps == 3
