"""The engine: tensors, the tape they are recorded on, and the walks along it.

Its files are imported here in an order in which each builds on earlier ones, so `Tensor` always has all its operators
and methods.

`tensor.py` defines tensors, `record.py` applies ops to them, `tape.py` and `backward.py` compute gradients. Folders:
`tensors/` makes and reshapes tensors, `walks/` holds the other ways along the tape, `protocols/` connects NumPy and
other libraries, `reports/` produces text for users, `memory/` manages the memory of arrays.
"""

# ruff: noqa: F401, I001 - the order is the order of construction

from glassgrad.engine import mode, node, views, writes
from glassgrad.engine.memory import heap
from glassgrad.engine import tensor, tape
from glassgrad.engine.walks import slices, tangents
from glassgrad.engine import record
from glassgrad.engine.tensors import creation
from glassgrad.engine import random, saved_tensors, function, inplace
from glassgrad.engine.tensors import fills, reshaping, storage, methods
from glassgrad.engine import backward
from glassgrad.engine.reports import float_warnings, op_errors, printing
from glassgrad.engine.tensors import devices
from glassgrad.engine.reports import absent
from glassgrad.engine import protocols, snapshot, tree
