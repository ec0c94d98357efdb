"""The engine: tensors, the tape they are recorded on, and the walks along it.

Its files are imported here in the order in which they build on one another, so that `Tensor` has all its operators
and methods whenever any of them can be seen.

`tensor.py` says what a tensor is, `record.py` what happens when an op meets one, `tape.py` and `backward.py` how
gradients come back. The rooms: `tensors/` makes and reshapes tensors, `walks/` holds the other ways along the tape,
`protocols/` meets NumPy and other libraries, `reports/` is what a user is shown, `memory/` is where arrays lie.
"""

# ruff: noqa: F401, I001 - the order is the order of construction

from glassgrad.engine import mode, node, views, writes
from glassgrad.engine.memory import heap
from glassgrad.engine import tensor, tape
from glassgrad.engine.walks import slices, tangents
from glassgrad.engine import record
from glassgrad.engine.tensors import creation
from glassgrad.engine import random, saved_tensors, function, inplace
from glassgrad.engine.tensors import reshaping, methods
from glassgrad.engine import backward
from glassgrad.engine.reports import float_warnings, op_errors, printing
from glassgrad.engine.tensors import devices
from glassgrad.engine.reports import absent
from glassgrad.engine import protocols, snapshot, tree
