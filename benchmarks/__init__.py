"""Benchmarks: every peer runs its own version of a workload, in the same run, from the same weights."""
