# Written by tools/stubs.py from the lists of public names.
from glassgrad.onnx.exporting import export as export
from glassgrad.onnx.loading import load as load
