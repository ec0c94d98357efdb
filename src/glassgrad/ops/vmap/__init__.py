"""Batched arrays, which stand for a batch inside `vmap`, and each primitive's batching rule."""
