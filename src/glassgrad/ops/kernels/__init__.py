"""Fast paths of forwards on NumPy arrays. This package defines no op and imports only `ops.core` of `ops`."""
