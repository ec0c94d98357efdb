"""`watch(nan=True)`: the first NaN of a loop is named with op, line and operands, and its step undone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import doctor, errors, nn
from glassgrad.doctor.nans.state import look
from glassgrad.engine.mode import MODE
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


def test_a_compiled_step_is_found_again_among_those_since_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that turn NaN in a step whose loss is fine: seen calls later, traced back, restored to before it."""
    monkeypatch.setattr("glassgrad.doctor.nans.compiled_steps._FIRST", 0)
    monkeypatch.setattr("glassgrad.doctor.nans.compiled_steps._SHARE", 0.0)
    loop = Loop(True, eps=0.0)
    x, y = loop.batches[3]
    loop.batches[3] = (gg.zeros_like(x), y)
    states = []

    def run() -> None:
        for batch in [loop.batches[3], *loop.batches]:
            states.append(loop.everything())
            loop.step(*batch)

    watched = doctor.watch(loop.model, loop.optimizer, nan=True, report=False)
    with np.errstate(all="ignore"), watched, pytest.raises(errors.AutogradError) as info:
        run()
    assert str(info.value).startswith("step 0: NaN in the step of Adam")
    assert "It was noticed 1 calls later" in str(info.value)
    assert loop.everything() == states[0]


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
    assert seen.findings[0].rule == "NaN in a compiled step"


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


def test_only_loops_of_ours_are_guarded() -> None:
    torch = pytest.importorskip("torch", reason="the model is PyTorch's")
    with pytest.raises(errors.KindError, match=r"given torch\.nn.*Linear\.\nNext: doctor\.nan_origin"):
        doctor.watch(torch.nn.Linear(2, 1), nan=True)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.complex64])
def test_one_look_tells_nan_infinity_and_large_numbers_apart(dtype: Any) -> None:
    with np.errstate(all="raise", under="ignore"):
        for bad, plain, strict in ((1.0, True, True), (6e4, True, True), (np.inf, True, False), (np.nan, False, False)):
            array = np.ones((3, 5), dtype)
            array[1, 2] = bad
            for view in (array, array.T, array[:, ::2]):
                assert (not np.isnan(look([view])), not np.isnan(look([view], inf=True))) == (plain, strict)
    assert not np.isnan(look([np.full(4, 1e30, np.float32)], inf=True))
    assert look([np.arange(3), np.full(2, 2.0)]) == 8
