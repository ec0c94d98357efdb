"""Shorter programs: repeated lines become loops, and groups of steps become closed-form gradients.

In: a graph or its lines. Out: fewer of them with the same numbers.

`runs.py` groups instructions by the statement they come from; `repeats.py` finds repeated lines and `rollup.py`
writes them as loops; `patterns.py` recognises functions such as softmax and `recognise.py` writes their gradients.
"""
