"""Averages of weights, and gradients of a large batch from small ones."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from glassgrad.optim import swa_utils


def problem(seed: int = 0) -> tuple[Any, Any, Any]:
    """A small classifier in float64 and one batch for it."""
    gg.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    rng = np.random.default_rng(seed)
    return model, gg.tensor(rng.normal(size=(12, 4))), gg.tensor(rng.integers(0, 3, 12))


def weights(model: Any) -> list[Any]:
    return [p.detach().numpy().copy() for p in model.parameters()]


# --- accumulation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(3, 3, 3, 3), (6, 6), (5, 1, 4, 2)])
@pytest.mark.parametrize("way", ["plain", "context"])
def test_micro_batches_give_the_step_of_the_whole_batch(parts: tuple[int, ...], way: str) -> None:
    model, x, y = problem()
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    F.cross_entropy(model(x), y).backward()
    expected_gradients = [p.grad.numpy().copy() for p in model.parameters()]
    optimizer.step()
    expected = weights(model)

    model, x, y = problem()
    seen: list[list[Any]] = []

    class Watched(optim.Adam):
        def step(self, closure: Any = None) -> Any:
            seen.append([p.grad.numpy().copy() for p in model.parameters()])
            return super().step(closure)

    accumulator = optim.GradientAccumulator(Watched(model.parameters(), lr=0.1), steps=len(parts))
    equal = len(set(parts)) == 1
    start = 0
    for number, size in enumerate(parts):
        rows = slice(start, start + size)
        start += size
        if way == "plain":
            loss = F.cross_entropy(model(x[rows]), y[rows])
            completed = accumulator.backward(loss, None if equal else size)
        else:
            with accumulator(None if equal else size):
                F.cross_entropy(model(x[rows]), y[rows]).backward()
            completed = accumulator.stepped
        assert completed == (number == len(parts) - 1)
    for a, b in zip(seen[0], expected_gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    for a, b in zip(weights(model), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert all(p.grad is None for p in model.parameters())


def test_norms_clipping_and_the_rest_of_an_epoch() -> None:
    model, x, y = problem()
    accumulator = optim.GradientAccumulator(optim.SGD(model.parameters(), lr=0.1), steps=2, max_norm=0.01)
    before = weights(model)
    for row in range(5):
        accumulator.backward(F.cross_entropy(model(x[row : row + 1]), y[row : row + 1]))
    assert accumulator.flush()
    assert not accumulator.flush()
    moved = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(weights(model), before, strict=True)))
    assert moved <= 3 * 0.1 * 0.01 * (1 + 1e-6)
    found = accumulator.statistics()
    assert found.steps == len(accumulator.norms) == 3
    assert found.smallest <= found.mean <= found.largest
    assert found.largest == max(accumulator.norms)


def test_a_step_that_is_not_finite_is_left_out() -> None:
    model, x, y = problem()
    accumulator = optim.GradientAccumulator(optim.SGD(model.parameters(), lr=0.1), steps=1, skip_nonfinite=True)
    before = weights(model)
    accumulator.backward(F.cross_entropy(model(x), y) * float("nan"))
    assert accumulator.skipped == 1
    for a, b in zip(weights(model), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert accumulator.backward(F.cross_entropy(model(x), y))
    assert accumulator.statistics().steps == 2


def test_a_failed_micro_batch_is_not_counted() -> None:
    model, *_ = problem()
    accumulator = optim.GradientAccumulator(optim.SGD(model.parameters(), lr=0.1), steps=1)
    with pytest.raises(KeyError), accumulator:
        raise KeyError("the user's own")
    assert not accumulator.norms
    with pytest.raises(ValueError, match="steps=0"):
        optim.GradientAccumulator(accumulator.optimizer, 0)


# --- averages ---------------------------------------------------------------------------------------


def test_ema_follows_its_formula_and_swaps() -> None:
    model, x, y = problem()
    ema = optim.EMA(model, decay=0.7)
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    expected = weights(model)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        ema.update()
        expected = [0.7 * mean + 0.3 * now for mean, now in zip(expected, weights(model), strict=True)]
    trained = weights(model)
    with ema.applied():
        for a, b in zip(weights(model), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    for a, b in zip(weights(model), trained, strict=True):
        np.testing.assert_array_equal(a, b)
    other, *_ = problem(1)
    again = optim.EMA(other)
    again.load_state_dict(ema.state_dict())
    again.copy_to(other)
    for a, b in zip(weights(other), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert (again.decay, again.updates) == (0.7, 5)


@pytest.mark.parametrize("kind", ["swa", "ema", "ema_each", "swa_each"])
def test_averaged_model_against_pytorch(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    start = np.random.default_rng(0).normal(size=(4, 3, 2))
    results = []
    for library in (gg, torch):
        tools = swa_utils if library is gg else torch.optim.swa_utils
        options = {
            "swa": {},
            "ema": {"multi_avg_fn": tools.get_ema_multi_avg_fn(0.8)},
            "ema_each": {"avg_fn": tools.get_ema_avg_fn(0.8)},
            "swa_each": {"avg_fn": tools.get_swa_avg_fn()},
        }[kind]
        model = library.nn.Sequential(library.nn.Linear(2, 3, bias=False), library.nn.BatchNorm1d(3))
        averaged = tools.AveragedModel(model, use_buffers=True, **options)
        for array in start:
            with library.no_grad():
                model[0].weight.data.copy_(library.tensor(array.astype(np.float32)))
            model(library.tensor(array.astype(np.float32)))
            averaged.update_parameters(model)
        state = {name: value.numpy().copy() for name, value in averaged.state_dict().items()}
        state.pop("module.1.num_batches_tracked")  # PyTorch averages counts, too, and rounds
        tools.update_bn([library.tensor(one.astype(np.float32)) for one in start], averaged)
        results.append((state, {name: value.numpy() for name, value in averaged.state_dict().items()}))
    for ours, theirs in zip(*results, strict=True):
        assert list(ours) == list(theirs)
        for name in theirs:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.filterwarnings("ignore::glassgrad.errors.IdleStepWarning")  # rates alone are looked at
@pytest.mark.parametrize("options", [{}, {"anneal_strategy": "linear", "anneal_epochs": 4}, {"anneal_epochs": 0}])
def test_swalr_against_pytorch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    results = []
    for library in (gg, torch):
        tools = swa_utils if library is gg else torch.optim.swa_utils
        optimizer = library.optim.SGD([library.zeros(1, requires_grad=True)], lr=0.5)
        schedule = tools.SWALR(optimizer, swa_lr=0.05, **options)
        rates = []
        for _ in range(15):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        results.append(rates)
    np.testing.assert_allclose(*results, rtol=1e-9)


# --- the parts of accumulation ------------------------------------------------------------------------


def accumulator_of(steps: int, **options: Any) -> tuple[Any, Any, Any]:
    """Return a parameter, one that no loss uses, and what accumulates their gradients with a rate of 1."""
    p, unused = gg.zeros(2, requires_grad=True), gg.zeros(2, requires_grad=True)
    return p, unused, optim.GradientAccumulator(optim.SGD([p, unused], lr=1.0), steps, **options)


def loss_of(p: Any, *slopes: float) -> Any:
    return (p * gg.tensor(slopes)).sum()


def test_gradients_are_those_of_the_losses_until_the_step() -> None:
    p, unused, accumulator = accumulator_of(3)
    assert accumulator.stepped is False
    assert not accumulator.backward(loss_of(p, 1.0, 2.0))
    assert p.grad.tolist() == [1, 2]
    with accumulator as same:
        loss_of(p, 3.0, 4.0).backward()
    assert same is accumulator
    assert accumulator.stepped is False
    assert p.grad.tolist() == [4, 6]
    p.grad.add_(2.0)
    assert accumulator.added()
    assert p.tolist() == [-2, pytest.approx(-8 / 3)]
    assert [p.grad, unused.grad] == [None, None]
    assert accumulator.stepped is True


def test_sizes_count_for_their_own_block_alone() -> None:
    p, _, accumulator = accumulator_of(4)
    with accumulator(3):
        loss_of(p, 1.0, 0.0).backward()
    with accumulator:
        loss_of(p, 0.0, 1.0).backward()
    assert p.grad.tolist() == [3, 1]
    with accumulator(2.0):
        loss_of(p, 1.0, 1.0).backward()
    assert p.grad.tolist() == [5, 3]
    assert not accumulator.stepped
    p.grad.add_(gg.tensor([0.0, 12.0]))
    assert accumulator.added(4)
    assert p.tolist() == pytest.approx([-0.5, -1.5])
    assert accumulator.norms == pytest.approx([np.hypot(0.5, 1.5)])
    accumulator.backward(loss_of(p, 1.0, 2.0))
    assert not accumulator.stepped
    assert accumulator.flush(), "the weights before it do not count any more"
    assert p.tolist() == pytest.approx([-1.5, -3.5])
    assert accumulator.stepped


def test_a_size_of_a_block_that_failed_is_forgotten() -> None:
    p, _, accumulator = accumulator_of(2)
    with pytest.raises(KeyError), accumulator(5):
        raise KeyError("the user's own")
    for _ in range(2):
        with accumulator:
            loss_of(p, 1.0, 2.0).backward()
    assert accumulator.stepped
    assert p.tolist() == [-1, -2]


def test_statistics_are_of_the_norms_that_are_finite() -> None:
    p, _, accumulator = accumulator_of(1, skip_nonfinite=True, max_norm=2.0)
    assert accumulator.statistics().steps == 0
    assert np.isnan(accumulator.statistics()[1:]).all()
    for size in (3.0, float("inf"), 1.0, 8.0):
        p.grad = gg.tensor([size, 0.0])
        with np.errstate(invalid="ignore"):
            assert accumulator.added() == np.isfinite(size)
    assert accumulator.skipped == 1
    assert p.tolist() == pytest.approx([-5, 0], rel=1e-5)
    assert accumulator.statistics() == pytest.approx((4, 4.0, np.std([3, 1, 8]), 1.0, 8.0))
    p, _, accumulator = accumulator_of(1)
    p.grad = gg.tensor([float("nan"), 1.0])
    assert accumulator.added()
    assert (accumulator.skipped, np.isnan(p.tolist()).tolist()) == (0, [True, False])


# --- the parts of averages ----------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_an_average_that_warms_up(compiled: bool) -> None:
    model = nn.Linear(2, 1, bias=False).double()
    ema = optim.EMA(model, 0.25, warmup=True)
    assert not any(tensor.requires_grad for tensor in ema.tensors())
    assert [tensor.dtype for tensor in ema.tensors()] == [np.float64, np.float64]
    expected = weights(model)[0]
    update: Any = gg.compile(ema.update, backend="numpy") if compiled else ema.update
    for at in range(5):
        with gg.no_grad():
            model.weight.copy_(gg.tensor([[at + 1.0, at * at]], dtype=gg.float64))
        keep = min(0.25, (1 + at) / (10 + at))
        expected = keep * expected + (1 - keep) * weights(model)[0]
        update()
        assert ema.updates == at + 1
        np.testing.assert_allclose(ema.shadow["weight"].numpy(), expected, rtol=1e-12)
    assert ema.state_dict()["decay"] == 0.25
    assert ema.state_dict()["updates"] == 5


def test_an_average_allocates_nothing() -> None:
    model = nn.Linear(100, 100)
    ema = optim.EMA(model, decay=0.5)
    with gg.no_grad():
        model.weight.fill_(1.0)
    before = ema.shadow["weight"].numpy().copy()
    ema.update()
    np.testing.assert_array_equal(ema.shadow["weight"].numpy(), before * np.float32(0.5) + np.float32(0.5))
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        ema.update()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - start < 20_000  # the weight has 40 000 bytes


def test_applied_averages_are_taken_back_after_an_error_too() -> None:
    model = nn.Linear(2, 1)
    ema, trained = optim.EMA(model, 0.5), weights(model)
    with gg.no_grad():
        ema.shadow["weight"].fill_(7.0)
    seen: list[Any] = []

    def validate() -> None:
        with ema.applied() as given:
            seen.extend([given, model.weight.tolist()])
            raise KeyError("the user's own")

    with pytest.raises(KeyError):
        validate()
    assert seen == [model, [[7, 7]]]
    for a, b in zip(weights(model), trained, strict=True):
        np.testing.assert_array_equal(a, b)


def test_averages_that_do_not_fit_are_named_and_nothing_is_changed() -> None:
    ema = optim.EMA(nn.Linear(2, 1), 0.5)
    before = {name: value.numpy().copy() for name, value in ema.shadow.items()}
    spoiled = {
        "bias": lambda shadow: shadow.pop("bias"),
        "more": lambda shadow: shadow.update(more=np.ones(1)),
        "bias, weight": lambda shadow: shadow.update(bias=np.ones(2), weight=np.ones(2)),
    }
    for names, spoil in spoiled.items():
        state = {"shadow": {"weight": np.zeros((1, 2)), "bias": np.zeros(1)}, "decay": 0.1, "updates": 9}
        spoil(state["shadow"])
        told = rf"this EMA \(\S*test_averages_and_accumulation\.py:\d+\).*another shape: {names}\.$"
        with pytest.raises(gg.errors.ArgumentError, match=told):
            ema.load_state_dict(state)
        assert (ema.decay, ema.updates) == (0.5, 0)
        for name, value in before.items():
            np.testing.assert_array_equal(ema.shadow[name].numpy(), value)


def test_batch_norms_are_as_before_but_for_their_statistics() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, momentum=0.3), nn.BatchNorm1d(3, momentum=None))
    model[2].eval()
    batches = [gg.randn(4, 2), [gg.randn(4, 2), "label"], (gg.randn(4, 2),)]
    swa_utils.update_bn(batches, model)
    assert [model[1].momentum, model[2].momentum] == [0.3, None]
    assert [part.training for part in model] == [True, True, False]
    assert model[1].num_batches_tracked.item() == model[2].num_batches_tracked.item() == 3
    inputs = [model[0](batch[0] if isinstance(batch, list | tuple) else batch).detach().numpy() for batch in batches]
    np.testing.assert_allclose(model[1].running_mean.numpy(), np.mean(inputs, axis=(0, 1)), rtol=1e-5, atol=1e-6)
    with pytest.raises(KeyError):
        swa_utils.update_bn(({}["missing"] for _ in range(1)), model)
    assert model[1].momentum == 0.3
    swa_utils.update_bn(({}["missing"] for _ in range(1)), nn.Linear(1, 1))


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("multi", [False, True])
def test_averaged_buffers_and_counts_against_pytorch(use_buffers: bool, multi: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    results: list[Any] = []
    for library in (gg, torch):
        tools = swa_utils if library is gg else torch.optim.swa_utils
        counts: list[int] = []

        def average(mean: Any, value: Any, count: Any, counts: list[int] = counts) -> Any:
            counts.append(int(count))
            assert not mean.requires_grad
            assert not value.requires_grad
            return mean * 0.75 + value * 0.25

        options = {"multi_avg_fn": tools.get_swa_multi_avg_fn()} if multi else {"avg_fn": average}
        model = library.nn.Linear(2, 2, bias=False)
        model.register_buffer("mean", library.zeros(2))
        if library is gg:
            model.register_buffer("count", gg.tensor(0))  # PyTorch would average it
        averaged = tools.AveragedModel(model, None, use_buffers=use_buffers, **options)
        assert averaged.module is not model
        places = [p.data_ptr() for p in averaged.parameters()]
        states = []
        for at in range(4):
            with library.no_grad():
                model.weight.fill_(float(at * at))
                model.mean.fill_(float(at + 1))
            if library is gg:
                model.count.fill_(at + 5)
            averaged.update_parameters(model)
            if library is gg:
                assert averaged.module.count.item() == at + 5
            states.append({name: value.numpy().copy() for name, value in averaged.state_dict().items()})
        assert places == [p.data_ptr() for p in averaged.parameters()]
        x = library.ones(3, 2)
        assert (averaged.eval()(input=x) - averaged.module(x)).abs().max() == 0
        results.append((states, counts))
    assert results[0][1] == results[1][1]
    for ours, theirs in zip(results[0][0], results[1][0], strict=True):
        assert ours.keys() - {"module.count"} == theirs.keys()
        for name, value in theirs.items():
            np.testing.assert_allclose(ours[name], value, rtol=1e-6, err_msg=name)


def test_what_is_averaged_is_what_the_average_holds_as_floats() -> None:
    model = nn.Linear(1, 1)
    model.register_buffer("mean", gg.zeros(2))
    averaged = swa_utils.AveragedModel(model, use_buffers=True)
    averaged.update_parameters(model)
    model.register_buffer("mean", gg.tensor([3, 4]))
    averaged.update_parameters(model)
    assert averaged.module.mean.tolist() == [1.5, 2.0]


def test_the_plain_average_as_a_function() -> None:
    assert swa_utils.get_swa_avg_fn()(gg.tensor(2.0), gg.tensor(8.0), 2).item() == 4.0


def test_an_averaged_model_takes_devices_that_there_are() -> None:
    assert swa_utils.AveragedModel(nn.Linear(1, 1), "cpu").n_averaged.dtype == np.int64
    with pytest.raises(gg.errors.ArgumentError, match="device 'moon' is not available"):
        swa_utils.AveragedModel(nn.Linear(1, 1), "moon")


@pytest.mark.filterwarnings("ignore::glassgrad.errors.IdleStepWarning")  # rates alone are looked at
@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("ends", [0.05, [0.05, 0.4]])
def test_swalr_keeps_to_its_rates_and_goes_on(strategy: str, ends: Any) -> None:
    """With rates of two groups, changed by hand in between and at the end, stopped and gone on with."""
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    results = []
    for library in (gg, torch):
        tools = swa_utils if library is gg else torch.optim.swa_utils
        groups = [{"params": [library.zeros(1, requires_grad=True)]} for _ in range(2)]
        optimizer = library.optim.SGD(groups, lr=0.5)
        schedule = tools.SWALR(optimizer, ends, 4, strategy)
        rates = []
        for at in range(12):
            if at in {2, 7, 9}:
                optimizer.param_groups[1]["lr"] = 0.8
            optimizer.step()
            if at == 6:
                state = schedule.state_dict()
                schedule = tools.SWALR(optimizer, ends, 4, strategy)
                schedule.load_state_dict(state)
                for group, rate in zip(optimizer.param_groups, rates[-1], strict=True):
                    group["lr"] = rate
            schedule.step()
            rates.append([group["lr"] for group in optimizer.param_groups])
        results.append(rates)
    np.testing.assert_allclose(*results, rtol=1e-9)


def test_swalr_without_epochs_jumps_at_its_first_step() -> None:
    for strategy in ("cos", "linear"):
        optimizer = optim.SGD([gg.zeros(1, requires_grad=True)], lr=0.5)
        schedule = swa_utils.SWALR(optimizer, 0.05, anneal_epochs=0, anneal_strategy=strategy)
        assert schedule.get_last_lr() == [0.05]
        schedule.step()
        assert schedule.get_last_lr() == [0.05]


def test_swalr_of_groups_that_come_later() -> None:
    def group(**options: float) -> dict[str, Any]:
        return {"params": [gg.zeros(1, requires_grad=True)], **options}

    optimizer = optim.SGD([group(), group()], lr=0.5)
    schedule = swa_utils.SWALR(optimizer, 0.1, anneal_epochs=2, anneal_strategy="linear")
    optimizer.add_param_group(group(lr=0.9))
    optimizer.add_param_group(group(lr=0.9, swa_lr=0.3))
    for _ in range(3):
        schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.1, 0.1, 0.1, 0.3])
    assert schedule.base_lrs == [0.5, 0.5, 0.9, 0.9]
    schedule = swa_utils.SWALR(optimizer, [0.1, 0.2, 0.3, 0.4])
    optimizer.add_param_group(group(lr=0.9))
    with pytest.raises(ValueError, match=r"SWALR: a group was added.*swa_lr was given for 4 groups"):
        schedule.step()
