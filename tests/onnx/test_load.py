"""ONNX files as modules: files of ours, PyTorch and scikit-learn; fine-tuning; damaged and hostile files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.models import GPT
from tests.onnx.running import flat, needs_runtime
from tests.onnx.test_export_models import CNN

pytestmark = needs_runtime


@pytest.fixture(autouse=True)
def seed():
    gg.manual_seed(0)


def helper():
    from onnx import helper

    return helper


def written(path, nodes, inputs, outputs, initializers=(), opset=18, **domains):
    """Write a file of the given nodes; inputs and outputs are (name, kind, shape)."""
    import onnx

    made = helper()
    graph = made.make_graph(
        nodes,
        "graph",
        [made.make_tensor_value_info(*one) for one in inputs],
        [made.make_tensor_value_info(*one) for one in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in initializers],
    )
    opsets = [made.make_opsetid("", opset), *[made.make_opsetid(name.replace("_", "."), 1) for name in domains]]
    path.write_bytes(made.make_model(graph, opset_imports=opsets).SerializeToString())
    return path


def returns(model, args, tmp_path, **options):
    """Export, load and compare; return what was loaded."""
    path = tmp_path / "model.onnx"
    gg.onnx.export(model, args, path, **options)
    loaded = gg.onnx.load(path).eval()
    with gg.no_grad():
        expected, found = flat(model.eval()(*args)), flat(loaded(*args))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)
    return loaded


def test_models_come_back_with_their_weights(tmp_path):
    cnn = CNN()
    cnn(gg.randn(8, 1, 8, 8))
    loaded = returns(cnn, (gg.randn(5, 1, 8, 8),), tmp_path)
    assert {"conv.weight", "head.weight", "head.bias"} <= set(dict(loaded.named_parameters()))
    gpt = GPT(tokens=11, context=8, width=16, heads=2, layers=1)
    loaded = returns(gpt, (gg.zeros(2, 6, dtype=gg.int64),), tmp_path)
    assert set(dict(loaded.named_parameters())) == set(gpt.state_dict())
    loaded.load_state_dict(gpt.state_dict())


def test_a_layer_of_bfloat16_keeps_its_dtype_in_the_file_and_back(tmp_path):
    from onnx.reference import ReferenceEvaluator

    import onnx

    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).bfloat16(), gg.randn(3, 4).bfloat16()
    gg.onnx.export(model, (x,), tmp_path / "model.onnx")
    written = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(written, full_check=True)
    kinds = [one.type.tensor_type.elem_type for one in (*written.graph.input, *written.graph.output)]
    kinds += [one.data_type for one in written.graph.initializer]
    assert set(kinds) == {onnx.TensorProto.BFLOAT16}
    wanted = model(x).float().detach().numpy()
    (found,) = ReferenceEvaluator(written).run(None, {written.graph.input[0].name: x.numpy()})
    np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=2.0**-7, atol=2.0**-7)
    loaded = gg.onnx.load(tmp_path / "model.onnx")
    assert {one.dtype for one in loaded.parameters()} == {gg.bfloat16}
    back = loaded(x)
    assert back.dtype == gg.bfloat16
    np.testing.assert_allclose(back.float().detach().numpy(), wanted, rtol=2.0**-7, atol=2.0**-7)


def test_a_loaded_model_is_fine_tuned_eagerly_and_compiled(tmp_path):
    path = tmp_path / "model.onnx"
    gg.onnx.export(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 2)), gg.randn(2, 3), path)
    x, target = gg.randn(6, 3), gg.zeros(6, 2)
    ends = []
    for wrap in (lambda step: step, gg.compile):
        model = gg.onnx.load(path)
        optimizer = gg.optim.Adam(model.parameters(), lr=0.05)

        @wrap
        def step(x, target, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((model(x) - target) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        losses = [float(step(x, target)) for _ in range(8)]
        assert losses[-1] < 0.5 * losses[0]
        ends.append(losses[-1])
    assert ends[0] == pytest.approx(ends[1], rel=1e-4)


def test_batch_norm_and_dropout_have_their_modes_again(tmp_path):
    node = helper().make_node
    rng = np.random.default_rng(0)
    path = written(
        tmp_path / "norm.onnx",
        [
            node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], ["n"], epsilon=1e-5, momentum=0.9),
            node("Dropout", ["n", "ratio"], ["y"]),
        ],
        [("x", 1, ["batch", 3])], [("y", 1, ["batch", 3])],
        [("scale", np.ones(3, "f")), ("bias", np.zeros(3, "f")), ("mean", np.zeros(3, "f")), ("var", np.ones(3, "f")),
         ("ratio", np.float32(0.5))],
    )  # fmt: skip  # one file
    model = gg.onnx.load(path)
    assert [name for name, _ in model.named_parameters()] == ["scale", "bias"]
    assert [name for name, _ in model.named_buffers()] == ["mean", "var"]
    x = gg.tensor(rng.normal(3, 1, (64, 3)).astype("f"))
    y = model.train()(x)
    assert 0.3 < float((y == 0).float().mean()) < 0.7
    np.testing.assert_allclose(model.mean.numpy(), 0.1 * x.numpy().mean(0), rtol=1e-4)
    np.testing.assert_allclose(
        model.eval()(x).detach().numpy(), (x - model.mean) / (model.var + 1e-5).sqrt(), rtol=1e-5
    )


def test_a_classifier_as_scikit_learn_writes_it(tmp_path):
    node = helper().make_node
    rng = np.random.default_rng(1)
    w, b, v, c = (rng.normal(size=shape).astype("f") for shape in ((4, 8), (1, 8), (8, 3), (1, 3)))
    nodes = [
        node("Scaler", ["X"], ["scaled"], domain="ai.onnx.ml", offset=[1.0] * 4, scale=[0.5] * 4),
        node("Cast", ["scaled"], ["input"], to=1), node("MatMul", ["input", "coefficient"], ["m"]),
        node("Add", ["m", "intercepts"], ["a"]), node("Relu", ["a"], ["r"]),
        node("MatMul", ["r", "coefficient1"], ["m1"]), node("Add", ["m1", "intercepts1"], ["a1"]),
        node("Softmax", ["a1"], ["p"], axis=1), node("Identity", ["p"], ["probabilities"]),
        node("ArgMax", ["p"], ["best"], axis=1),
        node("ArrayFeatureExtractor", ["classes", "best"], ["found"], domain="ai.onnx.ml"),
        node("Reshape", ["found", "shape"], ["line"]), node("Cast", ["line"], ["label"], to=7),
    ]  # fmt: skip  # one file
    weights = [("coefficient", w), ("intercepts", b), ("coefficient1", v), ("intercepts1", c)]
    path = written(
        tmp_path / "mlp.onnx", nodes, [("X", 1, [None, 4])], [("label", 7, [None]), ("probabilities", 1, [None, 3])],
        [*weights, ("classes", np.array([10, 20, 30], np.int32)), ("shape", np.array([-1]))], ai_onnx_ml=1,
    )  # fmt: skip  # one file
    model = gg.onnx.load(path)
    x = rng.normal(size=(5, 4)).astype("f")
    hidden = np.maximum((x - 1) * 0.5 @ w + b, 0) @ v + c
    labels, probabilities = model(gg.tensor(x))
    np.testing.assert_allclose(probabilities.detach().numpy().argmax(1), hidden.argmax(1))
    np.testing.assert_array_equal(labels.numpy(), np.array([10, 20, 30])[hidden.argmax(1)])
    assert [name for name, _ in model.named_parameters()] == [name for name, _ in weights]

    # Labels that are text are left out, with a warning.
    texts = helper().make_tensor("classes", 8, [3], [b"a", b"b", b"c"])
    import onnx

    proto = onnx.load(path)
    proto.graph.initializer[4].CopyFrom(texts)
    path.write_bytes(proto.SerializeToString())
    with pytest.warns(errors.OnnxWarning, match="the outputs label are text"):
        model = gg.onnx.load(path)
    assert model.outputs == ("probabilities",)
    assert model(gg.tensor(x)).shape == (5, 3)


def test_shapes_that_a_file_computes(tmp_path):
    """As PyTorch's exporter makes the first state of a recurrent layer, and a mask."""
    node = helper().make_node
    nodes = [
        node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "zero"], ["n"]),
        node("Unsqueeze", ["n", "front"], ["n1"]),
        node("Concat", ["n1", "two"], ["wide"], axis=0), node("ConstantOfShape", ["wide"], ["zeros"]),
        node("Range", ["zero", "n", "one"], ["steps"]), node("Unsqueeze", ["steps", "end"], ["column"]),
        node("Less", ["column", "limit"], ["mask"]), node("Where", ["mask", "x", "zeros"], ["y"]),
    ]  # fmt: skip  # one file
    constants = [("zero", np.int64(0)), ("one", np.int64(1)), ("two", np.array([2])), ("front", np.array([0])),
                 ("end", np.array([1])), ("limit", np.array([[2]]))]  # fmt: skip  # a table
    model = gg.onnx.load(written(tmp_path / "m.onnx", nodes, [("x", 1, ["n", 2])], [("y", 1, ["n", 2])], constants))
    for run in (model, gg.compile(model)):
        for rows in (2, 4):
            x = gg.ones(rows, 2)
            np.testing.assert_array_equal(run(x).numpy(), (np.arange(rows) < 2)[:, None] * np.ones((rows, 2)))


# --- damaged and hostile files ----------------------------------------------------------------------------


@pytest.fixture
def plain(tmp_path):
    """A small model as a protocol buffer, and where it lies."""
    import onnx

    path = tmp_path / "inner" / "model.onnx"
    path.parent.mkdir()
    gg.onnx.export(nn.Linear(3, 2), gg.zeros(2, 3), path)
    return onnx.load(path), path


def refuses(proto, path, words, kind=errors.OnnxError):
    path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    with pytest.raises(kind, match=words):
        gg.onnx.load(path)


def test_what_is_no_model_is_refused(plain):
    proto, path = plain
    content = proto.SerializeToString()
    refuses(b"", path, "holds no graph")
    refuses(b"not a model at all", path, "is not a whole ONNX model")
    refuses(content[: len(content) // 2], path, "is not a whole ONNX model")
    with pytest.raises(FileNotFoundError):
        gg.onnx.load(path.with_name("other.onnx"))


@pytest.mark.parametrize(
    ("dims", "words"),
    [([2, 4], "holds 24"), ([1 << 40, 1 << 20], "holds 24"), ([-2, -3], "has the shape"), ([2], "holds 24")],
)
def test_sizes_that_a_file_lies_about(plain, dims, words):
    proto, path = plain
    del proto.graph.initializer[0].dims[:]
    proto.graph.initializer[0].dims.extend(dims)
    refuses(proto, path, words)


def test_elements_of_unknown_kinds(plain):
    proto, path = plain
    proto.graph.initializer[0].data_type = 99
    refuses(proto, path, "elements of the unknown kind 99")
    proto.graph.initializer[0].data_type = 14  # complex
    refuses(proto, path, "does not compute with")


@pytest.mark.parametrize(
    "location", ["../secret.bin", "/etc/hostname", "", ".", "link.bin", "missing.bin", "short.bin"]
)
def test_external_data_stays_in_its_folder_and_its_file(plain, location):
    proto, path = plain
    (path.parent.parent / "secret.bin").write_bytes(bytes(24))
    (path.parent / "short.bin").write_bytes(bytes(10))
    (path.parent / "link.bin").symlink_to(path.parent.parent / "secret.bin")
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    refuses(proto, path, "is stored in")


def test_external_data_beside_the_model(plain):
    proto, path = plain
    expected = np.arange(6, dtype="f").reshape(2, 3)
    (path.parent / "weights.bin").write_bytes(bytes(8) + expected.tobytes())
    tensor = next(one for one in proto.graph.initializer if one.name == "weight")
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    for key, value in (("location", "weights.bin"), ("offset", "8"), ("length", "24")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    path.write_bytes(proto.SerializeToString())
    np.testing.assert_array_equal(gg.onnx.load(path).weight.detach().numpy(), expected)


def test_unknown_operators_are_listed(tmp_path):
    node = helper().make_node
    nodes = [
        node("NonMaxSuppression", ["x"], ["a"]),
        node("Magic", ["a"], ["b"], domain="com.example"),
        node("Relu", ["b"], ["y"]),
    ]
    path = written(tmp_path / "odd.onnx", nodes, [("x", 1, [2])], [("y", 1, [2])], com_example=1)
    with pytest.raises(errors.OnnxError, match=r"NonMaxSuppression, com.example.Magic"):
        gg.onnx.load(path)


def test_values_that_nothing_computes(tmp_path):
    node = helper().make_node
    circle = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])]
    with pytest.raises(errors.OnnxError, match="reads 'b' before it is computed"):
        gg.onnx.load(written(tmp_path / "circle.onnx", circle, [("x", 1, [2])], [("b", 1, [2])]))
    with pytest.raises(errors.OnnxError, match="nothing computes its output 'z'"):
        gg.onnx.load(written(tmp_path / "z.onnx", [node("Relu", ["x"], ["y"])], [("x", 1, [2])], [("z", 1, [2])]))
    model = gg.onnx.load(written(tmp_path / "one.onnx", [node("Relu", ["x"], ["y"])], [("x", 1, [2])], [("y", 1, [2])]))
    with pytest.raises(errors.ArgumentError, match="the model takes x; it was given 2 arguments"):
        model(gg.ones(2), gg.ones(2))


def test_an_option_that_is_not_known_names_its_node(tmp_path):
    layer = nn.GRU(3, 4)
    path = tmp_path / "gru.onnx"
    exported = gg.onnx.export(layer, gg.zeros(5, 2, 3), dynamic_axes={})
    gru = next(one for one in exported.graph.node if one.op_type == "GRU")
    for attribute in gru.attribute:
        attribute.i = 0 if attribute.name == "linear_before_reset" else attribute.i
    path.write_bytes(exported.SerializeToString())
    with pytest.raises(errors.OnnxError, match=r"the node /GRU \(GRU\) resets its state before the product"):
        gg.onnx.load(path)(gg.zeros(5, 2, 3))


# --- PyTorch's own exporter -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mlp", "cnn", "lstm", "attention"])
def test_what_pytorch_writes(kind, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch writes what is loaded")
    torch.manual_seed(0)
    t = torch.nn

    class Attending(t.Module):
        def __init__(self):
            super().__init__()
            self.norm = t.LayerNorm(8)
            self.attention = t.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x):
            y = self.norm(x)
            mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
            return x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]

    image = (t.Conv2d(1, 4, 3, padding=1), t.BatchNorm2d(4), t.ReLU(), t.MaxPool2d(2), t.Flatten(), t.Linear(64, 3))
    model, x = {
        "mlp": lambda: (t.Sequential(t.Linear(4, 8), t.ReLU(), t.Linear(8, 2)), torch.randn(3, 4)),
        "cnn": lambda: (t.Sequential(*image), torch.randn(2, 1, 8, 8)),
        "lstm": lambda: (t.LSTM(3, 4, 2, bidirectional=True, batch_first=True), torch.randn(2, 5, 3)),
        "attention": lambda: (Attending(), torch.randn(2, 5, 8)),
    }[kind]()
    path = tmp_path / "theirs.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), (x,), str(path), dynamo=False)
        expected = flat(model(x))
    found = flat(gg.onnx.load(path)(gg.tensor(x.numpy())))
    for ours, theirs in zip(found, expected, strict=False):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert len(list(gg.onnx.load(path).parameters())) >= 4
