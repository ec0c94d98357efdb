"""Models in the ONNX format: `export` writes a module for other runtimes, `load` reads one for further training.

The package `onnx` is imported with the first call (``pip install 'glassgrad[onnx]'``).
"""

from glassgrad.base.families import serve

__getattr__, __dir__ = serve(__name__, __path__)
