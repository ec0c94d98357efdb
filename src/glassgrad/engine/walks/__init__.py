"""Other ways along the tape than `tape.py`'s: plain training, slices, tangents, and the search for the first NaN."""
