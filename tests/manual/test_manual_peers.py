"""Hand-written layers wherever modules are accepted: trainer, clipping, monitor, check-up, checkpoints, gradcheck."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, manual, optim
from glassgrad.train import Trainer, TrainingConfig
from glassgrad.verify import gradcheck

X = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
CLASSES = (X[:, 0] > X[:, 1]).astype(int)
TARGET = X[:, :1] * X[:, 1:]


def net(outputs=2):
    rng = np.random.default_rng(1)
    first, last = manual.Linear(2, 8, rng=rng), manual.Linear(8, outputs, rng=rng)
    return manual.Net(first, manual.BatchNorm1d(8), manual.ELU(), manual.Dropout(0.2, rng=rng), last)


def with_gradients(model):
    loss = manual.MSELoss()
    loss(model(X), TARGET)
    model.backward(loss.backward())
    return model


def trainer(folder, **options):
    model = net()
    optimizer = manual.get_optimizer("adam", model.parameters(), 0.05)
    loader = [(X[at : at + 16], CLASSES[at : at + 16]) for at in range(0, 64, 16)]
    return Trainer(
        model,
        optimizer,
        manual.CrossEntropyLoss(),
        loader,
        loader[:2],
        optim.lr_scheduler.StepLR(optimizer, 8, 0.5),
        TrainingConfig(epochs=8, progress="none", run_dir=str(folder), clip_norm=1.0, **options),
        metrics={"right": lambda out, target: (out.argmax(1) == target).mean()},
    )


def test_a_trainer_trains_a_net_and_resumes_bit_for_bit(tmp_path):
    whole, parted = trainer(tmp_path / "whole"), trainer(tmp_path / "parted")
    result = whole.fit()
    assert result.measures["right"] > 0.9
    assert whole.optimizer.lr == pytest.approx(0.05 / 16)
    parted.fit(until=13)
    resumed = trainer(tmp_path / "parted")
    assert resumed.fit(resume=True).loss == result.loss
    for name, array in whole.model.state_dict().items():
        assert np.array_equal(array, resumed.model.state_dict()[name]), name


def test_a_trainer_accumulates_and_refuses_what_needs_the_engine(tmp_path):
    halves = trainer("", accumulate=2, norms=True)
    assert halves.fit().step == 16
    with pytest.raises(errors.InputError, match="needs the engine"):
        trainer("", ema=0.9)
    model = net()
    with pytest.raises(errors.InputError, match=r"optimizer of glassgrad\.manual"):
        Trainer(model, optim.SGD([gg.zeros(1)], lr=0.1), manual.MSELoss(), [(X, TARGET)])
    with pytest.raises(errors.InputError, match=r"loss of glassgrad\.manual"):
        Trainer(model, manual.SGD(model.parameters()), gg.nn.functional.mse_loss, [(X, TARGET)])


def test_clipping_is_that_of_tensors():
    by_hand = with_gradients(net(1))
    tensors = [gg.zeros(*p.shape, requires_grad=True) for p in by_hand.parameters()]
    for tensor, p in zip(tensors, by_hand.parameters(), strict=True):
        tensor.grad = gg.tensor(p.grad)
    for clip, limit in ((gg.nn.utils.clip_grad_norm_, 0.5), (gg.nn.utils.clip_grad_value_, 0.05)):
        found, expected = clip(by_hand.parameters(), limit), clip(tensors, limit)
        assert found is None or float(found) == pytest.approx(float(expected), rel=1e-6)
        for p, tensor in zip(by_hand.parameters(), tensors, strict=True):
            np.testing.assert_allclose(p.grad, tensor.grad.numpy(), rtol=1e-5)
    shared = np.array([3.0, 4.0])
    pair = [manual.Parameter(np.zeros(2)), manual.Parameter(np.zeros(2))]
    for p in pair:
        p.accumulate(shared)
    norm = manual.clip_grad_norm_(pair, 1.0)
    assert norm == pytest.approx(50**0.5)
    assert np.linalg.norm([p.grad for p in pair]) == pytest.approx(1.0)
    assert manual.clip_grad_norm_(pair, 9.0, np.inf) == pytest.approx(4 / 50**0.5)


def test_accumulated_micro_batches_are_one_batch():
    sizes = (slice(0, 48), slice(48, 64))
    parts, whole = (manual.Net(manual.Linear(2, 1, rng=np.random.default_rng(3))) for _ in range(2))
    loss = manual.MSELoss()
    accumulator = optim.GradientAccumulator(manual.SGD(parts.parameters(), lr=0.1), 2, max_norm=0.5)
    for rows in sizes:
        with accumulator(len(X[rows])):
            loss(parts(X[rows]), TARGET[rows])
            parts.backward(loss.backward())
    with_gradients(whole)
    assert accumulator.norms == [pytest.approx(manual.clip_grad_norm_(whole.parameters(), 0.5), rel=1e-5)]
    manual.SGD(whole.parameters(), lr=0.1).step()
    for one, other in zip(parts.parameters(), whole.parameters(), strict=True):
        np.testing.assert_allclose(one.data, other.data, rtol=1e-5, atol=1e-7)


def test_monitor_and_check_up_leave_a_net_as_it_is(capsys):
    model = net(1)
    before = {name: array.copy() for name, array in model.state_dict().items()}
    drawn = model[3].rng.bit_generator.state
    found = gg.debug_training(model, (X, TARGET), manual.MSELoss(), optimizer=manual.SGD(model.parameters()))
    assert found.total_norm > 0
    assert "total norm of all gradients" in capsys.readouterr().out
    assert all(np.array_equal(array, before[name]) for name, array in model.state_dict().items())
    assert model[3].rng.bit_generator.state == drawn
    with gg.GradientMonitor(model) as monitor:
        with_gradients(model)
        monitor.update(1.5)
        manual.SGD(model.parameters(), lr=0.1).step()
    data = monitor.data
    expected = [np.linalg.norm(p.grad) for p in model.parameters()]
    np.testing.assert_allclose(data.gradient_norm[0], expected, rtol=1e-5)
    np.testing.assert_allclose(data.update_norm[0], 0.1 * np.array(expected), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("name", ["sgd", "momentum", "RMSprop", "adam"])
def test_optimizers_by_name_agree_and_exchange_their_state(name):
    p, q = manual.Parameter(np.ones(3)), gg.ones(3, dtype=gg.float64, requires_grad=True)
    ours, theirs = manual.get_optimizer(name, [p], 0.1), optim.get_optimizer(name, [q], 0.1)
    for step in range(6):
        p.grad = np.cos(np.arange(3.0) + step)
        q.grad = gg.tensor(p.grad)
        if step == 3:  # state moves from tape to hand
            ours = manual.get_optimizer(name, [p], 1.0)
            ours.load_state_dict(theirs.state_dict())
        ours.step()
        theirs.step()
        np.testing.assert_allclose(p.data, q.detach().numpy(), rtol=1e-10)


def test_what_optimizers_refuse():
    p, tensor = manual.Parameter(np.ones(2)), gg.ones(2, requires_grad=True)
    for make in (manual.SGD, manual.Adam, manual.RMSprop, manual.SGDMomentum):
        with pytest.raises(errors.ArgumentError, match="rate of at least 0"):
            make([p], lr=-0.1)
    with pytest.raises(errors.ArgumentError, match=r"numbers in \[0, 1\)"):
        manual.Adam([p], betas=(0.9, 1.0))
    for where, held in ((manual, p), (optim, tensor)):
        with pytest.raises(errors.ArgumentError, match=r"no optimizer is called 'rmspop'.*\n.*rmsprop"):
            where.get_optimizer("rmspop", [held], 0.1)
        with pytest.warns(errors.IdleStepWarning, match="none of its 1 parameters has a gradient"):
            where.SGD([held], lr=0.1).step()
    state = manual.Adam([manual.Parameter(np.ones(3))]).state_dict()
    with pytest.raises(errors.ArgumentError, match="parameter 0: exp_avg has shape"):
        manual.Adam([p]).load_state_dict(state)


def test_saved_values_of_another_forward_pass_are_refused():
    layer = manual.Tanh()
    with pytest.raises(errors.AutogradError, match="ran before forward"):
        layer.backward(X)
    with pytest.raises(errors.AutogradError, match=r"MSELoss\.backward\(\) ran before"):
        manual.MSELoss().backward()
    layer(X)
    layer(X[:1])  # its saved values would broadcast
    with pytest.raises(errors.ShapeError, match=r"gradient of shape \(64, 2\), but its latest forward\(\) returned"):
        layer.backward(X)
    layer.eval()(X)
    layer.train()
    with pytest.raises(errors.AutogradError, match=r"in training mode, but the latest forward\(\) ran in evaluation"):
        layer.backward(X)
    layer.backward(layer(X))
    layer(X)
    layer(2 * X)
    layer.backward(X)
    with pytest.raises(errors.AutogradError, match=r"a second time after 2 calls of forward"):
        layer.backward(X)
    layer(X)
    assert np.array_equal(layer.backward(X), layer.backward(X))  # twice for one pass is fine


def test_a_subclass_may_call_the_layer_it_extends():
    class Doubled(manual.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

        def backward(self, dout):
            return super().backward(2 * dout)

    assert gradcheck(Doubled(2, 3), X[:5])


def test_one_layer_twice_on_the_tape():
    function = manual.as_function(manual.Net(manual.Linear(2, 2, rng=np.random.default_rng(0)), manual.Tanh()))
    assert gradcheck(lambda x, y: function(x) * function(y), gg.tensor(X[:4]), gg.tensor(X[4:8]))


class OfTensors:
    """A layer of a user's own that computes with our tensors; `scale` makes its gradient wrong."""

    def __init__(self, weight, scale=1.0):
        self.weight, self.scale = weight, scale

    def forward(self, x):
        self.x = x
        return x.mm(self.weight)

    def backward(self, dout):
        self.weight.grad = self.x.t().mm(dout)
        return dout.mm(self.weight.t()) * self.scale

    def parameters(self):
        return [self.weight]


def test_gradcheck_of_a_layer_of_tensors():
    weight = gg.tensor(np.random.default_rng(0).normal(size=(2, 3)))
    for x in (gg.tensor(X[:4]), X[:4]):
        assert gradcheck(OfTensors(weight), x).kind == "right"
        assert gradcheck(OfTensors(weight, 2.0), x).kind == "wrong"

    class Inner(manual.Module):
        def forward(self, x):
            self.saved = x
            return x.mm(x.t())

        def backward(self, dout):
            return (dout + dout.t()).mm(self.saved)

    assert gradcheck(Inner(), X[:4]).kind == "right"
    with pytest.raises(AttributeError, match="nothing_like_it"):
        gradcheck(type("Odd", (Inner,), {"forward": lambda self, x: x.nothing_like_it()})(), X[:4])


def test_missing_names_say_what_to_use():
    for name, advice in {
        "Sequential": r"manual\.Net",
        "relu": r"manual\.ReLU\(\)",
        "LSTM": r"glassgrad\.nn\.LSTM",
        "Trainer": r"glassgrad\.train\.Trainer",
        "clip_grad_nrm_": "Nearest: clip_grad_norm_",
    }.items():
        with pytest.raises(errors.MissingError, match=advice):
            getattr(manual, name)
    with pytest.raises(errors.MissingError, match=r"manual\.Net has no 'cuda'.*\n.*leave the call out"):
        net().cuda()
    with pytest.raises(errors.MissingError, match="Nearest: parameters"):
        net().paramters()
