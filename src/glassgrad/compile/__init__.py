"""The compiler: a training step traced into one program, planned, and emitted as native code or as NumPy source."""
