"""Loop nests as machine code: layout, loops, expressions, reductions, gathers, scatters.

In: nests of a plan (`compile.plan.nests`). Out: functions that run a range of a nest's units of work.

- Which axis is vectorised, what is unrolled or kept from pass to pass: `nest_layout.py`.
- How the loops around expressions are written: `nest_code.py`, on the function of `nest.py`.
- How an op is written: basic ones in `scalar.py`, those made of them in `composite.py`, reductions in `reduce.py`.
- How elements are read and written: `memory_ops.py`; at computed places `routes.py`, `gathers.py`, `scatter.py`.
- Functions of eager mode: `channels.py`, `updates.py`.
"""
