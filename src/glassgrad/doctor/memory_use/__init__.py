"""The memory that a step saves for its backward pass, by the user's line, and graphs that grow from step to step.

`kept_memory.py` has the public function and measures our steps; `torch_memory.py` measures PyTorch steps, and
`torch_growth.py` finds the variable that holds a growing graph in PyTorch.
"""
