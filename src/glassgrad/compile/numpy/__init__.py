"""The NumPy target that runs: a graph as a generated Python function.

In: a graph. Out: a `NumpyStep`.

`program.py` writes and compiles the function; `templates.py` has the text of ops without a formula, `text_space.py`
that of formulas, `text.py` expressions with their brackets; `memory.py` says when a value goes.
"""
