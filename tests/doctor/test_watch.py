"""`watch`: the events of a loop in each library, the named faults, and that it changes nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import manual
from glassgrad.doctor import watch
from glassgrad.doctor.graphs.graph import Labels
from glassgrad.doctor.observers.sampling import Schedule
from glassgrad.doctor.rules import RUN_RULES, apply
from glassgrad.doctor.run import Run
from tests.doctor.faults import FAULTS, cases, five, judge
from tests.doctor.small_models import digits_mlp
from tests.doctor.trainings import TUNING, entropy

torch = pytest.importorskip("torch", reason="PyTorch's loops are watched as well")

LIBRARIES = pytest.mark.parametrize("lib", [gg, torch], ids=["ours", "torch"])
LIB = {"ours": gg, "torch": torch}
RNG = np.random.default_rng(4)
X = RNG.normal(size=(64, 6)).astype(np.float32)
Y = RNG.integers(0, 3, 64)


def titles(seen: Any, *severities: str) -> list[str]:
    return [one.rule for one in seen.findings if not severities or one.severity in severities]


def net(lib: Any) -> Any:
    lib.manual_seed(1)
    return lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.Tanh(), lib.nn.Linear(16, 3))


def loop(lib: Any, order: str = "zbs", steps: int = 10, **options: Any) -> tuple[Any, Any]:
    model = net(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = lib.tensor(X), lib.tensor(Y)
    with watch(model, optimizer, report=False, **options) as seen:
        for _ in range(steps):
            loss = lib.nn.functional.cross_entropy(model(x), y)
            for call in order:
                {"z": optimizer.zero_grad, "b": loss.backward, "s": optimizer.step}[call]()
    return seen, model


# --- the calls ---


@LIBRARIES
def test_a_healthy_loop_has_no_findings(lib: Any) -> None:
    seen, _ = loop(lib)
    assert titles(seen, "error", "warning") == []
    assert seen.calls.steps == 10
    assert seen.calls.sequence.startswith("FBSFBS")
    assert seen.data.steps.tolist()[:6] == [0, 1, 2, 3, 4, 5]
    assert np.isfinite(seen.data.update_norm[:6]).all()
    assert seen.data.activations == ("0", "1", "2")
    assert np.isfinite(seen.data.gradient_cosine[1:6]).all()
    np.testing.assert_allclose(seen.data.batch[:6], 64)


@LIBRARIES
def test_the_statistics_are_those_of_the_monitor(lib: Any) -> None:
    seen, _ = loop(lib, every=2)
    model = net(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    monitor = gg.GradientMonitor(model, every=2)
    for _ in range(10):
        loss = lib.nn.functional.cross_entropy(model(lib.tensor(X)), lib.tensor(Y))
        optimizer.zero_grad()
        loss.backward()
        monitor.update(loss)
        optimizer.step()
    monitor.close()
    for name in (
        "loss",
        "gradient_norm",
        "gradient_std",
        "parameter_mean",
        "update_norm",
        "activation_std",
        "total_norm",
    ):
        np.testing.assert_allclose(getattr(seen.data, name), getattr(monitor.data, name), rtol=1e-6, err_msg=name)


@LIBRARIES
def test_a_missing_zero_grad_is_named_with_both_lines(lib: Any) -> None:
    seen, _ = loop(lib, "bs")
    (found,) = [one for one in seen.findings if one.rule == "zero_grad is missing"]
    assert found.severity == "error"
    assert len(re.findall(r"test_watch\.py:\d+", found.what)) == 2
    assert found.remedy.startswith("optimizer.zero_grad()")
    assert len(found.evidence) >= 2
    assert found.value > found.threshold


@LIBRARIES
def test_an_optimizer_of_some_parameters_zeroes_those_alone(lib: Any) -> None:
    model = net(lib)
    optimizer = lib.optim.SGD(model[0].parameters(), lr=0.1)
    with watch(model, optimizer, report=False) as seen:
        for _ in range(6):
            optimizer.zero_grad()
            lib.nn.functional.cross_entropy(model(lib.tensor(X)), lib.tensor(Y)).backward()
            optimizer.step()
    assert titles(seen, "error", "warning") == ["parameters without an optimizer"]


@LIBRARIES
def test_gradients_summed_over_micro_batches_are_no_fault(lib: Any) -> None:
    model = net(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.05)
    with watch(model, optimizer, report=False) as seen:
        for _ in range(6):
            for part in range(4):
                rows = slice(16 * part, 16 * part + 16)
                (lib.nn.functional.cross_entropy(model(lib.tensor(X[rows])), lib.tensor(Y[rows])) / 4).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert titles(seen, "error", "warning") == []
    assert seen.calls.steps == 6


@LIBRARIES
def test_what_another_loss_leaves_behind_is_no_fault(lib: Any) -> None:
    """A second loss writes to the gradients of this model between its steps, as in adversarial training."""
    model, other = net(lib), net(lib)
    mine = lib.optim.SGD(model.parameters(), lr=0.05)
    theirs = lib.optim.SGD(other.parameters(), lr=0.05)
    with watch(model, mine, report=False) as seen:
        for _ in range(6):
            mine.zero_grad()
            lib.nn.functional.cross_entropy(model(lib.tensor(X)), lib.tensor(Y)).backward()
            mine.step()
            theirs.zero_grad()
            lib.nn.functional.cross_entropy(model(lib.tensor(X)) + other(lib.tensor(X)), lib.tensor(Y)).backward()
            theirs.step()
    assert "zero_grad is missing" not in titles(seen)


def test_a_compiled_step_is_watched_and_its_missing_zero_grad_named() -> None:
    def trained(order: str) -> Any:
        model = net(gg)
        optimizer = gg.optim.SGD(model.parameters(), lr=0.1)

        @gg.compile
        def step(x: Any, y: Any) -> Any:
            loss = gg.nn.functional.cross_entropy(model(x), y)
            if "z" in order:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        with watch(model, optimizer, report=False) as seen:
            for _ in range(10):
                step(gg.tensor(X), gg.tensor(Y))
        return seen, step

    seen, step = trained("zbs")
    assert titles(seen, "error", "warning") == []
    assert seen.calls.steps == 10
    assert step.traces == 1
    assert len(seen.run.losses) == 10
    assert np.isfinite(seen.data.update_norm).any()
    seen, _ = trained("bs")
    assert "zero_grad is missing" in titles(seen, "error")


@pytest.mark.parametrize("keep", [True, False])
def test_a_compiled_step_is_looked_into_and_its_bytes_stay_the_same(keep: bool) -> None:
    """A sampled step is run eagerly as well, aside: activations, gradients and labels are its own."""

    def trained(watched: bool) -> tuple[Any, list[bytes]]:
        gg.manual_seed(3)
        model = gg.nn.Sequential(
            gg.nn.Linear(6, 16), gg.nn.ReLU(), gg.nn.BatchNorm1d(16), gg.nn.Dropout(0.5), gg.nn.Linear(16, 3)
        )
        optimizer = gg.optim.Adam(model.parameters(), lr=0.01)

        @gg.compile(backend="numpy", keep_grads=keep)
        def step(x: Any, y: Any) -> Any:
            loss = entropy(gg, model(x), y)
            optimizer.zero_grad()
            loss.backward()
            gg.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return loss

        seen = watch(model, optimizer, report=False)
        with seen if watched else contextlib.nullcontext():
            for _ in range(9):
                step(gg.tensor(X), gg.tensor(Y))
        assert step.traces == 1
        return seen, [v.numpy().tobytes() for v in model.state_dict().values()] + [gg.rand(3).numpy().tobytes()]

    seen, watched = trained(True)
    assert watched == trained(False)[1]
    data = seen.data
    assert data.activations == ("0", "1", "2", "3", "4")
    assert np.isfinite(data.activation_std[1:]).all()
    assert (data.total_norm_clipped[1:] <= 0.5 + 1e-6).all()
    assert (data.total_norm[1:] > 0.5).any()
    assert np.isfinite(data.gradient_cosine[2:]).all()
    assert seen.run.labels[0][1].classes == 3
    assert seen.run.unseen == ()


def test_what_economy_does_not_look_at_is_said() -> None:
    model = net(gg)
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)

    @gg.compile(backend="numpy")
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    text = io.StringIO()
    with watch(model, optimizer, preset="economy", file=text):
        for _ in range(4):
            step(gg.tensor(X))
    assert "not examined: the inside of the compiled step" in text.getvalue()


def test_layers_by_hand_are_watched() -> None:
    def trained(zero: bool) -> Any:
        network = manual.Net(manual.Linear(6, 16), manual.Tanh(), manual.Linear(16, 3))
        loss, adam = manual.CrossEntropyLoss(), manual.Adam(network.parameters(), lr=0.01)
        with watch(network, adam, report=False) as seen:
            for _ in range(10):
                if zero:
                    adam.zero_grad()
                loss(network(X), Y)
                network.backward(loss.backward())
                adam.step()
        assert "forward" not in vars(network)
        assert "step" not in vars(adam)
        return seen

    assert titles(trained(True), "error", "warning") == []
    assert "zero_grad is missing" in titles(trained(False), "error")


# --- nothing changes ---


@LIBRARIES
@pytest.mark.parametrize("preset", ["economy", "standard", "full"])
def test_weights_and_random_numbers_are_the_same_bytes(lib: Any, preset: str) -> None:
    def trained(watched: bool) -> list[bytes]:
        lib.manual_seed(3)
        model = lib.nn.Sequential(
            lib.nn.Linear(6, 16), lib.nn.BatchNorm1d(16), lib.nn.Dropout(0.5), lib.nn.Linear(16, 3)
        )
        optimizer = lib.optim.Adam(model.parameters(), lr=0.01)
        step = lambda: entropy(lib, model(lib.tensor(X)), lib.tensor(Y))
        seen = watch(model, optimizer, preset=preset, report=False)
        if watched:
            seen.__enter__()
        for _ in range(12):
            optimizer.zero_grad()
            step().backward()
            optimizer.step()
        if watched:
            seen.__exit__(None, None, None)
            assert len(seen.data) >= 2
        return [value.numpy().tobytes() for value in model.state_dict().values()] + [lib.rand(3).numpy().tobytes()]

    assert trained(True) == trained(False)


@LIBRARIES
def test_no_hook_stays_behind(lib: Any) -> None:
    _, model = loop(lib)
    if lib is gg:
        assert all(part._hooks is None for part in model.modules())
        from glassgrad.compile.api import Compiled
        from glassgrad.engine.mode import MODE

        assert MODE.witness is None
        assert Compiled.__call__.__module__ == "glassgrad.compile.api"
        assert not hasattr(Compiled.__call__, "__wrapped__")
    else:
        assert not any(part._forward_hooks for part in model.modules())
        assert torch.overrides._get_current_function_mode() is None


@LIBRARIES
def test_an_error_in_the_loop_is_told_and_goes_on(lib: Any) -> None:
    model = net(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model, optimizer, report=False)

    def stopped() -> None:
        with seen:
            model(lib.tensor(X))
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        stopped()
    assert "stopped" in titles(seen, "error")
    assert "ValueError: enough" in seen.findings[0].what


# --- what is said ---


def test_the_report_is_printed_when_the_block_ends() -> None:
    text = io.StringIO()
    model = net(gg)
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer, file=text):
        for _ in range(4):
            entropy(gg, model(gg.tensor(X)), gg.tensor(Y)).backward()
            optimizer.step()
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("findings     1   (4 steps watched, 4 sampled)")
    assert any("ERROR    zero_grad is missing" in line for line in lines)
    assert any("optimizer.zero_grad()" in line for line in lines)
    assert max(map(len, lines)) <= 100


def test_wrong_arguments_are_clear_errors() -> None:
    with pytest.raises(gg.errors.ArgumentError, match="no preset is called 'cheap'; there are economy, standard, full"):
        watch(net(gg), preset="cheap")
    with pytest.raises(gg.errors.KindError, match="watch expects a model"):
        watch(3)
    for model, optimizer in ((net(gg), 3), (net(torch), gg.optim.SGD(net(gg).parameters(), lr=0.1))):
        with pytest.raises(gg.errors.KindError, match="watch expects the optimizer that trains Sequential"):
            watch(model, optimizer)


@LIBRARIES
def test_no_seed_is_told(lib: Any) -> None:
    seen, _ = loop(lib)
    assert "no seed" not in titles(seen)
    if lib is torch:
        torch.seed()
        model = torch.nn.Linear(6, 3)
    else:
        from glassgrad.engine import random

        kept = random.default_generator
        random.default_generator = random.Generator()
        random.default_generator._start(0)
        model = gg.nn.Linear(6, 3)
    try:
        with watch(model, report=False) as seen:
            pass
    finally:
        if lib is gg:
            random.default_generator = kept
    (found,) = [one for one in seen.findings if one.rule == "no seed" and "NumPy" not in one.what]
    assert "test_watch.py" in found.where


# --- a few of the planted faults; all of them are in faults.py ---


def test_every_fault_names_rules_that_there_are() -> None:
    rules = {rule.name for rule in RUN_RULES}
    assert {name for fault in FAULTS for name in fault.found_by} <= rules


SOME = [
    case
    for case in cases("tuning")
    if case[2] == "ours" and case[0] == "fault" and "digits MLP" in case[1] and case[3].steps < 100
][::4]


@pytest.mark.parametrize("case", SOME, ids=[case[1] for case in SOME])
def test_planted_faults_are_found(case: Any) -> None:
    _, _, library, training, fault = case
    good, found = judge(dataclasses.replace(training, steps=min(training.steps, 14)), LIB[library], 1, fault)
    assert good, found


@LIBRARIES
@pytest.mark.parametrize("task", ["digits CNN", "LSTM", "GPT"])
def test_healthy_trainings_raise_no_alarm(lib: Any, task: str) -> None:
    good, found = judge(dataclasses.replace(TUNING[task], steps=12), lib, 1, None)
    assert good, found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fault", "healthy"])
def test_the_bench(kind: str, data_dir: Path) -> None:
    """Recall of at least 0.95, at most 4 % of the healthy runs with a warning."""
    found = [judge(case[3], LIB[case[2]], 1, case[4])[0] for case in cases("reporting") if case[0] == kind]
    assert len(found) >= 48
    assert np.mean(found) >= (0.95 if kind == "fault" else 0.96)


@pytest.mark.parametrize("library", ["glassgrad", "torch"])
def test_five_faults_in_one_loop_are_all_named_with_their_lines(library: str) -> None:
    assert five(library, 1) == set()


@pytest.mark.slow
@pytest.mark.parametrize("library", ["glassgrad", "torch"])
def test_five_faults_are_named_at_every_seed(library: str) -> None:
    assert [five(library, seed) for seed in range(20)] == [set()] * 20


@LIBRARIES
def test_dead_units_are_counted_over_all_samples(lib: Any) -> None:
    training = dataclasses.replace(TUNING["digits MLP"], steps=8)
    seen = training.run(lib, 0)
    assert set(seen.run.dead) == {"2", "4"}
    assert max(dead.share for dead in seen.run.dead.values()) < 0.5
    assert digits_mlp(lib)[2].__class__.__name__ == "ReLU"


@LIBRARIES
@pytest.mark.parametrize("wakes", [False, True])
def test_a_unit_is_dead_if_it_is_zero_in_all_steps_and_not_only_in_sampled_ones(
    lib: Any, wakes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Schedule, "due", lambda self, step: step < 6)
    monkeypatch.setattr(Schedule, "spent", False)
    lib.manual_seed(1)
    model = lib.nn.Sequential(lib.nn.Linear(6, 16), lib.nn.ReLU(), lib.nn.Linear(16, 3))
    with lib.no_grad():
        model[0].bias -= 100.0
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    seen = watch(model, optimizer, report=False)
    with seen:
        for step in range(40):
            awake = wakes and step == 20
            loss = entropy(lib, model(lib.tensor(X + (1e4 if awake else 0))), lib.tensor(Y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dead = seen.run.dead["1"]
    assert len(seen.data) == 6
    assert (dead.first, dead.last, dead.seen, dead.examples) == (0, 39, 40, 40 * 64)
    assert (dead.share < 1) == wakes
    assert ("dead units" in titles(seen)) == (dead.share > 0.5)


def curves(train: Any, held: Any, classes: int = 10) -> list[str]:
    """Return the findings about losses of training and of examples set aside."""
    losses = np.stack([np.arange(len(train)), train], axis=1).astype(float)
    aside = np.stack([np.linspace(0, len(train), len(held)), held], axis=1)
    run = Run(losses=losses, held_out=aside, labels=((0, Labels(32, classes, False, classes)),))
    return [f"{one.severity} {one.rule}" for one in apply(RUN_RULES, run)]


def test_overfitting_and_underfitting_are_told_from_losses_set_aside() -> None:
    falls = np.linspace(2.3, 0.1, 100)
    assert curves(falls, [2.3, 1.0, 0.5, 0.3]) == []
    assert curves(falls, [2.3, 1.0, 0.8, 1.1]) == ["info overfitting"]
    assert curves(falls, [2.3, 1.0, 0.8, 2.0]) == ["warning overfitting"]
    rests = np.concatenate([np.linspace(2.3, 1.8, 20), np.full(80, 1.8)])
    assert curves(rests, [2.3, 1.9, 1.85, 1.85]) == ["info underfitting"]
    assert curves(np.linspace(2.3, 1.8, 100), [2.3, 1.9, 1.85, 1.85]) == []


def test_losses_set_aside_are_handed_to_the_watch() -> None:
    seen = watch(net(gg), report=False)
    seen.held_out(gg.tensor(0.5))
    seen.held_out(0.25)
    assert seen.run.held_out.tolist() == [[0, 0.5], [0, 0.25]]
    with pytest.raises(gg.errors.KindError, match=r"one number; given shape \[3\]"):
        seen.held_out(gg.ones(3))


@LIBRARIES
def test_losses_of_other_models_are_not_taken_for_this_ones(lib: Any) -> None:
    model, other = net(lib), net(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.05)
    x, y = lib.tensor(X), lib.tensor(Y)
    with watch(model, optimizer, report=False, every=1) as seen:
        for _ in range(4):
            (100 * lib.nn.functional.cross_entropy(lib.softmax(other(x), 1), y)).backward()
            optimizer.zero_grad()
            lib.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        for _ in range(8):
            (100 * lib.nn.functional.cross_entropy(lib.softmax(other(x), 1), y)).backward()
    assert len(seen.run.losses) == 4
    assert seen.run.losses[:, 1].max() < 2
    assert titles(seen, "error", "warning") == []
