"""Loop nests as machine code: layout, loops, expressions, reductions, gathers, scatters.

Input: nests of a plan (`compile.plan.nests`). Output: functions that run a range of a nest's units of work.

- Choice of the vector axis, unrolling, and values kept from pass to pass: `nest_layout.py`.
- Code of the loops around expressions: `nest_code.py`, on top of `nest.py`.
- Code of ops: basic ones in `scalar.py`, compositions in `composite.py`, reductions in `reduce.py`.
- Loads and stores: `memory_ops.py`; at computed indices `routes.py`, `gathers.py`, `scatter.py`.
- Functions of eager mode: `channels.py`, `updates.py`.
"""
