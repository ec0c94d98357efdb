"""What lies on the disk for the next process: where, whose it is, and whether it is whole."""
