"""Replaying recorded NumPy calls: a function of Python's kind that calls NumPy's own loops and BLAS one by one.

It checks its arguments, makes the arrays that it returns, finds the memory of all operands, and makes the calls. A call
that its record does not fit goes to a function of Python's. The interpreter stays locked meanwhile: a record is for
small arrays.
"""

from __future__ import annotations

from glassgrad.compile.llvm import replay_arguments, replay_calls
from glassgrad.compile.llvm.products.shares import turns
from glassgrad.compile.llvm.replay_words import Environment, Head, Result, Saved, load, row


def module(header: str, attributes: str, data: int, items: int) -> str:
    """Return the text of ``replay``; arrays have their address at `data`, tuples their items at `items`."""
    declared = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    around = [_make(data, items), _copies("save"), _copies("restore"), _replay(data)]
    return "\n".join([header, declared, replay_arguments.text(data), replay_calls.text(), *around, attributes])


def _make(data: int, items: int) -> str:
    """Make the arrays that are returned, and put them into a tuple if there are several; null where one fails."""
    return f"""
define internal ptr @make(ptr %record, ptr %env, ptr %tuple) #0 {{
entry:
{load("count", "record", Head.RESULT_COUNT)}{load("rows", "record", Head.RESULTS, "ptr")}\
{load("slots", "record", Head.SLOTS, "ptr")}{load("array.type", "env", Environment.ARRAY, "ptr")}\
{load("new", "env", Environment.NEW_ARRAY, "ptr")}\
  br label %head
{turns("next", "done", "%last = phi ptr [ null, %entry ], [ %made, %next ]")}\
{row("result")}{load("dimensions", "row", Result.DIMENSIONS)}{load("shape", "row", Result.SHAPE, "ptr")}\
{load("number", "row", Result.TYPE)}{load("slot", "row", Result.SLOT)}\
  %ndim = trunc i64 %dimensions to i32
  %type = trunc i64 %number to i32
  %made = call ptr %new(ptr %array.type, i32 %ndim, ptr %shape, i32 %type, ptr null, ptr null, i32 0, i32 0, ptr null)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %fine
fine:
  %memory.p = getelementptr i8, ptr %made, i64 {data}
  %memory = load i64, ptr %memory.p, align 8
  %place = getelementptr i64, ptr %slots, i64 %slot
  store i64 %memory, ptr %place, align 8
  %several = icmp ne ptr %tuple, null
  br i1 %several, label %put, label %next
put:
  %further = shl i64 %i, 3
  %item.at = add i64 %further, {items}
  %item = getelementptr i8, ptr %tuple, i64 %item.at
  store ptr %made, ptr %item, align 8
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %head
done:
  %one = icmp eq ptr %tuple, null
  %result = select i1 %one, ptr %last, ptr %tuple
  ret ptr %result
none:
  ret ptr null
}}"""


def _copies(what: str) -> str:
    """Copy what is written to, or put the copies back."""
    to, source = ("copy", "own") if what == "save" else ("own", "copy")
    return f"""
define internal void @{what}(ptr %record) #0 {{
entry:
{load("count", "record", Head.SAVED_COUNT)}{load("rows", "record", Head.SAVED, "ptr")}\
{load("slots", "record", Head.SLOTS, "ptr")}  br label %head
{turns("body", "done")}\
{row("saved")}{load("slot", "row", Saved.SLOT)}{load("copy.slot", "row", Saved.COPY)}\
{load("bytes", "row", Saved.BYTES)}\
  %own.p = getelementptr ptr, ptr %slots, i64 %slot
  %own = load ptr, ptr %own.p, align 8
  %copy.p = getelementptr ptr, ptr %slots, i64 %copy.slot
  %copy = load ptr, ptr %copy.p, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %{to}, ptr %{source}, i64 %bytes, i1 false)
  %i.next = add i64 %i, 1
  br label %head
done:
  ret void
}}"""


def _replay(data: int) -> str:
    """The function that Python calls. Making a tuple may run the collector, so that comes before all else."""
    return f"""
define ptr @replay(ptr %self, ptr %given, i64 %count) #0 {{
entry:
  %first.p = getelementptr i8, ptr %self, i64 {data}
  %first = load ptr, ptr %first.p, align 8
{load("env", "first", Head.ENVIRONMENT, "ptr")}{load("results", "first", Head.RESULT_COUNT)}\
{load("otherwise", "first", Head.OTHERWISE, "ptr")}{load("new.tuple", "env", Environment.NEW_TUPLE, "ptr")}\
{load("forget", "env", Environment.FORGET, "ptr")}{load("clear.error", "env", Environment.CLEAR_ERROR, "ptr")}\
{load("vectorcall", "env", Environment.VECTORCALL, "ptr")}{load("truth", "env", Environment.TRUTH, "ptr")}\
  %several = icmp sgt i64 %results, 1
  br i1 %several, label %pack, label %begin
pack:
  %packed = call ptr %new.tuple(i64 %results)
  %unpacked = icmp eq ptr %packed, null
  br i1 %unpacked, label %give.up, label %begin
begin:
  %tuple = phi ptr [ null, %entry ], [ %packed, %pack ]
  %flags = call i32 @flags(ptr %env)
  br label %search
search:
  %record = phi ptr [ %first, %begin ], [ %next, %further ]
  %fits = call i1 @match(ptr %record, ptr %given, i64 %count, ptr %env)
  br i1 %fits, label %found, label %further
further:
{load("next", "record", Head.NEXT, "ptr")}\
  %none = icmp eq ptr %next, null
  br i1 %none, label %drop, label %search
found:
  %made = call ptr @make(ptr %record, ptr %env, ptr %tuple)
  %no.result = icmp eq i64 %results, 0
  %missing = icmp eq ptr %made, null
  %failed = select i1 %no.result, i1 false, i1 %missing
  br i1 %failed, label %drop, label %compute
compute:
  call void @save(ptr %record)
  %fine = call i1 @run(ptr %record, ptr %env, i32 %flags)
  br i1 %fine, label %done, label %undo
done:
  br i1 %no.result, label %done.none, label %done.some
done.some:
  ret ptr %made
done.none:
  %true = call ptr %truth(i64 1)
  ret ptr %true
undo:
  call void @restore(ptr %record)
  %is.one = icmp eq i64 %results, 1
  br i1 %is.one, label %drop.one, label %drop
drop.one:
  call void %forget(ptr %made)
  br label %drop
drop:
  call void %forget(ptr %tuple)
  br label %give.up
give.up:
  call void %clear.error()
  %other = call ptr %vectorcall(ptr %otherwise, ptr %given, i64 %count, ptr null)
  ret ptr %other
}}"""
