"""Loops over a sequence: attention, scans, recurrent layers.

In: sizes and options of a primitive. Out: functions that serve every length.

`attention.py` is softmax(q kT) v and its gradient; `scan.py` carries a value along an axis; `recurrent.py` is one loop
over time in each direction, with the cells' formulas in `recurrent_cells.py`.
"""
