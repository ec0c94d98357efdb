"""NumPy as a target: a program that runs anywhere, and source that a person can read."""
