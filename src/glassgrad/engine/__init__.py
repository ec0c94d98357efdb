"""The engine: tensors, the tape they are recorded on, and the walks along it."""
