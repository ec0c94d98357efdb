"""Matrix products: tiles in vector registers, packing, shares for threads, BLAS, AMX.

Input: sizes, layouts and dtypes of two operands. Output: functions that compute C = A B, or a share of it.

- Which products have code, and which ones BLAS computes: `matmul.py`.
- A product in a step: `gemm.py` on the tiles of `tiles.py`; one of a few rows: `rows.py`.
- bfloat16: `pairs.py`, and `amx.py` where `amx_check.py` allows it.
- Eager mode: `packed.py` with `packed_tiles.py` and `packed_sizes.py`; shares for its threads: `shares.py`.
"""
