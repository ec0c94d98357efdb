"""Loops over a sequence: attention, scans, recurrent layers.

Input: sizes and options of a primitive. Output: functions for every length.

- softmax(q kT) v and its gradient: `attention.py`.
- A value carried along an axis: `scan.py`.
- Recurrent layers: the loop over time in `recurrent.py`, the cells' formulas in `recurrent_cells.py`, the call in a
  compiled step in `recurrent_code.py`.
"""
