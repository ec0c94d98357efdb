"""Kernels other than loop nests: matrix products, scatters, calls of the host. One class each.

A class tells whether it supports an instruction, the time of one thread, and the possible cuts, and emits the code for
a share. `SOLIDS` maps ops to classes; the host computes all other ops with NumPy.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.loops.scatter import ScatterWriter
from glassgrad.compile.llvm.loops.scatter_form import SCATTERS, Scatter, scatter_of
from glassgrad.compile.llvm.module.blas import blas
from glassgrad.compile.llvm.module.cuts import product_cuts, product_time
from glassgrad.compile.llvm.module.ir import BITS, Builder
from glassgrad.compile.llvm.module.solid_base import FormCode, SolidCode
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.products.amx import TileWriter, pays, tile_gemm, tile_scratch
from glassgrad.compile.llvm.products.amx_check import has_tiles
from glassgrad.compile.llvm.products.gemm import Gemm, GemmWriter, TileShape, product_call, tile_shape
from glassgrad.compile.llvm.products.matmul import (
    Call,
    accepts,
    call_blas,
    can_multiply,
    emit_product,
    layouts,
    product_of,
)
from glassgrad.compile.llvm.products.pairs import LANES, PairWriter, scratch_of
from glassgrad.compile.llvm.products.rows import reads_along_rows, row_product
from glassgrad.compile.llvm.sequences.scan import STEPS, ScanCode
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.schedule import Cut
from glassgrad.compile.plan.view_chains import Strided

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.step import StepModule
    from glassgrad.compile.plan.schedule import Task


# The most elements of A that are packed.
_MOST_PACKED = 1 << 20
# The most multiplications for which our own code with vectors of 32 bytes is faster than OpenBLAS (Zen 3: 1.7 times at
# 200,000, as fast at 50 million).
_MOST_OWN = 1 << 24
# Bytes of a share of C from which its tiles are not in a near cache when their sums are ready.
_FAR = 1 << 19


class ProductCode(SolidCode):
    """A matrix product: our own code for vectors of 64 bytes, or of 32 bytes if it is small; otherwise BLAS."""

    label = "product"

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.product = product_of(self.instr, kernel.operands)

    @staticmethod
    def takes(instr: Instr) -> bool:
        return can_multiply(instr)

    @staticmethod
    def accepts(instr: Instr, position: int, strided: Strided) -> bool:
        return accepts(strided)

    @property
    def flops(self) -> int:
        return self.product.flops

    def time(self) -> float:
        return product_time(self.product)

    def units(self) -> int:
        return self.product.m

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        return product_cuts(self.product, alias.get(self.instr.output, self.instr.output), shares)

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        roots = (self.product.a.root, self.product.b.root, self.instr.output)
        a_pointer, b_pointer, c_pointer = (step.pointer(b, root) for root in roots)
        by = "all" if task.cut is None else task.cut.axis
        if self._is_few_rows():
            call = row_product(step.module, self.product, self._lanes())
        elif self.product.kind == "bf16" or self._is_own():
            call = self._own(step, b, task)
        else:
            call = call_blas(self.product, step.blas_pointer(b, self.product.kind))
        emit_product(b, self.product, (a_pointer, b_pointer, c_pointer), (*bounds, by), call)

    def _is_own(self) -> bool:
        if not blas().pointers or blas().always:
            return not blas().pointers
        return host().vector_bytes == 64 or (host().vector_bytes == 32 and self._is_small())

    def _is_small(self) -> bool:
        return self.product.m * self.product.n * self.product.k <= _MOST_OWN

    def _lanes(self) -> int:
        return max(host().vector_bytes * 8 // BITS[self.product.kind], 1)

    def _is_few_rows(self) -> bool:
        return self.product.kind != "bf16" and not blas().always and reads_along_rows(self.product, self._lanes())

    def _is_tiled(self) -> bool:
        product = self.product
        return product.kind == "bf16" and pays(product.m, product.n, product.k) and has_tiles()

    @property
    def scratch(self) -> int:
        if self._is_few_rows():
            return 0
        gemm = self._gemm((self.product.m,), (self.product.n,))
        if self._is_tiled():
            return tile_scratch(self.product.m, gemm)
        if self.product.kind == "bf16":
            return scratch_of(self.product.m, self.product.k, gemm.width, pack_a=gemm.pack_a)
        return gemm.scratch if self._is_own() else 0

    def _gemm(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Gemm:
        product = self.product
        (ta, lda), (tb, ldb) = layouts(product)
        strides_a, strides_b = (1, lda) if ta else (lda, 1), (1, ldb) if tb else (ldb, 1)
        operands = (product.kind, product.k, strides_a, strides_b, product.n, rows, columns)
        if product.kind == "bf16":
            tile = tile_shape(product.n, LANES)
            whole = TileShape(tile.rows, tile.vectors, product.k)  # all terms in one block
            gemm = Gemm(*operands, LANES, whole, pack=True, pack_a=ta or product.k % 2 == 1)
            return tile_gemm(gemm) if self._is_tiled() else gemm
        lanes = self._lanes()
        c_is_far = max(rows) * max(columns) * BITS[product.kind] // 8 >= _FAR
        shape = tile_shape(product.n, lanes, far=c_is_far)
        # Packing pays if enough rows use the panel; a column-major B must be transposed anyway.
        pack = tb or max(rows) > 64
        # A column-major A with distant columns misses the cache at every step unless it is packed too.
        far = lda * BITS[product.kind] // 8 >= 1024 and product.n > shape.vectors * lanes
        pack_a = ta and far and max(rows) >= 32 and max(rows) * product.k <= _MOST_PACKED
        return Gemm(*operands, lanes, shape, pack, pack_a, fetch=c_is_far)

    def _own(self, step: StepModule, b: Builder, task: Task) -> Call:
        rows: tuple[int, ...] = (self.product.m,)
        columns: tuple[int, ...] = (self.product.n,)
        if task.cut is not None and task.cut.axis != "batch":
            bounds = task.cut.bounds
            sizes = tuple(sorted({high - low for low, high in pairwise(bounds)} - {0}))
            rows, columns = (sizes, columns) if task.cut.axis == "rows" else (rows, sizes)
        gemm = self._gemm(rows, columns)
        writer = TileWriter if self._is_tiled() else PairWriter if gemm.kind == "bf16" else GemmWriter
        text = writer(step.module, gemm).definition("NAME")
        name = step.helper(text)
        panel = step.scratch_pointer(b)

        def call(b: Builder, places: tuple[str, str, str], m: str, n: str) -> None:
            product_call(b, gemm, name, (*places, panel), (m, n))

        return call


class ScatterCode(FormCode[Scatter]):
    """Additions or writes at computed indices."""

    label = "scatter"
    read = staticmethod(scatter_of)

    @property
    def flops(self) -> int:
        return math.prod(self.form.values)

    def time(self) -> float:
        return 50.0 + self.instr.output.nbytes / 20 + math.prod(self.form.values) * 0.5

    def units(self) -> int:
        return self.form.shape[0] if self.form.shape else 1

    def cuts(self, shares: int, alias: Mapping[Var, Var]) -> list[Cut]:
        return self.rows(self.form.shape, shares, alias)

    def emit(self, step: StepModule, b: Builder, task: Task, bounds: tuple[str, str]) -> None:
        text = ScatterWriter(step.module, self.form).definition("NAME")
        pointers = self.pointers(step, b)
        base = pointers.pop(0) if self.form.base else "null"
        out = step.pointer(b, self.instr.output)
        self.call(step, b, text, [out, base, *pointers], bounds)


class HostCode(SolidCode):
    """An op without native code: the step pauses, Python computes it with NumPy, and the step continues."""

    label = "host"

    def time(self) -> float:
        return 5000.0


class _Table(Mapping[str, type[SolidCode]]):
    """Classes by their ops. Those of convolutions, a dozen files, are loaded with the first step that needs them."""

    def __init__(self, classes: dict[str, type[SolidCode]], later: dict[str, tuple[str, str]]) -> None:
        self._classes, self._later = classes, later

    def __getitem__(self, op: str) -> type[SolidCode]:
        if op in self._later and op not in self._classes:
            module, name = self._later[op]
            self._classes[op] = getattr(importlib.import_module(module), name)
        return self._classes[op]

    def __contains__(self, op: object) -> bool:
        return op in self._classes or op in self._later

    def __iter__(self) -> Iterator[str]:
        return iter({**self._classes, **self._later})

    def __len__(self) -> int:
        return len({**self._classes, **self._later})


_CONV, _POOL = "glassgrad.compile.llvm.convolutions.kernels", "glassgrad.compile.llvm.convolutions.pool"
_RECURRENT, _CELLS = "glassgrad.compile.llvm.sequences.recurrent_code", ("lstm", "gru", "rnn")
SOLIDS = _Table(
    {"matmul": ProductCode, **dict.fromkeys(SCATTERS, ScatterCode), **dict.fromkeys(STEPS, ScanCode)},
    {
        **dict.fromkeys(("conv2d", "conv2d_input", "conv2d_weight_parts"), (_CONV, "ConvCode")),
        "max_pool2d_scatter": (_POOL, "SpreadCode"),
        "sum_spread2d": (_POOL, "SpreadCode"),
        **{f"{cell}_scan": (_RECURRENT, "RecurrentCode") for cell in _CELLS},
        **{f"{cell}_scan_back": (_RECURRENT, "RecurrentBackCode") for cell in _CELLS},
    },
)
