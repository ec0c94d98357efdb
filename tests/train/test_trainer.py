"""`Trainer` against a hand-written loop, and each of its options against its definition."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from glassgrad.nn.utils import clip_grad_norm_, clip_grad_value_
from glassgrad.train import Callback, RunState, accuracy
from glassgrad.utils.data import DataLoader

from .fitting import assert_same, data, loader, net, stored, trainer, weights

pytestmark = pytest.mark.usefixtures("numpy_target")  # test_engines.py trains in native code

ENGINES = ["eager", "compiled"]


def by_hand(scheduler: Any = None, clip: Any = None, make_optimizer: Any = None) -> tuple[Any, list[float]]:
    """Oracle: the lines that `Trainer` stands for, three epochs of them."""
    gg.manual_seed(1)
    model, train = net(), loader()
    optimizer = (make_optimizer or (lambda parameters: optim.AdamW(parameters, lr=0.02)))(model.parameters())
    schedule = scheduler(optimizer) if scheduler else None
    losses = []
    for _ in range(3):
        for x, y in train:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            if clip:
                clip(model.parameters())
            optimizer.step()
            if schedule:
                schedule.step()
            losses.append(float(loss))
    return model, losses


def assert_near(model: Any, other: Any, atol: float = 1e-5) -> None:
    for name, array in weights(model).items():
        np.testing.assert_allclose(weights(other)[name], array, atol=atol, err_msg=name)


def lines(found: Any, event: str = "train") -> list[Any]:
    return [one for one in found.records if one["event"] == event]


@pytest.mark.parametrize("engine", ENGINES)
def test_it_trains_as_a_loop_by_hand_does(engine: str) -> None:
    made = trainer(engine=engine)
    found = made.fit()
    model, losses = by_hand()
    assert (found.step, found.epoch, found.finished, found.ended) == (24, 3, True, None)
    if engine == "eager":
        assert_same(made.model, model)
    assert_near(made.model, model)
    expected = [np.mean(losses[begin : begin + 5]) for begin in range(0, 24, 5)]
    np.testing.assert_allclose([one["loss"] for one in lines(found)], expected, rtol=1e-5)
    assert [one["step"] for one in lines(found, "validation")] == [8, 16, 24]


@pytest.mark.parametrize(
    ("options", "clip"),
    [
        ({"clip_norm": 0.3}, lambda parameters: clip_grad_norm_(parameters, 0.3)),
        ({"clip_value": 0.02}, lambda parameters: clip_grad_value_(parameters, 0.02)),
    ],
    ids=["norm", "value"],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_clipping_is_that_of_the_functions(options: dict[str, float], clip: Any, engine: str) -> None:
    sgd = lambda parameters: optim.SGD(parameters, lr=0.5)
    made = trainer(engine=engine, make_optimizer=sgd, **options)
    found = made.fit()
    model, _ = by_hand(clip=clip, make_optimizer=sgd)
    assert not np.allclose(weights(model)["0.weight"], weights(by_hand(make_optimizer=sgd)[0])["0.weight"], atol=1e-3)
    assert_near(made.model, model)
    assert all(0 < one["norm"] <= one["norm_max"] for one in lines(found))


def test_a_schedule_counts_steps_or_epochs_or_looks_at_the_validation() -> None:
    cosine = lambda optimizer: optim.lr_scheduler.CosineAnnealingLR(optimizer, 24)
    made = trainer(scheduler=cosine)
    made.fit()
    assert_same(made.model, by_hand(scheduler=cosine)[0])

    found = trainer(
        scheduler=lambda optimizer: optim.lr_scheduler.StepLR(optimizer, 1, 0.5), schedule="epoch", log_every=4
    ).fit()
    assert [one["rate"] for one in lines(found)] == [0.02, 0.02, 0.01, 0.01, 0.005, 0.005]

    plateau = trainer(
        scheduler=lambda optimizer: optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=9),
        log_every=8,
        epochs=4,
    )
    assert [one["rate"] for one in lines(plateau.fit())] == pytest.approx([0.02, 0.02, 0.002, 0.0002])


class Gradients(Callback):
    """Keeps the gradients of every step."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def on_step_start(self, run: RunState) -> None:
        with run.gradients():
            self.found.append({name: p.grad.numpy().copy() for name, p in run.model.named_parameters()})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("parts", [2, 3])
def test_micro_batches_have_the_gradient_of_the_whole_batch(engine: str, parts: int) -> None:
    """Batches of 8, k of them to a step, are the steps of batches of 8k; the last of an epoch is smaller for both."""
    taken: dict[int, list[Any]] = {}
    for k in (1, parts):
        look = Gradients()
        taken[k] = look.found
        made = trainer(
            model=lambda: net(0.0).double(),
            train=loader(8 if k > 1 else 8 * parts),
            accumulate=k,
            engine=engine,
            validation=False,
            callbacks=[look],
            dtype="float64",
        )
        taken[-k] = [made]
        made.fit()
    assert len(taken[1]) == len(taken[parts]) == 3 * math.ceil(60 / (8 * parts))
    for one, other in zip(taken[1], taken[parts], strict=True):
        for name in one:
            np.testing.assert_allclose(other[name], one[name], rtol=1e-6, atol=1e-9, err_msg=name)
    assert_near(taken[-1][0].model, taken[-parts][0].model, 1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_that_is_not_finite_is_left_out_and_counted(engine: str) -> None:
    x, y = data()
    broken = x.copy()
    broken[8:16] = np.nan  # the second of the batches in order

    def batches(rows: Any, but: int | None = None) -> list[Any]:
        return [(rows[at : at + 8], y[at : at + 8]) for number, at in enumerate(range(0, 56, 8)) if number != but]

    options: dict[str, Any] = {
        "validation": False, "engine": engine, "epochs": 1, "log_every": 1, "dropout": 0.0, "ema": 0.5,
    }  # fmt: skip  # a table
    made = trainer(train=batches(broken), skip_nonfinite=True, check_data=False, **options)
    found = made.fit()
    expected = trainer(train=batches(x, 1), **options)
    expected.fit()
    assert_near(made.model, expected.model, 1e-6)
    assert_near_arrays(*(one.learner.averages.state_dict()["shadow"] for one in (made, expected)))
    assert found.records[-1]["skipped"] == made.learner.skipped == 1
    assert [one["step"] for one in lines(found)] == [1, 3, 4, 5, 6, 7]


def assert_near_arrays(left: dict[str, Any], right: dict[str, Any]) -> None:
    for name, array in left.items():
        np.testing.assert_allclose(right[name], array, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("engine", ENGINES)
def test_running_statistics_of_a_step_left_out_stay_as_they_were(engine: str) -> None:
    x, y = data()
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    bad = (np.full_like(x[:8], np.inf), y[:8])
    made = trainer(
        model=lambda: model,
        train=[(x[:8], y[:8]), bad, (x[8:16], y[8:16]), bad],
        validation=False,
        epochs=1,
        skip_nonfinite=True,
        check_data=False,
        engine=engine,
    )
    made.fit()
    assert made.learner.skipped == 2
    assert all(np.isfinite(array).all() for array in weights(model).values())
    assert int(model[1].num_batches_tracked.array) == 2


def test_a_hundred_steps_left_out_in_a_row_end_the_run() -> None:
    x, y = data()
    made = trainer(
        train=[(np.full_like(x[:8], np.nan), y[:8])],
        validation=False,
        skip_nonfinite=True,
        check_data=False,
        epochs=200,
    )
    with pytest.raises(gg.errors.RunError, match="the gradients of 100 steps in a row were not finite"):
        made.fit()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_scaled_loss_changes_nothing_but_the_range(engine: str) -> None:
    made = trainer(engine=engine, loss_scale=2.0**10)
    found = made.fit()
    plain = trainer(engine=engine)
    plain.fit()
    assert_near(made.model, plain.model)
    assert found.records[-1]["event"] == "validation"
    assert lines(found)[-1]["loss_scale"] == 2.0**10
    huge = trainer(
        engine=engine,
        loss_scale=1e37,
        loss_fn=lambda scores, labels: F.cross_entropy(scores, labels) * 1e4,
        make_optimizer=lambda parameters: optim.SGD(parameters, lr=1e-5),
    )
    found = huge.fit()
    assert 0 < lines(found)[-1]["skipped"] < 24
    assert lines(found)[-1]["loss_scale"] == 1e37 * 0.5**huge.learner.skipped


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_a_dtype_is_what_the_forward_pass_computes_in(engine: str, dtype: str) -> None:
    seen: list[Any] = []

    class Seen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net(0.0)

        def forward(self, x: Any) -> Any:
            seen.append((x.dtype, self.inner[0].weight.dtype))
            return self.inner(x)

    made = trainer(model=Seen, dtype=dtype, engine=engine, loss_scale=256.0 if dtype == "float16" else 0.0)
    made.fit()
    assert {one for pair in seen for one in pair} == {np.dtype(dtype)}
    assert made.model.inner[0].weight.dtype == (np.float64 if dtype == "float64" else np.float32)
    plain = trainer(model=Seen, engine=engine)
    plain.fit()
    for one, other in zip(weights(made.model).values(), weights(plain.model).values(), strict=True):
        np.testing.assert_allclose(one, other, atol=0.02 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_bfloat16_is_for_products_alone(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassgrad.amp.processor_multiplies", lambda: True)
    seen: list[Any] = []

    class Seen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net(0.0)

        def forward(self, x: Any) -> Any:
            y = self.inner(x)
            seen.append((x.dtype.name, self.inner[0].weight.dtype.name, y.dtype.name))
            return y

    made = trainer(model=Seen, dtype="bfloat16", engine=engine)
    result = made.fit()
    plain = trainer(model=Seen, engine=engine)
    wanted = plain.fit()
    assert set(seen) == {("float32", "float32", "bfloat16"), ("float32",) * 3}
    assert result.loss == pytest.approx(wanted.loss, rel=0.01)
    assert all(p.grad.dtype == np.float32 for p in made.model.parameters() if p.grad is not None)
    for one, other in zip(weights(made.model).values(), weights(plain.model).values(), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=0.02)


@pytest.mark.parametrize("engine", ENGINES)
def test_averaged_weights_are_measured_and_kept(engine: str, tmp_path: Path) -> None:
    made = trainer(engine=engine, ema=0.8, run_dir=str(tmp_path / "run"))
    expected: dict[str, Any] = {}

    class Average(Callback):
        def on_train_start(self, run: RunState) -> None:
            expected.update(weights(run.model))

        def on_step_end(self, run: RunState) -> None:
            for name, array in weights(run.model).items():
                expected[name] = 0.8 * expected[name] + 0.2 * array

    made.loop.callbacks.__init__([Average()])  # in the place of its own, as it is only to look
    made.fit()
    assert_near_arrays(stored(tmp_path / "run" / "model.safetensors"), expected)
    logits = net(0.0)
    logits.load_state_dict({name: gg.tensor(array) for name, array in expected.items()})
    x, y = data()
    loss = float(F.cross_entropy(logits(gg.tensor(x)), gg.tensor(y)))
    assert made.evaluate()["loss"] == pytest.approx(loss, rel=1e-5)
    assert not np.allclose(weights(made.model)["0.weight"], expected["0.weight"], atol=1e-4)


def test_early_stopping_and_the_best_weights(tmp_path: Path) -> None:
    losses = iter([0.9, 0.7, 0.8, 0.6, 0.75, 0.65, 0.5])
    made = trainer(epochs=9, patience=2, best=2, run_dir=str(tmp_path / "run"), monitor="made_up")
    made.metrics["made_up"] = lambda outputs, targets: now[0]
    now = [0.0]
    snapshots: dict[int, Any] = {}
    evaluate = made.evaluate

    def measured() -> dict[str, float]:
        now[0] = next(losses)
        snapshots[made.loop.step] = weights(made.model)
        return evaluate()

    made.evaluate = measured
    found = made.fit()
    assert found.ended == "made_up has not improved for 2 validations"
    assert (found.step, found.finished) == (48, True)
    assert found.best == [(0.6, 32), (0.65, 48)]
    files = sorted(path.name for path in (tmp_path / "run" / "best").iterdir())
    assert files == ["step-00000032.safetensors", "step-00000048.safetensors"]
    for name, array in stored(tmp_path / "run" / "best" / files[0]).items():
        np.testing.assert_array_equal(array, snapshots[32][name])
    assert made.fit().step == 48  # nothing is left to be done


def test_metrics_are_means_over_examples_and_validation_disturbs_nothing() -> None:
    made = trainer(metrics={"accuracy": accuracy, "top2": lambda outputs, targets: accuracy(outputs, targets, 2)})
    made.val_loader = loader(7, shuffle=True)  # draws random numbers, which training must not notice
    found = made.fit()
    assert_same(made.model, by_hand()[0])
    x, y = data()
    made.model.eval()
    scores = made.model(gg.tensor(x)).detach().numpy()
    assert found.measures["accuracy"] == pytest.approx((scores.argmax(axis=1) == y).mean())
    assert 1 >= found.measures["top2"] >= found.measures["accuracy"]
    assert made.model.training is False


def test_models_that_return_their_loss_and_batches_of_other_kinds() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net(0.0)

        def forward(self, x: Any, labels: Any) -> tuple[Any, Any]:
            scores = self.inner(x)
            return scores, F.cross_entropy(scores, labels)

    x, y = data()
    batches: list[Any] = [{"x": x[at : at + 10], "labels": y[at : at + 10]} for at in range(0, 60, 10)]
    for engine in ENGINES:
        for train in (batches, [(one["x"], one["labels"]) for one in batches]):
            made = trainer(model=Own, loss_fn=None, train=train, validation=False, engine=engine, epochs=30)
            assert (made.fit().loss or 9) < 0.3


def test_batches_of_pytorch_are_taken() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch gives the batches")
    x, y = data()
    theirs = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
    made = trainer(train=torch.utils.data.DataLoader(theirs, batch_size=10), validation=False, epochs=40)
    assert (made.fit().loss or 9) < 0.4


def test_steps_without_a_length_and_workers() -> None:
    x, y = data()

    class Stream:
        def __iter__(self) -> Any:
            return iter([(x[:20], y[:20]), (x[20:40], y[20:40])])

    found = trainer(train=Stream(), validation=False, steps=7).fit()
    assert (found.step, found.epoch) == (7, 3)
    own = trainer()
    own.fit()
    workers = trainer(train=loader(num_workers=2))
    workers.fit()
    assert_same(own.model, workers.model)


def test_times_of_every_phase_are_recorded() -> None:
    found = trainer(log_every=4).fit()
    for line in lines(found):
        assert line["data_seconds"] > 0
        assert line["step_seconds"] > 0
        assert line["checkpoint_seconds"] == 0
    assert sum(line["validation_seconds"] for line in lines(found)) > 0
    total = sum(line[f"{phase}_seconds"] for line in lines(found) for phase in ("data", "step", "validation"))
    assert total <= found.seconds


def test_a_loader_of_ones_own_class_is_enough() -> None:
    made = trainer(
        train=DataLoader(_Squares(), batch_size=4),
        loss_fn=F.mse_loss,
        model=lambda: nn.Linear(1, 1),
        epochs=2,
        validation=False,
    )
    assert made.fit().step == 6


class _Squares:
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return np.array([index], np.float32), np.array([index**2], np.float32)
