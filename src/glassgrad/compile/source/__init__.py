"""Programs for people: a graph as readable, runnable NumPy source with the user's names."""
