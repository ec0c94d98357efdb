"""The memory of arrays: freed memory that is kept, and zeros that were never written to."""
