"""Matrix products: tiles in vector registers, packing, shares for threads, BLAS, AMX.

In: sizes, layouts and dtypes of two operands. Out: functions that compute C = A B, or a share of it.

`gemm.py` writes a product of known sizes, `packed.py` one for all sizes, `rows.py` one of a few rows; `matmul.py`
decides what BLAS gets; `pairs.py` and `amx.py` multiply bfloat16.
"""
