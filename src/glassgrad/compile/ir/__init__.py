"""The intermediate representation: the graph, the check of its form, and the passes that rewrite it."""
