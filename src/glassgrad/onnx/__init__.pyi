# Written by tools/stubs.py from the lists of public names.
from glassgrad.onnx.exporting import export as export
