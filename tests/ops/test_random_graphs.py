"""Random programs of up to 30 ops from the registry: values and gradients against PyTorch on the same program.

They cover situations beyond single ops: values used several times, changing shapes, unused results, leaves that are
used late, broadcasts of reduced values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import glassgrad as gg
from glassgrad import func
from glassgrad.ops import names
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.ops.cases import params_of
from tests.ops.twins import twin_of

torch = pytest.importorskip("torch", reason="PyTorch differentiates the same programs here")

F = torch.nn.functional


class Op(NamedTuple):
    """One kind of step: how both libraries compute it, and what it needs."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    arity: int = 1
    least: int = 0  # dimensions that the first argument has to have


def tamed(x: Any) -> Any:
    """Bring any number between -3 and 3, so that 30 ops do not overflow: 3 x / (1 + |x|)."""
    return 3 * x / (1 + abs(x))


# What a primitive wants its arguments to be, as a function of something between -3 and 3; by default that itself.
DOMAINS: dict[str, Callable[[Any], Any]] = {
    name: (lambda x: 0.7 + 0.1 * x)  # between 0.4 and 1
    for name in (
        "log",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "log1p",
        "log2",
        "log10",
        "gammaln",
        "digamma",
        "entr",
        "root",
        "ndtri",
        "asin",
        "acos",
        "atanh",
        "erfinv",
        "polygamma",
        "sinc",
    )
} | {"acosh": lambda x: 5 + x, "i0e": lambda x: 4 + x, "i1": lambda x: 4 + x, "i1e": lambda x: 4 + x}
# Steps would make every gradient behind them 0, and kinks of remainders lie anywhere.
LEFT_OUT = {
    "zeta",
    # PyTorch has no derivative of these, or only an approximation; tests/ops/test_special_functions.py is about them.
    "betainc",
    "gammainc",
    "gammaincc",
    "airy_ai",
    "airy_slope",
    *(f"bessel_{kind}" for kind in ("j0", "j1", "y0", "y1")),
    *(f"{how}modified_bessel_{kind}" for how in ("", "scaled_") for kind in ("k0", "k1")),
    "where",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "floor_divide",
    "remainder",
    "fmod",
    "heaviside",
    "copysign",
    "lerp",
    "power",
    "divide",
    "xlogy",
    "xlog1py",
    "atan2",
    "hypot",
    "nan_to_num",
}


def elementwise_ops() -> list[Op]:
    ops = []
    for prim in REGISTRY.values():
        if not isinstance(prim, Elementwise) or not prim.differentiable or prim.name in LEFT_OUT:
            continue
        domain, params, theirs = DOMAINS.get(prim.name, lambda x: x), params_of(prim), twin_of(prim)
        ops.append(
            Op(
                prim.name,
                lambda *xs, prim=prim, domain=domain, params=params: prim(*(domain(tamed(x)) for x in xs), **params),
                lambda *xs, theirs=theirs, domain=domain: theirs(*(domain(tamed(x)) for x in xs)),
                prim.arity,
            )
        )
    ops += [
        Op("divide", lambda a, b: a / (4 + tamed(b)), lambda a, b: a / (4 + tamed(b)), 2),
        Op("power", lambda a, b: gg.pow(4 + tamed(a), tamed(b)), lambda a, b: torch.pow(4 + tamed(a), tamed(b)), 2),
        Op("where", lambda a, b: gg.where(a > 0, a, b), lambda a, b: torch.where(a > 0, a, b), 2),
        Op("atan2", lambda a, b: gg.atan2(a, 4 + tamed(b)), lambda a, b: torch.atan2(a, 4 + tamed(b)), 2),
    ]
    return ops


def both(name: str, *, least: int = 0, arity: int = 1, ours: Any = None, **params: Any) -> Op:
    """An op that is called in the same way in both libraries."""
    mine = ours or names.PUBLIC[name]
    twin = getattr(torch, name)
    return Op(name, lambda *xs: mine(*xs, **params), lambda *xs: twin(*xs, **params), arity, least)


def outer_of_parts(a: Any) -> Any:
    return a.reshape(-1, 1)[:3] * a.reshape(-1)[:4]


def structural_ops() -> list[Op]:
    ops = [
        both(name, dim=dim, keepdim=keep, least=1)
        for name in ("sum", "mean", "logsumexp", "amax")
        for dim in (0, -1)
        for keep in (False, True)
    ]
    ops += [both(name, dim=-1, least=1) for name in ("softmax", "log_softmax", "cumsum", "unsqueeze")]
    ops += [
        Op("var", lambda x: x.var(dim=0, correction=0), lambda x: x.var(dim=0, correction=0), 1, 1),
        Op("sort", lambda x: x.sort(dim=-1)[0], lambda x: x.sort(dim=-1)[0], 1, 1),
        both("transpose", dim0=0, dim1=-1, least=1),
        both("squeeze"),
        both("flatten"),
        Op("cat", lambda a: gg.cat([a, a * 2], 0), lambda a: torch.cat([a, a * 2], 0), 1, 1),
        Op("stack", lambda a: gg.stack([a, -a]), lambda a: torch.stack([a, -a])),
        Op("first", lambda a: a[0], lambda a: a[0], 1, 1),
        Op("slice", lambda a: a[..., ::2], lambda a: a[..., ::2], 1, 1),
        Op("rows", lambda a: a[[0, -1, 0]], lambda a: a[[0, -1, 0]], 1, 1),
        Op("roll", lambda a: a.roll(1, 0), lambda a: a.roll(1, 0), 1, 1),
        Op("pad", lambda a: gg.nn.functional.pad(a, (1, 2)), lambda a: F.pad(a, (1, 2)), 1, 1),
        Op("tril", lambda a: a.tril(), lambda a: a.tril(), 1, 2),
        Op("matmul", lambda a: tamed(a @ a.mT), lambda a: tamed(a @ a.mT), 1, 2),
        Op("matvec", lambda a: tamed(a @ a[..., :1, :].mT), lambda a: tamed(a @ a[..., :1, :].mT), 1, 2),
        Op("flip", lambda a: a.flip(-1), lambda a: a.flip(-1), 1, 1),
        Op("outer", outer_of_parts, outer_of_parts),
        Op("norm", lambda a: (a + 4).norm(), lambda a: (a + 4).norm()),
        Op("detach", lambda a: a * a.detach(), lambda a: a * a.detach()),
    ]
    return ops


OPS = elementwise_ops() + structural_ops()


class Step(NamedTuple):
    """One application: which op, and to which of the values so far (counted from the newest)."""

    op: int
    arguments: tuple[int, ...]


steps = st.builds(Step, st.integers(0, len(OPS) - 1), st.tuples(st.integers(0, 6), st.integers(0, 12)))
# Lists of a drawn length: by themselves they would rarely be long.
programs = st.integers(1, 30).flatmap(lambda n: st.lists(steps, min_size=n, max_size=n))
shapes = st.sampled_from([(), (1,), (3,), (2, 3), (1, 3), (2, 1), (3, 2, 2), (2, 1, 3)])


def broadcasts(a: Any, b: Any) -> bool:
    try:
        shape = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    except ValueError:
        return False
    return int(np.prod(shape)) <= 200


def plan(program: list[Step], start: list[Any]) -> list[tuple[Op, tuple[int, ...]]]:
    """Turn drawn numbers into steps that fit, by PyTorch's shapes: (op, positions of its arguments)."""
    values = [torch.zeros(x.shape) for x in start]
    chosen = []
    for step in program:
        op = OPS[step.op]
        fits = [place for place, y in enumerate(values) if y.ndim >= op.least and (op.arity == 2 or y.numel() <= 60)]
        if not fits:
            continue
        first = fits[-1 - step.arguments[0] % len(fits)]
        x = values[first]
        at: tuple[int, ...] = (first,)
        if op.arity == 2:
            fitting = [place for place, y in enumerate(values) if broadcasts(x, y)]
            at = (first, fitting[step.arguments[1] % len(fitting)])
        values.append(op.theirs(*(values[place] for place in at)))
        chosen.append((op, at))
    return chosen


def result(chosen: list[tuple[Op, tuple[int, ...]]], values: list[Any], ours: bool) -> Any:
    """Run a plan; return one number made of the last few values."""
    values = list(values)
    for op, at in chosen:
        values.append((op.ours if ours else op.theirs)(*(values[place] for place in at)))
    total = values[-1].sum()
    for value in values[-4:-1]:
        total = total + (0.5 * tamed(value)).sum()
    return total


def draw_leaves(leaf_shapes: list[tuple[int, ...]]) -> list[Any]:
    rng = np.random.default_rng(len(leaf_shapes))
    return [rng.normal(size=shape) for shape in leaf_shapes]


def agree(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=1e-7, atol=1e-9 * (1 + np.max(np.abs(b), initial=0))))


RUNS = settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@RUNS
@given(programs, st.lists(shapes, min_size=1, max_size=3))
def test_gradients_of_random_programs_agree_with_pytorch(program: list[Step], leaf_shapes: list[Any]) -> None:
    start = draw_leaves(leaf_shapes)
    chosen = plan(program, start)
    mine = [gg.tensor(x, requires_grad=True) for x in start]
    theirs = [torch.tensor(x, requires_grad=True) for x in start]
    y, expected = result(chosen, mine, ours=True), result(chosen, theirs, ours=False)
    described = [(op.name, at) for op, at in chosen]
    assert agree(y.detach().numpy(), expected.detach().numpy()), described
    y.backward()
    expected.backward()
    for leaf, twin in zip(mine, theirs, strict=True):
        g = np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy()
        g_expected = np.zeros(leaf.shape) if twin.grad is None else twin.grad.numpy()
        assert g.shape == leaf.shape
        assert agree(g, g_expected), (described, g, g_expected)


@settings(RUNS, max_examples=40)
@given(programs, shapes)
def test_forward_mode_and_second_order_of_random_programs(program: list[Step], shape: Any) -> None:
    (x,) = draw_leaves([shape])
    chosen = plan(program[:12], [x])
    v = np.random.default_rng(1).normal(size=shape)

    def f(x: Any) -> Any:
        return result(chosen, [x], ours=True)

    twin = torch.tensor(x, requires_grad=True)
    (g,) = torch.autograd.grad(result(chosen, [twin], ours=False), twin, create_graph=True)
    product = np.zeros(shape)
    if g.requires_grad:
        (h,) = torch.autograd.grad((g * torch.tensor(v)).sum(), twin, allow_unused=True)
        product = product if h is None else h.numpy()
    described = [(op.name, at) for op, at in chosen]
    _, slope = func.jvp(f, (gg.tensor(x),), (gg.tensor(v),))
    assert agree(slope.numpy(), np.sum(g.detach().numpy() * v)), described
    _, curved = func.jvp(func.grad(f), (gg.tensor(x),), (gg.tensor(v),))
    assert agree(curved.numpy(), product), (described, curved.numpy(), product)


def test_the_programs_use_most_of_the_registry() -> None:
    assert len({op.name for op in OPS}) > 80
    differentiable = {p.name for p in REGISTRY.values() if isinstance(p, Elementwise) and p.differentiable}
    assert differentiable - LEFT_OUT <= {op.name for op in OPS}


def test_a_planted_mistake_is_seen() -> None:
    tanh = next(op for op in OPS if op.name == "tanh")
    wrong = tanh._replace(ours=lambda x: gg.tanh(tamed(x)) + 1e-5 * (x - x.detach()))
    x = np.random.default_rng(0).normal(size=(2, 3))
    leaf, twin = gg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    for plan_, y in (([(wrong, (0,))], leaf), ([(tanh, (0,))], twin)):
        result(plan_, [y], ours=y is leaf).backward()
    assert not agree(leaf.grad.numpy(), twin.grad.numpy())
