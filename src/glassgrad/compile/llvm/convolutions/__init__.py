"""Convolutions and pooling in two dimensions.

Input: an instruction with its operands. Output: kernels for results and both gradients.

- The algorithms, the choice of one, and its division into shares: `kernels.py` (`PLANS`, `chosen`).
- The interface of an algorithm: `plan.py`. The sizes, and how windows become columns: `windows.py`.
- One algorithm each, with its conditions, memory and code: `depthwise.py`, `direct.py`, `columns.py`.
- Minimal filtering: `minimal.py`; its sizes in `winograd_plan.py`, its code in `winograd*.py`, the transforms in
  `filtering.py`.
- Pooling: `pool.py`.
"""
