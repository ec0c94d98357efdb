"""From a plan to a function that runs: compiled code, its memory, its threads and its cache on disk."""
