"""Functions and methods that make, convert and reshape tensors."""
