"""From a graph to a plan: views, fusion groups, loop nests, the order of kernels and their memory."""
