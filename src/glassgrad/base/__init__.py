"""Internal helpers that the whole package uses.

`provenance` finds the user's line of an op; `families` serves the names of packages with one file per family; `tables`
makes tables of names; `undo` restores state; `deprecation` announces that names go; `drawing` holds graphs as data and
draws them. Nothing here depends on tensors.
"""
