"""Indices of loop nests: affine expressions of the loop variables, their bounds, and checks of indices from data."""
