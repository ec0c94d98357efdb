"""Every layer of `nn`, run by onnxruntime and loaded again, all in one model; layers that read numbers are refused."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from tests.nn.layer_cases import LAYERS, OURS
from tests.nn.test_layers_everywhere import built, keywords
from tests.onnx.running import flat, needs_runtime, run, session

pytestmark = needs_runtime

# They look at the numbers of their inputs, so that a trace would hold for these alone.
REFUSED = [
    one
    for one in LAYERS
    if {"scale_grad_by_freq", "max_norm"} & set(one.options)
    or (one.name == "EmbeddingBag" and len(one.inputs) > 1)
    or one.name.startswith("FractionalMaxPool")
]
WRITTEN = [one for one in [*LAYERS, *OURS] if one not in REFUSED]
FIRST = list({one.name: one for one in reversed(WRITTEN)}.values())[::-1]  # one case a class


class Zoo(nn.Module):
    """Many layers side by side, each with inputs of its own."""

    def __init__(self, chosen) -> None:
        super().__init__()
        self.counts = [len(one.inputs) for one in chosen]
        self.layers = nn.ModuleList([built(one) for one in chosen])
        self.options = [keywords(one) for one in chosen]

    def forward(self, *inputs):
        given = iter(inputs)
        return [
            flat(layer(*[next(given) for _ in range(count)], **options))
            for count, layer, options in zip(self.counts, self.layers, self.options, strict=True)
        ]


def compare(chosen, path):
    model = Zoo(chosen).eval()
    inputs = [gg.tensor(array) for one in chosen for array in one.draw()]
    with gg.no_grad():
        expected = model(*inputs)
        truth = model.double()(*[x.double() if x.dtype.kind == "f" else x for x in inputs])
    exported = gg.onnx.export(model.float(), tuple(inputs), path, dynamic_axes={})
    found = iter(run(session(exported), inputs))
    with gg.no_grad():
        again = iter(gg.onnx.load(path).eval()(*inputs))
    wrong = []
    for one, ours, exact in zip(chosen, expected, truth, strict=True):
        for a, b in zip(ours, exact, strict=True):
            theirs = next(found)
            near = a.numpy() if one.tolerance > 1 else b.numpy()
            wrong += [
                (one.id, y is theirs, float(abs(y - near).max()))
                for y in (theirs, next(again).numpy())
                if y.dtype != a.dtype or not np.allclose(y, near, rtol=1e-5, atol=1e-5)
            ]
    assert not wrong, wrong
    nodes = [node.name for node in exported.graph.node]
    assert any(name.startswith("/layers/3/") for name in nodes), "nodes are named after the layers"


def test_one_case_of_every_layer(tmp_path):
    compare(FIRST, tmp_path / "zoo.onnx")


@pytest.mark.slow
def test_every_case_of_every_layer(tmp_path):
    compare(WRITTEN, tmp_path / "zoo.onnx")


@pytest.mark.parametrize("one", REFUSED, ids=lambda one: one.id)
def test_a_layer_that_reads_numbers_is_refused(one):
    with pytest.raises(errors.CompileError, match="needs the values of"):
        gg.onnx.export(built(one).eval(), tuple(gg.tensor(array) for array in one.draw()), dynamic_axes={})
