"""Whole training steps, compiled and in eager mode: losses, parameters, buffers, gradients."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.nn import functional as F

BACKENDS = ("numpy", "llvm")
OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "dampened": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.5),
    "rmsprop": lambda p: optim.RMSprop(p, lr=1e-3, momentum=0.9, centered=True),
    "adam": lambda p: optim.Adam(p, lr=1e-2),
    "amsgrad": lambda p: optim.Adam(p, lr=1e-2, amsgrad=True, weight_decay=1e-3),
    "adamw": lambda p: optim.AdamW(p, lr=1e-2),
    "adagrad": lambda p: optim.Adagrad(p, lr=1e-2, lr_decay=0.1),
    "adadelta": lambda p: optim.Adadelta(p, lr=0.5),
    "adamax": lambda p: optim.Adamax(p, lr=1e-2),
    "nadam": lambda p: optim.NAdam(p, lr=1e-2),
    "radam": lambda p: optim.RAdam(p, lr=1e-2),
    "adafactor": lambda p: optim.Adafactor(p, lr=1e-2),
    "lion": lambda p: optim.Lion(p, lr=1e-3),
    "muon": lambda p: optim.Muon([one for one in p if one.ndim == 2], lr=1e-2),
}


class Names(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.table = nn.Embedding(27, 6)
        self.hidden = nn.Linear(18, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.out = nn.Linear(width, 27)

    def forward(self, x):
        h = self.norm(self.hidden(self.table(x).flatten(1))).tanh()
        return self.out(F.dropout(h, 0.2, self.training))


def build(make_optimizer, dtype=np.float64):
    gg.manual_seed(3)
    model = Names().to(dtype)
    optimizer = make_optimizer(model.parameters())

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def batches(count, size=16):
    rng = np.random.default_rng(11)
    for _ in range(count):
        yield gg.tensor(rng.integers(0, 27, (size, 3))), gg.tensor(rng.integers(0, 27, size))


def state_of(model):
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: value.array.copy() for name, value in named}


def same_states(one, other, rtol):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_allclose(other[name], value, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps_are_those_of_eager_mode(name, backend):
    model, optimizer, step = build(OPTIMIZERS[name])
    twin, twin_optimizer, twin_step = build(OPTIMIZERS[name])
    compiled = gg.compile(twin_step, backend=backend)
    streams = []
    losses = []
    for run, one_optimizer in ((step, optimizer), (compiled, twin_optimizer)):
        gg.manual_seed(5)
        found = []
        for number, (x, y) in enumerate(batches(20)):
            if number == 10:
                one_optimizer.param_groups[0]["lr"] *= 0.5
            found.append(run(x, y).item())
        losses.append(found)
        streams.append(gg.default_generator.get_state())
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-9)
    same_states(state_of(model), state_of(twin), 1e-8)
    assert streams[0] == streams[1], "draws come from the same stream in the same order"
    compiled.assert_max_traces(1)
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(theirs.grad.array, mine.grad.array, rtol=1e-7, atol=1e-10)


SCHEDULES = {
    "cosine": lambda o: optim.lr_scheduler.CosineAnnealingLR(o, T_max=5),
    "steps": lambda o: optim.lr_scheduler.StepLR(o, step_size=2, gamma=0.5),
    "function": lambda o: optim.lr_scheduler.LambdaLR(o, lambda k: 1 / (1 + k)),
    "several": lambda o: optim.lr_scheduler.SequentialLR(
        o, [optim.lr_scheduler.LinearLR(o), optim.lr_scheduler.ExponentialLR(o, 0.9)], milestones=[3]
    ),
    "warm restarts": lambda o: optim.lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=3),
}


@pytest.mark.parametrize("first", [False, True], ids=["after the optimizer", "before the optimizer"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_inside_of_the_step(name, first):
    """Their Python code runs in every call, at its place, and nothing is traced again."""

    def train(compiled):
        model, optimizer, _ = build(OPTIMIZERS["adam"])
        schedule = SCHEDULES[name](optimizer)

        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            if first:
                schedule.step()
            optimizer.step()
            if not first:
                schedule.step()
            return loss

        run = gg.compile(step, backend="numpy") if compiled else step
        gg.manual_seed(2)
        rates = []
        for x, y in batches(7):
            run(x, y)
            rates.append((optimizer.param_groups[0]["lr"], schedule.get_last_lr()))
        if compiled:
            run.assert_max_traces(1)
        return rates, state_of(model)

    (rates, state), (compiled_rates, compiled_state) = train(False), train(True)
    assert rates == compiled_rates
    same_states(state, compiled_state, 1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["SGD", "RMSprop", "Adam", "NAdam", "RAdam", "Adamax", "Lion"])
def test_momentum_that_a_schedule_moves_and_averages_of_weights(kind, backend):
    """One program serves all values of the momentum and counts the average's updates."""

    def train(compiled):
        gg.manual_seed(3)
        model = nn.Linear(3, 2)
        with_momentum = {"momentum": 0.9} if kind in {"SGD", "RMSprop"} else {}
        optimizer = getattr(optim, kind)(model.parameters(), lr=0.1, **with_momentum)
        schedule = optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=3)
        average = optim.EMA(model, decay=0.9, warmup=True)

        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update()
            schedule.step()
            return loss

        run = gg.compile(step, backend=backend) if compiled else step
        rng = np.random.default_rng(0)
        for _ in range(8):
            run(gg.tensor(rng.standard_normal((4, 3)).astype(np.float32)), gg.tensor(rng.integers(0, 2, 4)))
        if compiled:
            run.assert_max_traces(1)
        assert average.updates == 8
        options = optimizer.param_groups[0]
        moved = options["momentum"] if with_momentum else options["betas"][0]
        averages = {name: array.copy() for name, array in average.state_dict()["shadow"].items()}
        return state_of(model), averages, moved

    (state, averages, moved), (compiled_state, compiled_averages, compiled_moved) = train(False), train(True)
    assert moved == compiled_moved != 0.9
    same_states(state, compiled_state, 1e-5)
    same_states(averages, compiled_averages, 1e-5)


def test_a_schedule_that_looks_at_the_loss_belongs_outside():
    model, optimizer, _ = build(OPTIMIZERS["sgd"])
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step(loss)
        return loss

    with pytest.raises(errors.CompileError, match=r"float\(\)|\.item\(\)"):
        gg.compile(step, backend="numpy", strict=True)(*next(batches(1)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_train_and_eval_are_programs_of_their_own(backend):
    model, _, _ = build(OPTIMIZERS["sgd"])
    x, _ = next(batches(1))

    @gg.compile(backend=backend)
    def logits(x):
        with gg.no_grad():
            return model(x)

    model.eval()
    wanted = logits.function(x)
    np.testing.assert_allclose(logits(x).array, wanted.array, rtol=1e-10)
    assert logits.retraces == []
    model.train()
    before = state_of(model)["norm.running_mean"]
    logits(x)
    assert logits.retraces == ["model.training was False, now True"]
    assert not np.array_equal(before, state_of(model)["norm.running_mean"])
    model.eval()
    logits(x)
    assert logits.traces == 2, "going back finds the first program again"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_model_in_an_eager_loop(backend):
    model, _, _ = build(OPTIMIZERS["sgd"])
    model.eval()
    x, y = next(batches(1))
    compiled = gg.compile(model, backend=backend)
    found = []
    for run in (model, compiled):
        model.zero_grad()
        F.cross_entropy(run(x), y).backward()
        found.append([p.grad.array.copy() for p in model.parameters()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


def test_gradients_accumulate_over_calls():
    model, _, _ = build(OPTIMIZERS["sgd"])
    model.eval()

    def add_up(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    compiled = gg.compile(add_up, backend="numpy")
    found = []
    for run in (add_up, compiled):
        model.zero_grad()
        for x, y in batches(4):
            run(x, y)
        found.append([p.grad.array.copy() for p in model.parameters()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
    assert compiled.traces == 2  # without a gradient before, and with one
    assert "grad was None, now a tensor" in compiled.retraces[0]


def test_zero_grad_at_the_end_leaves_none():
    model, optimizer, _ = build(OPTIMIZERS["sgd"])

    @gg.compile(backend="numpy")
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    first = [step(x, y).item() for x, y in batches(5)]
    assert all(p.grad is None for p in model.parameters())
    assert step.traces == 1
    assert first[-1] != first[0]


def test_without_gradients_kept():
    model, _, step = build(OPTIMIZERS["adam"])
    compiled = gg.compile(step, backend="numpy", keep_grads=False)
    for x, y in batches(3):
        compiled(x, y)
    assert all(p.grad is None for p in model.parameters())
    assert compiled.traces == 1
    assert len(compiled.graph.updates) < 4 * len(list(model.parameters())) + 4


@pytest.mark.parametrize("kind", [2.0, float("inf"), 1.0])
def test_clip_grad_norm(kind):
    def train(compiled):
        model, optimizer, _ = build(OPTIMIZERS["sgd"])

        def step(x, y):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1, kind)
            optimizer.step()
            return norm

        run = gg.compile(step, backend="numpy") if compiled else step
        gg.manual_seed(2)
        norms = [run(x, y).item() for x, y in batches(5)]
        if compiled:
            run.assert_max_traces(1)
        return norms, state_of(model)

    (norms, state), (compiled_norms, compiled_state) = train(False), train(True)
    np.testing.assert_allclose(compiled_norms, norms, rtol=1e-10)
    same_states(state, compiled_state, 1e-9)


def test_clipping_and_two_backward_passes_in_one_step():
    model, optimizer, _ = build(OPTIMIZERS["momentum"])
    twin, twin_optimizer, _ = build(OPTIMIZERS["momentum"])

    def make(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            for half in (slice(0, 8), slice(8, 16)):
                (F.cross_entropy(model(x[half]), y[half]) / 2).backward()
            total = sum((p.grad * p.grad).sum() for p in model.parameters()).sqrt()
            with gg.no_grad():
                for p in model.parameters():
                    p.grad *= (1.0 / (total + 1e-6)).clip(max=1.0)
            optimizer.step()
            return total

        return step

    step, compiled = make(model, optimizer), gg.compile(make(twin, twin_optimizer), backend="numpy")
    for run in (step, compiled):
        gg.manual_seed(9)
        for x, y in batches(6):
            run(x, y)
    same_states(state_of(model), state_of(twin), 1e-8)
    assert compiled.traces == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_verify_passes_on_a_right_step(backend):
    _, _, step = build(OPTIMIZERS["adam"], np.float32)
    _, _, twin = build(OPTIMIZERS["adam"], np.float32)
    compiled = gg.compile(twin, backend=backend, verify=True)
    found = []
    for run in (step, compiled):
        gg.manual_seed(1)
        found.append([run(x, y).item() for x, y in batches(4)])
    np.testing.assert_allclose(found[1], found[0], rtol=2e-3)


def test_verify_names_the_first_wrong_instruction(monkeypatch):
    from glassgrad.compile.numpy import templates, text

    _, _, step = build(OPTIMIZERS["sgd"])
    wrong = lambda instr, xs: text.call("np.sinh", *xs)
    monkeypatch.setitem(templates.TEMPLATES, "tanh", wrong)
    x, y = next(batches(1))
    with pytest.raises(errors.CompileError) as caught:
        gg.compile(step, backend="numpy", verify=True)(x, y)
    message = str(caught.value)
    assert "the first instruction that differs is tanh" in message.lower()
    assert ".tanh()" in message, "the user's line is shown"
    assert "test_training_steps.py" in message


@pytest.mark.parametrize("name", ["momentum", "adam", "radam", "lion"])
def test_a_trace_leaves_no_circles_behind(name):
    """Collecting older garbage looks at every object there is: a first step must not have to."""
    _, _, step = build(OPTIMIZERS[name])
    x, y = next(batches(1))
    generations = []
    noted = lambda phase, info: generations.append(info["generation"])
    gc.disable()  # so that only those are noted that the library asks for
    gc.callbacks.append(noted)
    try:
        gg.compile(step, backend="numpy", strict=True)(x, y)
    finally:
        gc.callbacks.remove(noted)
        gc.enable()
    assert not any(generations)
