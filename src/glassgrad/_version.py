"""The version of the package, for code that must not import the rest of it."""

__version__ = "1.0.0rc1"
