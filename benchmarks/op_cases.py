"""The operations that are timed one by one, as expressions in PyTorch's spelling and, where it differs, NumPy's.

In an expression `m` is the library's array namespace, `F` its functional layers; a, b are arrays of the size under
test, and `index`, `mask`, `target` constants. `dim` becomes `axis` for the libraries that follow NumPy; "" says that a
library has no such operation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One operation: its inputs by domain, its expression in each dialect, and fixed shapes if it has them."""

    name: str
    expression: str
    domain: str = "real"
    inputs: int = 1
    numpy: str | None = None  # for HIPS autograd and JAX; None: as in PyTorch but for dim
    jax: str | None = None  # where JAX differs from that
    matrix: bool = False
    shapes: tuple[tuple[int, ...], ...] = ()
    constants: tuple[str, ...] = ()
    limit: float | None = None  # of PyTorch's time, where the case has a bar of its own

    def in_dialect(self, library: str) -> str:
        """Return the expression for a library, or '' if the library has none."""
        if library in {"glassgrad", "torch"}:
            return self.expression
        if library == "jax" and self.jax is not None:
            return self.jax
        if self.numpy is not None:
            return self.numpy
        return self.expression.replace("keepdim=", "keepdims=").replace("dim=", "axis=")


def unary(names: str, domain: str = "real", **dialects: str) -> list[Case]:
    return [Case(name, f"m.{name}(a)", domain, **dialects) for name in names.split()]


def functional(names: str, jax: str = "jax.nn.{}(a)") -> list[Case]:
    return [Case(name, f"F.{name}(a)", numpy="", jax=jax.format(name)) for name in names.split()]


SIZED: tuple[Case, ...] = (
    # elementwise
    *unary("abs exp expm1 sin cos tan sinh cosh tanh sign square"),
    *unary("log log1p log2 log10 sqrt reciprocal", "positive"),
    Case("neg", "-a"),
    Case("rsqrt", "m.rsqrt(a)", "positive", numpy="1 / m.sqrt(a)", jax="jax.lax.rsqrt(a)"),
    Case("asin", "m.asin(a)", "unit", numpy="m.arcsin(a)"),
    Case("atan", "m.atan(a)", numpy="m.arctan(a)"),
    Case("asinh", "m.asinh(a)", numpy="m.arcsinh(a)"),
    Case("atanh", "m.atanh(a)", "unit", numpy="m.arctanh(a)"),
    Case("erf", "m.erf(a)", numpy="special.erf(a)", jax="jax.scipy.special.erf(a)"),
    Case("add", "a + b", inputs=2),
    Case("add scalar", "a + 1.5"),
    Case("sub", "a - b", inputs=2),
    Case("mul", "a * b", inputs=2),
    Case("div", "a / b", "positive", inputs=2),
    Case("pow", "a ** b", "positive", inputs=2),
    Case("square by **", "a ** 2"),
    Case("maximum", "m.maximum(a, b)", inputs=2),
    Case("minimum", "m.minimum(a, b)", inputs=2),
    Case("where", "m.where(mask, a, b)", inputs=2, constants=("mask",)),
    Case("clamp", "m.clamp(a, -0.5, 0.5)", numpy="m.clip(a, -0.5, 0.5)"),
    Case("atan2", "m.atan2(a, b)", "positive", inputs=2, numpy="m.arctan2(a, b)"),
    Case("logaddexp", "m.logaddexp(a, b)", inputs=2),
    # activations
    Case("sigmoid", "m.sigmoid(a)", numpy="1 / (1 + m.exp(-a))", jax="jax.nn.sigmoid(a)"),
    *functional("relu leaky_relu silu softplus elu"),
    Case("gelu", "F.gelu(a)", numpy="0.5 * a * (1 + special.erf(a / 2**0.5))", jax="jax.nn.gelu(a, approximate=False)"),
    Case("logsigmoid", "F.logsigmoid(a)", numpy="", jax="jax.nn.log_sigmoid(a)"),
    # reductions
    Case("sum", "m.sum(a)"),
    Case("sum of rows", "m.sum(a, dim=1)", matrix=True),
    Case("sum of columns", "m.sum(a, dim=0)", matrix=True),
    Case("mean", "m.mean(a)"),
    Case("mean of rows, kept", "m.mean(a, dim=1, keepdim=True)", matrix=True),
    Case("amax of rows", "m.amax(a, dim=1)", matrix=True, numpy="m.max(a, axis=1)"),
    Case("max of rows", "m.max(a, dim=1).values", matrix=True, numpy="m.max(a, axis=1)"),
    Case("prod", "m.prod(a)", "near one"),
    Case("var of rows", "m.var(a, dim=1, correction=0)", matrix=True, numpy="m.var(a, axis=1)"),
    Case("logsumexp of rows", "m.logsumexp(a, dim=1)", matrix=True, numpy="special.logsumexp(a, axis=1)"),
    Case("softmax of rows", "m.softmax(a, dim=1)", matrix=True, numpy="", jax="jax.nn.softmax(a, axis=1)"),
    Case("log_softmax of rows", "m.log_softmax(a, dim=1)", matrix=True, numpy="", jax="jax.nn.log_softmax(a, axis=1)"),
    Case("norm", "m.linalg.vector_norm(a)", numpy="m.sqrt(m.sum(a * a))"),
    Case("cumsum of rows", "m.cumsum(a, dim=1)", matrix=True),
    Case("sort of rows", "m.sort(a, dim=1).values", matrix=True, numpy="", jax="m.sort(a, axis=1)"),
    # shape and indexing
    Case("reshape", "m.reshape(a, (-1,))", matrix=True),
    Case("transpose", "a.T * 1.0", matrix=True),
    Case("broadcast add row", "a + b[0]", inputs=2, matrix=True),
    Case("cat", "m.cat([a, b])", inputs=2, numpy="m.concatenate([a, b])"),
    Case("stack", "m.stack([a, b])", inputs=2),
    Case("slice", "a[:, 1:]", matrix=True),
    Case("rows by integer array", "a[index]", matrix=True, constants=("index",)),
    Case(
        "gather",
        "m.gather(a, 1, index[:, None])",
        matrix=True,
        numpy="",
        constants=("small_index",),
        jax="m.take_along_axis(a, index[:, None], axis=1)",
    ),
    Case("masked select by where", "m.where(mask, a, 0.0)", constants=("mask",)),
    Case("flip", "m.flip(a, (0,))", numpy="", jax="m.flip(a, 0)"),
    Case("roll", "m.roll(a, 1)"),
    Case("tril", "m.tril(a)", matrix=True),
    # products
    Case("matmul", "a @ b", inputs=2, matrix=True, numpy="m.matmul(a, b)"),
    Case("einsum ij,kj->ik", "m.einsum('ij,kj->ik', a, b)", inputs=2, matrix=True),
    Case("dot", "m.dot(a, b)", inputs=2),
)

FIXED: tuple[Case, ...] = (
    Case("linear 32x30 to 200", "F.linear(a, b, c)", shapes=((32, 30), (200, 30), (200,)), numpy="m.dot(a, b.T) + c"),
    Case(
        "linear 768x128 to 512", "F.linear(a, b, c)", shapes=((768, 128), (512, 128), (512,)), numpy="m.dot(a, b.T) + c"
    ),
    Case("batched matmul 48 of 64x32x64", "a @ b", shapes=((48, 64, 32), (48, 32, 64)), numpy="m.matmul(a, b)"),
    Case(
        "batch_norm 32x200",
        "F.batch_norm(a, None, None, b, c, training=True)",
        numpy="",
        jax="",
        shapes=((32, 200), (200,), (200,)),
    ),
    Case("layer_norm 768x128", "F.layer_norm(a, (128,), b, c)", shapes=((768, 128), (128,), (128,)), numpy="", jax=""),
    Case(
        "cross_entropy 32x27", "F.cross_entropy(a, target)", shapes=((32, 27),), constants=("target",), numpy="", jax=""
    ),
    Case(
        "cross_entropy 768x65",
        "F.cross_entropy(a, target)",
        shapes=((768, 65),),
        constants=("target",),
        numpy="",
        jax="",
    ),
    Case(
        "embedding 27x10, 96 rows",
        "F.embedding(index, a)",
        shapes=((27, 10),),
        constants=("index:96",),
        numpy="a[index]",
    ),
    Case(
        "embedding 50000x64, 4096 rows",
        "F.embedding(index, a)",
        shapes=((50_000, 64),),
        constants=("index:4096",),
        numpy="a[index]",
    ),
    Case(
        "attention 12x4x64x32, causal",
        "F.scaled_dot_product_attention(a, b, c, is_causal=True)",
        shapes=((12, 4, 64, 32),) * 3,
        numpy="",
        jax="",
    ),
    Case(
        "conv2d 64x32x14x14, 64 of 3x3",
        "F.conv2d(a, b, c, padding=1)",
        shapes=((64, 32, 14, 14), (64, 32, 3, 3), (64,)),
        limit=1.5,
        numpy="",
        jax="",
    ),
    Case("max_pool2d 64x32x28x28 by 2", "F.max_pool2d(a, 2)", shapes=((64, 32, 28, 28),), numpy="", jax=""),
    Case("avg_pool2d 64x32x28x28 by 2", "F.avg_pool2d(a, 2)", shapes=((64, 32, 28, 28),), numpy="", jax=""),
    Case(
        "conv1d 32x16x100, 32 of 5", "F.conv1d(a, b, c)", shapes=((32, 16, 100), (32, 16, 5), (32,)), numpy="", jax=""
    ),
)
# The reasons why operations take more than twice PyTorch's time at a size: these are decisions, not open tasks.
REASONS: dict[str, dict[int, str]] = {
    "gelu": {
        1_000_000: "PyTorch evaluates the error function in registers, in one pass over memory. NumPy has none; here "
        "it is some twenty-five passes over blocks in the cache, which keep the digits of the left tail as well."
    },
    "silu": {
        1_000_000: "PyTorch computes it and its slope in registers, in one pass over memory each; here they are "
        "fourteen passes of NumPy over blocks in the cache. The ratio moves between 3 and 4.5 with the memory's speed."
    },
    "cat": {1_000_000: "As for reshape: PyTorch's leaves get views of the cotangent. Here each owns its part, a copy."},
    "stack": {
        1_000_000: "As for reshape: PyTorch's leaves get views of the cotangent. Here each owns its part, a copy."
    },
    "reshape": {
        1_000_000: "PyTorch gives the leaf a view of the caller's own cotangent, so that writing to one changes the "
        "other. Here a leaf owns its gradient; as long as the caller may still hold the cotangent, that takes a copy."
    },
}

SIDES = {1: (1, 1), 1_000: (25, 40), 1_000_000: (1_000, 1_000)}


OPERATORS = {"negative": "neg", "subtract": "sub", "multiply": "mul", "divide": "div", "power": "pow", "clip": "clamp"}


# Primitives without a public name: an expression that calls each one, or "" if a case above contains it.
SPELLED = {"gelu_tanh": "F.gelu(a, approximate='tanh')", "root": "", "airy_slope": ""}


def from_registry(registry: Mapping[str, Any]) -> list[Case]:
    """Return a case for every smooth elementwise primitive that has none above, so that new ops are timed as well."""
    written = {word for case in SIZED for word in (case.name, *re.findall(r"\bm\.(\w+)|\bF\.(\w+)", case.expression))}
    known = {name for entry in written for name in (entry if isinstance(entry, tuple) else (entry,))}
    cases = []
    for name, primitive in registry.items():
        domains = primitive.samples if primitive.kind == "elementwise" else None
        plain = domains and not getattr(primitive, "sample_params", None) and not any(d.boolean for d in domains)
        timed = SPELLED.get(name) == "" or {name, OPERATORS.get(name, name)} & known
        if not plain or timed or not any(primitive.partials):
            continue
        pairs = list(zip(domains, primitive.partials, strict=True))
        letters = iter("abc")
        arguments = ", ".join(f"fixed{at}" if slope is None else next(letters) for at, (_, slope) in enumerate(pairs))
        where = ",".join(f"{domain.low}:{domain.high}" for domain, slope in pairs if slope is not None)
        # What has no derivative is a constant of the case.
        fixed = tuple(f"fixed{at}:{d.low}:{d.high}" for at, (d, slope) in enumerate(pairs) if slope is None)
        expression = SPELLED.get(name, f"m.{name}({arguments})")
        dialects = {"numpy": ""} if name in SPELLED or fixed else {}
        cases.append(Case(name, expression, where, inputs=len(pairs) - len(fixed), constants=fixed, **dialects))
    return cases


def shapes_of(case: Case, size: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of a case's inputs at a size; 0 stands for its own fixed shapes."""
    if case.shapes:
        return case.shapes
    rows, columns = SIDES[size]
    if not case.matrix:
        return ((size,),) * case.inputs
    if case.name == "matmul":
        return ((rows, columns), (columns, rows))
    return ((rows, columns),) * case.inputs


def draw(case: Case, size: int) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Inputs and constants, the same in every process."""
    generator = np.random.default_rng(11)
    shapes = shapes_of(case, size)
    wheres = itertools.cycle(case.domain.split(","))
    inputs = [domain(generator, where, shape).astype(np.float32) for where, shape in zip(wheres, shapes, strict=False)]
    constants = {}
    first = shapes[0]
    for word in case.constants:
        kind, _, count = word.partition(":")
        if kind == "mask":
            constants["mask"] = generator.random(first) < 0.5
        elif kind == "index":
            constants["index"] = generator.integers(0, first[0], int(count) if count else first[0])
        elif kind.startswith("fixed"):
            constants[kind] = domain(generator, count, first).astype(np.float32)
        elif kind == "small_index":
            constants["index"] = generator.integers(0, first[1], first[0])
        else:
            constants[kind] = generator.integers(0, first[1], first[0])
    return inputs, constants


def domain(generator: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers from the domain on which the function is defined and smooth."""
    if ":" in name:
        low, high = map(float, name.split(":"))
        return generator.uniform(low, high, shape)
    match name:
        case "positive":
            return generator.uniform(0.5, 2.0, shape)
        case "unit":
            return generator.uniform(-0.9, 0.9, shape)
        case "near one":
            return 1 + generator.standard_normal(shape) / np.sqrt(shape[0])
    return generator.standard_normal(shape)
