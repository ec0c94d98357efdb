"""Simple functions of large arrays whose results go past the caches: a sum, a product, a copy.

A store of a cache line that is not in a cache reads the line first, and later pushes out another one. Where result and
arguments are larger than the second-level cache, that is most of what such a function takes. A store that is marked as
not temporal writes whole lines to memory without either.

Reversed and triangular copies are here for small results as well: NumPy writes them number by number. Those that
stay in the caches are written as usual.

Whoever calls looks at the flags that the floating-point unit has raised, and lets NumPy compute, and warn, where
there are any.
"""

from __future__ import annotations

from glassgrad.compile.llvm.module.ir import BITS, LLVM_TYPE
from glassgrad.compile.llvm.products.shares import memory_of, record, turns, word

# Words of a share: the arrays of a, b and the result as objects, the first element and how many there are, a number's
# bits, and where the flags go.
A, B, D, FIRST, COUNT, NUMBER, FLAGS = range(7)
# Of rows, of which `FIRST` is the first and `COUNT` the length: how many. Of a triangle: the column of the first row at
# which the sides meet, and whether the lower one is kept. Of what is reversed as a whole: the number of its last row.
ROWS, DIAGONAL, LOWER = 7, 8, 9
END = 8

BYTES = 64
"""Of a cache line, and of a vector."""

_TURN = 4  # vectors at a time

_INTRINSICS = """declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""

_SELECT = """  {at}.below = fcmp ole {type} {at}.a, {s}
  {at}.v = select {mask} {at}.below, {type} zeroinitializer, {type} {at}.b
"""

# By name: what is read, and the result v of a, b and a number s.
FUNCTIONS: dict[str, tuple[str, str]] = {
    "copy": ("a", "  {at}.v = bitcast {type} {at}.a to {type}\n"),
    "fill": ("s", "  {at}.v = bitcast {type} {s} to {type}\n"),
    "negative": ("a", "  {at}.v = fneg {type} {at}.a\n"),
    "absolute": ("a", "  {at}.v = call {type} @llvm.fabs.{suffix}({type} {at}.a)\n"),
    "sqrt": ("a", "  {at}.v = call {type} @llvm.sqrt.{suffix}({type} {at}.a)\n"),
    "above": ("abs", _SELECT),
    "reversed": ("r", "  {at}.v = {turned}\n"),
    "add": ("ab", "  {at}.v = fadd {type} {at}.a, {at}.b\n"),
    "subtract": ("ab", "  {at}.v = fsub {type} {at}.a, {at}.b\n"),
    "multiply": ("ab", "  {at}.v = fmul {type} {at}.a, {at}.b\n"),
    "divide": ("ab", "  {at}.v = fdiv {type} {at}.a, {at}.b\n"),
    "add_number": ("as", "  {at}.v = fadd {type} {at}.a, {s}\n"),
    "subtract_number": ("as", "  {at}.v = fsub {type} {at}.a, {s}\n"),
    "subtract_from": ("as", "  {at}.v = fsub {type} {s}, {at}.a\n"),
    "multiply_number": ("as", "  {at}.v = fmul {type} {at}.a, {s}\n"),
    "divide_number": ("as", "  {at}.v = fdiv {type} {at}.a, {s}\n"),
    "divide_into": ("as", "  {at}.v = fdiv {type} {s}, {at}.a\n"),
}


PAST, NEAR = "stream_", "near_"
"""What names of jobs begin with: those that write past the caches, and those that do not."""


def module(job: str, header: str, attributes: str, data: int) -> str:
    """Return the text of a job, ``stream_<function>_<f32 or f64>`` or ``near_...``.

    Args:
        job: its name.
        header: first lines of the module.
        attributes: those of every function.
        data: where an array object has its address.
    """
    past = job.startswith(PAST)
    name, kind = job.removeprefix(PAST if past else NEAR).rsplit("_", 1)
    number, vector = LLVM_TYPE[kind], f"<{8 * BYTES // BITS[kind]} x {LLVM_TYPE[kind]}>"
    called = {"absolute": "fabs", "sqrt": "sqrt"}.get(name)
    declared = (
        ""
        if called is None
        else f"""declare {number} @llvm.{called}.{kind}({number})
declare {vector} @llvm.{called}.v{8 * BYTES // BITS[kind]}{kind}({vector})
"""
    )
    match name:
        case "triangle":
            rows, whole = _row("copy", kind, past) + _row("fill", kind, past), _triangle(job, kind, data)
        case "reversed":
            rows, whole = _row("reversed", kind, past), _reversed(job, kind, data)
        case "mirrored":
            rows, whole = _row("reversed", kind, past), _mirrored(job, kind, data)
        case _:
            rows, whole = _row(name, kind, past), _share(job, name, kind, data)
    return f"{header}\n{_INTRINSICS}{declared}{rows}{whole}\n{attributes}"


def _row(name: str, kind: str, past: bool) -> str:
    """Go along one row: numbers up to the first whole line of the result, lines, and the numbers that are left."""
    reads, result = FUNCTIONS[name]
    number, size = LLVM_TYPE[kind], BITS[kind] // 8
    lanes = BYTES // size
    vector = f"<{lanes} x {number}>"
    whole = f"align {BYTES}" + (", !nontemporal !{i32 1}" if past else "")
    return f"""
define internal void @{name}_{kind}(ptr %pa, ptr %pb, ptr %pd, i64 %count, {number} %s) #0 {{
entry:
  %s.one = insertelement {vector} poison, {number} %s, i32 0
  %s.all = shufflevector {vector} %s.one, {vector} poison, <{lanes} x i32> zeroinitializer
  %address = ptrtoint ptr %pd to i64
  %negated = sub i64 0, %address
  %before.bytes = and i64 %negated, {BYTES - 1}
  %before.all = udiv i64 %before.bytes, {size}
  %few = icmp ult i64 %count, %before.all
  %before = select i1 %few, i64 %count, i64 %before.all
{_loop("first", "0", "%before", 1, number, size, reads, result)}\
{_loop("several", "%before", "%count", _TURN * lanes, number, size, reads, result, lanes, whole)}\
{_loop("single", "%several.i", "%count", lanes, number, size, reads, result, lanes, whole)}\
{_loop("rest", "%single.i", "%count", 1, number, size, reads, result)}\
  ret void
}}
"""


def _loop(
    stem: str,
    start: str,
    stop: str,
    step: int,
    number: str,
    size: int,
    reads: str,
    result: str,
    lanes: int = 0,
    whole: str = "",
) -> str:
    """Go along in whole steps; `%stem.i` is where it ends. Everything is read before anything is written.

    `whole` says how a vector is stored.
    """
    kind = f"<{lanes} x {number}>" if lanes else number
    suffix = f"{f'v{lanes}' if lanes else ''}f{8 * size}"
    mask = f"<{lanes} x i1>" if lanes else "i1"
    loads, stores = "", ""
    for turn in range(step // (lanes or 1)):
        at = f"{stem}.{turn}"
        loads += f"  %{at}.at = add i64 %{stem}.i, {turn * lanes}\n"
        names = {"type": kind, "suffix": suffix, "mask": mask, "at": f"%{at}", "s": "%s.all" if lanes else "%s"}
        own = result.format(**names, turned=_turned(f"%{at}.r", kind, lanes))
        for name in reads.replace("s", ""):
            place = f"%{at}.at"
            if name == "r":  # from the end of what is read
                loads += f"  %{at}.back = sub i64 {1 - (lanes or 1)}, %{at}.at\n"
                place = f"%{at}.back"
            loads += f"  %{at}.{name}.p = getelementptr {number}, ptr %p{name.replace('r', 'a')}, i64 {place}\n"
            loads += f"  %{at}.{name} = load {kind}, ptr %{at}.{name}.p, align {size}\n"
        stores += f"{own}  %{at}.p = getelementptr {number}, ptr %pd, i64 %{at}.at\n"
        stores += f"  store {kind} %{at}.v, ptr %{at}.p, {whole or f'align {size}'}\n"
    return f"""  br label %{stem}.enter
{stem}.enter:
  br label %{stem}.head
{stem}.head:
  %{stem}.i = phi i64 [ {start}, %{stem}.enter ], [ %{stem}.next, %{stem}.body ]
  %{stem}.next = add i64 %{stem}.i, {step}
  %{stem}.more = icmp sle i64 %{stem}.next, {stop}
  br i1 %{stem}.more, label %{stem}.body, label %{stem}.done
{stem}.body:
{loads}{stores}  br label %{stem}.head
{stem}.done:
"""


def _turned(value: str, kind: str, lanes: int) -> str:
    """Return what turns a vector round."""
    if not lanes:
        return f"bitcast {kind} {value} to {kind}"
    order = ", ".join(f"i32 {lane}" for lane in reversed(range(lanes)))
    return f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{order}>"


def _share(job: str, name: str, kind: str, data: int) -> str:
    """Compute a share, and tell which flags were raised."""
    number, bits = LLVM_TYPE[kind], BITS[kind]
    arrays = {"a": A, "b": B, "d": D}
    places = "".join(memory_of(one, at, data) for one, at in arrays.items())
    moved = "".join(f"  %{one} = getelementptr {number}, ptr %{one}.data, i64 %first\n" for one in arrays)
    given = word("number", NUMBER, number).replace("align 8", f"align {bits // 8}")
    return f"""
define void @{job}(ptr %ctx, i64 %share) #0 {{
entry:
  %state = alloca i32, align 4
{record()}{word("first", FIRST)}{word("count", COUNT)}{given}{word("flags", FLAGS, "ptr")}{places}{moved}\
  call void @llvm.x86.sse.stmxcsr(ptr %state)
  %state.before = load i32, ptr %state, align 4
  %none = and i32 %state.before, -64
  store i32 %none, ptr %state, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %state)
  call void @{name}_{kind}(ptr %a, ptr %b, ptr %d, i64 %count, {number} %number)
  fence seq_cst
  call void @llvm.x86.sse.stmxcsr(ptr %state)
  %after = load i32, ptr %state, align 4
  %raised = and i32 %after, 63
  store i32 %raised, ptr %flags, align 4
  store i32 %state.before, ptr %state, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %state)
  ret void
}}
"""


def _triangle(job: str, kind: str, data: int) -> str:
    """Copy one side of a diagonal, fill the other with zeros; `COUNT` is how long rows are, `FIRST` the first one."""
    number = LLVM_TYPE[kind]
    return f"""
define void @{job}(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{word("first", FIRST)}{word("count", COUNT)}{word("rows", ROWS)}{word("diagonal", DIAGONAL)}\
{word("lower", LOWER)}{memory_of("a", A, data)}{memory_of("d", D, data)}\
  %is.lower = icmp ne i64 %lower, 0
  %last = add i64 %first, %rows
  br label %head
{turns("next", "done", first="%first", last="%last")}\
  %far = mul i64 %i, %count
  %a = getelementptr {number}, ptr %a.data, i64 %far
  %d = getelementptr {number}, ptr %d.data, i64 %far
  %place = add i64 %i, %diagonal
  %some = icmp sgt i64 %place, 0
  %positive = select i1 %some, i64 %place, i64 0
  %beyond = icmp sgt i64 %positive, %count
  %cut = select i1 %beyond, i64 %count, i64 %positive
  %left = sub i64 %count, %cut
  %a.cut = getelementptr {number}, ptr %a, i64 %cut
  %d.cut = getelementptr {number}, ptr %d, i64 %cut
  br i1 %is.lower, label %below, label %above
below:
  call void @copy_{kind}(ptr %a, ptr %a, ptr %d, i64 %cut, {number} 0.0)
  call void @fill_{kind}(ptr %a, ptr %a, ptr %d.cut, i64 %left, {number} 0.0)
  br label %next
above:
  call void @fill_{kind}(ptr %a, ptr %a, ptr %d, i64 %cut, {number} 0.0)
  call void @copy_{kind}(ptr %a.cut, ptr %a.cut, ptr %d.cut, i64 %left, {number} 0.0)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %head
done:
  fence seq_cst
  ret void
}}
"""


def _reversed(job: str, kind: str, data: int) -> str:
    """Copy everything from its end; a row is one number."""
    number = LLVM_TYPE[kind]
    return f"""
define void @{job}(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{word("first", FIRST)}{word("rows", ROWS)}{word("end", END)}\
{memory_of("a", A, data)}{memory_of("d", D, data)}\
  %from = sub i64 %end, %first
  %a = getelementptr {number}, ptr %a.data, i64 %from
  %d = getelementptr {number}, ptr %d.data, i64 %first
  call void @reversed_{kind}(ptr %a, ptr %a, ptr %d, i64 %rows, {number} 0.0)
  fence seq_cst
  ret void
}}
"""


def _mirrored(job: str, kind: str, data: int) -> str:
    """Copy rows, each from its end; `COUNT` is how long they are, `FIRST` the first one."""
    number = LLVM_TYPE[kind]
    return f"""
define void @{job}(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{word("first", FIRST)}{word("count", COUNT)}{word("rows", ROWS)}\
{memory_of("a", A, data)}{memory_of("d", D, data)}\
  %last = add i64 %first, %rows
  %end = sub i64 %count, 1
  br label %head
{turns("body", "done", first="%first", last="%last")}\
  %far = mul i64 %i, %count
  %from = add i64 %far, %end
  %a = getelementptr {number}, ptr %a.data, i64 %from
  %d = getelementptr {number}, ptr %d.data, i64 %far
  call void @reversed_{kind}(ptr %a, ptr %a, ptr %d, i64 %count, {number} 0.0)
  %i.next = add i64 %i, 1
  br label %head
done:
  fence seq_cst
  ret void
}}
"""
