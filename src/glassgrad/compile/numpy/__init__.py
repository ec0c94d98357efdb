"""The executable NumPy target: a graph as a generated Python function.

Input: a graph. Output: a `NumpyStep`.

`program.py` writes and compiles the function; `templates.py` has the text of ops without a formula, `text_space.py`
that of formulas, `text.py` expressions with their brackets; `memory.py` computes the peak memory.
"""
