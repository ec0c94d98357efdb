"""The NumPy target that runs: a graph as a generated Python function."""
