"""Kernels other than loop nests, one class each; `SOLIDS` maps ops to classes."""

from __future__ import annotations

from glassgrad.compile.c.kernels.minimal import MinimalCode
from glassgrad.compile.c.kernels.products import ProductCode
from glassgrad.compile.c.kernels.recurrent import RecurrentBackCode, RecurrentCode
from glassgrad.compile.c.kernels.scatters import SCANS, ScanCode, ScatterCode
from glassgrad.compile.c.kernels.solid import Solid
from glassgrad.compile.c.kernels.windows import SpreadCode
from glassgrad.compile.llvm.loops.scatter_form import SCATTERS

SOLIDS: dict[str, type[Solid]] = {
    "matmul": ProductCode,
    **dict.fromkeys(("conv2d", "conv2d_input", "conv2d_weight"), MinimalCode),
    **dict.fromkeys(("max_pool2d_scatter", "sum_spread2d"), SpreadCode),
    **dict.fromkeys(SCATTERS, ScatterCode),
    **dict.fromkeys(SCANS, ScanCode),
    **dict.fromkeys(("lstm_scan", "gru_scan", "rnn_scan"), RecurrentCode),
    **dict.fromkeys(("lstm_scan_back", "gru_scan_back", "rnn_scan_back"), RecurrentBackCode),
}
