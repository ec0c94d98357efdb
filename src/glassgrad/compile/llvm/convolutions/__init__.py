"""Convolutions and pooling in two dimensions.

In: an instruction with its operands. Out: kernels for results and both gradients.

- Which ways there are, which one is taken, how it is cut into shares: `kernels.py` (`PLANS`, `chosen`).
- What a way says of itself: `plan.py`. The sizes, and how windows become columns: `windows.py`.
- One way each: where it applies, its memory and its code: `depthwise.py`, `direct.py`, `columns.py`.
- Minimal filtering: `minimal.py`; its sizes in `winograd_plan.py`, its code in `winograd*.py`, the transforms in
  `filtering.py`.
- Pooling: `pool.py`.
"""
