"""Indices of loop nests: affine expressions of the loop variables, their bounds, and checks of indices from data.

Input: instructions that view, gather or scatter. Output: an `Index` for each axis that a nest reads or writes.

`indices.py` defines how view ops transform indices, `bounds.py` the bounds of indices from data and the errors about
them, `checks.py` which indices are checked before a program runs and which while it runs.
"""
