"""The loop over the chunks of large arrays around a kernel that is compiled for one chunk.

A share is a record of 64-bit words after the claims of a context (`compile.llvm.module.support`), as for a product.
Arrays are passed as Python objects; the code reads their addresses.
"""

from __future__ import annotations

from glassgrad.compile.llvm.loops.updates import each, run_kernel
from glassgrad.compile.llvm.products.shares import record, word

# Words of a share: the kernel's context, the number of arrays, a table with a row for each, and the range of chunks.
KERNEL, ARRAYS, TABLE, FIRST, LAST = range(5)
# Words of a row: the slot in the kernel's context, the array, the bytes from chunk to chunk, and the latest start of a
# chunk: the last chunk may share elements with the one before.
SLOT, ARRAY, STEP, MOST = range(4)
_ROW = 4


def module(header: str, attributes: str, data: int) -> str:
    """Return the text of ``chunks``; `data` is the offset of the data pointer in an array object."""
    return f"{header}\n{run_kernel()}{_set(data)}{_chunks()}\n{attributes}"


def _field(name: str, at: int) -> str:
    return f"""  %{name}.at = add i64 %row, {at}
  %{name}.p = getelementptr i64, ptr %table, i64 %{name}.at
  %{name} = load i64, ptr %{name}.p, align 8
"""


def _set(data: int) -> str:
    """Put the addresses of chunk %chunk of all arrays into the kernel's slots."""
    turn = f"""  %row = mul i64 %i, {_ROW}
{_field("slot", SLOT)}{_field("array", ARRAY)}{_field("step", STEP)}{_field("most", MOST)}\
  %object = inttoptr i64 %array to ptr
  %address.p = getelementptr i8, ptr %object, i64 {data}
  %address = load i64, ptr %address.p, align 8
  %even = mul i64 %step, %chunk
  %fits = icmp slt i64 %even, %most
  %further = select i1 %fits, i64 %even, i64 %most
  %moved = add i64 %address, %further
  %place = getelementptr i8, ptr %kernel, i64 %slot
  store i64 %moved, ptr %place, align 8
"""
    given = "ptr %kernel, ptr %table, i64 %arrays, i64 %chunk"
    return f"\ndefine internal void @place({given}) #0 {{\n{each('%arrays', turn)}}}\n"


def _chunks() -> str:
    """Process the chunks of a share."""
    return f"""
define void @chunks(ptr %ctx, i64 %share) #0 {{
entry:
{record()}{word("kernel", KERNEL, "ptr")}{word("table", TABLE, "ptr")}\
{word("arrays", ARRAYS)}{word("first", FIRST)}{word("last", LAST)}  br label %head
head:
  %chunk = phi i64 [ %first, %entry ], [ %chunk.next, %body ]
  %more = icmp slt i64 %chunk, %last
  br i1 %more, label %body, label %done
body:
  call void @place(ptr %kernel, ptr %table, i64 %arrays, i64 %chunk)
  call void @run(ptr %kernel)
  %chunk.next = add i64 %chunk, 1
  br label %head
done:
  ret void
}}
"""
