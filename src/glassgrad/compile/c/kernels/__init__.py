"""The bodies of kernels: loop nests, and everything else, one class each.

Input: a kernel of the plan, and the names of its arrays. Output: the lines of a function of C, and the scratch memory
that it needs. `solids.py` is the table of ops that are a kernel by themselves.
"""
