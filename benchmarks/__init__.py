"""Benchmarks: every peer runs its own version of a workload, in the same session, from the same weights."""
