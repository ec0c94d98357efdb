"""Indices of loop nests: affine expressions of the loop variables, their bounds, and checks of indices from data.

In: instructions that view, gather or scatter. Out: an `Index` for each axis that a nest reads or writes.

`indices.py` says how view ops move indices, `bounds.py` what is known of an index from data and what is said of a wrong
one, `checks.py` which indices are checked before a program runs and which while it runs.
"""
