"""The calls of a record (`replay`): NumPy's loops, CBLAS's products, and elements at positions."""

from __future__ import annotations

from glassgrad.compile.llvm.products.shares import turns
from glassgrad.compile.llvm.replay_words import Call, Environment, Head, What, load, row


def text() -> str:
    """Return ``run`` and what it needs."""
    products = [
        one(letter, kind)
        for one in (_matrix_vector, _matrices, _vectors)
        for letter, kind in (("s", "float"), ("d", "double"))
    ]
    return "\n".join([_loop(), *products, _select(), _places("take"), _places("put"), _run()])


def _operand(name: str, at: int) -> str:
    """Find an operand of a call that does not move."""
    return f"""{load(f"{name}.slot", "row", Call.SLOTS + at)}{load(f"{name}.offset", "row", Call.OFFSETS + at)}\
  %{name}.base.p = getelementptr ptr, ptr %slots, i64 %{name}.slot
  %{name}.base = load ptr, ptr %{name}.base.p, align 8
  %{name} = getelementptr i8, ptr %{name}.base, i64 %{name}.offset
"""


def _loop() -> str:
    """A loop of NumPy's, called for each place along two outer dimensions."""
    return f"""
define internal void @loop(ptr %row, ptr %slots) #0 {{
entry:
  %addresses = alloca [4 x ptr], align 16
{load("function", "row", Call.FUNCTION, "ptr")}{load("data", "row", Call.DATA, "ptr")}\
{load("operands", "row", Call.OPERANDS)}{load("outer", "row", Call.OUTER)}{load("outermost", "row", Call.OUTERMOST)}\
  %counts = getelementptr i64, ptr %row, i64 {int(Call.COUNT)}
  %steps = getelementptr i64, ptr %row, i64 {int(Call.STEPS)}
  br label %far
far:
  %k = phi i64 [ 0, %entry ], [ %k.next, %far.next ]
  br label %near
near:
  %j = phi i64 [ 0, %far ], [ %j.next, %call ]
  br label %operand
operand:
  %o = phi i64 [ 0, %near ], [ %o.next, %operand ]
  %o.slot.at = add i64 %o, {int(Call.SLOTS)}
  %o.slot.p = getelementptr i64, ptr %row, i64 %o.slot.at
  %o.slot = load i64, ptr %o.slot.p, align 8
  %o.offset.at = add i64 %o, {int(Call.OFFSETS)}
  %o.offset.p = getelementptr i64, ptr %row, i64 %o.offset.at
  %o.offset = load i64, ptr %o.offset.p, align 8
  %o.near.at = add i64 %o, {int(Call.OUTER_STEPS)}
  %o.near.p = getelementptr i64, ptr %row, i64 %o.near.at
  %o.near = load i64, ptr %o.near.p, align 8
  %o.far.at = add i64 %o, {int(Call.OUTERMOST_STEPS)}
  %o.far.p = getelementptr i64, ptr %row, i64 %o.far.at
  %o.far = load i64, ptr %o.far.p, align 8
  %base.p = getelementptr i64, ptr %slots, i64 %o.slot
  %base = load i64, ptr %base.p, align 8
  %near.moved = mul i64 %j, %o.near
  %far.moved = mul i64 %k, %o.far
  %a = add i64 %base, %o.offset
  %b = add i64 %a, %near.moved
  %address = add i64 %b, %far.moved
  %address.p = getelementptr i64, ptr %addresses, i64 %o
  store i64 %address, ptr %address.p, align 8
  %o.next = add i64 %o, 1
  %o.more = icmp slt i64 %o.next, %operands
  br i1 %o.more, label %operand, label %call
call:
  call void %function(ptr %addresses, ptr %counts, ptr %steps, ptr %data)
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %outer
  br i1 %j.more, label %near, label %far.next
far.next:
  %k.next = add i64 %k, 1
  %k.more = icmp slt i64 %k.next, %outermost
  br i1 %k.more, label %far, label %done
done:
  ret void
}}"""


def _small(name: str, at: int) -> str:
    return f"{load(name, 'row', at)}  %{name}.i = trunc i64 %{name} to i32\n"


def _matrix_vector(letter: str, kind: str) -> str:
    """A matrix times a vector, by CBLAS."""
    return f"""
define internal void @{letter}gemv(ptr %row, ptr %slots) #0 {{
{load("function", "row", Call.FUNCTION, "ptr")}{_small("order", Call.STEPS)}{_small("turned", Call.STEPS + 1)}\
{load("m", "row", Call.COUNT)}{load("n", "row", Call.OUTER)}{load("lead", "row", Call.STEPS + 2)}\
{load("step", "row", Call.STEPS + 3)}{_operand("a", 0)}{_operand("x", 1)}{_operand("y", 2)}\
  call void %function(i32 %order.i, i32 %turned.i, i64 %m, i64 %n, {kind} 1.0, ptr %a, i64 %lead, ptr %x, i64 %step,
    {kind} 0.0, ptr %y, i64 1)
  ret void
}}"""


def _matrices(letter: str, kind: str) -> str:
    """A product of two matrices, by CBLAS."""
    return f"""
define internal void @{letter}gemm(ptr %row, ptr %slots) #0 {{
{load("function", "row", Call.FUNCTION, "ptr")}{_small("left", Call.STEPS)}{_small("right", Call.STEPS + 1)}\
{load("m", "row", Call.COUNT)}{load("n", "row", Call.OUTER)}{load("k", "row", Call.OUTERMOST)}\
{load("a.lead", "row", Call.STEPS + 2)}{load("b.lead", "row", Call.STEPS + 3)}\
{_operand("a", 0)}{_operand("b", 1)}{_operand("y", 2)}\
  call void %function(i32 101, i32 %left.i, i32 %right.i, i64 %m, i64 %n, i64 %k, {kind} 1.0, ptr %a, i64 %a.lead,
    ptr %b, i64 %b.lead, {kind} 0.0, ptr %y, i64 %n)
  ret void
}}"""


def _vectors(letter: str, kind: str) -> str:
    """A product of two vectors, by CBLAS."""
    return f"""
define internal void @{letter}dot(ptr %row, ptr %slots) #0 {{
{load("function", "row", Call.FUNCTION, "ptr")}{load("n", "row", Call.COUNT)}\
{load("a.step", "row", Call.STEPS)}{load("b.step", "row", Call.STEPS + 1)}\
{_operand("a", 0)}{_operand("b", 1)}{_operand("y", 2)}\
  %sum = call {kind} %function(i64 %n, ptr %a, i64 %a.step, ptr %b, i64 %b.step)
  store {kind} %sum, ptr %y, align 4
  ret void
}}"""


def _select() -> str:
    """Choose between the elements of two arrays by those of a mask."""
    moves = "".join(
        f"""size{size}:
  %{kind}.p = getelementptr i8, ptr %from, i64 %moved
  %{kind}.to = getelementptr i{size}, ptr %result, i64 %i
  %{kind} = load i{size}, ptr %{kind}.p, align {size // 8}
  store i{size} %{kind}, ptr %{kind}.to, align {size // 8}
  br label %next
"""
        for kind, size in (("short", 32), ("long", 64))
    )
    return f"""
define internal void @select(ptr %row, ptr %slots) #0 {{
entry:
{load("count", "row", Call.COUNT)}{load("size", "row", Call.OUTER)}{load("mask.step", "row", Call.STEPS)}\
{load("a.step", "row", Call.STEPS + 1)}{load("b.step", "row", Call.STEPS + 2)}\
{_operand("mask", 0)}{_operand("a", 1)}{_operand("b", 2)}{_operand("result", 3)}\
  %is.short = icmp eq i64 %size, 4
  br label %head
{turns("next", "done")}\
  %mask.moved = mul i64 %i, %mask.step
  %mask.p = getelementptr i8, ptr %mask, i64 %mask.moved
  %holds.byte = load i8, ptr %mask.p, align 1
  %holds = icmp ne i8 %holds.byte, 0
  %from = select i1 %holds, ptr %a, ptr %b
  %step = select i1 %holds, i64 %a.step, i64 %b.step
  %moved = mul i64 %i, %step
  br i1 %is.short, label %size32, label %size64
{moves}next:
  %i.next = add i64 %i, 1
  br label %head
done:
  ret void
}}"""


def _places(what: str) -> str:
    """Take elements at positions, or put them there; false where one lies outside."""
    source, target = ("there", "here") if what == "take" else ("here", "there")
    moves = (
        "".join(
            f"""size{size}:
  %{size}.there = getelementptr i{size}, ptr %many, i64 %position
  %{size}.here = getelementptr i{size}, ptr %few, i64 %i
  %{size}.value = load i{size}, ptr %{size}.{source}, align {size // 8}
  store i{size} %{size}.value, ptr %{size}.{target}, align {size // 8}
  br label %next
"""
            for size in (32, 64)
        )
        .replace("%32.", "%s.")
        .replace("%64.", "%d.")
    )
    return f"""
define internal i1 @{what}(ptr %row, ptr %slots) #0 {{
entry:
{load("count", "row", Call.COUNT)}{load("limit", "row", Call.OUTER)}{load("size", "row", Call.OUTERMOST)}\
{_operand("many", 0)}{_operand("positions", 1)}{_operand("few", 2)}\
  %is.short = icmp eq i64 %size, 4
  br label %head
{turns("next", "yes")}\
  %position.p = getelementptr i64, ptr %positions, i64 %i
  %position = load i64, ptr %position.p, align 8
  %inside = icmp ult i64 %position, %limit
  br i1 %inside, label %move, label %no
move:
  br i1 %is.short, label %size32, label %size64
{moves}next:
  %i.next = add i64 %i, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}"""


def _run() -> str:
    """Make the calls; false where NumPy would have warned, or a position lies outside."""
    checked = {What.TAKE: "take", What.PUT: "put"}
    simple = {what: what.name.lower() for what in What if what not in checked}
    table = " ".join(f"i64 {int(kind)}, label %{name}" for kind, name in (simple | checked).items())
    blocks = [f"{name}:\n  call void @{name}(ptr %row, ptr %slots)\n  br label %next\n" for name in simple.values()]
    blocks += [
        f"{name}:\n  %{name}.ok = call i1 @{name}(ptr %row, ptr %slots)\n  br i1 %{name}.ok, label %next, label %no\n"
        for name in checked.values()
    ]
    return f"""
define internal i1 @run(ptr %record, ptr %env, i32 %flags.i) #0 {{
entry:
{load("count", "record", Head.CALL_COUNT)}{load("rows", "record", Head.CALLS, "ptr")}\
{load("slots", "record", Head.SLOTS, "ptr")}{load("clear", "env", Environment.CLEAR_FLAGS, "ptr")}\
{load("test", "env", Environment.TEST_FLAGS, "ptr")}\
  %cleared = call i32 %clear(i32 %flags.i)
  br label %head
{turns("next", "test.flags")}\
{row("call")}{load("kind", "row", Call.KIND)}\
  switch i64 %kind, label %no [ {table} ]
{"".join(blocks)}next:
  %i.next = add i64 %i, 1
  br label %head
test.flags:
  %raised = call i32 %test(i32 %flags.i)
  %fine = icmp eq i32 %raised, 0
  ret i1 %fine
no:
  ret i1 false
}}"""
