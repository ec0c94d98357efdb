"""The version of the package, for code that must not import the rest of it."""

__version__ = "0.1.0"
