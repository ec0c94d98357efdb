"""Helpers that the whole package uses, and users do not.

`provenance` finds the user's line of an op; `families` serves the names of packages with one file per family; `tables`
makes tables of names; `undo` puts state back; `drawing` holds graphs as data and draws them. Nothing here knows
tensors.
"""
