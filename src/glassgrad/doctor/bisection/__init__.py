"""The first difference between two runs.

In: two functions and their arguments. Out: the first op, cotangent or update whose results differ.

`first_difference.py` compares; `op_record.py` records a run of ours, `torch_run.py` one of PyTorch's, and
`update_record.py` the rules of optimizers.
"""
