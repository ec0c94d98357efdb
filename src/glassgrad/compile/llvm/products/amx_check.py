"""Decide whether AMX is used: once per process, a small product must equal the result without AMX.

The processor and the system report AMX, and both may be emulated. So the first product in a process is one with a
known result.
"""

from __future__ import annotations

import ctypes
import functools
import warnings

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.llvm.module.ir import Module
from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.llvm.products.amx import TileWriter, tile_gemm, tile_scratch
from glassgrad.compile.llvm.products.gemm import Gemm, TileShape
from glassgrad.compile.llvm.products.pairs import LANES, PairWriter, scratch_of

# Rows, columns and terms: a block, edges beyond it, and an odd number of terms.
_SIZE = (49, 50, 69)
_PRODUCT = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 7)


@functools.cache
def has_tiles() -> bool:
    """Tell whether products of bfloat16 run in AMX tiles in this process; warn if the results are wrong."""
    if not host().may_use_amx:
        return False
    without, within = sample_products()
    wrong = np.abs(within - without) > 2.0**-7 * np.abs(without) + 1e-5
    if not wrong.any():
        return True
    at = tuple(np.argwhere(wrong)[0])
    text = errors.AMX_WRONG.text(cpu=host().cpu, found=f"{within[at]:.6g}", wanted=f"{without[at]:.6g}")
    warnings.warn(text, errors.PrecisionWarning, stacklevel=provenance.stack_level())
    return False


def sample_products() -> tuple[np.ndarray, np.ndarray]:
    """Return the same products in float32, without and with AMX, of plain and of transposed matrices."""
    m, n, k = _SIZE
    layouts = [((k, 1), (n, 1)), ((1, m), (1, k))]
    gemms = [
        Gemm("bf16", k, a, b, n, (m,), (n,), LANES, TileShape(9, 3, k), pack=True, pack_a=True) for a, b in layouts
    ]
    module = Module(host().vector_bytes, host().has_bfloat)
    functions = []
    for number, gemm in enumerate(gemms):
        functions.append(PairWriter(module, gemm).definition(f"pairs{number}"))
        functions.append(TileWriter(module, tile_gemm(gemm)).definition(f"tiles{number}"))
    exported = [text.replace("define internal", "define", 1) for text in functions]
    code = LoadedCode(host().compile("\n".join([host().header(), module.text(), *exported, host().attributes()])))
    found = [
        [_product(code.address(f"{name}{number}"), gemm) for number, gemm in enumerate(gemms)]
        for name in ("pairs", "tiles")
    ]
    return np.stack(found[0]), np.stack(found[1])


def _product(address: int, gemm: Gemm) -> np.ndarray:
    """Return the product of two matrices of positive and negative numbers that are exact in bfloat16."""
    m, n, k = _SIZE
    numbers = np.arange(m * k + k * n, dtype=np.float32) * 37 % 255 - 127
    halves = (numbers.view(np.uint32) >> 16).astype(np.uint16)  # at most 8 bits, so nothing is lost
    a, b, c = halves[: m * k].copy(), halves[m * k :].copy(), np.zeros((m, n), np.uint16)
    scratch = np.zeros(max(tile_scratch(m, tile_gemm(gemm)), scratch_of(m, k, gemm.width, pack_a=True)), np.uint8)
    sizes = (m, n, k, k, max(gemm.a_strides), max(gemm.b_strides), n)
    _PRODUCT(address)(*(array.ctypes.data for array in (a, b, c, scratch)), *sizes)
    return (c.astype(np.uint32) << 16).view(np.float32)
