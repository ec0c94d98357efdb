"""`examine` and `examine_data`: the experiments before training, in both libraries; they restore the model."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, manual
from glassgrad.doctor import check_up, examine, examine_data

torch = pytest.importorskip("torch", reason="PyTorch's modules are examined as well")

LIBRARIES = pytest.mark.parametrize("lib", [gg, torch], ids=["ours", "torch"])
RNG = np.random.default_rng(4)
X = RNG.normal(size=(32, 6)).astype(np.float32)
Y = RNG.integers(0, 3, 32)


def net(lib: Any, **options: Any) -> Any:
    lib.manual_seed(1)
    return lib.nn.Sequential(
        lib.nn.Linear(6, 16), lib.nn.BatchNorm1d(16), lib.nn.ReLU(), lib.nn.Dropout(0.1), lib.nn.Linear(16, 3)
    )


def rules_of(found: Any) -> list[str]:
    return [finding.rule for finding in found.findings if finding.severity != "info"]


@LIBRARIES
def test_a_healthy_model_passes_and_stays_as_it_was(lib: Any) -> None:
    model = net(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    before = [value.numpy().tobytes() for value in model.state_dict().values()]
    lib.manual_seed(5)
    expected = lib.rand(3).numpy()
    lib.manual_seed(5)
    text = io.StringIO()
    found = examine(model, (X, Y), lib.nn.functional.cross_entropy, optimizer, file=text)
    assert rules_of(found) == []
    assert found.healthy
    assert found.learnt[0] == 80
    assert found.learnt[2] < 0.6 * found.learnt[1]
    assert found.leaks == 0
    assert [value.numpy().tobytes() for value in model.state_dict().values()] == before
    np.testing.assert_array_equal(lib.rand(3).numpy(), expected)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.training
    assert "learnt       the loss of only a few examples goes from" in text.getvalue()


@LIBRARIES
def test_the_curvature_is_that_of_a_quadratic(lib: Any) -> None:
    """For 2 w² + w, whose second derivative is 4 everywhere."""
    layer = lib.nn.Linear(1, 1, bias=False)
    found = examine(
        layer, (np.ones((4, 1), np.float32), np.zeros(4, np.float32)),
        lambda output, _: (2 * output**2 + output).mean(), report=False,
    )  # fmt: skip  # in a row
    assert found.curvature == pytest.approx(4, rel=1e-2)


@LIBRARIES
def test_a_rate_far_above_the_curvature_is_named(lib: Any) -> None:
    lib.manual_seed(0)
    model = lib.nn.Linear(6, 1)
    optimizer = lib.optim.SGD(model.parameters(), lr=100.0)
    target = RNG.normal(size=(32, 1)).astype(np.float32)
    found = examine(model, (X, target), lib.nn.functional.mse_loss, optimizer, report=False)
    assert "rate above the curvature" in rules_of(found)
    assert "learning rate out of the usual" in rules_of(found)


@LIBRARIES
def test_examples_that_are_mixed_are_found(lib: Any) -> None:
    class Mixed(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = lib.nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            return self.layer(x) - self.layer(x).mean(0)

    found = examine(Mixed(), (X, Y), lib.nn.functional.cross_entropy, report=False)
    assert found.leaks == 31
    assert "examples mixed" in rules_of(found)


@LIBRARIES
def test_a_batch_that_cannot_be_learnt_is_named(lib: Any) -> None:
    class Blind(lib.nn.Module):
        """Learns the bias alone: what comes in is multiplied by next to nothing."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = lib.nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            return self.layer(x * 1e-3)

    found = examine(Blind(), (X, Y), lib.nn.functional.cross_entropy, report=False)
    assert "batch not learnt" in rules_of(found)


@LIBRARIES
def test_the_noise_scale_is_that_of_its_definition(lib: Any) -> None:
    """The mean of w x over a batch has the gradient mean(x): signal mean², noise variance."""
    layer = lib.nn.Linear(1, 1, bias=False)
    x = (2 + RNG.normal(size=(4096, 1))).astype(np.float32)
    found = examine(layer, (x, x), lambda output, _: output.mean(), report=False)
    assert 0.08 < found.noise_scale < 0.75  # from eight parts: 1/4 is the value


def test_an_optimizer_of_another_model_is_named_by_debug_training_too() -> None:
    model, other = net(gg), net(gg)
    found = gg.debug_training(
        model,
        (X, Y),
        gg.nn.functional.cross_entropy,
        optimizer=gg.optim.SGD(other.parameters(), lr=0.1),
        file=io.StringIO(),
    )
    assert rules_of(found) == ["optimizer of another model"]


def test_layers_by_hand_are_checked_up() -> None:
    network = manual.Net(manual.Linear(6, 16), manual.Tanh(), manual.Linear(16, 3))
    found = check_up(network, (X, Y), manual.CrossEntropyLoss())
    assert found.failure == ""
    assert math.isfinite(found.loss)
    assert found.total_norm > 0
    assert all(parameter.grad is None for parameter in network.parameters())
    assert examine(network, (X, Y), manual.CrossEntropyLoss(), report=False).healthy


def test_no_model_is_a_clear_error() -> None:
    with pytest.raises(gg.errors.KindError, match="examine expects a model"):
        examine(3, (X, Y))


# --- data ---


def test_clean_data_has_no_findings() -> None:
    found = examine_data((X, Y), (X[:8] + 1, Y[:8]), report=False)
    assert found.findings == ()
    assert found.healthy


def test_each_fault_of_the_data_is_named() -> None:
    def titles(x: Any, y: Any = Y, held_out: Any = None) -> list[str]:
        return [finding.rule for finding in examine_data((x, y), held_out, report=False).findings]

    bad = X.copy()
    bad[2, 1] = np.nan
    assert "NaN in the data" in titles(bad)
    assert "inputs unnormalised" in titles(X * 255)
    assert titles(np.ones_like(X))[0] == "inputs constant"
    flat = X.copy()
    flat[:, 2] = 0.5
    assert titles(flat) == ["features constant"]
    apart = X.copy()
    apart[:, 0] *= 1e-4
    assert titles(apart) == ["features of unequal scale"]
    assert titles(np.concatenate([X, X[:3]]), np.concatenate([Y, Y[:3]])) == ["examples twice"]
    assert titles(X, Y, (X[:4], Y[:4])) == ["examples in both splits"]
    assert titles(X, Y, (X[:4] + 1, np.array([0, 1, 2, 9]))) == ["classes uneven"]
    twice = examine_data((np.concatenate([X, X[:3]]), np.concatenate([Y, (Y[:3] + 1) % 3])), report=False)
    assert (twice.duplicates, twice.contradictions) == (3, 3)


def test_the_report_of_data_is_printed() -> None:
    text = io.StringIO()
    examine_data((gg.tensor(X), gg.tensor(Y)), (X[:4], Y[:4]), file=text)
    assert "WARNING  examples in both splits: 4 of 4 held-out examples" in text.getvalue()


@LIBRARIES
def test_what_is_no_batch_is_refused_before_work_starts(lib: Any) -> None:
    model, x = net(lib), lib.tensor(X)
    loss_fn = lib.nn.functional.cross_entropy
    wrong = {
        "given str": "some text",
        "given generator": (part for part in [x]),
        "part 2 is set": (x, {1, 2}),
        "an empty one": (),
    }
    for words, batch in wrong.items():
        with pytest.raises(errors.KindError, match=words):
            examine(model, batch, loss_fn)
    for alone in (x, (x,)):
        with pytest.raises(errors.ArgumentError, match="holds only inputs"):
            examine(model, alone, loss_fn)
    found = examine(model, (x, None), lambda output, targets: output.square().mean(), seconds=0.01, report=False)
    assert not found.check_up.failure
