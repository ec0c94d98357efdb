"""The primitive table, one family of ops a file; `names.py` gives them their public names."""
