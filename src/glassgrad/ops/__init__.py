"""The primitive table, one file per family of ops; `names.py` assigns their public names."""
