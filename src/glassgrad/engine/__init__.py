"""The engine: tensors, the tape they are recorded on, and the walks along it.

Its files are imported here in the order in which they build on one another, so that `Tensor` has all its operators
and methods whenever any of them can be seen.
"""

# ruff: noqa: I001 - the order is the order of construction

from glassgrad.engine import heap, mode, node, views, writes
from glassgrad.engine import tensor
from glassgrad.engine import tape, slices, tangents
from glassgrad.engine import record, creation, random, saved_tensors, function, inplace, reshaping, methods
from glassgrad.engine import backward, float_warnings
from glassgrad.engine import op_errors, printing, devices, absent, protocols, snapshot, tree

__all__ = [
    "absent", "backward", "creation", "devices", "float_warnings", "function", "heap", "inplace", "methods", "mode",
    "node", "op_errors", "printing", "protocols", "random", "record", "reshaping", "saved_tensors", "slices",
    "snapshot", "tangents", "tape", "tensor", "tree", "views", "writes",
]  # fmt: skip  # a table
