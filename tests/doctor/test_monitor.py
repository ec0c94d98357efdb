"""GradientMonitor: the sampled steps, the cost, no lasting change, and the written file."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.doctor import MonitorData
from glassgrad.doctor.quantities import FIELDS
from tests.doctor.pairs import batch, perceptron

F = gg.nn.functional


def setup(name: str = "perceptron") -> tuple[Any, Any, Any]:
    gg.manual_seed(3)
    x, y = batch(name)
    return perceptron(gg), gg.tensor(x.astype(np.float32)), gg.tensor(y)


def run(monitor: Any, model: Any, x: Any, y: Any, steps: int) -> None:
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        monitor.update(loss)
        optimizer.step()


def same(a: MonitorData, b: MonitorData) -> None:
    for name, value in vars(a).items():
        np.testing.assert_array_equal(value, getattr(b, name), err_msg=name)


# --- when it looks ---


def test_samples_are_taken_at_multiples_of_every_and_hooks_are_there_for_those_alone() -> None:
    model, x, y = setup()
    monitor = gg.GradientMonitor(model, every=3)
    attached = []
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        attached.append(model[0]._hooks is not None)
        assert attached[-1] == monitor.due
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        monitor.update(loss)
        optimizer.step()
    assert attached == [step % 3 == 0 for step in range(8)]
    assert monitor.data.steps.tolist() == [0, 3, 6]
    assert np.isfinite(monitor.data.update_norm).all()
    assert np.isnan(monitor.data.total_norm_clipped).all()


def test_a_step_that_is_not_sampled_touches_no_parameter() -> None:
    class Counting(list):
        reads = 0

        def __iter__(self) -> Any:
            Counting.reads += 1
            return super().__iter__()

    model, x, y = setup()
    monitor = gg.GradientMonitor(model, every=5)
    monitor._parameters = monitor._sampler._named = Counting(monitor._parameters)
    reads = []
    for _ in range(10):
        F.cross_entropy(model(x), y).backward()
        monitor.update()
        monitor.update_after_clip()
        reads.append(Counting.reads)
    # Steps 0 and 5 measure; 1 and 6 see how far the weights have moved.
    assert [after - before for before, after in itertools.pairwise(reads)] == [1, 0, 0, 0, 3, 1, 0, 0, 0]


def test_a_forward_pass_without_gradients_in_between_is_not_counted() -> None:
    model, x, y = setup()
    monitor = gg.GradientMonitor(model)
    with gg.no_grad():
        model(x * 1e6)
    F.cross_entropy(model(x), y).backward()
    monitor.update()
    assert monitor.data.activation_abs_max[0, 0] < 1e3


def test_several_passes_before_an_update_are_added_up() -> None:
    model, x, y = setup()
    monitor = gg.GradientMonitor(model)
    with gg.no_grad():
        outputs = [model[0](part).numpy() for part in (x[:3], x[3:])]
    for part, labels in ((x[:3], y[:3]), (x[3:], y[3:])):
        F.cross_entropy(model(part), labels).backward()
    monitor.update()
    whole = np.concatenate(outputs)
    data = monitor.data
    assert data.activation_mean[0, 0] == pytest.approx(whole.mean(), rel=1e-5)
    assert data.activation_std[0, 0] == pytest.approx(whole.std(), rel=1e-5)
    assert data.activation_dead[0, 1] == pytest.approx((whole <= 0).all(0).mean())


def test_a_parameter_without_gradient_is_unknown_not_zero() -> None:
    model, x, y = setup()
    model[0].weight.requires_grad = False
    monitor = gg.GradientMonitor(model)
    F.cross_entropy(model(x), y).backward()
    monitor.update()
    data = monitor.data
    assert np.isnan(data.gradient_norm[0, 0])
    assert np.isfinite(data.parameter_norm).all()
    assert np.isfinite(data.total_norm[0])
    assert data.gradient_counts[0].sum(-1).tolist() == [0, 6, 30, 5, 15, 3]


def test_too_many_samples_are_thinned_and_the_distance_doubles() -> None:
    model, x, y = setup()
    monitor = gg.GradientMonitor(model, keep=4)
    run(monitor, model, x, y, 11)
    data = monitor.data
    assert data.every == monitor.every == 4
    assert data.steps.tolist() == [0, 4, 8]


# --- nothing is left behind ---


def state(model: Any, optimizer: Any) -> list[bytes]:
    arrays = [tensor.numpy().tobytes() for tensor in model.state_dict().values()]
    return [*arrays, *[repr(generator.get_state()).encode() for generator in (gg.random.default_generator,)]]


def noisy() -> Any:
    gg.manual_seed(7)
    nn = gg.nn
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_observed_training_is_the_same_bit_for_bit(compiled: bool) -> None:
    _, x, y = setup()

    def train(every: int) -> tuple[list[bytes], Any, Any]:
        model = noisy()
        optimizer = gg.optim.Adam(model.parameters(), lr=0.05)

        def step(inputs: Any, labels: Any) -> Any:
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            gg.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            return loss

        program = gg.compile(step, keep_grads=False) if compiled else step
        monitor = gg.GradientMonitor(model, every=every) if every else None
        for _ in range(7):
            if monitor is not None:
                monitor.observe(
                    lambda: F.cross_entropy(model(x), y), lambda: gg.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                )
            program(x, y)
        if monitor is not None:
            monitor.close()
        return state(model, optimizer), program, monitor

    alone, _, _ = train(0)
    watched, program, monitor = train(3)
    assert alone == watched
    data = monitor.data
    assert data.steps.tolist() == [0, 3, 6]
    assert np.isfinite(data.update_norm).all()
    assert (data.update_norm[:, 0] > 0).all()
    np.testing.assert_allclose(data.total_norm_clipped, 0.1, rtol=1e-4)
    assert np.isfinite(data.activation_dead[:, 2]).all()
    if compiled:
        assert program.retraces == []


def test_what_is_observed_are_the_gradients_of_the_very_step() -> None:
    _, x, y = setup()
    model = noisy()
    monitor = gg.GradientMonitor(model)
    monitor.observe(lambda: F.cross_entropy(model(x), y))
    loss = F.cross_entropy(model(x), y)  # the same mask of dropout, as the generator was put back
    loss.backward()
    norms = gg.compute_gradient_norms(model)
    assert monitor.data.loss[0] == float(loss)
    np.testing.assert_array_equal(monitor.data.gradient_norm[0], list(norms.by_parameter.values()))


def test_a_compiled_step_that_keeps_its_gradients_can_be_watched_from_outside() -> None:
    model, x, y = setup()
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)

    def step(inputs: Any, labels: Any) -> Any:
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    program = gg.compile(step)
    monitor = gg.GradientMonitor(model, every=2)
    for _ in range(9):
        monitor.update(program(x, y))
    assert monitor.data.steps.tolist() == [0, 2, 4, 6, 8]
    assert np.isfinite(monitor.data.gradient_norm).all()
    # The program is traced once with the hooks and once without; then they are never attached again.
    assert len(program.retraces) == 1
    assert monitor.data.activations == ()


def test_closing_takes_the_hooks_off() -> None:
    model, _, _ = setup()
    with gg.GradientMonitor(model):
        assert model[0]._hooks is not None
    assert model[0]._hooks is None


# --- the file ---


def test_a_record_comes_back_from_its_file(tmp_path: Path) -> None:
    model, x, y = setup()
    path = tmp_path / "monitor.npz"
    with gg.GradientMonitor(model, every=2, path=path) as monitor:
        run(monitor, model, x, y, 5)
    data = gg.GradientMonitor.load(path)
    same(data, monitor.data)
    assert [entry.name for entry in tmp_path.iterdir()] == ["monitor.npz"]
    with np.load(path) as file:  # NumPy alone reads it
        assert file["steps"].tolist() == [0, 2, 4]
        assert file["parameters"].tolist() == list(dict(model.named_parameters()))
        assert set(file) == {*vars(data), "format"}
        assert {field.name for field in FIELDS} <= set(file)


def test_a_resumed_run_has_the_record_of_an_unbroken_one(tmp_path: Path) -> None:
    def train(monitor: Any, model: Any, steps: int) -> None:
        _, x, y = setup()
        run(monitor, model, x, y, steps)

    model, _, _ = setup()
    with gg.GradientMonitor(model, every=2, path=tmp_path / "whole.npz") as monitor:
        train(monitor, model, 9)
    model, _, _ = setup()
    path = tmp_path / "parts.npz"
    with gg.GradientMonitor(model, every=2, path=path) as monitor:
        train(monitor, model, 5)
        saved = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
        train(monitor, model, 3)  # lost: the run goes on from before
    model.load_state_dict({name: gg.tensor(array) for name, array in saved.items()})
    with gg.GradientMonitor(model, every=2, path=path, start=5) as monitor:
        train(monitor, model, 4)
    whole, parts = gg.GradientMonitor.load(tmp_path / "whole.npz"), gg.GradientMonitor.load(path)
    assert whole.steps.tolist() == [0, 2, 4, 6, 8]
    same(whole, parts)


def test_starting_anew_replaces_an_older_record(tmp_path: Path) -> None:
    model, x, y = setup()
    path = tmp_path / "monitor.npz"
    for steps in (6, 2):
        with gg.GradientMonitor(model, path=path) as monitor:
            run(monitor, model, x, y, steps)
    assert gg.GradientMonitor.load(path).steps.tolist() == [0, 1]


def test_a_killed_run_leaves_a_record_that_can_be_read(tmp_path: Path) -> None:
    program = """
        import glassgrad as gg, os, signal, sys
        from glassgrad.doctor import monitor as module
        module._WRITE_SECONDS, module._SHARE_OF_WRITING = 0.0, 1e9
        model = gg.nn.Linear(3, 1)
        monitor = gg.GradientMonitor(model, path=sys.argv[1])
        monitor._next_write = 0
        for _ in range(4):
            model.zero_grad()
            model(gg.randn(5, 3)).sum().backward()
            monitor.update()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(program), tmp_path / "monitor.npz"], check=False)
    assert process.returncode == -9
    assert gg.GradientMonitor.load(tmp_path / "monitor.npz").steps.tolist() == [0, 1, 2, 3]


# --- what it says when something is wrong ---


def test_messages(tmp_path: Path) -> None:
    model, x, y = setup()
    with pytest.raises(errors.KindError, match=r"expects a model with named_parameters.*given list"):
        gg.GradientMonitor([])
    with pytest.raises(errors.ArgumentError, match=r"ReLU has no parameters"):
        gg.GradientMonitor(gg.nn.ReLU())
    with pytest.raises(errors.ArgumentError, match=r"every must be a whole number of at least 1, given 0"):
        gg.GradientMonitor(model, every=0)
    with pytest.raises(errors.GlassgradError, match=r"no gradient .* of Sequential in step 0.*\n.*observe"):
        gg.GradientMonitor(model).update()
    with pytest.raises(errors.GlassgradError, match=r"came before monitor.update"):
        gg.GradientMonitor(model).update_after_clip()
    with pytest.raises(errors.InputError, match=r"cannot read .*nothing.npz: No such file"):
        gg.GradientMonitor.load(tmp_path / "nothing.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(errors.InputError, match=r"not a record of gradients"):
        gg.GradientMonitor.load(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(errors.InputError, match="damaged, or no file of NumPy's"):
        gg.GradientMonitor.load(tmp_path / "text.npz")
    path = tmp_path / "monitor.npz"
    with gg.GradientMonitor(model, path=path) as monitor:
        run(monitor, model, x, y, 2)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(errors.InputError, match="damaged, or no file of NumPy's"):
        gg.GradientMonitor.load(path)


def test_a_record_of_another_model_is_refused(tmp_path: Path) -> None:
    model, x, y = setup()
    path = tmp_path / "monitor.npz"
    with gg.GradientMonitor(model, path=path) as monitor:
        run(monitor, model, x, y, 2)
    with pytest.raises(errors.InputError, match=r"another model: parameters bias, weight|another model: parameters 0"):
        gg.GradientMonitor(gg.nn.Linear(2, 2), path=path, start=1)
    with pytest.raises(errors.InputError, match=r"0.weight had 24 numbers, now 28"):
        gg.GradientMonitor(perceptron(gg, 7), path=path, start=1)
    assert len(gg.GradientMonitor.load(path)) == 2
