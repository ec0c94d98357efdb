"""Ten steps of every optimizer against PyTorch's, from equal weights; and the rules that PyTorch lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import optim
from tests.optim.optimizer_cases import LION, MUON, OPTIMIZERS, OURS, SPARSE, Case

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these tests")

SHAPES = ((3, 4), (4,), (2, 3, 2), ())


def arrays(shapes: Any = SHAPES, dtype: Any = np.float64) -> list[Any]:
    rng = np.random.default_rng(5)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def loss_of(parameters: list[Any], at: int) -> Any:
    """A loss whose gradients change in size and sign from step to step."""
    total = 0.0
    for number, p in enumerate(parameters):
        total = total + ((p * (1 + 0.3 * number) - np.cos(at + number)) ** 2).sum() + (p * np.sin(3.0 * at)).sum()
    return total


def steps(optimizer: Any, parameters: list[Any], count: int, start: int = 0) -> list[float]:
    losses = []
    for at in range(start, start + count):
        optimizer.zero_grad()
        loss = loss_of(parameters, at)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def pair(case: Case, shapes: Any = SHAPES, dtype: Any = np.float64) -> tuple[Any, Any, Any, Any]:
    """Parameters and optimizers of both libraries, in two groups."""
    ours = [gg.tensor(x, requires_grad=True) for x in arrays(shapes, dtype)]
    theirs = [torch.tensor(x, requires_grad=True) for x in arrays(shapes, dtype)]

    def groups(parameters: list[Any]) -> list[dict[str, Any]]:
        return [{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.01}]

    return (
        ours,
        getattr(optim, case.name)(groups(ours), **case.options),
        theirs,
        getattr(torch.optim, case.name)(groups(theirs), **case.options),
    )


def assert_close(ours: list[Any], theirs: list[Any], rtol: float = 1e-6) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case.id)
def test_ten_steps(case: Case) -> None:
    ours, our_optimizer, theirs, their_optimizer = pair(case)
    steps(our_optimizer, ours, 10)
    steps(their_optimizer, theirs, 10)
    assert_close(ours, theirs)


@pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case.id)
def test_pytorchs_state_goes_on_here(case: Case) -> None:
    ours, our_optimizer, theirs, their_optimizer = pair(case)
    steps(their_optimizer, theirs, 6)
    for a, b in zip(ours, theirs, strict=True):
        a.array[...] = b.detach().numpy()
    our_optimizer.load_state_dict(their_optimizer.state_dict())
    steps(our_optimizer, ours, 4, start=6)
    steps(their_optimizer, theirs, 4, start=6)
    assert_close(ours, theirs, rtol=1e-5)  # PyTorch counts steps in float32


@pytest.mark.parametrize("case", [*OPTIMIZERS, *OURS, *SPARSE], ids=lambda case: case.id)
def test_own_state_goes_on(case: Case) -> None:
    whole = [gg.tensor(x, requires_grad=True) for x in arrays()]
    steps(getattr(optim, case.name)(whole, **case.options), whole, 10)
    first = [gg.tensor(x, requires_grad=True) for x in arrays()]
    optimizer = getattr(optim, case.name)(first, **case.options)
    steps(optimizer, first, 6)
    state = optimizer.state_dict()
    json.dumps(state["param_groups"])  # options are plain values
    second = [gg.tensor(x.detach(), requires_grad=True) for x in first]
    other = getattr(optim, case.name)(second)
    other.load_state_dict(state)
    steps(other, second, 4, start=6)
    for a, b in zip(second, whole, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


@pytest.mark.parametrize("case", [*OPTIMIZERS, *OURS, *MUON, *SPARSE], ids=lambda case: case.id)
def test_compiled_steps_agree_with_eager_ones_and_do_not_retrace(case: Case) -> None:
    shapes = ((3, 4), (4, 3)) if case.name == "Muon" else SHAPES
    results = []
    for compiled in (False, True):
        parameters = [gg.tensor(x, requires_grad=True) for x in arrays(shapes, np.float32)]
        optimizer = getattr(optim, case.name)(parameters, **case.options)

        def step(shift: Any, parameters: list[Any] = parameters, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = sum(((p - shift) ** 2).sum() for p in parameters)
            loss.backward()
            optimizer.step()
            return loss

        run: Any = gg.compile(step, backend="numpy") if compiled else step
        for at in range(8):
            for group in optimizer.param_groups:
                group["lr"] = 0.05 / (1 + at)  # a schedule
            run(gg.tensor(np.float32(np.cos(at))))
        if compiled:
            run.assert_max_traces(2 if "dampening" in case.options else 1)
        results.append([p.detach().numpy() for p in parameters])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("case", SPARSE, ids=lambda case: case.id)
def test_rows_that_are_not_used_stay_and_the_others_are_those_of_pytorchs_sparse_gradients(case: Case) -> None:
    start = np.random.default_rng(0).normal(size=(6, 3))
    results = []
    for library in (gg, torch):
        table = library.nn.Embedding(6, 3, sparse=True, _weight=library.tensor(start))
        optimizer = getattr(library.optim, case.name)(table.parameters(), **case.options)
        for at in range(10):
            optimizer.zero_grad()
            used = library.tensor([at % 4, (at * at) % 5, at % 4])
            ((table(used)[:, : 1 + at % 3] - np.cos(at)) ** 2).sum().backward()
            optimizer.step()
        results.append(table.weight.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-10)
    np.testing.assert_array_equal(results[0][5], start[5])


def test_what_is_used_of_a_table_of_matrices_against_torch() -> None:
    start, rng = np.random.default_rng(0).normal(size=(4, 3, 2)), np.random.default_rng(1)
    ours, theirs = gg.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    optimizers = optim.SparseAdam([ours], lr=0.1), torch.optim.SparseAdam([theirs], lr=0.1)
    for at in range(4):
        rows, values = [at % 2, 3], rng.normal(size=(2, 3, 2))
        values[:, at % 3] = 0
        dense = np.zeros_like(start)
        dense[rows] = values
        ours.grad, theirs.grad = (
            gg.tensor(dense),
            torch.sparse_coo_tensor([rows], values, size=start.shape, check_invariants=True),
        )
        for optimizer in optimizers:
            optimizer.step()
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-10)


def test_the_average_of_asgd_is_pytorchs_and_follows_a_schedule() -> None:
    results = []
    for library in (gg, torch):
        p = library.tensor(np.arange(3.0), requires_grad=True)
        optimizer = library.optim.ASGD([p], lr=0.1, t0=3, lambd=0.01)
        for at in range(8):
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + at)
            optimizer.zero_grad()
            ((p - np.cos(at)) ** 2).sum().backward()
            optimizer.step()
        results.append((p.detach().numpy(), optimizer.state[p]["ax"].detach().numpy()))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("case", LION, ids=lambda case: case.id)
def test_lion_follows_its_paper(case: Case) -> None:
    options = {"betas": (0.9, 0.99), "weight_decay": 0.0, "maximize": False, **case.options}
    (x,) = arrays(((3, 4),))
    p = gg.tensor(x, requires_grad=True)
    optimizer = optim.Lion([p], **case.options)
    expected, momentum = x.copy(), np.zeros_like(x)
    for at in range(10):
        g = 2 * (expected - np.cos(at)) + np.sin(3.0 * at)
        g = -g if options["maximize"] else g
        beta1, beta2 = options["betas"]
        update = np.sign(beta1 * momentum + (1 - beta1) * g)
        momentum = beta2 * momentum + (1 - beta2) * g
        expected = expected - options["lr"] * (update + options["weight_decay"] * expected)
        steps(optimizer, [p], 1, start=at)
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("case", MUON, ids=lambda case: case.id)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)], ids=str)
def test_muon_agrees_with_pytorch_up_to_its_bfloat16(case: Case, shape: tuple[int, int]) -> None:
    ours, our_optimizer, theirs, their_optimizer = pair(case, (shape, shape, shape), np.float32)
    steps(our_optimizer, ours, 3)
    steps(their_optimizer, theirs, 3)
    for a, b, start in zip(ours, theirs, arrays((shape, shape, shape)), strict=True):
        moved = np.abs(b.detach().numpy() - start).max()
        assert np.abs(a.detach().numpy() - b.detach().numpy()).max() < 0.03 * moved


@pytest.mark.parametrize("case", MUON, ids=lambda case: case.id)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_muon_has_pytorchs_numbers_under_its_name(case: Case, dtype: Any) -> None:
    """With matrices rounded to bfloat16 where PyTorch rounds; the sums of small ones are exact in float32."""
    shapes = (5, 3), (3, 5), (4, 4)
    with gg.compat.as_torch():
        ours, our_optimizer, theirs, their_optimizer = pair(case, shapes, dtype)
        steps(our_optimizer, ours, 10)
    steps(their_optimizer, theirs, 10)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=0, atol=1e-6)


def test_muon_makes_directions_nearly_orthogonal() -> None:
    from glassgrad.optim.muon import orthogonal

    x = np.random.default_rng(0).normal(size=(6, 10))
    values = np.linalg.svd(orthogonal(x, (3.4445, -4.775, 2.0315), 5, 1e-7), compute_uv=False)
    assert values.min() > 0.6
    assert values.max() < 1.3


# --- groups and bad input ---------------------------------------------------------------------------


def test_groups_take_names_single_tensors_and_options() -> None:
    model = gg.nn.Linear(2, 2)
    optimizer = optim.AdamW(model.named_parameters(), lr=0.1, fused=True, foreach=False)
    assert optimizer.param_groups[0]["params"] == list(model.parameters())
    optimizer = optim.SGD([{"params": model.weight}, {"params": [model.bias], "lr": 0.5}], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]


def test_every_optimizer_is_tested() -> None:
    covered = {case.name for case in (*OPTIMIZERS, *OURS, *MUON, *SPARSE)} | {"LBFGS"}
    assert {name for name in optim.__all__ if name[0].isupper()} - covered == {
        "EMA",
        "GradientAccumulator",
        "Optimizer",
        "ZeroRedundancyOptimizer",  # tests/distributed
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: optim.SGD([p], lr=-1.0), "SGD: lr=-1.0"),
        (lambda p: optim.Adam([p], betas=(0.9, 1.0)), "betas"),
        (lambda p: optim.Adam([p], beta=(0.9, 0.99)), "no option 'beta'"),
        (lambda p: optim.Muon([p]), "Muon is for matrices"),
        (lambda p: optim.LBFGS([p], line_search_fn="wolfe"), "line_search_fn"),
        (lambda p: optim.LBFGS([{"params": [p]}, {"params": [gg.ones(1, requires_grad=True)]}]), "one group"),
        (lambda p: optim.LBFGS([p]).step(), "needs a closure"),
        (lambda p: optim.SGD([p, p]), "already in a group"),
        (lambda p: optim.SGD([]), "no parameters"),
        (lambda p: optim.SGD([p * 2]), "can only update leaf tensors"),
        (optim.SGD, "iterable"),
        (lambda p: optim.SGD([1.0]), "can only update tensors"),
        (lambda p: optim.Rprop([p], etas=(1.5, 2.0)), "eta"),
        (lambda p: optim.ASGD([p], lambd=-1.0), "lambd"),
        (lambda p: optim.AdmaW([p]), "AdamW"),
    ],
)
def test_bad_input_is_named(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        make(gg.ones(3, requires_grad=True))
