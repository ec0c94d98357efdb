"""From a user's function to a graph: tracing, state, guards, and the calls of a trace."""
