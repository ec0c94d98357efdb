"""The ONNX form of every primitive: those that have one compute the same in onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.distributed import primitives  # noqa: F401 - it has primitives of its own
from glassgrad.engine.protocols import namespace  # noqa: F401 - it has a primitive of its own
from glassgrad.ops.core import PRIMITIVES, Elementwise
from tests.onnx.running import needs_runtime, run, session
from tests.ops.cases import SHAPES, Case

pytestmark = needs_runtime


def forms():
    from glassgrad.onnx.table import form_of

    return {name: form_of(name) for name in PRIMITIVES}


def test_every_primitive_has_a_form_or_a_reason():
    from glassgrad.onnx.table import REFUSED, ROWS

    found = forms()
    assert set(found) == set(PRIMITIVES)
    assert not set(ROWS) & set(REFUSED)
    assert not (set(ROWS) | set(REFUSED)) - set(PRIMITIVES), "an entry for no primitive"
    assert all(len(reason) > 20 for reason in REFUSED.values())
    assert sum(not form.startswith("refused") for form in found.values()) > 150


def sample_calls():
    """One call of each op that has a row and has samples."""
    for name, form in forms().items():
        prim = PRIMITIVES[name]
        if form != "row" or not prim.samples:
            continue
        count = len(SHAPES[prim.arity]) if isinstance(prim, Elementwise) else len(prim.samples)
        for number in range(count):
            args, params = Case(prim, number).draw(3, np.float32)
            if all(array.size for array in args) and "PLACES" not in str(params):
                yield prim, args, params


@pytest.mark.parametrize("opset", [18, 19, 23])
def test_a_row_computes_what_its_op_does(opset):
    calls = list(sample_calls())
    chosen = (
        calls
        if opset == 19
        else [call for call in calls if call[0].name in {"gelu", "gelu_tanh", "hardswish", "max_pool2d"}]
    )

    def everything(*tensors):
        given, results = iter(tensors), []
        for prim, args, params in chosen:
            found = prim(*[next(given) for _ in args], **params)
            results += found if isinstance(found, tuple) else [found]
        return results

    arrays = [array for _, args, _ in chosen for array in args]
    tensors = [gg.tensor(array) for array in arrays]
    made = session(gg.onnx.export(everything, tuple(tensors), dynamic_axes={}, opset=opset))
    with gg.no_grad():
        expected = everything(*tensors)
    found = iter(zip(run(made, arrays), expected, strict=True))
    wrong = []
    for prim, args, params in chosen:
        for _ in range(3 if prim.name == "lstm" else 2 if prim.name in {"gru", "rnn"} else 1):
            ours, theirs = next(found)
            if ours.shape != theirs.shape or not np.allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-5):
                wrong.append((prim.name, params, [a.shape for a in args], ours.shape, theirs.shape))
    assert not wrong, wrong


@pytest.mark.parametrize("name", ["erfinv", "inv", "digamma"])
def test_an_op_without_a_form_is_refused_with_its_line(name):
    def model(x):
        return gg.exp(getattr(gg.linalg if name == "inv" else gg, name)(x))

    with pytest.raises(errors.OnnxError, match=rf"{name} at .*test_export_ops.*cannot be written as ONNX"):
        gg.onnx.export(model, gg.eye(3), dynamic_axes={})
