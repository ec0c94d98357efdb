"""The loop over parameters around the kernel of an update rule: one call updates all of an optimizer's parameters.

The kernel is compiled for `chunk` elements. The loop sets the addresses in a context of the kernel, chunk by chunk; the
rest of a parameter is computed in spare memory, padded with zeros, and copied back.

A share is a record of 64-bit words after the claims of a context (`compile.llvm.module.support`), as for a product.
"""

from __future__ import annotations

from glassgrad.compile.llvm.module.support import PHASES, TABLE
from glassgrad.compile.llvm.products.shares import record, word

# Words of a share: the kernel's context, the number of arrays, a table with each array's slot in that context and
# whether it is written to, spare memory, bytes of a chunk, the rows, and their number.
KERNEL, ARRAYS, SLOTS, SPARE, CHUNK, ROWS, COUNT = range(7)
# Words of a row: whole chunks, remaining bytes, and the address of each array.
WHOLE, LEFT, ADDRESSES = range(3)


def module(header: str, attributes: str) -> str:
    """Return the text of ``update``."""
    declared = """declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"""
    return f"{header}\n{declared}\n{run_kernel()}{_set()}{_left()}{_update()}\n{attributes}"


def each(count: str, turn: str, before: str = "") -> str:
    """Return the body of a function that runs `turn` for %i from 0 up to a count of at least one."""
    return f"""entry:
{before}  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
{turn}  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, {count}
  br i1 %more, label %next, label %done
done:
  ret void
"""


def _address(kind: str) -> str:
    """Load the address of array %i from a row."""
    return f"""  %at = add i64 %i, {ADDRESSES}
  %address.p = getelementptr i64, ptr %row, i64 %at
  %address = load {kind}, ptr %address.p, align 8
"""


_PLACE = """  %pair = shl i64 %i, 1
  %slot.p = getelementptr i64, ptr %slots, i64 %pair
  %slot = load i64, ptr %slot.p, align 8
  %place = getelementptr i8, ptr %kernel, i64 %slot
"""
"""Find the slot of array %i in the kernel's context."""


def run_kernel() -> str:
    """Run the phases of a kernel with a single share."""
    before = f"""  %phases.p = getelementptr i8, ptr %kernel, i64 {PHASES}
  %phases = load i64, ptr %phases.p, align 8
  %table.p = getelementptr i8, ptr %kernel, i64 {TABLE}
  %table = load ptr, ptr %table.p, align 8
"""
    turn = """  %function.p = getelementptr ptr, ptr %table, i64 %i
  %function = load ptr, ptr %function.p, align 8
  call void %function(ptr %kernel, i64 0)
"""
    return f"\ndefine internal void @run(ptr %kernel) #0 {{\n{each('%phases', turn, before)}}}\n"


def _set() -> str:
    """Put the addresses of a row, plus %further bytes, into a kernel's slots."""
    moved = "  %moved = add i64 %address, %further\n  store i64 %moved, ptr %place, align 8\n"
    body = each("%arrays", f"{_address('i64')}{_PLACE}{moved}")
    given = "ptr %kernel, ptr %slots, i64 %arrays, ptr %row, i64 %further"
    return f"\ndefine internal void @place({given}) #0 {{\n{body}}}\n"


def _left() -> str:
    """Compute the rest of a row after whole chunks: fill spare memory, run the kernel, copy the written arrays back."""
    return f"""
define internal void @left(ptr %kernel, ptr %slots, i64 %arrays, ptr %row, i64 %further, i64 %bytes, ptr %spare, \
i64 %chunk) #0 {{
entry:
  br label %fill
fill:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fill ]
{_address("ptr")}\
  %from = getelementptr i8, ptr %address, i64 %further
  %before = mul i64 %i, %chunk
  %own = getelementptr i8, ptr %spare, i64 %before
  %rest = getelementptr i8, ptr %own, i64 %bytes
  %empty = sub i64 %chunk, %bytes
  call void @llvm.memset.p0.i64(ptr %rest, i8 0, i64 %empty, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %from, i64 %bytes, i1 false)
{_PLACE}\
  store ptr %own, ptr %place, align 8
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %arrays
  br i1 %more, label %fill, label %compute
compute:
  call void @run(ptr %kernel)
  br label %back
back:
  %j = phi i64 [ 0, %compute ], [ %j.next, %next ]
  %pair2 = shl i64 %j, 1
  %odd = add i64 %pair2, 1
  %written.p = getelementptr i64, ptr %slots, i64 %odd
  %written = load i64, ptr %written.p, align 8
  %is.written = icmp ne i64 %written, 0
  br i1 %is.written, label %copy, label %next
copy:
  %at2 = add i64 %j, {ADDRESSES}
  %address2.p = getelementptr i64, ptr %row, i64 %at2
  %address2 = load ptr, ptr %address2.p, align 8
  %to = getelementptr i8, ptr %address2, i64 %further
  %before2 = mul i64 %j, %chunk
  %own2 = getelementptr i8, ptr %spare, i64 %before2
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %own2, i64 %bytes, i1 false)
  br label %next
next:
  %j.next = add i64 %j, 1
  %more2 = icmp slt i64 %j.next, %arrays
  br i1 %more2, label %back, label %done
done:
  ret void
}}
"""


def _update() -> str:
    """Process the rows of a share."""
    fields = {"kernel": KERNEL, "slots": SLOTS, "spare": SPARE, "rows": ROWS}
    loads = "".join(word(name, at, "ptr") for name, at in fields.items())
    loads += "".join(word(name, at) for name, at in {"arrays": ARRAYS, "chunk": CHUNK, "count": COUNT}.items())
    return f"""
define void @update(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{loads}  %width = add i64 %arrays, {ADDRESSES}
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %place = mul i64 %i, %width
  %row = getelementptr i64, ptr %rows, i64 %place
  %whole.p = getelementptr i64, ptr %row, i64 {WHOLE}
  %whole = load i64, ptr %whole.p, align 8
  %left.p = getelementptr i64, ptr %row, i64 {LEFT}
  %left = load i64, ptr %left.p, align 8
  %whole.bytes = mul i64 %whole, %chunk
  br label %chunks
chunks:
  %further = phi i64 [ 0, %body ], [ %further.next, %one ]
  %inside = icmp slt i64 %further, %whole.bytes
  br i1 %inside, label %one, label %rest
one:
  call void @place(ptr %kernel, ptr %slots, i64 %arrays, ptr %row, i64 %further)
  call void @run(ptr %kernel)
  %further.next = add i64 %further, %chunk
  br label %chunks
rest:
  %some = icmp ne i64 %left, 0
  br i1 %some, label %last, label %next
last:
  call void @left(ptr %kernel, ptr %slots, i64 %arrays, ptr %row, i64 %whole.bytes, i64 %left, ptr %spare, i64 %chunk)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""
