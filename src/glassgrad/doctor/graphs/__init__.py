"""The ops behind a loss as plain data, whichever library recorded them.

`graph.py` has the data; `tape_graph.py` reads our tape, `torch_graph.py` records calls of PyTorch's functions.
"""
