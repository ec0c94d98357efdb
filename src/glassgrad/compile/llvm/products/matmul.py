"""Matrix products as kernels: the layouts that BLAS accepts without a copy, and each thread's share of the work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.module.blas import GEMM, gemm_helper
from glassgrad.compile.llvm.module.ir import LLVM_TYPE, Builder, kind_of, literal
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.products.pairs import MOST_TERMS
from glassgrad.compile.plan.view_chains import Strided


def accepts(strided: Strided) -> bool:
    """Tell whether BLAS can read a matrix (or a batch of them) without a copy."""
    if len(strided.shape) < 2:
        return False
    return leading(strided.strides[-2:], strided.shape[-2:]) is not None


def leading(strides: Sequence[int], shape: Sequence[int]) -> tuple[bool, int] | None:
    """Return (is it transposed, leading dimension) of a row-major matrix; None if BLAS cannot express it."""
    rows, columns = shape
    down, across = strides
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return False, max(down if rows != 1 else columns, 1)
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return True, max(across if columns != 1 else rows, 1)
    return None


@dataclass(frozen=True)
class Product:
    """One (batched) product C = A @ B with its sizes and layouts."""

    kind: str
    m: int
    n: int
    k: int
    a: Strided
    b: Strided
    batch: tuple[int, ...]

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k * math.prod(self.batch)


def product_of(instr: Instr, operands: Sequence[Strided | None]) -> Product:
    """Describe a matmul instruction whose operands have at least two dimensions."""
    a, b = operands
    assert a is not None
    assert b is not None
    out = instr.output
    kind = kind_of(out.dtype)
    assert kind is not None
    whole = Product(kind, out.shape[-2], out.shape[-1], a.shape[-1], a, b, out.shape[:-2])
    return _one_product(whole) or whole


def _one_product(product: Product) -> Product | None:
    """Turn a batch with a common B into one product of all its rows, if those are evenly spaced."""
    a, b, batch = product.a, product.b, product.batch
    if not batch or any(extent != 1 for extent in b.shape[:-2]) or a.shape[:-2] != batch:
        return None
    expected, count = a.strides[-2], a.shape[-2]
    for extent, stride in zip(reversed(batch), reversed(a.strides[:-2]), strict=True):
        if extent != 1 and stride != expected * count:
            return None
        count *= extent
    rows = Strided(a.root, a.offset, (count, a.shape[-1]), (expected, a.strides[-1]))
    if leading(rows.strides, rows.shape) is None:
        return None
    right = Strided(b.root, b.offset, b.shape[-2:], b.strides[-2:])
    return Product(product.kind, count, product.n, product.k, rows, right, ())


def can_multiply(instr: Instr) -> bool:
    """Tell whether BLAS or our own code has a product for the dtypes."""
    operands = [operand for operand in instr.inputs if isinstance(operand, Var)]
    same = all(operand.dtype == instr.output.dtype for operand in operands)
    terms = operands[0].shape[-1] if operands and operands[0].ndim else 0
    if not same or len(operands) != 2 or terms == 0:
        return False
    kind = kind_of(instr.output.dtype)
    return has_pairs() and terms <= MOST_TERMS if kind == "bf16" else kind in GEMM


def has_pairs() -> bool:
    """Tell whether this processor has the dot product of bfloat16 pairs in vectors of 64 bytes."""
    return host().has_bfloat and host().vector_bytes == 64


Call = Callable[[Builder, tuple[str, str, str], str, str], None]


def emit_product(
    b: Builder, product: Product, pointers: tuple[str, str, str], share: tuple[str, str, str], call: Call
) -> None:
    """Emit the product for rows, columns or matrices [lo, hi).

    `pointers` are those of A, B and C; `share` is (lo, hi, the axis that is cut); `call` emits the product of one
    matrix from the addresses of its first elements and its numbers of rows and columns.
    """
    lo, hi, by = share
    if math.prod(product.batch) == 1:
        _one_matrix(b, product, pointers, ("0", "0", "0"), share, call)
        return
    count = str(math.prod(product.batch))
    first, last = (lo, hi) if by == "batch" else ("0", count)
    head, after = b.function.fresh("batch"), b.function.fresh("done")
    before = b.label
    step = f"%{b.function.fresh('m')}"
    b.raw(f"br label %{head}")
    b.start(head)
    position = b.define(f"phi i64 [ {first}, %{before} ], [ {step}, %{head} ]", "i64").text
    _one_matrix(b, product, pointers, _batch_offsets(b, product, position), share, call)
    b.raw(f"{step} = add i64 {position}, 1")
    more = b.define(f"icmp ult i64 {step}, {last}", "b1").text
    b.raw(f"br i1 {more}, label %{head}, label %{after}")
    b.start(after)


def _batch_offsets(b: Builder, product: Product, position: str) -> tuple[str, str, str]:
    """Return the offsets, in elements, of one matrix of the batch in A, B and C."""
    sides = [_batch_strides(product.a, len(product.batch)), _batch_strides(product.b, len(product.batch))]
    totals = ["0", "0"]
    rest = position
    for axis in range(len(product.batch) - 1, -1, -1):
        extent = product.batch[axis]
        if extent == 1:
            continue
        index = b.define(f"urem i64 {rest}, {extent}", "i64").text
        rest = b.define(f"udiv i64 {rest}, {extent}", "i64").text
        for side, strides in enumerate(sides):
            if strides[axis]:
                step = b.define(f"mul i64 {index}, {strides[axis]}", "i64").text
                totals[side] = b.define(f"add i64 {totals[side]}, {step}", "i64").text
    out = b.define(f"mul i64 {position}, {product.m * product.n}", "i64").text
    return totals[0], totals[1], out


def _batch_strides(strided: Strided, rank: int) -> list[int]:
    pairs = zip(strided.strides[:-2], strided.shape[:-2], strict=True)
    strides = [0 if extent == 1 else stride for stride, extent in pairs]
    return [0] * (rank - len(strides)) + strides


def layouts(product: Product) -> tuple[tuple[bool, int], tuple[bool, int]]:
    """Return (is it transposed, leading dimension) of both operands."""
    a = leading(product.a.strides[-2:], product.a.shape[-2:])
    b = leading(product.b.strides[-2:], product.b.shape[-2:])
    assert a is not None
    assert b is not None
    return a, b


def _one_matrix(
    b: Builder,
    product: Product,
    pointers: tuple[str, str, str],
    offsets: tuple[str, str, str],
    share: tuple[str, str, str],
    call: Call,
) -> None:
    lo, hi, by = share
    (ta, lda), (tb, ldb) = layouts(product)
    m, n = str(product.m), str(product.n)
    extra = ("0", "0", "0")
    if by == "rows":
        m = b.define(f"sub i64 {hi}, {lo}", "i64").text
        extra = (_times(b, lo, 1 if ta else lda), "0", _times(b, lo, product.n))
    elif by == "columns":
        n = b.define(f"sub i64 {hi}, {lo}", "i64").text
        extra = ("0", _times(b, lo, ldb if tb else 1), lo)
    starts = (product.a.offset, product.b.offset, 0)
    a_place, b_place, c_place = (
        _place(b, product.kind, pointer, (start, offset, more))
        for pointer, start, offset, more in zip(pointers, starts, offsets, extra, strict=True)
    )
    call(b, (a_place, b_place, c_place), m, n)


def call_blas(product: Product, blas: str) -> Call:
    """Return the function that emits the product of one matrix by BLAS."""
    (ta, lda), (tb, ldb) = layouts(product)

    def call(b: Builder, places: tuple[str, str, str], m: str, n: str) -> None:
        name, text = gemm_helper(product.kind)
        b.function.module.definitions.setdefault(name, text)
        number = LLVM_TYPE[product.kind]
        flags = [ord("T") if transposed else ord("N") for transposed in (ta, tb)]
        sizes = f"i64 {m}, i64 {n}, i64 {product.k}, i64 {lda}, i64 {ldb}, i64 {max(product.n, 1)}"
        b.raw(
            f"call void @{name}(ptr {blas}, ptr {places[0]}, ptr {places[1]}, ptr {places[2]}, {sizes}, "
            f"i8 {flags[0]}, i8 {flags[1]}, {number} {literal(0, product.kind)})"
        )

    return call


def _times(b: Builder, value: str, factor: int) -> str:
    return value if factor == 1 else b.define(f"mul i64 {value}, {factor}", "i64").text


def _place(b: Builder, kind: str, pointer: str, offsets: tuple[int, str, str]) -> str:
    for offset in map(str, offsets):
        if offset != "0":
            pointer = b.pointer(f"getelementptr {LLVM_TYPE[kind]}, ptr {pointer}, i64 {offset}")
    return pointer
