"""The memory of arrays: freed memory that is kept, and zeros that nobody has written to."""
