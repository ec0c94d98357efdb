"""Matrix products and sums of rows in shares, for the threads of the pool in eager mode.

NumPy's BLAS has its own threads. They spin after each product, and those of the pool spin after each step, so two sets
of threads would compete for the cores. Here the threads of the pool call BLAS, set to one thread, each for its share of
a product.

A share is a record of 64-bit words after the claims of a context (`compile.llvm.module.support`). Arrays are passed as
Python objects; the code reads their addresses.
"""

from __future__ import annotations

from glassgrad.compile.llvm.module.support import CLAIM_SIZE, CLAIMS, SHARES

WORDS = 48  # of a record
# Words of a product, with the column-major names of BLAS: C (m, n) = A (m, k) B (k, n). BLAS gets their addresses.
# Batches first to last have two axes; `inner` is the length of the second one.
GEMM, TRANS_A, TRANS_B, M, N, K, ALPHA, BETA, LDA, LDB, LDC = range(11)
A, B, C, A_START, B_START, C_START = range(11, 17)
FIRST, LAST, INNER, A_OUTER, A_INNER, B_OUTER, B_INNER, C_OUTER, C_INNER = range(17, 26)
BIAS, BIAS_START, BIAS_BYTES, ROW_BYTES = range(26, 30)
# Words of a sum of rows: arrays, rows, bytes of a row, and the range of columns.
X, Y, ROWS, STRIDE, COLUMN, END = range(6)

_SUMMED = (4, 1)  # vectors of columns at a time


def module(header: str, attributes: str, vector_bytes: int, data: int) -> str:
    """Return the text of ``product``, ``sum_rows_f32`` and ``sum_rows_f64``.

    Args:
        header: first lines of the module.
        attributes: the attributes of every function.
        vector_bytes: the width of a vector.
        data: the offset of the data pointer in an array object.
    """
    kinds = (("float", "f32", 4), ("double", "f64", 8))
    sums = [_sum_rows(kind, name, vector_bytes // size, data) for kind, name, size in kinds]
    declared = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    return "\n".join([header, declared, _product(data), *sums, attributes])


def record() -> str:
    """Find the record of a share."""
    return f"""  %shares.p = getelementptr i8, ptr %ctx, i64 {SHARES}
  %shares = load i64, ptr %shares.p, align 8
  %claims = mul i64 %shares, {CLAIM_SIZE}
  %before = mul i64 %share, {8 * WORDS}
  %sum = add i64 %claims, %before
  %offset = add i64 %sum, {CLAIMS}
  %record = getelementptr i8, ptr %ctx, i64 %offset
"""


def word(name: str, at: int, kind: str = "i64") -> str:
    """Load a word of the record."""
    return f"""  %{name}.p = getelementptr i64, ptr %record, i64 {at}
  %{name} = load {kind}, ptr %{name}.p, align 8
"""


def turns(back: str, done: str, also: str = "", *, name: str = "i", first: str = "0", last: str = "%count") -> str:
    """Begin a loop at the end of block ``entry``, which goes to ``head``, up to the label of its body.

    Args:
        back: the block that sets ``%<name>.next`` and jumps back to ``head``.
        done: the block after the loop.
        also: another loop-carried value.
        name: the name of the counter.
        first: its initial value.
        last: its exclusive upper bound.
    """
    beside = f"  {also}\n" if also else ""
    return f"""head:
  %{name} = phi i64 [ {first}, %entry ], [ %{name}.next, %{back} ]
{beside}\
  %more = icmp slt i64 %{name}, {last}
  br i1 %more, label %body, label %{done}
body:
"""


def memory_of(name: str, array: int, data: int) -> str:
    """Load the address of an array, which is passed as an object."""
    return f"""{word(name + ".object", array, "ptr")}\
  %{name}.data.p = getelementptr i8, ptr %{name}.object, i64 {data}
  %{name}.data = load ptr, ptr %{name}.data.p, align 8
"""


def one_of(name: str, start: int, outer: int, inner: int) -> str:
    """Compute the address of the matrix (i, j) of a batch."""
    return f"""{word(name + ".start", start)}{word(name + ".outer", outer)}{word(name + ".inner", inner)}\
  %{name}.i = mul i64 %i, %{name}.outer
  %{name}.j = mul i64 %j, %{name}.inner
  %{name}.ij = add i64 %{name}.i, %{name}.j
  %{name}.at = add i64 %{name}.ij, %{name}.start
  %{name} = getelementptr i8, ptr %{name}.data, i64 %{name}.at
"""


def _product(data: int) -> str:
    """Multiply the matrices of a share; a bias initialises the rows of the result."""
    passed = {"ta": TRANS_A, "tb": TRANS_B, "m": M, "n": N, "k": K, "alpha": ALPHA, "beta": BETA}
    passed |= {"lda": LDA, "ldb": LDB, "ldc": LDC}
    places = "".join(f"  %{name} = getelementptr i64, ptr %record, i64 {word}\n" for name, word in passed.items())
    return f"""
define void @product(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{word("gemm", GEMM, "ptr")}{places}{memory_of("a", A, data)}{memory_of("b", B, data)}\
{memory_of("c", C, data)}\
{word("first", FIRST)}{word("last", LAST)}{word("inner", INNER)}{word("rows", N)}\
{word("bias.object", BIAS, "ptr")}{word("bias.start", BIAS_START)}\
{word("bias.bytes", BIAS_BYTES)}{word("row.bytes", ROW_BYTES)}\
  %no.bias = icmp eq ptr %bias.object, null
  br label %head
{turns("multiply", "done", name="at", first="%first", last="%last")}\
  %i = udiv i64 %at, %inner
  %j = urem i64 %at, %inner
{one_of("a", A_START, A_OUTER, A_INNER)}{one_of("b", B_START, B_OUTER, B_INNER)}\
{one_of("c", C_START, C_OUTER, C_INNER)}\
  br i1 %no.bias, label %multiply, label %fill
fill:
  %bias.data.p = getelementptr i8, ptr %bias.object, i64 {data}
  %bias.data = load ptr, ptr %bias.data.p, align 8
  %bias = getelementptr i8, ptr %bias.data, i64 %bias.start
  br label %row
row:
  %r = phi i64 [ 0, %fill ], [ %r.next, %row ]
  %place = phi ptr [ %c, %fill ], [ %place.next, %row ]
  call void @llvm.memcpy.p0.p0.i64(ptr %place, ptr %bias, i64 %bias.bytes, i1 false)
  %place.next = getelementptr i8, ptr %place, i64 %row.bytes
  %r.next = add i64 %r, 1
  %left = icmp slt i64 %r.next, %rows
  br i1 %left, label %row, label %multiply
multiply:
  call void %gemm(ptr %ta, ptr %tb, ptr %m, ptr %n, ptr %k, ptr %alpha, ptr %a, ptr %lda, ptr %b, ptr %ldb, ptr %beta, \
ptr %c, ptr %ldc, i64 1, i64 1)
  %at.next = add i64 %at, 1
  br label %head
done:
  ret void
}}
"""


def _sum_rows(kind: str, name: str, lanes: int, data: int) -> str:
    """Sum the rows of a matrix, some vectors of columns at a time."""
    size = 4 if kind == "float" else 8
    loops, start, before = "", "%column", "entry"
    widths = [count * lanes for count in _SUMMED] + [1]
    for number, width in enumerate(widths):
        after = "done" if width == 1 else f"next{number}"
        loops += _columns(number, width, kind, size, start, before, after)
        start, before = f"%at{number}", f"head{number}"
        if width > 1:
            loops += f"next{number}:\n  br label %head{number + 1}\n"
            before = f"next{number}"
    return f"""
define void @sum_rows_{name}(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{memory_of("x", X, data)}{memory_of("y", Y, data)}\
{word("rows", ROWS)}{word("stride", STRIDE)}{word("column", COLUMN)}{word("end", END)}\
  br label %head0
{loops}done:
  ret void
}}
"""


def _columns(number: int, width: int, kind: str, size: int, start: str, before: str, after: str) -> str:
    """A loop over columns, `width` at a time, while that many remain."""
    vector = kind if width == 1 else f"<{width} x {kind}>"
    zero = "0.0" if width == 1 else "zeroinitializer"
    n = number
    return f"""head{n}:
  %at{n} = phi i64 [ {start}, %{before} ], [ %to{n}, %store{n} ]
  %to{n} = add i64 %at{n}, {width}
  %fits{n} = icmp sle i64 %to{n}, %end
  br i1 %fits{n}, label %begin{n}, label %{after}
begin{n}:
  %first{n} = getelementptr {kind}, ptr %x.data, i64 %at{n}
  br label %row{n}
row{n}:
  %r{n} = phi i64 [ 0, %begin{n} ], [ %r.next{n}, %row{n} ]
  %place{n} = phi ptr [ %first{n}, %begin{n} ], [ %place.next{n}, %row{n} ]
  %total{n} = phi {vector} [ {zero}, %begin{n} ], [ %more{n}, %row{n} ]
  %value{n} = load {vector}, ptr %place{n}, align {size}
  %more{n} = fadd {vector} %total{n}, %value{n}
  %place.next{n} = getelementptr i8, ptr %place{n}, i64 %stride
  %r.next{n} = add i64 %r{n}, 1
  %left{n} = icmp slt i64 %r.next{n}, %rows
  br i1 %left{n}, label %row{n}, label %store{n}
store{n}:
  %y{n} = getelementptr {kind}, ptr %y.data, i64 %at{n}
  store {vector} %more{n}, ptr %y{n}, align {size}
  br label %head{n}
"""
