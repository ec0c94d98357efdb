"""`watch`: what it hears of a loop in each library, that it names what is wrong, and that it changes nothing."""

from __future__ import annotations

import dataclasses
import io
import re
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import manual
from glassgrad.doctor import watch
from glassgrad.doctor.rules import RUN_RULES
from tests.doctor.faults import FAULTS, cases, five, judge
from tests.doctor.trainings import TASKS, digits_mlp, entropy

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
    for case in cases()
    if case[2] == "ours" and case[0] == "fault" and "digits MLP" in case[1] and "mixed up" not in case[1]
][::4]


@pytest.mark.parametrize("case", SOME, ids=[case[1] for case in SOME])
def test_planted_faults_are_found(case: Any) -> None:
    kind, _, library, training, found_by, _ = case
    good, found = judge(kind, dataclasses.replace(training, steps=min(training.steps, 14)), LIB[library], 1, found_by)
    assert good, found


@LIBRARIES
@pytest.mark.parametrize("task", ["digits CNN", "LSTM", "GPT"])
def test_healthy_trainings_raise_no_alarm(lib: Any, task: str) -> None:
    good, found = judge("healthy", dataclasses.replace(TASKS[task], steps=12), lib, 1, ())
    assert good, found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fault", "healthy"])
def test_the_bench(kind: str) -> None:
    """Recall of at least 0.95, at most 4 % of the healthy runs with a warning."""
    results = [judge(case[0], case[3], LIB[case[2]], 1, case[4])[0] for case in cases() if case[0] == kind]
    assert len(results) >= 48
    assert np.mean(results) >= (0.95 if kind == "fault" else 0.96)


@pytest.mark.parametrize("library", ["glassgrad", "torch"])
def test_five_faults_in_one_loop_are_all_named_with_their_lines(library: str) -> None:
    assert five(library, 1) == set()


@pytest.mark.slow
@pytest.mark.parametrize("library", ["glassgrad", "torch"])
def test_five_faults_are_named_at_every_seed(library: str) -> None:
    assert [five(library, seed) for seed in range(20)] == [set()] * 20


@LIBRARIES
def test_dead_units_are_counted_over_all_samples(lib: Any) -> None:
    training = dataclasses.replace(TASKS["digits MLP"], steps=8)
    seen = training.run(lib, 0)
    assert set(seen.run.throughout) == {"2", "4"}
    assert max(seen.run.throughout.values()) < 0.5
    assert digits_mlp(lib)[2].__class__.__name__ == "ReLU"


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
