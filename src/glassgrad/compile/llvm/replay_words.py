"""The tables that recorded NumPy calls are made from (`replay`), of 64-bit words.

A record's first words are those of `Head`; the environment, which all records share, says where the functions are that
the code needs.
"""

from __future__ import annotations

from enum import IntEnum


class Head(IntEnum):
    """The first words of a record."""

    ENVIRONMENT, ARGUMENT_COUNT, ARGUMENTS, RESULT_COUNT, RESULTS, CALL_COUNT, CALLS = range(7)
    SLOTS, NEXT, OTHERWISE, SAVED_COUNT, SAVED = range(7, 12)


class Environment(IntEnum):
    """Words of the environment: types, functions of Python, NumPy and the C library, and what they are called with."""

    ARRAY, FLOAT, NEW_ARRAY, NEW_TUPLE, FORGET, CLEAR_ERROR, VECTORCALL, TRUTH = range(8)
    CLEAR_FLAGS, TEST_FLAGS, FLAGS, GET_CONTEXT, VARIABLE, UNDERFLOW = range(8, 14)
    SGEMV, DGEMV, SGEMM, DGEMM, SDOT, DDOT = range(14, 20)


class Argument(IntEnum):
    """Words of an argument: what it has to be, and the slot of its memory."""

    KIND, WHAT, DIMENSIONS, SHAPE, STRIDES, FLAGS, BYTES, SLOT = range(8)


class Kind(IntEnum):
    """What an argument is: an array that is read or written, this very object, a number, or no array."""

    READ, WRITTEN, SAME, SINGLE, DOUBLE, OTHER = range(6)


class Result(IntEnum):
    """Words of a result."""

    DIMENSIONS, SHAPE, TYPE, SLOT = range(4)


class Saved(IntEnum):
    """Words of what is written to: its slot, that of a copy, and how many bytes there are."""

    SLOT, COPY, BYTES = range(3)


class Call(IntEnum):
    """Words of a call. Operands have four words of each of the last kinds."""

    KIND, FUNCTION, DATA, OPERANDS, COUNT, OUTER, OUTERMOST, EXTRA = range(8)
    STEPS, SLOTS, OFFSETS, OUTER_STEPS, OUTERMOST_STEPS, SIZE = 8, 12, 16, 20, 24, 28


class What(IntEnum):
    """Kinds of calls: a loop of NumPy's, BLAS's products, gathering and scattering by positions, a choice by a mask."""

    LOOP, SGEMV, DGEMV, SGEMM, DGEMM, SDOT, DDOT, SELECT, TAKE, PUT = range(10)


_WORDS = {"argument": len(Argument), "result": len(Result), "saved": len(Saved), "call": int(Call.SIZE)}


def load(name: str, table: str, at: int, kind: str = "i64") -> str:
    """Load a word of a table."""
    return f"""  %{name}.p = getelementptr i64, ptr %{table}, i64 {int(at)}
  %{name} = load {kind}, ptr %{name}.p, align 8
"""


def row(kind: str, index: str = "i") -> str:
    """Find a row of a table."""
    return f"  %at = mul i64 %{index}, {_WORDS[kind]}\n  %row = getelementptr i64, ptr %rows, i64 %at\n"
