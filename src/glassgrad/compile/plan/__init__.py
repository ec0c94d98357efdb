"""Turn a graph into a plan: views, fusion groups, loop nests, the order of kernels and their memory.

Input: a graph. Output: a `Plan` of kernels (`kernels.py`), then a schedule and a memory offset for each value. Nothing
here depends on LLVM; `target.py` describes the emitter as data.

| question | file |
|---|---|
| which forms of an op native code supports | `native_form.py` |
| which instructions share a loop nest | `fusion.py`, `links.py`; reads through views in `view_chains.py` |
| what a nest computes, and over which loops | `nests.py`, `build_nest.py`; indices in the folder `indexing` |
| the order of kernels, and writes in place | `order.py`, `late.py` |
| which thread runs which part, and when | `schedule.py`; parts of a convolution's weight in `weight_parts.py` |
| the memory of each array | `memory.py` |
| what is recomputed, for checkpoints or a memory limit | `recompute.py`, `cheap.py`, `chain.py`, `budget.py` |
"""
