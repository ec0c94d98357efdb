"""The state of a function: what it can reach, what it reads and what it may change.

In: a function and its arguments. Out: tensors that become inputs, places that every call compares, effects that every
call repeats.

`reach.py` finds tensors and values; `places.py` and `edges.py` name them; `effects.py` repeats changes of objects.
"""
