"""From a user's function to a graph: tracing, state, guards, and the calls of a trace.

In: a function and the arguments of one call. Out: a `Capture` (`calls/captured.py`): the graph, the tensors it reads
and writes, the guards, and what to do before and after each call.

| question | file |
|---|---|
| how one call is traced, from start to clean-up | `capture.py`, then `finish.py` |
| what an op does while tracing; what stands for an array | `tracer.py`, `symbol.py`; types of results in `infer.py` |
| which line of the user's an instruction comes from | `origin.py` |
| which functions cannot be compiled, and why | `checks.py` |
| what Ctrl-C does meanwhile | `interrupts.py` |
| extra outputs that watch for NaN | `finite.py`, `hidden_branch.py` |
| what a function reads and changes outside of its arguments | the folder `state` |
| how later calls are matched and run | the folder `calls` |
"""
