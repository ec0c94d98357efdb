"""Calls of a trace: guards, inputs, results, and the way out where a call cannot be compiled.

In: a finished trace (`captured.py`). Out: a function that checks a call, takes its inputs and gives its results.

| question | file |
|---|---|
| when a trace is used again, and how it runs | `cached_trace.py` |
| the same as one generated function, for flat arguments | `fast_call.py` |
| which conditions are checked, and what is said when one fails | `guards.py` |
| which arguments become inputs; keyword arguments by position | `arguments.py`, `parameters.py` |
| numbers that Python draws or computes before each call | `feeds.py` |
| gradients through a result | `result_gradients.py` |
| whose fault an error is, and when a call runs eagerly | `refusal.py` |
"""
