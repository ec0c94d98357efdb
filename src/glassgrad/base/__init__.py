"""What every part of the package may use, and no part of it is for users.

`provenance` finds the user's line of an op; `families` serves the names of packages with one file per family; `undo`
puts state back; `drawing` holds graphs as data and draws them. Nothing here knows tensors.
"""
