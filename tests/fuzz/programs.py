"""Random programs of 5 to 40 statements on small tensors, which PyTorch can also run.

A program is a list of statements on a growing list of values: elementwise functions, reductions, views, expanded and
empty axes, products, and writes in place to a copy or through a view of it. It is generated from a seed while it runs
in our eager mode, because the possible statements depend on the present shapes; afterwards it is data.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import glassgrad as gg

Value = Any
MOST = 96  # elements; larger results are not made, so that ten thousand programs take minutes


class Statement(NamedTuple):
    """One line: `values.append(OPS[op](lib, *[values[i] for i in operands], *options))`."""

    op: str
    operands: tuple[int, ...]
    options: tuple[Any, ...] = ()


class Program(NamedTuple):
    """Shapes of the leaves, whether each lies backwards in memory, the statements; `nudge` moves leaves by `size`."""

    seed: int
    shapes: tuple[tuple[int, ...], ...]
    backwards: tuple[bool, ...]
    statements: tuple[Statement, ...]
    nudge: int = 0
    size: float = 1e-14

    def __str__(self) -> str:
        leaves = ", ".join(
            f"v{i}: {shape}{' backwards' * back}"
            for i, (shape, back) in enumerate(zip(self.shapes, self.backwards, strict=True))
        )
        first = len(self.shapes)
        lines = [
            f"v{first + i} = {one.op}({', '.join([*(f'v{o}' for o in one.operands), *map(repr, one.options)])})"
            for i, one in enumerate(self.statements)
        ]
        return "\n".join([f"program {self.seed}: {leaves}", *lines])


def _write(change: Callable[..., Any]) -> Callable[..., Value]:
    """A write in place: to a copy, so that leaves and saved values are left alone unless the program means them."""

    def apply(lib: Any, x: Value, *rest: Any) -> Value:
        y = x.clone()
        change(y, *rest)
        return y

    return apply


def _half(x: Value, dim: int) -> Value:
    return x[(slice(None),) * dim + (slice(None, None, 2),)]


def _set_half(y: Value, dim: int) -> None:
    y[(slice(None),) * dim + (slice(None, None, 2),)] = 0.25


def _view_then_write(lib: Any, x: Value, dim: int) -> Value:
    y = x * 1.0
    view = y.transpose(0, dim)
    y.mul_(0.5)
    return view + 1.0


def _flip_then_write(lib: Any, x: Value, dim: int) -> Value:
    y = x * 1.0
    flipped = y.flip(dim)
    y.mul_(0.0)
    return flipped


# One shape-preserving function each; all smooth or with kinks that random numbers do not meet.
MAPS: dict[str, Callable[..., Value]] = {
    "tanh": lambda lib, x: x.tanh(),
    "sigmoid": lambda lib, x: x.sigmoid(),
    "sin": lambda lib, x: x.sin(),
    "exp": lambda lib, x: (x * 0.3).exp(),
    "square": lambda lib, x: x * x * 0.1,
    "log": lambda lib, x: (x * x + 1).log(),
    "sqrt": lambda lib, x: (x * x + 0.5).sqrt(),
    "reciprocal": lambda lib, x: 1 / (x * x + 1),
    "relu": lambda lib, x: x.relu(),
    "gelu": lambda lib, x: lib.nn.functional.gelu(x),
    "softplus": lambda lib, x: lib.nn.functional.softplus(x),
    "abs": lambda lib, x: x.abs(),
    "neg": lambda lib, x: -x,
    "clamp": lambda lib, x: x.clamp(-1.1, 1.3),
    "atan": lambda lib, x: x.atan(),
    "erf": lambda lib, x: x.erf(),
    "scaled": lambda lib, x: x * 0.5 + 0.125,
    "detached": lambda lib, x: x + x.detach() * 0.5,
    "write_scalar": _write(lambda y: y.mul_(0.5)),
    "write_chain": _write(lambda y: y.add_(1.0).mul_(0.7).tanh_()),
    "write_all": _write(lambda y: y.clamp_(-0.9, 0.8)),
}
# Along one axis, which is not empty; the shape may change.
ALONG: dict[str, Callable[..., Value]] = {
    "softmax": lambda lib, x, d: x.softmax(d),
    "log_softmax": lambda lib, x, d: x.log_softmax(d) * 0.3,
    "centred": lambda lib, x, d: x - x.mean(d, keepdim=True),
    "share": lambda lib, x, d: x / (x * x + 1).sum(d, keepdim=True),
    "norm": lambda lib, x, d: x / (x.var(d, keepdim=True, unbiased=False) + 0.3).sqrt(),
    "sum": lambda lib, x, d: x.sum(d) * 0.3,
    "sum_kept": lambda lib, x, d: x.sum(d, keepdim=True) * 0.3,
    "mean": lambda lib, x, d: x.mean(d),
    "max": lambda lib, x, d: x.amax(d, keepdim=True),
    "logsumexp": lambda lib, x, d: x.logsumexp(d),
    "cumsum": lambda lib, x, d: x.cumsum(d) * 0.3,
    "cumprod": lambda lib, x, d: (x * 0.3 + 1).cumprod(d) * 0.3,
    "first": lambda lib, x, d: x.select(d, 0),
    "last": lambda lib, x, d: x.select(d, -1),
    "picked": lambda lib, x, d: x.index_select(d, lib.tensor([0, x.shape[d] - 1, 0])),
    "sorted": lambda lib, x, d: x.sort(d).values,
    "write_half": _write(_set_half),
    "write_view": lambda lib, x, d: _write(lambda y: y.select(d, 0).mul_(2.0))(lib, x),
    "write_sum": lambda lib, x, d: _write(lambda y: y.sub_(y.detach().mean(d, keepdim=True)))(lib, x),
}
# Along one axis that may be empty.
MOVES: dict[str, Callable[..., Value]] = {
    "flip": lambda lib, x, d: x.flip(d),
    "roll": lambda lib, x, d: x.roll(1, d),
    "half": lambda lib, x, d: _half(x, d),
    "rest": lambda lib, x, d: x[(slice(None),) * d + (slice(1, None),)],
    "none": lambda lib, x, d: x[(slice(None),) * d + (slice(0, 0),)],
    "twice": lambda lib, x, d: lib.cat([x, x * 0.5], d),
    "stack": lambda lib, x, d: lib.stack([x, x.tanh()], d),
    "swap": lambda lib, x, d: x.transpose(0, d),
    "unsqueeze": lambda lib, x, d: x.unsqueeze(d),
    "squeeze": lambda lib, x, d: x.squeeze(d),
    "widen": lambda lib, x, d: x.unsqueeze(d).expand(*x.shape[:d], 3, *x.shape[d:]),
    "widen_any": lambda lib, x, d: x.sum(d, keepdim=True).expand(*x.shape[:d], 4, *x.shape[d + 1 :]),
    "narrowed": lambda lib, x, d: x.narrow(d, 0, x.shape[d] // 2),
    "emptied_sum": lambda lib, x, d: x.narrow(d, 0, 0).sum(d) + 0.5,
    "view_then_write": _view_then_write,
    "flip_then_write": _flip_then_write,
}
WHOLE: dict[str, Callable[..., Value]] = {
    "flat": lambda lib, x: x.reshape(-1),
    "total": lambda lib, x: x.sum() * 0.1,
    "spread": lambda lib, x: (x.sum() * 0.1).expand(3, 4),
    "contiguous": lambda lib, x: x.contiguous(),
    "clone": lambda lib, x: x.clone(),
    "repeat": lambda lib, x: x.repeat(*(2,) * max(x.ndim, 1)),
}
PAIRS: dict[str, Callable[..., Value]] = {
    "add": lambda lib, a, b: a + b,
    "sub": lambda lib, a, b: a - b,
    "mul": lambda lib, a, b: a * b * 0.5,
    "div": lambda lib, a, b: a / (b * b + 1),
    "maximum": lambda lib, a, b: lib.maximum(a, b + 0.0137),
    "where": lambda lib, a, b: lib.where(a > b + 0.0137, a, b * 0.5),
    "hypot": lambda lib, a, b: lib.hypot(a, b + 2.5),
    "atan2": lambda lib, a, b: lib.atan2(a, b * b + 1),
    "lerp": lambda lib, a, b: lib.lerp(a, b, 0.3),
}
PRODUCTS: dict[str, Callable[..., Value]] = {
    "matmul": lambda lib, a, b: (a @ b) * 0.2,
    "gram": lambda lib, a, b: (a @ a.transpose(-1, -2)) * 0.2,
}
WRITES: dict[str, Callable[..., Value]] = {
    "add_": lambda lib, a, b: _write(lambda y: y.add_(b))(lib, a),
    "mul_": lambda lib, a, b: _write(lambda y: y.mul_(b))(lib, a),
    "copy_": lambda lib, a, b: _write(lambda y: y.copy_(b * 0.5))(lib, a) + a,
    "set": lambda lib, a, b: _write(lambda y: y.__setitem__(Ellipsis, b))(lib, a) * 0.5 + a,
}
# Products of every form there is: what autocast is about.
DENSE: dict[str, Callable[..., Value]] = {
    "matmul": PRODUCTS["matmul"],
    "gram": PRODUCTS["gram"],
    "linear": lambda lib, a, b: lib.nn.functional.linear(a, b) * 0.2,
    # Queries of moderate size: scores are exponents, where a rounding counts in proportion to them.
    "attention": lambda lib, a: lib.nn.functional.scaled_dot_product_attention(a.tanh() * 0.5, a.tanh(), a),
}
OPS = {**MAPS, **ALONG, **MOVES, **WHOLE, **PAIRS, **PRODUCTS, **WRITES, **DENSE}


class Kind(NamedTuple):
    """What programs are made of: how many leaves of what shapes, families with weights, the most lines and elements."""

    leaves: tuple[int, int]
    shapes: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[dict[str, Callable[..., Value]], int], ...]
    lines: int
    most: int


SMALL = Kind(
    (1, 3),
    ((3, 4), (4,), (), (1, 4), (3, 1), (2, 3, 4), (0, 4), (3, 0), (2, 1, 4), (4, 4), (1, 1)),
    ((MAPS, 6), (ALONG, 6), (MOVES, 5), (WHOLE, 2), (PAIRS, 5), (PRODUCTS, 1), (WRITES, 3)),
    40,
    MOST,
)
# Large enough for the tiles of a processor that has them, with odd sizes and empty ones.
WITH_PRODUCTS = Kind(
    (2, 4),
    ((16, 33), (33, 20), (20, 16), (16, 16), (2, 16, 33), (33,), (), (1, 33), (16, 1), (40, 33), (0, 33), (2, 33, 16)),
    ((MAPS, 4), (ALONG, 4), (MOVES, 3), (WHOLE, 1), (PAIRS, 4), (DENSE, 8), (WRITES, 2)),
    25,
    3000,
)


def leaves_of(program: Program) -> list[np.ndarray[Any, Any]]:
    """Return the numbers of the leaves; some lie backwards in memory."""
    rng = np.random.default_rng(program.seed)
    aside = np.random.default_rng((program.seed, program.nudge))
    found = []
    for shape, back in zip(program.shapes, program.backwards, strict=True):
        array = rng.normal(size=shape)
        if program.nudge:  # of no axes, NumPy gives a number
            array = np.asarray(array * (1 + program.size * aside.normal(size=shape)))
        found.append(array[::-1] if back and array.ndim else array)
    return found


def values_of(program: Program, lib: Any, leaves: Sequence[Value]) -> list[Value]:
    """Run the statements; return every value, leaves first."""
    values = list(leaves)
    for one in program.statements:
        values.append(OPS[one.op](lib, *[values[at] for at in one.operands], *one.options))
    return values


def loss_of(program: Program, lib: Any, leaves: Sequence[Value]) -> Value:
    """One number that depends on the last values and, so that every leaf counts, on the leaves."""
    values = values_of(program, lib, leaves)
    parts = [(v * v).sum() * 0.1 for v in values[-3:]] + [leaf.sum() * 0.01 for leaf in leaves]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def make(seed: int, kind: Kind = SMALL) -> Program:
    """Return the program of a seed."""
    draw = random.Random(seed)
    shapes = tuple(draw.choice(kind.shapes) for _ in range(draw.randint(*kind.leaves)))
    backwards = tuple(draw.random() < 0.3 for _ in shapes)
    program = Program(seed, shapes, backwards, ())
    values = [gg.from_numpy(np.array(array)) for array in leaves_of(program)]
    statements: list[Statement] = []
    tables, weights = zip(*kind.weights, strict=True)
    wanted = draw.randint(5, kind.lines)
    for _ in range(10 * wanted):
        if len(statements) == wanted:
            break
        (table,) = draw.choices(tables, weights)
        one = _fitting(draw, table, [tuple(v.shape) for v in values])
        if one is not None:
            made = OPS[one.op](gg, *[values[at] for at in one.operands], *one.options)
            if math.prod(made.shape) <= kind.most and len(made.shape) <= 4:
                statements.append(one)
                values.append(made)
    return program._replace(statements=tuple(statements))


def _fitting(draw: random.Random, table: dict[str, Any], shapes: Sequence[tuple[int, ...]]) -> Statement | None:
    """Return a statement of a family that fits the shapes, or None when the draw did not give one."""
    op = draw.choice(sorted(table))
    recent = range(max(0, len(shapes) - 6), len(shapes))
    at = draw.choice(recent)
    shape = shapes[at]
    if table is MAPS or table is WHOLE:
        return Statement(op, (at,))
    if table is ALONG or table is MOVES:
        usable = [d for d, size in enumerate(shape) if size or table is MOVES]
        return Statement(op, (at,), (draw.choice(usable),)) if usable else None
    if table is DENSE:
        return _product(draw, op, at, shapes)
    other = draw.choice(recent)
    if table is PRODUCTS:
        right = shapes[other]
        fits = len(shape) == 2 if op == "gram" else len(shape) == len(right) == 2 and shape[1] == right[0]
        return Statement(op, (at, other)) if fits else None
    try:
        joint = np.broadcast_shapes(shape, shapes[other])
    except ValueError:
        return None
    return Statement(op, (at, other)) if table is PAIRS or joint == shape else None


def _product(draw: random.Random, op: str, at: int, shapes: Sequence[tuple[int, ...]]) -> Statement | None:
    """Return a product of a value, which is not empty, with any that fits."""
    shape = shapes[at]
    if not math.prod(shape) or not shape:
        return None
    if op in {"gram", "attention"}:
        operands = (at, at) if op == "gram" else (at,)
        return Statement(op, operands) if len(shape) > 1 else None
    fitting = [
        other
        for other, right in enumerate(shapes)
        if math.prod(right)
        and (
            (len(right) == 2 and right[op == "linear"] == shape[-1])
            or (op == "matmul" and len(right) == len(shape) == 3 and (right[0], right[1]) == (shape[0], shape[2]))
        )
    ]
    return Statement(op, (at, draw.choice(fitting))) if fitting else None
