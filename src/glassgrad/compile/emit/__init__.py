"""What turns a planned graph into something that runs: native code, or NumPy source."""
