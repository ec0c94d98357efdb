"""Calls whose result dtypes are compared with PyTorch's, and their table in docs/from_pytorch.md.

`python -m tests.compat.promotion_calls --write` writes the table anew, from this library alone.
"""

from __future__ import annotations

import argparse
import builtins
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad import compat
from glassgrad.base.tables import words

PAGE = Path(__file__).resolve().parents[2] / "docs" / "from_pytorch.md"
BEGIN, END = "<!-- begin types of results -->\n", "<!-- end types of results -->\n"

DTYPES = words("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128")
NUMBERS = {"bool": True, "int": 2, "float": 1.5, "complex": 1j}
# A kind of operand: a tensor with dimensions, one without, or a Python number.
Operand = tuple[str, str]
TENSORS = tuple((kind, dtype) for kind in ("tensor", "0-d") for dtype in DTYPES)
OPERANDS = (*TENSORS, *(("number", name) for name in NUMBERS))

BINARY = tuple(
    line.strip()
    for line in """
    a + b
    a - b
    a * b
    a / b
    a // b
    a % b
    a ** b
    a == b
    a < b
    a & b
    a | b
    a ^ b
    a << b
    torch.where(m, a, b)
    torch.maximum(a, b)
    torch.fmax(a, b)
    torch.fmod(a, b)
    torch.atan2(a, b)
    torch.hypot(a, b)
    torch.logaddexp(a, b)
    torch.copysign(a, b)
    torch.logical_and(a, b)
    torch.cat([a, b])
    torch.stack([a, b])
    torch.hstack([a, b])
    a @ b
    torch.outer(a, b)
    torch.add(a, b, alpha=2)
    torch.div(a, b, rounding_mode='floor')
    torch.div(a, b, rounding_mode='trunc')
    torch.float_power(a, b)
    torch.lerp(a, b, 0.5)
    torch.addcmul(a, a, b)
    torch.addcdiv(a, a, b)
    torch.xlogy(a, b)
    torch.heaviside(a, b)
    torch.ldexp(a, b)
    torch.isclose(a, b)
    torch.result_type(a, b)
    torch.kron(a, b)
    torch.masked_fill(a, m, b)
    torch.clamp(a, b)
    torch.clamp(a, max=b)
    torch.clamp(a, b, b)
    torch.rsub(a, b)
    a += b
    a -= b
    a *= b
    a /= b
    a //= b
    a **= b
    a %= b
    a &= b
    a.add_(b)
    a[0] = b
    a.copy_(b)
    a.masked_fill_(m, b)
    """.strip().splitlines()
)
UNARY = tuple(
    line.strip()
    for line in """
    -a
    abs(a)
    ~a
    torch.sqrt(a)
    torch.exp(a)
    torch.sigmoid(a)
    torch.tanh(a)
    torch.relu(a)
    torch.reciprocal(a)
    torch.square(a)
    torch.floor(a)
    torch.round(a)
    torch.sign(a)
    torch.erf(a)
    torch.lgamma(a)
    torch.digamma(a)
    torch.logit(a * 0.25)
    torch.angle(a)
    torch.deg2rad(a)
    torch.nan_to_num(a)
    torch.isnan(a)
    a.sum()
    a.sum(0)
    a.prod()
    a.cumsum(0)
    a.cumprod(0)
    a.mean()
    a.mean(0)
    a.mean(dtype=torch.float32)
    a.nanmean()
    a.var()
    a.std()
    a.norm()
    a.max()
    a.max(0)[0]
    a.amax()
    a.argmax()
    a.any()
    a.all()
    a.median()
    a.sort()[0]
    a.sort()[1]
    a.topk(1)[0]
    a.unique()
    a.logsumexp(0)
    torch.diff(a)
    torch.cov(a)
    torch.trapezoid(a)
    torch.bincount(a)
    torch.count_nonzero(a)
    torch.einsum('i,i->', a, a)
    torch.fft.fft(a)
    torch.clamp(a, 0, 1)
    torch.clamp(a, 0.5, 1.5)
    torch.clamp(a, min=0)
    torch.clamp(a, min=0.5)
    torch.pow(2, a)
    torch.pow(2.0, a)
    a ** 2
    a ** 2.0
    a ** 0.5
    1 / a
    1.5 // a
    100 * a / 3
    torch.zeros_like(a)
    torch.full_like(a, 1.5)
    a.new_zeros(2)
    a.new_tensor([1.5])
    a.new_full((2,), 2)
    torch.nn.functional.one_hot(a)
    torch.nn.functional.pad(a, (1, 1))
    torch.nn.functional.threshold(a, 0.5, 0.)
    a.sqrt_()
    a.zero_()
    a.clamp_(0.5)
    a.mul_(2.5)
    a.cumsum_(0)
    """.strip().splitlines()
)
MADE = tuple(
    line.strip()
    for line in """
    torch.tensor(1)
    torch.tensor(1.)
    torch.tensor(True)
    torch.tensor(1j)
    torch.tensor([1, 2.])
    torch.tensor([True, 2])
    torch.tensor([])
    torch.tensor(np.float64(1))
    torch.tensor([np.float64(1)])
    torch.tensor([np.float32(1)])
    torch.tensor([np.int32(1)])
    torch.tensor(np.ones(2))
    torch.tensor([np.ones(2)])
    torch.as_tensor(1.)
    torch.as_tensor(np.ones(2))
    torch.from_numpy(np.ones(2))
    torch.Tensor([1, 2])
    torch.Tensor(np.ones(2))
    torch.asarray(1.)
    torch.arange(3)
    torch.arange(3.)
    torch.arange(0, 1, 0.1)
    torch.linspace(0, 1, 3)
    torch.full((2,), 1)
    torch.full((2,), 1.)
    torch.full((2,), True)
    torch.full((2,), 1j)
    torch.zeros(2)
    torch.eye(2)
    torch.rand(2)
    torch.randint(3, (2,))
    torch.randperm(3)
    torch.multinomial(torch.ones(3), 2)
    torch.normal(0., 1., (2,))
    torch.bernoulli(torch.full((2,), .5))
    torch.tril_indices(2, 2)
    torch.hann_window(3)
    torch.where(torch.tensor([True]), 1, 2)
    torch.where(torch.tensor([True]), 1., 2)
    torch.nonzero(torch.ones(2))
    torch.tensor(2) * 0.5
    torch.tensor(2) / 3
    torch.tensor(2) + torch.tensor(1.5, dtype=torch.float64)
    torch.ones(2) * np.float64(2)
    torch.ones(2, dtype=torch.int64) * np.float64(2)
    torch.ones(2, dtype=torch.int64) + np.int32(2)
    (torch.ones(3) == 1).sum()
    100 * (torch.ones(3) == 1).sum() / 3
    (torch.ones(3) == 1).float().mean()
    torch.sum(torch.ones(2, dtype=torch.int32), dtype=torch.int32)
    torch.mean(torch.ones(2, dtype=torch.int64), dtype=torch.float32)
    torch.nn.functional.cross_entropy(torch.randn(2, 3), torch.tensor([0, 1]))
    torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2, dtype=torch.float64))
    torch.nn.functional.softmax(torch.ones(2), dtype=torch.float64, dim=0)
    """.strip().splitlines()
)
# What PyTorch gives another dtype, by the call; what is said of it in the table.
DIFFERENT = {
    "complex32": "half numbers that meet a complex one of a lower kind: complex32, which NumPy lacks; here complex64",
    "a.any()": "`any`, `all` of uint8: uint8 there, bool here",
    "a.all()": "`any`, `all` of uint8: uint8 there, bool here",
    "torch.add(a, b, alpha=2)": "`add(alpha=)` of a bool: the bool is multiplied first, so that it is an integer here",
    "a.cumsum_(0)": "`cumsum_` of a bool without dimensions: refused here",
    "torch.nn.functional.threshold(a, 0.5, 0.)": "`threshold` of integers: integers there, the default dtype here",
    "torch.nan_to_num(a)": "`nan_to_num` of complex numbers: refused here",
    "a.copy_(b)": "`copy_` of a complex number into another dtype: refused here",
}


# --- calling --------------------------------------------------------------------------------------


def operand(library: Any, which: Operand, values: tuple[int, int] = (3, 2)) -> Any:
    """An operand of a kind: a tensor of two numbers or of one, or a number."""
    kind, name = which
    if kind == "number":
        return NUMBERS[name]
    return library.tensor(list(values) if kind == "tensor" else values[1], dtype=getattr(library, name))


def result(library: Any, call: str, a: Operand | None = None, b: Operand | None = None) -> Any:
    """What a call returns, of one that writes what it has written to; the error, where it is refused."""
    names = {"torch": library, "np": np, "m": library.tensor([True, False]), "__builtins__": builtins}
    names |= {"a": operand(library, a)} if a else {}
    names |= {"b": operand(library, b, (2, 1))} if b else {}
    writes = "= b" in call and "==" not in call
    try:
        found = FunctionType(_code(call, "exec" if writes else "eval"), names)()
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, OverflowError) as error:
        return error
    return names["a"] if writes else found


@cache
def _code(call: str, mode: str) -> CodeType:
    code: CodeType = compile(call, "<call>", mode)
    return code


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings: of numbers that overflow, of casts that drop an imaginary part."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def dtype_of(y: Any) -> str:
    """The name of a result's dtype; "refused" of an error."""
    if isinstance(y, Exception):
        return "refused"
    return str(getattr(y, "dtype", y)).removeprefix("torch.")


def cases(call: str) -> Iterator[tuple[Operand, Operand]]:
    """The pairs of operands of a call; at least one is a tensor."""
    yield from ((a, b) for a in TENSORS for b in OPERANDS)


# --- the table ------------------------------------------------------------------------------------

_SHORT = {"uint8": "u8", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}
_SHORT |= {f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)} | {f"float{bits}": f"f{bits}" for bits in (16, 32, 64)}
_SHOWN = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")
_PAIRS = ("a + b", "a / b", "a // b", "a ** b", "a == b", "torch.where(m, a, b)", "torch.cat([a, b])", "a += b")
_OF_ONE = tuple(
    line.strip()
    for line in """
    a.sum()
    a.cumsum(0)
    a.mean()
    a.max()
    a.argmax()
    torch.sqrt(a)
    abs(a)
    a ** 2
    a ** 0.5
    1 / a
    100 * a / 3
    torch.clamp(a, 0, 1)
    torch.clamp(a, min=0.5)
    a.mul_(2.5)
    """.strip().splitlines()
)


def _short(name: str) -> str:
    return _SHORT.get(name, name)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(call: str, a: Operand, b: Operand | None = None) -> str:
    return _short(dtype_of(result(gg, call, a, b)))


def tables() -> str:
    """The tables of docs/from_pytorch.md: what comes out here, under the name torch."""
    with compat.as_torch(), quiet():
        promoted = [
            [f"**{_short(a)}**", *(_cell("a + b", ("tensor", a), ("tensor", b)) for b in DTYPES)] for a in DTYPES
        ]
        beside = [("0-d", "int64"), ("0-d", "float64"), ("number", "int"), ("number", "float"), ("number", "complex")]
        weak = [[f"**{_short(a)}**", *(_cell("a + b", ("tensor", a), b) for b in beside)] for a in DTYPES]
        pairs = [("int64", "int64"), ("int64", "float32"), ("float32", "float64"), ("bool", "int64"), ("uint8", "int8")]
        calls = [
            [f"`{call.replace('|', chr(92) + '|')}`", *(_cell(call, ("tensor", a), ("tensor", b)) for a, b in pairs)]
            for call in _PAIRS
        ]
        single = [[f"`{call}`", *(_cell(call, ("tensor", a)) for a in _SHOWN)] for call in _OF_ONE]
    names = [_short(dtype) for dtype in DTYPES]
    texts = [
        "`a + b` of two tensors with dimensions:\n",
        _table(["", *names], promoted),
        "`a + b` of a tensor with dimensions and a tensor without, or a number:\n",
        _table(["", "0-d i64", "0-d f64", "2", "1.5", "1j"], weak),
        "Other ops of two tensors with dimensions:\n",
        _table(["", *(f"{_short(a)}, {_short(b)}" for a, b in pairs)], calls),
        "Ops of one tensor:\n",
        _table(["", *map(_short, _SHOWN)], single),
        "Where PyTorch gives another dtype:\n",
        "".join(f"- {text}\n" for text in dict.fromkeys(DIFFERENT.values())),
    ]
    return "\n".join(texts)


def with_tables(page: str) -> str:
    """The page with the tables of now."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the tables of dtypes into docs/from_pytorch.md.")
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
