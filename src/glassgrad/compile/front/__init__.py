"""Turn a user's function into a graph: tracing, state, guards, and the calls of a trace.

Input: a function and the arguments of one call. Output: a `Capture` (`calls/captured.py`): the graph, the tensors it
reads and writes, the guards, and the work before and after each call.

| question | file |
|---|---|
| how one call is traced, from start to clean-up | `capture.py`, then `finish.py` |
| what an op does while tracing; what represents an array | `tracer.py`, `symbol.py`; types of results in `infer.py` |
| which user line an instruction comes from | `origin.py` |
| which functions cannot be compiled, and why | `checks.py` |
| what Ctrl-C does while tracing | `interrupts.py` |
| extra outputs that detect NaN | `finite.py`, `hidden_branch.py` |
| what a function reads and changes besides its arguments | the folder `state` |
| how later calls are matched and run | the folder `calls` |
"""
