"""Calls of a trace: guards, inputs, results, and the fallback if a call cannot be compiled.

Input: a finished trace (`captured.py`). Output: a function that checks a call, collects its inputs and returns its
results.

| question | file |
|---|---|
| when a trace is reused, and how it runs | `cached_trace.py` |
| the same as one generated function, for flat arguments | `fast_call.py` |
| which conditions are checked, and the message if one fails | `guards.py` |
| which arguments become inputs; keyword arguments by position | `arguments.py`, `parameters.py` |
| numbers that Python draws or computes before each call | `feeds.py` |
| gradients through a result | `result_gradients.py` |
| who caused an error, and when a call runs eagerly | `refusal.py` |
"""
