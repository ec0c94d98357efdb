"""Programs for people: a graph as readable, runnable NumPy source, named as the user named it."""
