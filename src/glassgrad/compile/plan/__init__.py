"""From a graph to a plan: views, fusion groups, loop nests, the order of kernels and their memory.

In: a graph. Out: a `Plan` of kernels (`kernels.py`), then a schedule and a place in memory for each value. Nothing here
knows LLVM; `target.py` describes the emitter as data.

| question | file |
|---|---|
| which forms of an op native code knows | `native_form.py` |
| which instructions share a loop nest | `fusion.py`, `links.py`; reads through views in `view_chains.py` |
| what a nest computes, and over which loops | `nests.py`, `build_nest.py`; indices in the folder `indexing` |
| the order of kernels, and writes in place | `order.py`, `late.py` |
| which thread runs which part, and when | `schedule.py`; parts of a convolution's weight in `weight_parts.py` |
| where each array lies | `memory.py` |
| what is computed twice, for checkpoints or a limit of memory | `recompute.py`, `cheap.py`, `chain.py`, `budget.py` |
"""
