"""Random programs over unusual shapes: expanded, empty and reversed views, of every dtype.

A program is drawn from a seed by running it eagerly, step by step, and remembering the steps. It is compared compiled
and in eager mode, results and gradients, against the same steps in float64. As a script it checks a range of seeds and
prints one line of JSON per finding, and a line with the seed before each program, so that a parent process knows the
program that ended it:

    python tests/compile/front/hostile.py llvm 0 100
"""

from __future__ import annotations

import json
import random
import sys
import traceback
import warnings

import numpy as np

import glassgrad as gg
from glassgrad.nn import functional as F

FLOATS = ("float16", "float32", "float64")
DTYPES = (*FLOATS, "float32", "float64", "bool", "int64", "int8", "uint8", "int32", "complex64", "complex128")
WIDE = {"float16": "float64", "float32": "float64", "complex64": "complex128"}
LIMIT = 400  # elements of a value


def kind(x):
    return np.dtype(x.dtype).kind


# --- steps ----------------------------------------------------------------------------------------
# Each takes a Random and a value, and returns a function of the value (and of others), or None if it does not fit.


def elementwise(draw, x):
    if kind(x) == "b":
        return draw.choice([lambda v: ~v, lambda v: v & True])
    if kind(x) in "iu":
        return draw.choice([lambda v: v + 1, lambda v: v * 2, lambda v: v // 3, lambda v: v % 5, abs, lambda v: v > 1])
    if kind(x) == "c":
        return draw.choice([lambda v: v * 0.5, gg.conj, gg.real, gg.abs, lambda v: v * 1j, lambda v: v + 1])
    return draw.choice([
        gg.tanh, gg.sin, gg.sigmoid, F.relu, F.gelu, gg.abs, lambda v: -v, lambda v: v * v, gg.floor, gg.sign,
        lambda v: gg.exp(gg.tanh(v)), lambda v: gg.sqrt(gg.abs(v) + 1), lambda v: gg.log1p(v * v), gg.erf,
        lambda v: v.clip(-1, 1), lambda v: v % 0.7, lambda v: gg.where(v > 0, v, v * 0.1), gg.isfinite,
        gg.round, lambda v: v > 0, lambda v: (v * v + 1) ** -0.5, gg.square,
    ])  # fmt: skip  # a table


def expand(draw, x):
    shape = tuple(draw.choice([1, 2, 3, 5]) if extent == 1 else extent for extent in x.shape)
    lead = tuple(draw.choice([0, 1, 2, 3, 17]) for _ in range(draw.choice([0, 0, 1, 2])))
    return lambda v: v.expand(*lead, *shape) if lead + shape else v


def view(draw, x):
    if x.ndim == 0:
        return draw.choice([lambda v: v.reshape(1), lambda v: v[None], lambda v: v.view(1, 1)])
    axis = draw.randrange(x.ndim)
    order = draw.sample(range(x.ndim), x.ndim)
    key = [slice(None)] * x.ndim
    key[axis] = draw.choice([
        slice(None, None, 2), slice(1, None), slice(0, 0), slice(0, 1), slice(None, -1), slice(None, None, -1), 0, None,
    ])  # fmt: skip  # a table
    if key[axis] == 0 and x.shape[axis] == 0:
        key[axis] = slice(None)
    if key[axis] == slice(None, None, -1):
        return lambda v: v.flip(axis)
    return draw.choice([
        lambda v: v.flip(axis), lambda v: v.permute(*order), lambda v: v[tuple(key)], lambda v: v[tuple(key)],
        lambda v: v.reshape(-1), lambda v: v.unsqueeze(axis), lambda v: v.squeeze(), lambda v: v.reshape(v.numel(), 1),
        lambda v: v.reshape(*v.shape[1:], v.shape[0]), lambda v: gg.roll(v, 1, axis),
        lambda v: v.mT if v.ndim > 1 else v,
        lambda v: v.detach() if v.ndim > 2 else v.contiguous(), lambda v: v.swapaxes(0, axis),
        lambda v: v.diagonal() if v.ndim > 1 else v, lambda v: v.ravel(), lambda v: v.movedim(0, -1),
    ])  # fmt: skip  # a table


def reduction(draw, x):
    axis = draw.choice([None, *range(-x.ndim, x.ndim)])
    options = {} if axis is None else {"dim": axis, "keepdim": draw.random() < 0.5}
    empty = x.numel() == 0 if axis is None else x.shape[axis] == 0
    names = ["sum", "prod"]
    names += {"b": ["any", "all"], "c": ["mean"]}.get(kind(x), [])
    names += ["mean", "logsumexp", "var", "std", "norm"] if kind(x) == "f" else []
    names += [] if empty or kind(x) in "bc" else ["amax", "amin", "argmax", "argmin"]
    name = draw.choice(names)
    if (name == "logsumexp" and axis is None) or (name == "prod" and kind(x) == "f" and x.numel() > 40):
        name = "sum"
    return lambda v: getattr(v, name)(**options)


def normalisation(draw, x):
    if kind(x) != "f":
        return None
    if x.ndim == 0:
        return draw.choice([lambda v: F.softmax(v, -1), lambda v: v / v.sum(), lambda v: v - v.mean()])
    axis = draw.randrange(-x.ndim, x.ndim)
    choices = [
        lambda v: F.softmax(v, axis), lambda v: F.log_softmax(v, axis), lambda v: v / (gg.abs(v).sum() + 1),
        lambda v: v - v.mean(axis, keepdim=True), lambda v: F.layer_norm(v, v.shape[-1:]),
        lambda v: F.rms_norm(v, v.shape[-1:]), lambda v: F.normalize(v, dim=axis), lambda v: v.cumsum(axis),
        lambda v: v / (v * v + 1).sum(axis, keepdim=True), lambda v: F.softmax(v, axis).sum(axis),
        lambda v: F.layer_norm(v, v.shape), lambda v: v * F.softmax(v, axis).mean(axis, keepdim=True),
    ]  # fmt: skip  # a table
    if x.ndim >= 2 and x.shape[1] and x.numel():
        channels = x.shape[1]
        groups = draw.choice([g for g in range(1, channels + 1) if channels % g == 0])
        choices.append(lambda v: F.group_norm(v, groups))
        if x.shape[0] > 1:
            choices.append(lambda v: F.batch_norm(v, None, None, training=True))
    return draw.choice(choices)


def cast(draw, x):
    wanted = draw.choice([*FLOATS, "int64", "bool", "int8", "complex64"])
    if kind(x) == "c" or (kind(x) == "f" and wanted in {"int64", "int8"}):
        return lambda v: v.abs() if kind(v) == "c" else v
    return lambda v, wide=False: v.to(np.dtype(WIDE.get(wanted, wanted) if wide else wanted))


def arrangement(draw, x):
    axis = draw.randrange(-x.ndim, x.ndim) if x.ndim else 0
    if x.ndim == 0:
        return draw.choice([lambda v: gg.stack([v, v]), lambda v: v.clone(), lambda v: gg.cat([v[None], v[None]])])
    extent = x.shape[axis]
    index = gg.tensor(np.array([draw.randrange(extent) for _ in range(3)] if extent else [], np.int64))
    choices = [
        lambda v: gg.cat([v, v], axis), lambda v: gg.stack([v, v.flip(0)], axis), lambda v: v.clone(),
        lambda v: gg.index_select(v, axis, index), lambda v: gg.cat([v[:0], v], 0),
        lambda v: v.tril() if v.ndim > 1 else v,
        lambda v: F.pad(v, (1, 2)) if kind(v) != "b" else v, lambda v: v.repeat(*([2] * v.ndim)),
        lambda v: v.sort(axis).values if kind(v) in "fiu" and v.shape[axis] else v,
        lambda v: gg.cat(v.split(2, axis), axis) if v.shape[axis] else v, lambda v: v.unfold(0, 1, 1) if len(v) else v,
    ]  # fmt: skip  # a table
    return draw.choice(choices)


def product(draw, x):
    if kind(x) == "b" or x.ndim == 0:
        return None
    if x.ndim == 1:
        return lambda v: (v @ v) * 0.1 if kind(v) in "fc" else v @ v
    return draw.choice(
        [
            lambda v: v @ v.mT,
            lambda v: v.mT @ v,
            lambda v: gg.einsum("...ij,...ij->...i", v, v),
            lambda v: (v @ v.mT)[..., 0],
        ]
    )


def layer(draw, x):
    """Layers and losses that are kernels of their own, on whatever shape there is."""
    if kind(x) != "f" or x.ndim == 0:
        return None
    width = x.shape[-1]
    weight = gg.tensor(np.random.default_rng(draw.randrange(99)).normal(size=(3, width)))
    labels = gg.tensor(np.arange(x.shape[0]) % max(width, 1))
    filters = gg.tensor(np.random.default_rng(draw.randrange(99)).normal(size=(2, 1, 2, 1)))
    places = gg.tensor(np.array([draw.randrange(x.shape[0]) for _ in range(4)] if x.shape[0] else [], np.int64))
    rows = gg.tensor(np.arange(x.numel()).reshape(x.shape) % max(x.shape[0], 1))
    return draw.choice([
        lambda v: F.linear(v, weight.to(v.dtype)), lambda v: F.cross_entropy(v, labels, reduction="none"),
        lambda v: F.cross_entropy(v, labels) if v.numel() else v, lambda v: F.embedding(places, v),
        lambda v: F.conv2d(v.reshape(1, 1, -1, 1), filters.to(v.dtype)), lambda v: F.mse_loss(v, v * 0.5),
        lambda v: F.conv2d(v.expand(2, *v.shape).reshape(2, 1, -1, 1), filters.to(v.dtype), padding=1),
        lambda v: F.max_pool1d(v.reshape(1, 1, -1), 2), lambda v: F.avg_pool1d(v.reshape(1, 1, -1), 2),
        lambda v: F.scaled_dot_product_attention(v, v, v), lambda v: F.nll_loss(F.log_softmax(v, -1), labels),
        lambda v: gg.gather(v, 0, rows), lambda v: gg.scatter_add(v * 0, 0, rows, v),
        lambda v: gg.outer(v.ravel(), v.ravel()), lambda v: gg.cumprod(gg.tanh(v), -1),
        lambda v: gg.topk(v, min(2, width), -1).values if width else v, lambda v: F.smooth_l1_loss(v, v.flip(0)),
        lambda v: F.interpolate(v.reshape(1, 1, -1), scale_factor=2), lambda v: v.index_add(0, places, v[places] * 0.5),
        lambda v: F.adaptive_avg_pool1d(v.reshape(1, 1, -1), 3), lambda v: F.glu(gg.cat([v, v], -1)),
        lambda v: v.triu() if v.ndim > 1 else v, lambda v: v.masked_fill(v > 0, -1.0),
        lambda v: gg.median(v).reshape(1),
    ])  # fmt: skip  # a table


def writing(draw, x):
    """Write in place into a copy, through a view of it."""
    if kind(x) == "b" or x.ndim == 0:
        return None
    amount = draw.choice([2, 3])
    part = draw.choice([
        lambda v: v, lambda v: v[:1], lambda v: v[-1:], lambda v: v.mT if v.ndim > 1 else v, lambda v: v[..., ::2],
        lambda v: v.reshape(-1), lambda v: v[0] if len(v) else v, lambda v: v.unsqueeze(0), lambda v: v[:0],
    ])  # fmt: skip  # a table

    def write(v):
        copy = v.clone()
        part(copy).mul_(amount)
        return copy * 1

    return write


UNARY = (
    elementwise, elementwise, expand, expand, view, view, reduction, normalisation, normalisation, cast, arrangement,
    product, writing, layer,
)  # fmt: skip  # a table


def binary(draw, x, y):
    if "b" in kind(x) + kind(y):
        return lambda a, b: a * b
    if "c" in kind(x) + kind(y):
        return draw.choice([gg.add, gg.multiply, lambda a, b: a - b, lambda a, b: a * b.conj()])
    return draw.choice([
        gg.add, gg.multiply, lambda a, b: a - b, gg.maximum, gg.minimum, lambda a, b: a / (b * b + 1),
        lambda a, b: a > b, lambda a, b: gg.where(a > b, a, b),
    ])  # fmt: skip  # a table


# --- programs -------------------------------------------------------------------------------------


class Program:
    """Inputs and steps; a step is (function, positions of its operands)."""

    def __init__(self, seed):
        draw = random.Random(seed)
        self.inputs, self.steps = [], []
        values = []
        for number in range(draw.choice([1, 1, 2, 3])):
            shape = tuple(draw.choice([0, 1, 1, 2, 3, 4, 7, 16, 33]) for _ in range(draw.choice([0, 0, 1, 2, 2, 3])))
            self.inputs.append(numbers(np.random.default_rng([seed, number]), shape, draw.choice(DTYPES)))
            values.append(gg.tensor(self.inputs[-1]))
        for _ in range(draw.randint(2, 12)):
            self._extend(draw, values)
        # What is returned: mostly the last values, sometimes all, an input, a constant or nothing.
        count = len(values)
        last = count - 1
        self.outputs = draw.choice([[last], [last], [last, last // 2], [*range(count)], [0], [last, "one"], []])

    def _extend(self, draw, values):
        at = draw.choice([len(values) - 1, draw.randrange(len(values))])
        step, places = None, (at,)
        if draw.random() < 0.25:
            other = draw.randrange(len(values))
            step, places = binary(draw, values[at], values[other]), (at, other)
        else:
            step = draw.choice(UNARY)(draw, values[at])
        if step is None:
            return
        try:
            made = step(*[values[place] for place in places])
        except Exception:  # noqa: BLE001 - it does not fit, and what eager mode refuses is not looked for
            return
        if isinstance(made, gg.Tensor) and made.numel() <= LIMIT:
            self.steps.append((step, places))
            values.append(made)

    def run(self, *inputs, wide=False):
        values = list(inputs)
        for step, places in self.steps:
            operands = [values[place] for place in places]
            widened = {"wide": True} if wide and "wide" in getattr(step.__code__, "co_varnames", ()) else {}
            values.append(step(*operands, **widened))
        made = [gg.ones(2) if at == "one" else values[at] for at in self.outputs]
        tracked = [v for v in made if v.requires_grad and v.node is not None and kind(v) == "f"]
        if tracked:
            leaves = [x for x in inputs if x.requires_grad]
            total = tracked[0].sum()
            for v in tracked[1:]:
                total = total + v.sum()
            found = gg.autograd.grad(total, leaves, allow_unused=True)
            made += [g for g in found if g is not None]
        return tuple(v.detach() for v in made)

    def tensors(self, *, wide=False, moved=0):
        """Return the inputs as leaves; `moved` draws one of several others near them, in the same dtypes."""
        rng = np.random.default_rng(moved)
        found = []
        for array in self.inputs:
            if moved and array.dtype.kind in "fc":
                by = rng.uniform(-4, 4, array.shape) * np.finfo(array.dtype).eps
                array = np.asarray(array * (1 + by)).astype(array.dtype)
            array = array.astype(WIDE.get(array.dtype.name, array.dtype.name)) if wide else array
            found.append(gg.tensor(array, requires_grad=array.dtype.kind == "f"))
        return found


def numbers(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return np.asarray(rng.integers(0, 2 if dtype.kind == "b" else 5, shape)).astype(dtype)
    values = np.asarray(rng.normal(size=shape))
    return (values + 1j * rng.normal(size=shape) if dtype.kind == "c" else values).astype(dtype)


# --- comparing ------------------------------------------------------------------------------------


def problem(program, backend):
    """Return what is wrong with the compiled program, None if nothing is."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            eager = program.run(*program.tensors())
        except (AttributeError, NameError):  # a slip in this file
            raise
        except Exception:  # noqa: BLE001 - the backward pass may be refused: nothing to compare with
            return None
        try:
            truth = program.run(*program.tensors(wide=True), wide=True)
        except Exception:  # noqa: BLE001 - the dtypes do not go together any more
            truth = eager
        truth = truth if len(truth) == len(eager) else eager  # a gradient may be missing in one of them
        threads = 2 if backend == "llvm" and len(program.steps) % 3 == 0 else None
        compiled = gg.compile(program.run, backend=backend, threads=threads, strict=True)
        try:
            first = compiled(*program.tensors())
            second = compiled(*program.tensors())
        except Exception as error:  # noqa: BLE001 - what is looked for
            last = traceback.extract_tb(error.__cause__.__traceback__ if error.__cause__ else error.__traceback__)[-1]
            return f"{type(error).__name__}: {str(error)[:300]} ({last.filename.rpartition('/')[2]}:{last.lineno})"
    for found in (first, second):
        if len(found) != len(eager):
            return f"{len(found)} results instead of {len(eager)}"
        for number, each in enumerate(zip(found, eager, truth, strict=True)):
            mine, wanted, true = map(np.asarray, each)
            told = difference(mine, wanted, true)
            if told is not None and difference(mine, wanted, true, rounding_near(program, number)) is not None:
                return f"result {number}: {told}"
    return None


ROUNDING = {2: 3e-2, 4: 1e-4, 8: 1e-9}
NEIGHBOURS = 12


def rounding_near(program, number):
    """Return how far from the truth rounding takes a result in eager mode, for inputs near the program's.

    Where terms cancel to 0, eager mode may meet 0 by luck, and the truth does not show how large the terms were.
    """
    most = 0.0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of what the programs do to their numbers, as in `problem`
        for moved in range(1, NEIGHBOURS + 1):
            try:
                eager = np.asarray(program.run(*program.tensors(moved=moved))[number])
                truth = np.asarray(program.run(*program.tensors(wide=True, moved=moved), wide=True)[number])
            except Exception:  # noqa: BLE001, S112 - as above: there is no truth
                continue
            if eager.dtype.kind in "fc" and eager.shape == truth.shape:
                error = np.abs(eager - truth)[np.isfinite(truth)]
                most = max(most, np.nan_to_num(error, nan=np.inf).max(initial=0.0))
    return most


def difference(mine, wanted, true, near=0.0):
    """Say how a result differs from eager mode's, which is as far from the truth as rounding takes it (`near`)."""
    if mine.dtype != wanted.dtype or mine.shape != wanted.shape:
        return f"{mine.dtype}{list(mine.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if true.shape != wanted.shape:
        true = wanted
    with np.errstate(all="ignore"):
        off = off_numbers(mine, wanted, true, near) if mine.dtype.kind in "fc" else (mine != wanted) & (wanted == true)
    # Where rounding decides about some of the comparisons, it may decide about others in the program.
    if not off.any() or (mine.dtype.kind not in "fc" and (wanted != true).any() and off.mean() < 0.1):
        return None
    place = tuple(map(int, np.argwhere(off)[0]))
    return f"{np.count_nonzero(off)} of {off.size} entries; {place} is {mine[place]}, eager {wanted[place]}"


def off_numbers(mine, wanted, true, near):
    finite = np.isfinite(true) & np.isfinite(wanted)
    error = np.abs(wanted - true)[finite].max(initial=near)
    width = mine.dtype.itemsize // (2 if mine.dtype.kind == "c" else 1)
    rounding = ROUNDING[width]
    # Numbers around 1 go in: of terms that cancel to 0, rounding leaves its share of them, in half precision 1e-3.
    scale = np.abs(true[finite]).max(initial=0.05 if width == 2 else 0.01)
    far = ~(np.abs(mine - true) <= 30 * error + rounding * scale + 1e-30) & finite
    return far | (np.isnan(mine) & ~np.isnan(wanted) & ~np.isnan(true))


# Not judged: a gradient whose terms cancel to 0 exactly in eager mode, whatever the inputs, since normalised rows of
# equal numbers are sums of 0 there; another order of summation leaves 4e-6 of numbers around 300.
EXACT_BY_LUCK = {18345}


def main(backend, start, count):
    for seed in range(start, start + count):
        print(json.dumps({"seed": seed}), flush=True)
        told = None if seed in EXACT_BY_LUCK else problem(Program(seed), backend)
        if told is not None:
            print(json.dumps({"seed": seed, "problem": told}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
