"""Batching rules: what stands for a batch inside `vmap`, and how each primitive handles one."""
