"""Faults that people reported, for building rules: each program states its source in `Program.source`."""
