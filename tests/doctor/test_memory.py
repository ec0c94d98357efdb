"""`memory`: bytes saved for the backward pass by line, growing graphs, and that the steps are undone."""

from __future__ import annotations

import io
from typing import Any

import pytest

import glassgrad as gg
from glassgrad.doctor import memory
from glassgrad.nn import functional as F

X = gg.ones(100, 50)


def training(compiled: bool = False) -> tuple[Any, Any, Any]:
    gg.manual_seed(3)
    model = gg.nn.Sequential(gg.nn.Linear(50, 8), gg.nn.BatchNorm1d(8), gg.nn.Dropout(0.5), gg.nn.Linear(8, 1))
    optimizer = gg.optim.Adam(model.parameters(), lr=0.01)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, gg.compile(step, backend="numpy") if compiled else step


def test_bytes_by_line_and_variable_the_largest_first() -> None:
    w, v = gg.ones(50, 20, requires_grad=True), gg.ones(20, 4, requires_grad=True)

    def step() -> None:
        hidden = gg.tanh(X @ w)
        scores = gg.exp(hidden @ v)
        scores.sum().backward()

    found = memory(step, report=False)
    assert [(row.variable, row.op, row.bytes) for row in found.rows] == [
        ("hidden", "tanh", 100 * 20 * 4),
        ("scores", "exp", 100 * 4 * 4),
    ]
    assert found.total == 100 * 24 * 4
    assert found.held == (100 * 50 + 50 * 20 + 20 * 4) * 4
    assert "test_memory.py" in str(found.rows[0].place)
    assert "hidden: tanh" in str(found)


def test_memory_that_views_share_counts_once() -> None:
    w = gg.ones(50, 20, requires_grad=True)

    def step() -> Any:
        hidden = gg.exp(w)
        return (hidden.T * hidden.reshape(20, 50)).sum()

    assert memory(step, report=False).total == 50 * 20 * 4


@pytest.mark.parametrize("compiled", [False, True])
def test_nothing_stays_of_the_steps(compiled: bool) -> None:
    after = []
    for measured in (False, True):
        model, optimizer, step = training(compiled)
        if measured:
            memory(step, X, steps=2, report=False)
            assert not optimizer.state
        losses = [step(X).item()]
        grads = [parameter.grad.numpy().tobytes() for parameter in model.parameters()]
        if measured:
            found = memory(step, X, steps=2, report=False)
            assert found.compiled == compiled
            assert (found.planned is not None) == compiled
            assert not found.findings
            assert [parameter.grad.numpy().tobytes() for parameter in model.parameters()] == grads
        losses += [step(X).item() for _ in range(2)]
        after.append((losses, [value.numpy().tobytes() for value in model.state_dict().values()]))
    assert after[0] == after[1]


def test_a_sum_of_losses_that_grows_is_named_with_its_remedy() -> None:
    w = gg.ones(50, 1, requires_grad=True)
    total: Any = 0.0

    def step() -> None:
        nonlocal total
        loss = (X @ w).square().mean()
        loss.backward()
        total = total + loss

    out = io.StringIO()
    found = memory(step, steps=3, file=out)
    (finding,) = found.findings
    assert "total = total + loss" in finding.what
    assert "by total" in finding.what
    assert finding.remedy == "total += loss.item()"
    assert found.growth[0] > 0
    assert len(found.growth) == 2
    assert "graph grows" in out.getvalue()
    assert total == 0.0


def test_a_list_of_losses_grows_and_one_kept_until_the_next_does_not() -> None:
    w = gg.ones(50, 1, requires_grad=True)
    history: list[Any] = []
    latest: dict[str, Any] = {}

    def appends() -> None:
        loss = F.mse_loss(X @ w, gg.zeros(100, 1))
        history.append(loss)

    def replaces() -> None:
        latest["loss"] = (X @ w).square().mean()

    (finding,) = memory(appends, steps=3, report=False).findings
    assert "by history" in finding.what
    assert finding.remedy.startswith("loss.detach()")
    assert not history
    found = memory(replaces, steps=3, report=False)
    assert (found.findings, found.growth, latest) == ((), (0, 0), {})


def test_numbers_of_losses_do_not_grow() -> None:
    w = gg.ones(50, 1, requires_grad=True)
    totals = {"loss": 0.0}

    def step() -> None:
        loss = (X @ w).square().mean()
        loss.backward()
        totals["loss"] += loss.item()

    found = memory(step, steps=3, report=False)
    assert found.growth == (0, 0)
    assert "nothing here looks wrong" in str(found)


def test_a_step_of_pytorch_keeps_what_its_hooks_on_saved_tensors_see() -> None:
    torch = pytest.importorskip("torch", reason="steps of PyTorch are measured as well")
    x = torch.ones(100, 50)
    w, v = torch.ones(50, 20, requires_grad=True), torch.ones(20, 4, requires_grad=True)

    def step() -> None:
        hidden = torch.tanh(x @ w)
        scores = torch.exp(hidden @ v)
        scores.sum().backward()

    found = memory(step, report=False)
    assert [(row.variable, row.op, row.bytes) for row in found.rows] == [
        ("hidden", "tanh", 100 * 20 * 4),
        ("scores", "exp", 100 * 4 * 4),
    ]
    assert found.held == (100 * 50 + 20 * 4) * 4  # x for the gradient of w, v for that of hidden
    model = torch.nn.Linear(50, 3)

    def learns() -> None:
        torch.nn.functional.mse_loss(model(x), torch.zeros(100, 3)).backward()

    assert memory(learns, report=False).total > 0
    assert model.weight.grad is None


@pytest.mark.parametrize("way", ["sum", "list", "number"])
def test_graphs_of_pytorch_that_grow_are_told_by_variable_and_line(way: str) -> None:
    torch = pytest.importorskip("torch", reason="the steps are PyTorch's")
    model, x = torch.nn.Linear(4, 2), torch.randn(3, 4)
    total: Any = 0.0
    history: list[Any] = []

    def step() -> None:
        nonlocal total
        loss = model(x).square().mean()
        loss.backward()
        if way == "sum":
            total = total + loss
        elif way == "list":
            history.append(loss)
        else:
            total += loss.item()

    found = memory(step, steps=3, report=False)
    assert (total, history) == (0.0, [])
    assert model.weight.grad is None
    if way == "number":
        assert (found.growth, found.findings) == ((), ())
        return
    (finding,) = found.findings
    assert found.growth[0] < found.growth[1] < found.growth[2]
    assert finding.what.startswith("total is kept" if way == "sum" else "history is kept")
    line = step.__code__.co_firstlineno + (5 if way == "sum" else 7)
    assert finding.where.endswith(f"test_memory.py:{line}")
    assert finding.remedy.startswith("total += loss.item()" if way == "sum" else "history.append(loss.item())")


class _Trainer:
    """A loop as an object, whose log keeps the history of the losses."""

    def __init__(self, torch: Any) -> None:
        self.weight = torch.ones(3, requires_grad=True)
        self.total: Any = 0.0
        self.sums: dict[str, Any] = {"loss": 0.0}

    def loss(self) -> Any:
        loss = (self.weight * 2).square().sum()
        loss.backward()
        return loss

    def kept(self) -> None:
        self.total = self.total + self.loss()

    def kept_in_a_dictionary(self) -> None:
        self.sums["loss"] += self.loss()

    def dropped(self) -> None:
        self.total = self.loss()


@pytest.mark.parametrize(
    ("way", "remedy"), [("kept", "self.total += "), ("kept_in_a_dictionary", "self.sums[...] += "), ("dropped", "")]
)
def test_attributes_that_keep_the_history_of_pytorchs_losses_are_named(way: str, remedy: str) -> None:
    trainer = _Trainer(pytest.importorskip("torch", reason="the steps are PyTorch's"))
    found = memory(getattr(trainer, way), steps=3, report=False).findings
    assert [one.rule for one in found] == ["graph grows"] * bool(remedy)
    assert all(one.remedy.startswith(f"{remedy}loss.item()") for one in found)
    assert all("test_memory.py:" in one.where for one in found)
    assert trainer.total == 0.0
    assert trainer.sums == {"loss": 0.0}
