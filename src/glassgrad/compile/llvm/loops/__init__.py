"""Loop nests as machine code: layout, loops, expressions, reductions, gathers, scatters.

In: nests of a plan (`compile.plan.nests`). Out: functions that run a range of a nest's units of work.

`nest.py` writes one nest; `nest_layout.py` chooses its vector axis; `nest_code.py` writes the loops around it;
`composite.py` and `scalar.py` write an op on registers.
"""
