"""The version of the package, for everything that must not import the rest of it."""

__version__ = "0.1.0"
