"""The graph of a step: the values of one call, the readable program and the kernels, joined by instruction.

In: a function and a call of it, or a trace. Out: a graph of `glassgrad.base.drawing`, which `step.show()` draws.

`show.py` is the way in; `seen.py` traces and evaluates the call, `graph.py` makes nodes and edges, `groups.py` cuts
long levels into groups, `kernels.py` adds the kernels of the compiled step.
"""
