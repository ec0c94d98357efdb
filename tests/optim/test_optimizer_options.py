"""The limits of optimizers' options, from both sides; large parameters; states that do not fit; clipped updates."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import optim
from glassgrad.optim import swa_utils
from glassgrad.optim.update import Updated, has_state, update

from .optimizer_cases import OPTIMIZERS, Case
from .test_optimizers_against_torch import assert_close, pair, steps

# Optimizer, what is refused, and what is taken at the edge of it.
LIMITS: list[tuple[str, str, list[Any], list[Any]]] = [
    *((name, "lr", [-1e-9], [0.0]) for name in ("SGD", "Adam", "LBFGS", "Rprop", "SparseAdam")),
    *((name, "weight_decay", [-1e-9], [0.0]) for name in ("SGD", "Adam", "RMSprop", "Lion")),
    *((name, "eps", [-1e-9], [0.0]) for name in ("Adam", "Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop")),
    *(
        (name, "betas", [(-0.1, 0.5), (0.5, 1.0), (1.0, 0.5), (0.5, -0.1), (0.5,), (0.1, 0.2, 0.3)], [(0.0, 0.9)])
        for name in ("Adam", "Adamax", "NAdam", "RAdam", "Lion", "SparseAdam")
    ),
    ("SparseAdam", "eps", [-1e-9], [0.0]),
    ("SGD", "momentum", [-0.1], [0.0, 1.5]),
    ("RMSprop", "momentum", [-0.1], [0.0, 1.5]),
    ("RMSprop", "alpha", [-0.1, 1.1], [0.0, 1.0]),
    ("Adadelta", "rho", [-0.1, 1.1], [0.0, 1.0]),
    ("Adagrad", "lr_decay", [-0.1], [0.0]),
    ("Adagrad", "initial_accumulator_value", [-0.1], [0.0]),
    ("NAdam", "momentum_decay", [-0.1], [0.0]),
    ("ASGD", "lambd", [-0.1], [0.0]),
    ("Adafactor", "beta2_decay", [0.1], [0.0, -2.0]),
    ("Adafactor", "d", [0.9], [1.0]),
    ("Adafactor", "eps", [(-0.1, 0.1), (None, -0.1), (0.1,), (1, 1, 1)], [(None, 0.0), (0.0, 0.0)]),
    ("LBFGS", "line_search_fn", ["wolfe"], [None, "strong_wolfe"]),
    ("Rprop", "etas", [(0.0, 1.2), (0.5, 1.0), (1.0, 1.2), (0.5,), (0.1, 2, 3)], [(0.001, 1.001)]),
    ("Rprop", "step_sizes", [(-0.1, 1.0), (2.0, 1.0), (1.0,), (1, 2, 3)], [(0.0, 0.0), (1.0, 1.0)]),
    ("Muon", "momentum", [-0.1], [0.0]),
    ("Muon", "adjust_lr_fn", ["none"], [None, "original", "match_rms_adamw"]),
    ("SGD", "nesterov", [True], [False]),
]  # fmt: skip  # a table


@pytest.mark.parametrize(("name", "option", "refused", "taken"), LIMITS)
def test_limits(name: str, option: str, refused: list[Any], taken: list[Any]) -> None:
    p = gg.ones(2, 2, requires_grad=True)
    for value in refused:
        with pytest.raises(ValueError, match=f"{name}: {option}=") as found:
            getattr(optim, name)([p], **{option: value})
        assert "test_optimizer_options.py" in str(found.value), "the user's line"
    for value in taken:
        assert getattr(optim, name)([p], **{option: value}).param_groups[0][option] == value


@pytest.mark.parametrize("options", [{"momentum": 0.9, "dampening": 0.1}, {"momentum": 0.0}])
def test_nesterovs_momentum_needs_one_without_dampening(options: dict[str, float]) -> None:
    p = gg.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="nesterov"):
        optim.SGD([p], nesterov=True, **options)
    assert optim.SGD([p], nesterov=True, momentum=0.1).defaults["nesterov"]


def test_limits_of_what_goes_with_optimizers() -> None:
    model = gg.nn.Linear(1, 1)
    optimizer = optim.SGD(model.parameters())
    for decay, fine in ((-0.1, False), (0.0, True), (1.0, True), (1.1, False)):
        if fine:
            assert optim.EMA(model, decay).decay == decay
        else:
            with pytest.raises(ValueError, match="EMA: decay"):
                optim.EMA(model, decay)
    with pytest.raises(ValueError, match="GradientAccumulator: steps=0"):
        optim.GradientAccumulator(optimizer, 0)
    assert optim.GradientAccumulator(optimizer, 1).steps == 1
    with pytest.raises(ValueError, match="SWALR: anneal_strategy"):
        swa_utils.SWALR(optimizer, 0.1, anneal_strategy="sine")


# --- large parameters: their intermediate results share memory ------------------------------------------------------

LARGE = ((8192,), (91, 91), (3,), (2, 4096))


@pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case.id)
def test_large_parameters_against_torch(case: Case) -> None:
    pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    ours, our_optimizer, theirs, their_optimizer = pair(case, LARGE)
    steps(our_optimizer, ours, 3)
    steps(their_optimizer, theirs, 3)
    assert_close(ours, theirs, rtol=1e-4)


# --- states that do not fit -----------------------------------------------------------------------------------------


def trained() -> Any:
    parameters = [gg.ones(2, requires_grad=True), gg.ones(3, requires_grad=True)]
    optimizer = optim.Adam([{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.5}])
    steps(optimizer, parameters, 2)
    return optimizer


def fewer_groups(state: dict[str, Any]) -> None:
    state["param_groups"].pop()


def more_parameters(state: dict[str, Any]) -> None:
    state["param_groups"][1]["params"].append(2)


def without_eps(state: dict[str, Any]) -> None:
    del state["param_groups"][1]["eps"]


def place_beyond(state: dict[str, Any]) -> None:
    state["state"][2] = {}


def place_below(state: dict[str, Any]) -> None:
    state["state"][-1] = {}


@pytest.mark.parametrize("spoil", [fewer_groups, more_parameters, without_eps, place_beyond, place_below])
def test_a_state_that_does_not_fit_changes_nothing(spoil: Any) -> None:
    optimizer = trained()
    before = str(optimizer.state_dict())
    state = copy.deepcopy(trained().state_dict())
    state["param_groups"][0]["lr"] = 7.0
    spoil(state)
    with pytest.raises(ValueError, match=r"(?s)Adam.*test_optimizer_options\.py"):
        optimizer.load_state_dict(state)
    assert str(optimizer.state_dict()) == before


def test_a_state_may_lack_switches_and_has_memory_of_its_own() -> None:
    optimizer, state = trained(), trained().state_dict()
    for group in state["param_groups"]:
        del group["amsgrad"]
        group["lr"] = 7.0
    optimizer.load_state_dict(state)
    assert [group["lr"] for group in optimizer.param_groups] == [7.0, 7.0]
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 1]
    own = optimizer.state[optimizer.param_groups[0]["params"][0]]["exp_avg"]
    assert not np.shares_memory(own.numpy(), state["state"][0]["exp_avg"].numpy())


def test_slots_of_another_shape_are_named() -> None:
    optimizer = trained()
    state = optimizer.state_dict()
    state["state"][0]["exp_avg"] = gg.zeros(1)
    optimizer.load_state_dict(state)
    with pytest.raises(ValueError, match="exp_avg"):
        optimizer.step()


# --- steps ----------------------------------------------------------------------------------------------------------


def test_gradients_are_forgotten_or_zeroed() -> None:
    p, q = gg.ones(2, requires_grad=True), gg.ones(2, requires_grad=True)
    optimizer = optim.SGD([p, q])
    (p * 3).sum().backward()
    kept = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is kept
    assert p.grad.tolist() == [0, 0]
    assert q.grad is None
    optimizer.zero_grad()
    assert p.grad is None


def test_a_closure_is_run_with_gradients_and_its_loss_returned() -> None:
    p = gg.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.5)

    def closure() -> Any:
        loss = (p * 2).sum()
        loss.backward()
        return loss

    with gg.no_grad():
        assert optimizer.step(closure).item() == 4
    assert p.tolist() == [0, 0]
    assert optimizer.step() is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [3.0, -4.0]),
        ({"factor": 0.5}, [1.5, -2.0]),
        ({"factor": 1}, [3.0, -4.0]),
        ({"factor": 2.0}, [6.0, -8.0]),
        ({"max_norm": 1.0}, [0.6, -0.8]),
        ({"max_norm": 10.0}, [3.0, -4.0]),
        ({"clip_value": 1.0}, [1.0, -1.0]),
        ({"max_norm": 2.5, "clip_value": 1.75}, [1.5, -1.75]),
        ({"skip_nonfinite": True, "factor": float("inf")}, [0.0, 0.0]),
        ({"skip_nonfinite": True}, [3.0, -4.0]),
    ],
)
def test_an_update_scales_clips_and_skips(options: dict[str, Any], expected: list[float]) -> None:
    p, unused = gg.zeros(2, requires_grad=True), gg.zeros(2, requires_grad=True)
    optimizer = optim.SGD([unused, p], lr=1.0, momentum=0.5)
    averages = optim.EMA(gg.nn.Linear(1, 1))
    assert not has_state(optimizer)
    (p * gg.tensor([-3.0, 4.0])).sum().backward()
    found = update(optimizer, averages=averages, **options)
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-5)
    asked = set(options) & {"max_norm", "clip_value", "skip_nonfinite"}
    assert (found.norm is not None) == bool(asked)
    assert (found.made is not None) == ("skip_nonfinite" in options)
    assert not any(one.requires_grad for one in found if one is not None)
    made = found.made is None or bool(found.made)
    assert averages.updates == made
    assert has_state(optimizer) == made
    if found.norm is not None and options.get("factor", 1.0) == 1.0:
        assert found.norm.item() == pytest.approx(5.0)
    assert update(optimizer, norm=True).norm is not None
    assert update(optimizer) == Updated(None, None)
