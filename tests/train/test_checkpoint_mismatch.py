"""A checkpoint is loaded completely or not at all, whatever does not fit and wherever it is noticed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.errors import InputError
from glassgrad.nn import functional as F
from glassgrad.optim import lr_scheduler
from glassgrad.train import Checkpoint
from glassgrad.train.kept.checkpoint import load_checkpoint, save_checkpoint
from glassgrad.utils.data import DataLoader, TensorDataset
from tests.crafted import crafted, deep

Parts = dict[str, Any]


def parts(
    optimizer: Callable[..., Any] = optim.Adam,
    schedule: Callable[[Any], Any] = lambda o: lr_scheduler.StepLR(o, 3),
    model: Callable[[], Any] = lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
    groups: Callable[[Any], Any] = lambda m: m.parameters(),
) -> Parts:
    network = model()
    made = optimizer(groups(network), lr=0.05)
    data = TensorDataset(gg.randn(12, 3), gg.randint(0, 2, (12,)))
    batches, average = DataLoader(data, 4, shuffle=True), optim.EMA(network)
    return {"model": network, "optimizer": made, "schedule": schedule(made), "batches": batches, "average": average}


def train(some: Parts, steps: int = 2) -> None:
    for x, y in list(some["batches"])[:steps]:
        dtype = next(iter(some["model"].parameters())).dtype
        loss = F.cross_entropy(some["model"](x.astype(dtype)), y)
        some["optimizer"].zero_grad()
        loss.backward()
        some["optimizer"].step()
        some["schedule"].step()
        some["average"].update()


def everything(some: Parts) -> str:
    """Return all there is to a program's state, as text."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        if hasattr(value, "detach") or isinstance(value, np.ndarray):
            array = np.asarray(value.detach() if hasattr(value, "detach") else value)
            return [str(array.dtype), array.shape, array.tobytes().hex()]
        return repr(value)

    states = {name: part.state_dict() for name, part in some.items()}
    loader = {name: value for name, value in vars(some["batches"]).items() if name.startswith("_")}
    randomness = [gg.get_rng_state(), np.random.get_state(), random.getstate()]  # noqa: NPY002 - a checkpoint keeps it
    return json.dumps(plain({**states, "loader": loader, "random": randomness}), sort_keys=True)


def linear(*sizes: int) -> Callable[[], Any]:
    return lambda: nn.Sequential(nn.Linear(3, sizes[0]), nn.BatchNorm1d(sizes[0]), nn.Linear(sizes[0], 2))


def two_groups(model: Any) -> Any:
    first, *rest = model.parameters()
    return [{"params": [first]}, {"params": rest}]


OTHERS: dict[str, tuple[Callable[[], Parts], str]] = {
    "optimizer": (lambda: parts(optim.SGD), "'optimizer'; nothing was loaded. Its kind: Adam; expected: SGD"),
    "optimizer with the same state": (lambda: parts(optim.AdamW), "Its kind: Adam; expected: AdamW"),
    "groups": (lambda: parts(groups=two_groups), "'optimizer'; nothing was loaded. Its parameters"),
    "order": (lambda: parts(groups=lambda m: reversed(list(m.parameters()))), "Its parameters"),
    "fewer parameters": (lambda: parts(groups=lambda m: list(m.parameters())[1:]), "Its parameters"),
    "schedule": (lambda: parts(schedule=lambda o: lr_scheduler.ExponentialLR(o, 0.9)), "expected: ExponentialLR"),
    "schedule of schedules": (
        lambda: parts(schedule=lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(o, 3)])), "Its kind"),
    "shape": (lambda: parts(model=linear(5)), "holds another model; nothing was loaded. Wrong shape"),
    "missing and unexpected": (
        lambda: parts(model=lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))), "Missing: 1.weight|Unexpected"),
    "dtype": (lambda: parts(model=lambda: linear(4)().double()), "loaded. Its dtypes: 0.weight float32"),
    "part": (lambda: {k: v for k, v in parts().items() if k != "average"}, "give Checkpoint the parts"),
    "one part more": (lambda: {**parts(), "scaler": gg.amp.GradScaler()}, "give Checkpoint the parts"),
    "another kind of part": (lambda: {**parts(), "average": gg.amp.GradScaler()}, "Its kind: EMA; expected: GradS"),
}  # fmt: skip  # a table


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    gg.manual_seed(0)
    some = parts()
    train(some)
    Checkpoint(tmp_path / "last.safetensors", **some).save(step=2)
    return tmp_path / "last.safetensors"


@pytest.mark.parametrize("name", OTHERS)
def test_a_mismatch_changes_nothing(name: str, saved: Path) -> None:
    make, message = OTHERS[name]
    gg.manual_seed(7)
    other = make()
    if isinstance(other.get("average"), optim.EMA):
        train(other)
    before = everything(other)
    with pytest.raises(InputError, match=message):
        Checkpoint(saved, **other).load()
    assert everything(other) == before


def test_the_parts_it_was_saved_with_are_taken(saved: Path) -> None:
    gg.manual_seed(7)
    other = parts()
    assert Checkpoint(saved, **other).load() == {"step": 2}
    train(other)


def test_schedules_within_schedules_are_compared(tmp_path: Path) -> None:
    def chained(*kinds: Any) -> Parts:
        return parts(schedule=lambda o: lr_scheduler.ChainedScheduler([kind(o, 3) for kind in kinds]))

    path = tmp_path / "last"
    Checkpoint(path, **chained(lr_scheduler.StepLR, lr_scheduler.CosineAnnealingLR)).save()
    with pytest.raises(InputError, match="Its schedules: StepLR, CosineAnnealingLR; expected: StepLR, PolynomialLR"):
        Checkpoint(path, **chained(lr_scheduler.StepLR, lr_scheduler.PolynomialLR)).load()


class Fails:
    """A part of a user's that takes nothing over."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.value = 1

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["value"] != self.value:  # the way back is open
            self.value = state["value"]
            raise self.error


@pytest.mark.parametrize("error", [ValueError("no"), RuntimeError("no"), KeyboardInterrupt(), ZeroDivisionError("no")])
@pytest.mark.parametrize("name", ["a", "zz"])
def test_a_part_that_fails_late_takes_the_others_back(error: BaseException, name: str, tmp_path: Path) -> None:
    path = tmp_path / "last"
    some = parts()
    train(some)
    first = {**some, name: Fails(error)} if name == "zz" else {name: Fails(error), **some}
    first[name].value = 5
    Checkpoint(path, **first).save()
    gg.manual_seed(9)
    other = parts()
    train(other, 1)
    again = {**other, name: Fails(error)} if name == "zz" else {name: Fails(error), **other}
    before = everything(again)
    expected = InputError if isinstance(error, ValueError | RuntimeError) else type(error)
    with pytest.raises(expected):
        Checkpoint(path, **again).load()
    assert everything(again) == before


# --- crafted files --------------------------------------------------------------------------------


STRANGE = [
    None, True, -1, 1.5, 10**400, "", "w", [], {}, [[]], {"array": "no"}, {"tensor": 3}, {"pairs": 1}, deep(120, 1),
]  # fmt: skip  # a table


def test_crafted_descriptions_end_in_one_error_and_change_nothing(saved: Path) -> None:
    arrays, rest = load_checkpoint(saved)
    draw = random.Random(11)
    other = parts()
    train(other)
    refused = 0
    for _ in range(250):
        before = everything(other)
        save_checkpoint(saved, arrays, crafted(rest, draw, STRANGE, 0.8))
        try:
            Checkpoint(saved, **other).load()
        except InputError:
            refused += 1
            assert everything(other) == before
    assert refused > 100


HEADERS = ["[" * 200_000, '{"a":' * 50_000 + "1" + "}" * 50_000, "9" * 10_000, "[]", "null", "{"]


@pytest.mark.parametrize("text", HEADERS)
def test_crafted_headers_are_damaged(text: str, tmp_path: Path) -> None:
    from safetensors.numpy import save

    path = tmp_path / "last"
    path.write_bytes(save({"w": np.ones(2, np.float32)}, metadata={"glassgrad": text}))
    with pytest.raises(InputError, match=r"is damaged|was not written by glassgrad"):
        load_checkpoint(path)


@pytest.mark.parametrize("depth", [151, 400, 900])
def test_what_is_nested_too_deeply_is_damaged(depth: int, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "last", {}, {"values": deep(depth, 1)})
    with pytest.raises(InputError, match="nested too deeply"):
        load_checkpoint(tmp_path / "last")


def test_files_from_before_the_descriptions_are_read(saved: Path) -> None:
    arrays, rest = load_checkpoint(saved)
    del rest["described"]
    save_checkpoint(saved, arrays, rest)
    assert Checkpoint(saved, **parts()).load() == {"step": 2}
    with pytest.raises(InputError, match="another model"):
        Checkpoint(saved, **parts(model=linear(5))).load()


def test_an_optimizer_takes_all_of_a_state_or_nothing() -> None:
    def made() -> Any:
        return optim.Adam([gg.ones(2, requires_grad=True), gg.ones(3, requires_grad=True)], lr=0.1)

    optimizer, other = made(), made()
    for parameter in other.param_groups[0]["params"]:
        parameter.grad = gg.ones(parameter.shape)
    other.step()
    state = other.state_dict()
    state["state"][5] = state["state"].pop(1)
    before = repr(optimizer.state_dict())
    with pytest.raises(ValueError, match=r"for the parameters numbered \[5\], but there are 2"):
        optimizer.load_state_dict(state)
    assert repr(optimizer.state_dict()) == before


SLOTTED = ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "Lion"]


@pytest.mark.parametrize("kind", SLOTTED)
def test_a_state_of_other_shapes_is_never_broadcast(kind: str) -> None:
    def made(*shapes: Any) -> Any:
        optimizer = getattr(optim, kind)([gg.ones(*shape, requires_grad=True) for shape in shapes], lr=0.1)
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad = gg.ones(parameter.shape)
        return optimizer

    first, second = made((3, 1)), made((3, 4))
    first.step()
    second.load_state_dict(first.state_dict())
    with pytest.raises(ValueError, match=r"has shape \(3, 1\), expected \(3, 4\)"):
        second.step()


def test_averages_take_all_of_a_state_or_nothing() -> None:
    average = optim.EMA(nn.Linear(3, 2))
    before = {name: np.array(value) for name, value in average.state_dict()["shadow"].items()}
    for shadow in (
        {"weight": np.ones((2, 3))},
        {"weight": np.ones((2, 3)), "bias": np.ones(1)},
        {"weight": np.ones((2, 3)), "bias": np.ones(2), "more": np.ones(1)},
    ):
        with pytest.raises(ValueError, match=r"bias|more"):
            average.load_state_dict({"shadow": shadow, "decay": 0.5, "updates": 1})
    for name, value in average.state_dict()["shadow"].items():
        np.testing.assert_array_equal(value, before[name])
    assert average.updates == 0
