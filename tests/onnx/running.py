"""Run an exported model with onnxruntime, for all tests of the format."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.errors.packages import present

INSTALLED = present("onnx") and present("onnxruntime")
needs_runtime = pytest.mark.skipif(not INSTALLED, reason="onnx and onnxruntime are not installed (extra: onnx)")


def flat(result: Any) -> list[Any]:
    """Return the tensors of a nested result."""
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in flat(part)]
    return [] if result is None else [result]


def session(model: Any) -> Any:
    """Return onnxruntime's session of a model or a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    content = str(model) if not hasattr(model, "SerializeToString") else model.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(made: Any, args: Any) -> list[Any]:
    """Return the outputs of a session for arrays or tensors."""
    arrays = [np.asarray(arg.detach()) if isinstance(arg, gg.Tensor) else np.asarray(arg) for arg in args]
    return list(made.run(None, {one.name: array for one, array in zip(made.get_inputs(), arrays, strict=True)}))


def agrees(model: Any, args: tuple[Any, ...], tolerance: float = 1e-5, **options: Any) -> Any:
    """Export a model, run it, compare it with the model itself, and return the session."""
    made = session(gg.onnx.export(model, args, **options))
    same(made, model, args, tolerance)
    return made


def same(made: Any, model: Any, args: tuple[Any, ...], tolerance: float = 1e-5) -> None:
    """Compare a session with a module in evaluation mode."""
    mode = model.training if isinstance(model, gg.nn.Module) else None
    if mode:
        model.eval()
    with gg.no_grad():
        expected = flat(model(*args))
    if mode:
        model.train()
    for found, wanted in zip(run(made, args), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted.numpy(), rtol=tolerance, atol=tolerance)
