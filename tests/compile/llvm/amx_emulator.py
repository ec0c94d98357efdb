"""AMX in Python: the effect of its instructions on arrays, and the operands that they refuse.

Written after the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG, TILEZERO,
TILELOADD, TILESTORED, TDPBF16PS, TILERELEASE. Native code calls an emulator where it would hold the instructions.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter

import ml_dtypes
import numpy as np

from glassgrad.compile.llvm.module.ir import Module

_OPERATIONS = ("config", "release", "zero", "load", "store", "multiply")
_CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)


class Emulator:
    """Tiles of each thread.

    Attributes:
        counts: how often each instruction ran.
        faults: what a processor would have refused, or memory outside of `allowed`.
        allowed: (first, behind the last) address of memory that may be touched; None for all.
        sign: of products; -1 is a processor that computes something else.
    """

    def __init__(self) -> None:
        self._thread = threading.local()
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.allowed: list[tuple[int, int]] | None = None
        self.sign = 1
        self._callback = _CALL(self._run)

    def body(self, module: Module, operation: str, tiles: tuple[int, ...]) -> str:
        """Return the IR that stands for `amx.operation_body`: a call of this object."""
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        at = {"config": "%at", "load": "%at", "store": "%at"}.get(operation)
        lines, place, row = [], "0", "%row" if operation in {"load", "store"} else "0"
        if at is not None:
            lines, place = [f"  %place = ptrtoint ptr {at} to i64"], "%place"
        numbers = [str(_OPERATIONS.index(operation)), *map(str, (*tiles, 0, 0, 0)[:3]), place, row]
        given = ", ".join(f"i64 {number}" for number in numbers)
        return "\n".join([*lines, f"  call void inttoptr (i64 {address} to ptr)({given})", ""])

    def _run(self, operation: int, first: int, second: int, third: int, at: int, row: int) -> None:
        name = _OPERATIONS[operation]
        self.counts[name] += 1
        try:
            tiles = self._thread.__dict__
            if name == "config":
                tiles["rows"], tiles["bytes"] = _read_configuration(ctypes.string_at(at, 64))
                tiles["tiles"] = [np.zeros((16, 64), np.uint8) for _ in range(8)]
            elif name == "release":
                tiles.clear()
            elif "tiles" not in tiles:
                self.faults.append(f"{name} without a configuration")
            elif name == "zero":
                tiles["tiles"][first][:] = 0
            elif name == "multiply":
                self._multiply(first, second, third)
            else:
                self._move(name, first, at, row)
        except (AssertionError, LookupError, ValueError) as error:  # would be lost in the native code that called
            self.faults.append(repr(error))

    def _memory(self, at: int, size: int) -> np.ndarray:
        if self.allowed is not None and not any(low <= at and at + size <= high for low, high in self.allowed):
            self.faults.append(f"{size} bytes at {at:#x}")
        return np.frombuffer((ctypes.c_uint8 * size).from_address(at), np.uint8)

    def _move(self, name: str, tile: int, at: int, row: int) -> None:
        tiles = self._thread.__dict__
        content, width = tiles["tiles"][tile], tiles["bytes"][tile]
        if name == "load":
            content[:] = 0
        for number in range(tiles["rows"][tile]):
            memory = self._memory(at + number * row, width)
            if name == "load":
                content[number, :width] = memory
            else:
                memory[:] = content[number, :width]

    def _multiply(self, total: int, left: int, right: int) -> None:
        tiles = self._thread.__dict__
        rows, width = tiles["rows"], tiles["bytes"]
        if len({total, left, right}) < 3 or width[left] % 4 or width[right] % 4:
            self.faults.append(f"multiply {total}, {left}, {right}")
        if rows[total] != rows[left] or width[total] != width[right] or width[left] // 4 != rows[right]:
            self.faults.append(f"shapes of {total}, {left}, {right}")
        sums = tiles["tiles"][total].view(np.float32)
        a = tiles["tiles"][left].view(ml_dtypes.bfloat16)
        b = tiles["tiles"][right].view(ml_dtypes.bfloat16).reshape(16, 16, 2)
        with np.errstate(invalid="ignore"):  # rows that do not exist hold anything
            sums[:] = tdpbf16ps(sums, a, b if self.sign > 0 else -b)


def tdpbf16ps(sums: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return what the instruction leaves of 16 x 16 sums, a tile of A (16 x 32), and one of B (16 pairs x 16 x 2).

    Even terms and odd ones are summed apart, each by 16 fused multiply-adds, and their sum is added to what was there.
    Numbers below float32's full set of digits count as 0. A processor does the same to the last bit, as
    test_amx_in_silicon.py shows where there is one.
    """
    left, right = flushed(a).reshape(16, 16, 2), flushed(b)
    apart = np.zeros((2, 16, 16), np.float32)
    for pair in range(16):
        terms = left[:, pair].T[:, :, None] * right[pair].T[:, None, :]  # exact in float64: 8 digits by 8
        apart = flushed(apart + terms)
    return flushed(flushed(sums) + flushed(apart[0].astype(np.float64) + apart[1]))


def flushed(numbers: np.ndarray) -> np.ndarray:
    """Return numbers rounded to float32, those without its full set of digits as 0; in float64, to go on with."""
    rounded = numbers.astype(np.float32).astype(np.float64)
    return np.where(np.abs(rounded) < np.finfo(np.float32).tiny, np.copysign(0.0, rounded), rounded)


def _read_configuration(content: bytes) -> tuple[list[int], list[int]]:
    """Return rows and bytes a row of the eight tiles."""
    assert content[0] == 1, "palette"
    assert content[1] == 0, "start row"
    assert not any(content[2:16])
    assert not any(content[32:48])
    assert not any(content[56:64])
    widths = [int.from_bytes(content[at : at + 2], "little") for at in range(16, 32, 2)]
    rows = list(content[48:56])
    assert all(width <= 64 for width in widths)
    assert all(count <= 16 for count in rows)
    return rows, widths
