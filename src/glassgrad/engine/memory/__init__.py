"""Where arrays of tensors lie: freed memory that is kept, and zeros that nobody has written to."""
