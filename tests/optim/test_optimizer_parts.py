"""Common parts of all optimizers: messages, step hooks, written values, saved states; and unusual options."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.engine.mode import MODE
from glassgrad.optim import muon
from glassgrad.optim.optimizer import Hints
from glassgrad.optim.radam import rectification
from glassgrad.optim.update import OldValues, Updated, update

from .optimizer_cases import Case
from .test_optimizers_against_torch import arrays, assert_close, pair, steps

HERE = r"\S*test_optimizer_parts\.py:\d+"


def leaf(*shape: int) -> Any:
    return gg.ones(*shape, requires_grad=True)


def fixed(shape: tuple[int, ...] = (2,)) -> Any:
    """Return a parameter whose memory cannot be written."""
    p = gg.tensor(np.ones(shape, np.float32), requires_grad=True)
    p.array.flags.writeable = False
    p.grad = gg.ones(*shape)
    return p


# --- messages ---------------------------------------------------------------------------------------

# What is done, the kind of the error, and its first line up to the place.
REFUSALS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: optim.SGD(leaf(2)), errors.KindError, "SGD expects an iterable of tensors, given one tensor"),
    (lambda: optim.Adam([]), errors.ArgumentError, "Adam got no parameters"),
    (lambda: optim.SGD([leaf(2)], rate=1), errors.KindError, "SGD has no option 'rate'"),
    (lambda: optim.SGD(nn.Sequential(nn.Linear(2, 1))), errors.KindError,
     "SGD expects an iterable of tensors, given a Sequential"),
    (lambda: optim.SGD(nn.Linear(2, 1)), errors.KindError, "SGD expects an iterable of tensors, given a Linear"),
    (lambda: optim.SGD(nn.Linear(2, 1).parameters), errors.KindError,
     "SGD expects an iterable of tensors, given a method"),
    (lambda: optim.SGD([leaf(2), 1.0]), errors.KindError, "SGD can only update tensors; parameter 1 is a float"),
    (lambda: optim.SGD([leaf(2), gg.ones(2, dtype=gg.complex64)]), errors.KindError,
     "SGD: parameter 1 has dtype complex64"),
    (lambda: optim.SGD([leaf(2), leaf(2) * 2]), errors.ArgumentError,
     "SGD can only update leaf tensors; parameter 1 is the result of multiply"),
    (lambda: optim.SGD([leaf(2), *[leaf(3)] * 2]), errors.ArgumentError, "SGD: parameter 2 is already in a group"),
    (lambda: optim.SGD([{"params": (p := leaf(2))}, {"params": [leaf(2), p]}]), errors.ArgumentError,
     "SGD: parameter 1 is already in a group"),
    (lambda: optim.SGD([leaf(2)], nesterov=True), errors.ArgumentError, "SGD: nesterov=True is not possible"),
    (lambda: optim.Muon([leaf(2, 2), 1.0]), errors.KindError, "Muon can only update tensors; parameter 1 is a float"),
    (lambda: optim.Muon([leaf(2, 2), leaf(2)]), errors.ArgumentError,
     "Muon is for matrices; parameter 1 has shape (2,)"),
    (lambda: optim.LBFGS([{"params": [leaf(2)]}, {"params": [leaf(2)]}]), errors.ArgumentError,
     "LBFGS steps along one direction for all parameters and takes one group of them"),
    (lambda: optim.LBFGS([leaf(2)]).add_param_group({"params": [leaf(2)]}), errors.ArgumentError,
     "LBFGS steps along one direction for all parameters and takes one group of them"),
    (lambda: optim.LBFGS([leaf(2)]).step(), errors.ArgumentError, "LBFGS.step() at {here} needs a closure"),
]  # fmt: skip  # a table


@pytest.mark.parametrize(("what", "kind", "message"), REFUSALS, ids=[message for *_, message in REFUSALS])
def test_refusals(what: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as found:
        what()
    line = re.escape(message).replace(re.escape("{here}"), HERE) + ("" if "{here}" in message else rf" \({HERE}\)")
    assert re.match(line, str(found.value)), str(found.value)


def test_unknown_options_are_told_the_known_ones_and_hints_are_taken() -> None:
    with pytest.raises(errors.KindError, match="Expected: lr, momentum, dampening, weight_decay, nesterov, maximize"):
        optim.SGD([leaf(2)], rate=1)
    hints = {"foreach": True, "fused": None, "capturable": False, "differentiable": False}
    assert Hints.__optional_keys__ == hints.keys()
    assert optim.SGD([leaf(2)], **hints).defaults.keys().isdisjoint(hints)


def test_a_group_that_is_refused_is_not_there() -> None:
    for optimizer, wrong in (
        (optim.SGD([leaf(2)]), {"params": [leaf(2)], "lr": -1}),
        (optim.SGD([leaf(2)]), {"params": [leaf(2)], "nesterov": True}),
        (optim.Muon([leaf(2, 2)]), {"params": [leaf(2)]}),
        (optim.LBFGS([leaf(2)]), {"params": [leaf(2)]}),
    ):
        with pytest.raises(errors.ArgumentError):
            optimizer.add_param_group(wrong)
        assert len(optimizer.param_groups) == 1


def test_an_optimizer_without_a_rule_says_so() -> None:
    class Nothing(optim.Optimizer):
        """Has no rule."""

    p = leaf(2)
    p.grad = gg.ones(2)
    with pytest.raises(errors.GlassgradError, match=r"Nothing has no update\(\)"):
        Nothing([p], {}).step()


def test_a_parameter_that_cannot_be_written_is_named_and_nothing_is_changed() -> None:
    first, unused = leaf(2), fixed()
    first.grad, unused.grad = gg.ones(2), None
    model = gg.nn.Linear(2, 2)
    model.weight.array.flags.writeable = False
    model.weight.grad = gg.ones(2, 2)
    alone = [fixed()]
    called = {"_hidden": (p := fixed((3, 1))), "named": p}  # as variables of a module
    for last, told in (
        (called["named"], r"parameter 2 \(named\), of shape \(3, 1\)"),
        (next(model.parameters()), r"parameter 2 \(weight\), of shape \(2, 2\)"),
        (alone[0], r"parameter 2, of shape \(2,\)"),
    ):
        groups = [{"params": [first, unused]}, {"params": [last]}]
        with pytest.raises(errors.ArgumentError, match=rf"^SGD\.step\(\) at {HERE}: {told}, cannot be written"):
            optim.SGD(groups, lr=1.0).step()
        assert first.tolist() == [1, 1]


def test_a_parameter_of_lbfgs_that_cannot_be_written_is_named() -> None:
    p = fixed()
    seen = []

    def closure() -> Any:
        seen.append(p.grad)
        return (p * 2).sum()

    with pytest.raises(errors.ArgumentError, match=rf"^LBFGS\.step\(\) at {HERE}: parameter 0.*cannot be written"):
        optim.LBFGS([p]).step(closure)
    assert len(seen) == 1


def test_optimizers_print_their_groups() -> None:
    optimizer = optim.SGD([{"params": [leaf(2)], "lr": 0.5}, {"params": [leaf(2)]}], lr=0.25)
    text = repr(optimizer)
    options = ["    momentum: 0.0", "    dampening: 0.0", "    weight_decay: 0.0", "    nesterov: False"]
    assert text.split("\n") == [
        "SGD (",
        *("Parameter Group 0", "    lr: 0.5", *options, "    maximize: False"),
        *("Parameter Group 1", "    lr: 0.25", *options, "    maximize: False"),
        ")",
    ]
    assert "SGD" in optimizer._repr_html_()


# --- a step -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "LBFGS"])
def test_a_witness_hears_of_steps_before_and_after(name: str) -> None:
    p = leaf(2)
    heard: list[Any] = []
    witness = SimpleNamespace(
        stepping=lambda optimizer: heard.append(("stepping", optimizer, p.tolist())),
        stepped=lambda optimizer: heard.append(("stepped", optimizer, p.tolist())),
    )
    optimizer = getattr(optim, name)([p], lr=0.5, **({"max_iter": 1} if name == "LBFGS" else {}))

    def closure() -> Any:
        p.grad = gg.ones(2)
        return p.sum()

    MODE.witness = witness
    try:
        optimizer.step(closure)
    finally:
        MODE.witness = None
    after = [0.75, 0.75] if name == "LBFGS" else [0.5, 0.5]
    assert heard == [("stepping", optimizer, [1, 1]), ("stepped", optimizer, after)]


def test_parameters_without_gradients_are_passed_over() -> None:
    p, q, r = leaf(2), leaf(2), leaf(3)
    q.grad, r.grad = gg.ones(2), gg.ones(3)
    optimizer = optim.Adam([{"params": [p, q]}, {"params": [leaf(1)]}, {"params": [r]}], lr=0.5)
    optimizer.step()
    assert [p.tolist(), q.tolist(), r.tolist()] == [[1, 1], pytest.approx([0.5] * 2), pytest.approx([0.5] * 3)]
    assert set(optimizer.state) == {q, r}


@pytest.mark.parametrize("name", ["SGD", "Adam", "LBFGS", "EMA", "AveragedModel", "multi", "multi_ema", "clear"])
def test_what_is_written_cannot_be_walked_back_over(name: str) -> None:
    """A graph that saved values which were replaced since says so, as with PyTorch."""
    model = gg.nn.Linear(1, 1, bias=False)
    other = gg.nn.Linear(1, 1, bias=False)
    tools = optim.swa_utils
    if name == "EMA":
        write = lambda: optim.EMA(other).copy_to(model)
    elif name in {"AveragedModel", "multi", "multi_ema"}:
        multi = {"multi": tools.get_swa_multi_avg_fn(), "multi_ema": tools.get_ema_multi_avg_fn()}.get(name)
        averaged = tools.AveragedModel(model, multi_avg_fn=multi)
        if multi is not None:
            averaged.update_parameters(other)
        write, model = lambda: averaged.update_parameters(other), averaged.module
    elif name == "clear":
        write = lambda: update(optim.SGD([model.weight], lr=1.0), max_norm=0.1)
    else:
        optimizer = getattr(optim, name)(model.parameters(), lr=0.5)
        write = lambda: optimizer.step(lambda: (model.weight * 3).sum().backward() or 1.0)
    loss = (model.weight**2).sum()
    model.weight.grad = gg.ones(1, 1)
    write()
    with pytest.raises(errors.AutogradError, match="overwritten in place"):
        loss.backward()


def test_gradients_that_were_scaled_cannot_be_walked_back_over() -> None:
    p, q = leaf(2), leaf(2)
    p.grad = gg.ones(2)
    loss = (p.grad * q).sum()
    update(optim.SGD([p]), factor=0.5)
    with pytest.raises(errors.AutogradError, match="overwritten in place"):
        loss.backward()


def test_a_step_inside_vmap_is_one_of_each_example() -> None:
    def stepped(x: Any) -> Any:
        w = (x * 1).detach().requires_grad_()
        (w**2).sum().backward()
        optim.SGD([w], lr=0.25).step()
        return w.detach() * 1

    assert gg.func.vmap(stepped)(gg.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist() == [[0.5, 1.0], [1.5, 2.0]]


def two_steps(p: Any) -> Any:
    q = leaf(2)
    optimizer = optim.SGD([p, q], lr=1.0)
    p.grad = gg.ones(2)
    optimizer.step()
    optimizer.zero_grad()
    q.grad = gg.ones(2)
    optimizer.step()
    return optimizer


def one_step(optimizer: Any) -> Any:
    (p,) = optimizer.param_groups[0]["params"]
    loss = (p**2).sum()
    p.grad = gg.ones(2)
    optimizer.step()
    return loss


def compiled_steps(p: Any) -> None:
    def step() -> None:
        with gg.no_grad():
            p.add_(1)

    run = gg.compile(step, backend="numpy")
    run()
    run()


def saved_before(write: Callable[[Any], Any]) -> Any:
    p = leaf(2)
    loss = (p**2).sum()
    write(p)
    gc.collect()
    return loss


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda: saved_before(two_steps),
        lambda: saved_before(lambda p: one_step(optim.SGD([p]))),
        lambda: saved_before(compiled_steps),
        lambda: one_step(copy.deepcopy(optim.SGD([leaf(2)]))),
        lambda: one_step(pickle.loads(pickle.dumps(optim.SGD([leaf(2)])))),  # noqa: S301 - written on this line
    ],
    ids=["a step of others since", "an optimizer that is gone", "a compiled step that is gone", "a copy", "unpickled"],
)
def test_writes_are_known_however_the_optimizer_fared(loss_of: Callable[[], Any]) -> None:
    with pytest.raises(errors.AutogradError, match="overwritten in place"):
        loss_of().backward()


def test_a_write_before_a_value_was_saved_is_no_matter() -> None:
    p = leaf(2)
    two_steps(p)
    loss = (p**2).sum()
    loss.backward()
    assert p.grad.tolist() == [0, 0]


# --- saved states -----------------------------------------------------------------------------------


def test_loaded_states_are_copies_without_histories() -> None:
    p, q = leaf(2), leaf(2)
    optimizer = optim.Adam([p, q])
    steps(optimizer, [p, q], 1)
    state = optimizer.state_dict()
    assert list(state["state"]) == [0, 1]
    assert [group["params"] for group in state["param_groups"]] == [[0, 1]]
    mean, notes = gg.ones(2, requires_grad=True), [1, 2]
    state["state"] = {"1": {"exp_avg": mean, "notes": notes, "array": np.arange(2.0)}}
    optimizer.load_state_dict(state)
    assert list(optimizer.state) == [q], "what was there before is gone"
    loaded = optimizer.state[q]
    assert loaded["exp_avg"].tolist() == [1, 1]
    assert loaded["exp_avg"] is not mean
    assert not loaded["exp_avg"].requires_grad
    assert loaded["notes"] == notes
    assert loaded["notes"] is not notes
    assert not np.shares_memory(loaded["exp_avg"].numpy(), mean.detach().numpy())


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda state: state["param_groups"][0]["params"].append(7),
         r"its groups have \[3, 1\] parameters, expected \[2, 1\]"),
        (lambda state: state["param_groups"][1].pop("eps"), r"its groups lack eps\."),
        (lambda state: [group.pop("lr") for group in state["param_groups"]], r"its groups lack lr\."),
        (lambda state: state["state"].update({3: {}, -1: {}}),
         r"it is for the parameters numbered \[3, -1\], but there are 3"),
    ],
)  # fmt: skip  # a table
def test_states_that_do_not_fit(spoil: Callable[[Any], Any], told: str) -> None:
    optimizer = optim.Adam([{"params": [leaf(2), leaf(3)]}, {"params": [leaf(2)]}])
    state = optimizer.state_dict()
    state = {**state, "param_groups": [{**group, "params": [*group["params"]]} for group in state["param_groups"]]}
    spoil(state)
    with pytest.raises(errors.ArgumentError, match=rf"the state does not fit this Adam \({HERE}\): {told}"):
        optimizer.load_state_dict(state)


def test_an_option_that_is_none_by_default_need_not_be_in_a_state() -> None:
    optimizer = optim.Muon([leaf(2, 2)])
    state = optimizer.state_dict()
    del state["param_groups"][0]["adjust_lr_fn"], state["param_groups"][0]["nesterov"]
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["nesterov"]


# --- options far from their defaults ----------------------------------------------------------------

ODD = [
    Case("SGD", {"lr": 0.3, "momentum": 0.5, "dampening": 0.7, "weight_decay": 0.3}),
    Case("SGD", {"lr": 0.3, "momentum": 1.5, "weight_decay": 0.3, "nesterov": True, "maximize": True}),
    Case("Adam", {"lr": 0.3, "betas": (0.3, 0.6), "eps": 0.5, "weight_decay": 0.3, "amsgrad": True}),
    Case("AdamW", {"lr": 0.3, "betas": (0.3, 0.6), "eps": 0.5, "weight_decay": 0.3, "amsgrad": True}),
    Case("RMSprop", {"lr": 0.3, "alpha": 0.4, "eps": 0.5, "weight_decay": 0.3, "momentum": 0.6, "centered": True}),
    Case("Adagrad", {"lr": 0.3, "lr_decay": 0.4, "weight_decay": 0.3, "initial_accumulator_value": 2.0, "eps": 0.5}),
    Case("Adadelta", {"lr": 0.3, "rho": 0.4, "eps": 0.5, "weight_decay": 0.3}),
    Case("Adamax", {"lr": 0.3, "betas": (0.3, 0.6), "eps": 0.5, "weight_decay": 0.3}),
    Case("NAdam", {"lr": 0.3, "betas": (0.3, 0.6), "eps": 0.5, "weight_decay": 0.3, "momentum_decay": 2.0}),
    Case("RAdam", {"lr": 0.3, "betas": (0.3, 0.9), "eps": 0.5, "weight_decay": 0.3}),
    Case("ASGD", {"lr": 0.3, "lambd": 0.4, "alpha": 2.0, "t0": 2, "weight_decay": 0.3}),
    Case("Rprop", {"lr": 0.3, "etas": (0.2, 2.0), "step_sizes": (0.1, 0.9)}),
    Case("Adafactor", {"lr": 2.0, "beta2_decay": -0.4, "eps": (0.3, 0.9), "d": 1.5, "weight_decay": 0.3}),
]


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.id)
def test_odd_options_and_their_states_against_torch(case: Case) -> None:
    pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    ours, our_optimizer, theirs, their_optimizer = pair(case)
    for at in range(9):
        steps(our_optimizer, ours, 1, start=at)
        steps(their_optimizer, theirs, 1, start=at)
        assert_close(ours, theirs)
    for a, b in zip(ours, theirs, strict=True):
        mine, other = our_optimizer.state[a], their_optimizer.state[b]
        assert mine.keys() >= {name for name, value in other.items() if value is not None} - {"step"}
        for name in mine.keys() & other.keys():
            np.testing.assert_allclose(mine[name].numpy(), other[name].numpy(), rtol=1e-5, err_msg=name)


def test_the_average_of_asgd_is_the_parameter_until_t0() -> None:
    (x,) = arrays(((3, 4),))
    p = gg.tensor(x, requires_grad=True)
    optimizer = optim.ASGD([p], lr=0.1)
    for at in range(4):
        steps(optimizer, [p], 1, start=at)
        assert optimizer.state[p]["ax"].tolist() == p.tolist()
        assert optimizer.state[p]["mu"].item() == 1


def test_lion_leaves_what_has_no_gradient_where_it_is() -> None:
    p = leaf(3)
    p.grad = gg.tensor([0.0, 2.0, -0.1])
    optim.Lion([p], lr=0.25).step()
    assert p.tolist() == [1, 0.75, 1.25]


def test_radam_is_tractable_above_five() -> None:
    assert not rectification(6, 0.8397685748659791)[0], "5 to the digit"
    assert rectification(6, 0.83976858)[0]


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)], ids=str)
def test_muon_multiplies_the_smaller_of_the_two_grams(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(a: Any, b: Any) -> Any:
        seen.append((a @ b).shape)
        return a @ b

    monkeypatch.setattr(muon, "matmul", watched)
    muon.orthogonal(np.ones(shape), (3.4445, -4.775, 2.0315), 1, 1e-7)
    assert seen == [(3, 3), (3, 3), (3, 5)]


def test_defaults_that_pytorch_does_not_know() -> None:
    defaults = {
        optim.Lion: {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0, "maximize": False},
        optim.EMA: {"decay": 0.999, "warmup": False},
        optim.GradientAccumulator: {"max_norm": None, "skip_nonfinite": False},
        update: {
            "factor": 1.0, "max_norm": None, "clip_value": None, "skip_nonfinite": False, "norm": False,
            "averages": None,
        },
    }  # fmt: skip  # a table
    for kind, expected in defaults.items():
        parameters = inspect.signature(kind).parameters.values()
        assert {one.name: one.default for one in parameters if one.default is not one.empty} == expected


# --- updates in compiled steps ------------------------------------------------------------------------


def trained(compiled: bool, scales: list[float], **options: Any) -> tuple[list[Any], list[Updated], Any]:
    """Train on gradients of several sizes; return the weights, averages and state after each step."""
    p, unused = gg.tensor([1.0, -2.0], requires_grad=True), leaf(1)
    model = gg.nn.Module()
    model.p = gg.nn.Parameter(p)
    optimizer = optim.SGD([model.p, unused], lr=0.5, momentum=0.5)
    averages = optim.EMA(model, 0.5, warmup=True)
    model.p.grad = gg.zeros(2)
    optimizer.step()

    def step(scale: Any) -> Any:
        optimizer.zero_grad()
        (model.p * gg.tensor([3.0, -4.0])).sum().backward()
        found = update(optimizer, factor=scale, averages=averages, **options)
        assert not any(one.requires_grad for one in found if one is not None)
        return [one for one in found if one is not None]

    run: Any = gg.compile(step, backend="numpy", strict=True) if compiled else step
    seen = []
    for scale in scales:
        found = [one.item() for one in run(gg.tensor(np.float32(scale)))]
        state = optimizer.state[model.p]["momentum_buffer"].tolist()
        seen.append([*found, model.p.tolist(), averages.shadow["p"].tolist(), averages.updates, state])
    return seen


@pytest.mark.parametrize(
    "options",
    [{}, {"norm": True}, {"max_norm": 1.0}, {"clip_value": 0.5}, {"skip_nonfinite": True},
     {"skip_nonfinite": True, "max_norm": 2.0}],
)  # fmt: skip  # a table
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_updates_in_a_compiled_step(options: dict[str, Any]) -> None:
    sizes = [1.0, float("inf"), 2.0, float("nan"), 0.5] if "skip_nonfinite" in options else [1.0, 2.0, 0.5]
    plain, compiled = (trained(way, sizes, **options) for way in (False, True))
    for one, other in zip(plain, compiled, strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(theirs, mine, rtol=1e-6)
    if "skip_nonfinite" in options:
        assert [row[1] for row in plain] == [True, False, True, False, True]
        assert [row[4] for row in plain] == [1, 1, 2, 2, 3]
        for kept in (2, 3, 5):
            assert plain[0][kept] == plain[1][kept] != plain[2][kept]


def test_a_snapshot_puts_back_what_was_there() -> None:
    state = gg.ones(2)
    loss = (state * leaf(2)).sum()
    before = OldValues([state])
    state.array[...] = 5
    before.restore_unless(gg.tensor(True))
    assert state.tolist() == [5, 5]
    before.restore_unless(gg.tensor(False))
    assert state.tolist() == [1, 1]
    with pytest.raises(errors.AutogradError, match="overwritten in place"):
        loss.backward()
