"""Batched arrays, which represent a batch inside `vmap`, and each primitive's batching rule."""
