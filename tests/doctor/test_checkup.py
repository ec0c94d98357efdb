"""The check-up of one batch: it finds each possible fault, in both libraries, and nothing in a healthy batch."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.doctor import CheckUp, check_up
from glassgrad.doctor.rules import RULES
from glassgrad.doctor.rules.rule import SEVERITIES
from glassgrad.models import NamesMLP
from tests.doctor.pairs import NETS, batch, pair

torch = pytest.importorskip("torch", reason="PyTorch's modules are checked up as well")

LIBRARIES = pytest.mark.parametrize("lib", [gg, torch], ids=["ours", "torch"])
RNG = np.random.default_rng(4)
X = RNG.normal(size=(32, 6)).astype(np.float32)
Y = RNG.integers(0, 3, 32)


def net(lib: Any) -> Any:
    lib.manual_seed(1)
    nn = lib.nn
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))


def module(lib: Any, forward: Callable[[Any, Any], Any], *, spare: bool = False) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = lib.nn.Linear(6, 8)
            self.last = lib.nn.Linear(8, 3)
            if spare:
                self.spare = lib.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return forward(self, x)

    lib.manual_seed(1)
    return Net()


def entropy(lib: Any) -> Any:
    return lib.nn.functional.cross_entropy


def rules_of(found: CheckUp) -> list[str]:
    return [finding.rule for finding in found.findings]


def deep(lib: Any, function: str, depth: int = 12) -> Any:
    lib.manual_seed(0)
    layers = [part for _ in range(depth) for part in (lib.nn.Linear(32, 32), getattr(lib.nn, function)())]
    return lib.nn.Sequential(lib.nn.Linear(6, 32), *layers, lib.nn.Linear(32, 3))


def scaled(lib: Any, model: Any, factor: float) -> Any:
    with lib.no_grad():
        for parameter in model.parameters():
            parameter *= factor
    return model


# --- each case: the rule, and what has to be wrong for it ---


def nan_inputs(lib: Any) -> Any:
    x = X.copy()
    x[3, 2] = np.nan
    return net(lib), (x, Y), entropy(lib)


def nan_parameters(lib: Any) -> Any:
    model = net(lib)
    with lib.no_grad():
        model[2].weight[1, 1] = math.inf
    return model, (X, Y), entropy(lib)


def nan_forward(lib: Any) -> Any:
    return module(lib, lambda net, x: net.last(lib.log(net.first(x)))), (X, Y), entropy(lib)


def nan_loss(lib: Any) -> Any:
    return net(lib), (X, Y), lambda output, target: lib.log(output.mean() * 0 - 1)


def nan_backward(lib: Any) -> Any:
    return module(lib, lambda net, x: net.last(lib.sqrt(net.first(x) ** 2 * 0))), (X, Y), entropy(lib)


def raises(lib: Any) -> Any:
    return net(lib), (X[:, :5], Y), entropy(lib)


def labels_outside(lib: Any) -> Any:
    return net(lib), (X, Y + 1), entropy(lib)


def labels_alike(lib: Any) -> Any:
    return net(lib), (X, np.full(32, 2)), entropy(lib)


def raw_pixels(lib: Any) -> Any:
    return net(lib), (RNG.integers(0, 256, (32, 6)).astype(np.float32), Y), entropy(lib)


def constant(lib: Any) -> Any:
    return net(lib), (np.ones_like(X), Y), entropy(lib)


def confident(lib: Any) -> Any:
    return scaled(lib, net(lib), 6.0), (X, Y), entropy(lib)


def softmax_twice(lib: Any) -> Any:
    return module(lib, lambda net, x: lib.softmax(net.last(net.first(x)), 1)), (X, Y), entropy(lib)


def same_output(lib: Any) -> Any:
    model = module(lib, lambda net, x: net.last(net.first(x).mean(0, keepdim=True) + 0 * net.first(x)))
    return model, (X, Y), entropy(lib)


def evaluating(lib: Any) -> Any:
    return net(lib).eval(), (X, Y), entropy(lib)


def unused(lib: Any) -> Any:
    return module(lib, lambda net, x: net.last(net.first(x)), spare=True), (X, Y), entropy(lib)


def cut(lib: Any) -> Any:
    return module(lib, lambda net, x: net.last(net.first(x).detach())), (X, Y), entropy(lib)


def zero(lib: Any) -> Any:
    return module(lib, lambda net, x: net.last(net.first(x) * 0.0)), (X, Y), entropy(lib)


def frozen(lib: Any) -> Any:
    return net(lib).requires_grad_(False), (X, Y), entropy(lib)


def vanishing(lib: Any) -> Any:
    return deep(lib, "Sigmoid"), (X, Y), entropy(lib)


def exploding(lib: Any) -> Any:
    return scaled(lib, deep(lib, "ReLU"), 5.0), (X, Y), entropy(lib)


def dead(lib: Any) -> Any:
    model = net(lib)
    with lib.no_grad():
        model[0].bias[:12] = -50.0
    return model, (X, Y), entropy(lib)


def saturated(lib: Any) -> Any:
    return scaled(lib, deep(lib, "Tanh", 1), 10.0), (X, Y), entropy(lib)


def sigmoid_twice(lib: Any) -> Any:
    binary = lib.nn.functional.binary_cross_entropy_with_logits
    model = module(lib, lambda net, x: lib.sigmoid(net.last(net.first(x))))
    return model, (X, np.eye(3, dtype=np.float32)[Y]), binary


def log_of_raw(lib: Any) -> Any:
    return net(lib), (X, Y), lambda output, target: -lib.log(output)[lib.arange(32), target].mean()


def root_of_zero(lib: Any) -> Any:
    return module(lib, lambda net, x: lib.sqrt(lib.relu(net.first(x)))), (X, Y), entropy(lib)


def power_of_zero(lib: Any) -> Any:
    return module(lib, lambda net, x: lib.relu(net.first(x)) ** 0.3), (X, Y), entropy(lib)


def division(lib: Any) -> Any:
    return module(lib, lambda net, x: net.last(net.first(x)) / lib.relu(net.first(x))[:, :3]), (X, Y), entropy(lib)


def crossed(lib: Any) -> Any:
    model = module(lib, lambda net, x: net.last(net.first(x))[:, :1])
    return model, (X, RNG.normal(size=32).astype(np.float32)), lambda output, target: ((output - target) ** 2).mean()


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "NaN in the data": (nan_inputs, r"input holds NaN at \[3, 2\], 1 of 192"),
    "NaN in the parameters": (nan_parameters, r"2.weight holds inf at \[1, 1\], 1 of 256"),
    "NaN forward": (nan_forward, r"the input of 'last' \(Linear\) \(made by log.* its output holds NaN at \[0, 0\]"),
    "NaN in the loss": (nan_loss, "the loss is nan though the output is finite"),
    "NaN backward": (nan_backward, r"'first' \(Linear\) holds (NaN|inf|-inf) at"),
    "stopped": (raises, "the model raised "),
    "labels out of range": (labels_outside, r"\d+ of 32 labels lie outside of 0 .. 2: they range from 1 to 3"),
    "labels alike": (labels_alike, "all 32 labels are 2"),
    "inputs unnormalised": (raw_pixels, r"input ranges from \d+ to 25\d, mean"),
    "inputs constant": (constant, "every number of input is 1"),
    "loss far off": (confident, r"the loss is .* constant guess has 1.099 \(log 3\)"),
    "softmax twice": (softmax_twice, "output is a probability for each class already"),
    "output without input": (same_output, "the same for every example"),
    "evaluation mode": (evaluating, "evaluation mode"),
    "nothing to train": (frozen, "no parameter requires a gradient"),
    "no gradient": (unused, "spare.weight, spare.bias got no gradient at all"),
    "gradient zero": (zero, "the gradient of first.weight, first.bias, last.weight is exactly zero"),
    "vanishing gradient": (vanishing, r"for \d+.weight and .* for \d+.weight: .* times as much within \d+ layers"),
    "exploding gradient": (exploding, "times as large as its weights"),
    "dead units": (dead, r"(75|81|88|94|100)% of the units of '1' \(ReLU\) are zero"),
    "activation before its loss": (sigmoid_twice, r"probability already \(sigmoid at .*test_checkup.py:\d+\)"),
    "logarithm of what can reach 0": (log_of_raw, "log of -0.* is NaN"),
    "root of 0": (root_of_zero, "the operand of sqrt is 0"),
    "power of 0": (power_of_zero, "a power between 0 and 1 is taken of 0"),
    "division by 0": (division, "the divisor is 0 in places"),
    "broadcast in the loss": (crossed, r"predictions \(32, 1\) and targets \(32,\) makes 32 x 32 numbers"),
    "sigmoids too deep": (vanishing, "12 sigmoids lie between the first layer and the loss"),
    "saturated": (saturated, r"\d+% of the outputs of '2' \(Tanh\) lie close to a bound"),
}


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == {rule.name for rule in RULES}


@LIBRARIES
@pytest.mark.parametrize("rule", CASES)
def test_each_rule_finds_what_is_wrong(rule: str, lib: Any) -> None:
    build, expected = CASES[rule]
    found = check_up(*build(lib))
    texts = [finding.what for finding in found.findings if finding.rule == rule]
    assert len(texts) == 1, rules_of(found)
    assert re.search(expected, texts[0]), texts[0]
    advice = next(entry for entry in found.findings if entry.rule == rule)
    assert len(advice.advice) > 15
    order = [SEVERITIES.index(entry.severity) for entry in found.findings]
    assert order == sorted(order)


def test_a_layer_cut_off_is_named() -> None:
    for lib in (gg, torch):
        found = check_up(*cut(lib))
        assert rules_of(found) == ["no gradient"]
        assert "first.weight, first.bias got no gradient" in found.findings[0].what


@LIBRARIES
def test_a_layer_that_occurs_three_times_is_told_once(lib: Any) -> None:
    layer = lib.nn.Linear(6, 6)
    model = lib.nn.Sequential(layer, lib.nn.Tanh(), layer, layer, lib.nn.Linear(6, 3))
    found = check_up(model, (X, Y), entropy(lib), lib.optim.SGD(model.parameters(), lr=0.1))
    texts = [finding.what for finding in found.findings if finding.rule == "layers shared"]
    assert texts == ["layers 2 and 3 are 0, the same object with the same weights"]


@LIBRARIES
def test_nothing_is_found_where_nothing_is_wrong(lib: Any) -> None:
    assert check_up(net(lib), (X, Y), entropy(lib)).findings == ()


def healthy_models() -> dict[str, Any]:
    gg.manual_seed(2)
    torch.manual_seed(2)
    nn = torch.nn
    letters = RNG.integers(0, 27, (32, 3))
    pixels = RNG.normal(size=(16, 1, 12, 12)).astype(np.float32)
    cnn = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
    return {
        "names": (NamesMLP(), (letters, RNG.integers(0, 27, 32)), gg.nn.functional.cross_entropy),
        "cnn": (cnn, (pixels, RNG.integers(0, 10, 16)), nn.functional.cross_entropy),
        "residual": (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
                     (RNG.normal(size=(4, 5, 16)).astype(np.float32), RNG.normal(size=(4, 5, 16)).astype(np.float32)),
                     nn.functional.mse_loss),
        "regression": (nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)),
                       (X, RNG.normal(size=(32, 1)).astype(np.float32)), nn.MSELoss()),
        "binary": (nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 1)),
                   (X, RNG.integers(0, 2, (32, 1)).astype(np.float32)), nn.BCEWithLogitsLoss()),
    }  # fmt: skip  # a table


@pytest.mark.parametrize("name", healthy_models())
def test_ordinary_models_raise_no_alarm(name: str) -> None:
    found = check_up(*healthy_models()[name])
    assert found.findings == ()
    assert math.isfinite(found.loss)
    assert found.loss_kind == {
        "regression": "squared error",
        "residual": "squared error",
        "binary": "binary cross entropy",
    }.get(name, "cross entropy")


# --- the numbers ---


@pytest.mark.parametrize("name", NETS)
def test_both_libraries_give_the_same_check_up(name: str) -> None:
    ours, theirs = pair(name, torch)
    here = check_up(ours, batch(name), gg.nn.functional.cross_entropy)
    there = check_up(theirs, batch(name), torch.nn.functional.cross_entropy)
    assert here.loss == pytest.approx(there.loss, rel=1e-9)
    assert here.total_norm == pytest.approx(there.total_norm, rel=1e-7)
    assert here.expected == there.expected == pytest.approx(math.log(3))
    assert rules_of(here) == rules_of(there)
    assert [(layer.name, layer.kind) for layer in here.layers] == [(layer.name, layer.kind) for layer in there.layers]
    for one, other in zip(here.layers, there.layers, strict=True):
        assert one.output.summary.std == pytest.approx(other.output.summary.std, rel=1e-7)
        assert one.gradient is not None
        assert one.gradient.summary.norm == pytest.approx(other.gradient.summary.norm, rel=1e-6)
        assert (one.dead, one.saturated) == pytest.approx((other.dead, other.saturated), nan_ok=True)
    for one, other in zip(here.gradients, there.gradients, strict=True):
        assert one.gradient.summary.norm == pytest.approx(other.gradient.summary.norm, rel=1e-7, abs=1e-14)


def test_the_gradient_at_a_layers_output_is_that_of_autograd() -> None:
    model = net(torch)
    hidden = model[0](torch.tensor(X))
    output = model[1:](hidden)
    (expected,) = torch.autograd.grad(torch.nn.functional.cross_entropy(output, torch.tensor(Y)), hidden)
    found = check_up(model, (X, Y), torch.nn.functional.cross_entropy)
    assert found.layers[0].gradient.summary.norm == pytest.approx(float(expected.norm()), rel=1e-5)


# --- nothing is left behind ---


@LIBRARIES
def test_model_gradients_and_generators_are_as_before(lib: Any) -> None:
    nn = lib.nn
    lib.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    model(lib.tensor(X)).sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    kept = [g.numpy().copy() for g in gradients]
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    np.random.seed(5)  # noqa: NPY002 - the global generator must be left alone too
    lib.manual_seed(7)
    random.seed(9)
    drawn = lib.rand(3).numpy(), np.random.rand(), random.random()  # noqa: NPY002 - as above
    np.random.seed(5)  # noqa: NPY002 - as above
    lib.manual_seed(7)
    random.seed(9)
    check_up(model, (X, Y), entropy(lib))
    np.testing.assert_array_equal(lib.rand(3).numpy(), drawn[0])
    assert (np.random.rand(), random.random()) == drawn[1:]  # noqa: NPY002 - as above
    assert all(parameter.grad is g for parameter, g in zip(model.parameters(), gradients, strict=True))
    for g, array in zip(gradients, kept, strict=True):
        np.testing.assert_array_equal(g.numpy(), array)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name], err_msg=name)
    if lib is gg:
        assert all(part._hooks is None for part in model.modules())
    else:
        assert not any(part._forward_hooks for part in model.modules())


@LIBRARIES
def test_weights_that_a_forward_pass_changes_come_back(lib: Any) -> None:
    def forward(net: Any, x: Any) -> Any:
        with lib.no_grad():
            net.last.weight *= 0.5
        net.calls = getattr(net, "calls", 0) + 1
        return net.last(net.first(x))

    model = module(lib, forward)
    before = model.last.weight.detach().numpy().copy()
    check_up(model, (X, Y), entropy(lib))
    np.testing.assert_array_equal(model.last.weight.detach().numpy(), before)
    assert not hasattr(model, "calls")


# --- ways to give a batch, and what is printed ---


def test_a_model_that_returns_its_loss_takes_a_mapping() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(6, 3)

        def forward(self, x: Any, labels: Any) -> Any:
            return torch.nn.functional.cross_entropy(self.layer(x), labels)

    found = check_up(Net(), {"x": X, "labels": Y})
    assert found.failure == ""
    assert [facts.name for facts in found.inputs] == ["x"]
    assert math.isfinite(found.loss)


def test_the_report_says_what_was_found_and_what_to_do() -> None:
    text = io.StringIO()
    found = gg.debug_training(*confident(torch), file=text)
    lines = text.getvalue().splitlines()
    assert lines[0] == "check-up of Sequential, 435 trainable numbers, training mode"
    assert any(line.startswith("targets") and "room for 3 classes" in line for line in lines)
    assert any(line.startswith("loss") and "log 3" in line for line in lines)
    assert sum(line.split()[:1] == [entry.name] for line in lines for entry in found.gradients) == 6
    at = next(place for place, line in enumerate(lines) if line.startswith("findings"))
    assert lines[at].split()[-1] == str(len(found.findings))
    assert "loss far off" in text.getvalue()
    assert "-> Make the weights of the last layer smaller" in text.getvalue()
    assert max(map(len, lines[at:])) <= 100


def test_the_names_of_the_front_are_found_in_the_doctor_too() -> None:
    names = {name for name, home in gg.__dict__["_ELSEWHERE"].items() if home in {"doctor", "report"}}
    assert {"debug_training", "visualize_gradient_flow", "GradientMonitor"} <= names
    for name in names:
        assert getattr(gg.doctor, name) is getattr(gg, name), name
        assert name in dir(gg.doctor)
    assert gg.report.debug_training is gg.debug_training


def test_a_healthy_model_is_told_so_and_a_very_deep_one_is_cut_short() -> None:
    text = io.StringIO()
    gg.debug_training(net(gg), (X, Y), entropy(gg), file=text)
    assert text.getvalue().splitlines()[-1] == "findings     none: nothing here looks wrong"
    text = io.StringIO()
    gg.debug_training(deep(gg, "ReLU", 40), (X, Y), entropy(gg), file=text)
    assert "... and 42 more" in text.getvalue()


def test_no_model_is_a_clear_error() -> None:
    with pytest.raises(gg.errors.KindError, match="debug_training expects a model"):
        gg.debug_training(3, (X, Y))
