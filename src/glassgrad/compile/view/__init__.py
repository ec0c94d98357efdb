"""The graph of a step: the values of one call, the program to read and the kernels, joined by instruction."""
