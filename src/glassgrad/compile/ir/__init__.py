"""The intermediate representation: the graph, its verifier, and the passes that rewrite it."""
