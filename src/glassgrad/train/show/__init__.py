"""What a person sees of a run: lines, the live display, pictures."""
