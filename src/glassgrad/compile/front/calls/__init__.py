"""Calls of a trace: guards, inputs, results, and the way out where a call cannot be compiled.

In: a finished trace (`captured.py`). Out: a function that checks a call, takes its inputs and gives its results.

`cached_trace.py` is one trace ready to be called, `fast_call.py` its generated shortcut, `guards.py` the conditions.
"""
