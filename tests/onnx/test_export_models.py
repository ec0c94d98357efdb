"""Whole models: exported, run by onnxruntime, compared; other sizes of the variable axes; refusals."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.models import GPT
from tests.onnx.running import agrees, needs_runtime, run, same, session

pytestmark = needs_runtime


@pytest.fixture(autouse=True)
def seed():
    gg.manual_seed(0)


class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.mean = nn.AdaptiveAvgPool2d(2)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(16, 3)

    def forward(self, images):
        x = self.pool(self.norm(self.conv(images)).relu())
        return self.head(self.drop(self.mean(x).flatten(1)))


def test_a_network_of_layers_and_other_batches():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    exported = gg.onnx.export(model, gg.randn(3, 4), input_names=["x"], output_names=["y"])
    assert [node.op_type for node in exported.graph.node] == ["Gemm", "Relu", "Gemm"]
    assert [node.name for node in exported.graph.node] == ["/0/Gemm", "/1/Relu", "/2/Gemm"]
    assert [one.name for one in exported.graph.initializer] == list(model.state_dict())
    made = session(exported)
    assert (made.get_inputs()[0].name, made.get_outputs()[0].name) == ("x", "y")
    for rows in (1, 5):
        same(made, model, (gg.randn(rows, 4),))


@pytest.mark.parametrize("wrap", [lambda model: model, gg.compile])
def test_a_convolutional_network_in_evaluation_mode(tmp_path, wrap):
    model = CNN()
    model(gg.randn(8, 1, 8, 8))  # running statistics that are not those of the start
    path = tmp_path / "cnn.onnx"
    gg.onnx.export(wrap(model), gg.randn(5, 1, 8, 8), path)
    assert model.training
    assert model.drop.training
    made = session(path)
    for count in (1, 7):
        same(made, model, (gg.randn(count, 1, 8, 8),))
    nodes = [node.name for node in gg.onnx.export(model, gg.randn(5, 1, 8, 8)).graph.node]
    assert "/conv/Conv" in nodes
    assert "/head/Gemm" in nodes


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_are_one_operator_and_take_any_length(kind):
    model = kind(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    axes = {"input": {0: "batch", 1: "time"}}
    name = next(iter(gg.onnx.export(model, gg.randn(2, 5, 3)).graph.input)).name
    exported = gg.onnx.export(model, gg.randn(2, 5, 3), dynamic_axes={name: axes["input"]})
    assert [node.op_type for node in exported.graph.node].count(kind.__name__) == 4
    made = session(exported)
    for shape in ((2, 5, 3), (1, 9, 3)):
        same(made, model, (gg.randn(*shape),))


def test_sequences_of_several_lengths():
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.LSTM(3, 4)

        def forward(self, x):
            packed = nn.utils.rnn.pack_padded_sequence(x, [4, 2])
            return nn.utils.rnn.pad_packed_sequence(self.inner(packed)[0])[0]

    agrees(Packed(), (gg.randn(4, 2, 3),), dynamic_axes={})


def test_a_transformer_of_any_length():
    model = GPT(tokens=11, context=8, width=16, heads=2, layers=2)
    draw = np.random.default_rng(0)
    exported = gg.onnx.export(
        model, gg.tensor(draw.integers(0, 11, (2, 8))), dynamic_axes={"tokens": {0: "batch", 1: "length"}}
    )
    made = session(exported)
    for shape in ((2, 8), (1, 1), (3, 5)):
        same(made, model, (gg.tensor(draw.integers(0, 11, shape)),))
    assert any(node.name.startswith("/blocks/0/norm1/LayerNormalization") for node in exported.graph.node)


def test_indices():
    i, j = gg.tensor([[0, 2], [1, -1]]), gg.tensor([1, 0])

    def model(x):
        return [
            x[1], x[..., -1], x[::-1, 1:3], x[:, None, 0], x[i], x[:, i], x[:, :, j], x[i, :, j[0]], x[j, j],
            x[:, j, j], x[None, j, :, 1:2], x[:, :, None, j], x[..., j, j, None], x[-1, 0, 2],
        ]  # fmt: skip  # one index each

    agrees(model, (gg.randn(4, 3, 4),), dynamic_axes={})


def test_writes_at_an_index_with_a_batch_that_varies():
    def model(x):
        y = x * 1
        y[:, 1] = 0.5
        y[:, 2] += x[:, 0]
        return y, x.flip(0), gg.roll(x, 1, 1), gg.tril(x[:, None] * x[..., None]), gg.cat([x, x])

    made = agrees(model, (gg.randn(3, 4),))
    same(made, model, (gg.randn(6, 4),))


def test_ops_without_samples():
    edges = gg.tensor([-1.0, 0.0, 1.0])
    odd_numbers = gg.tensor([np.nan, np.inf, -1.0])
    whole = gg.tensor([[7, -7, 5], [0, 3, -2]])

    def model(x, n):
        odd = x * 0 + odd_numbers
        values, places = gg.topk(x, 2, dim=1)
        return [
            x == 0, x != 0, x < 0.1, x <= 0, x > 0, x >= 0, gg.isnan(odd), gg.isinf(odd),
            gg.isfinite(odd),
            gg.floor(x), gg.ceil(x), gg.trunc(x), gg.round(x * 3), gg.sign(x), (x > 0) & (x < 1), (x > 0) | (x < -1),
            (x > 0) ^ (n > 0), ~(x > 0), n & 3, n | 4, n ^ 5, ~n, n // 2, n % 3, gg.fmod(n, 3),
            x // 0.3, x % 0.3, n / 2,
            gg.argmax(x, 1), gg.argmin(x), x.any(1), x.all(), values, places, gg.argsort(x, 1), gg.median(x, 1)[0],
            gg.sort(x, 1, descending=True)[0], gg.searchsorted(edges, x), gg.isin(n, whole[0]),
            nn.functional.one_hot(n % 3, 3),
            x.to(gg.int64), n.to(gg.float32), gg.fmax(x, edges), gg.fmin(x, edges),
        ]  # fmt: skip  # one call each

    agrees(model, (gg.tensor([[0.0, 1.5, -0.7], [-1.2, 0.3, 2.5]]), whole), dynamic_axes={})


# --- refusals -----------------------------------------------------------------------------------------


def test_random_draws_are_refused():
    with pytest.raises(errors.OnnxError, match=r"draws .* in each call"):
        gg.onnx.export(lambda x: x + gg.randn(3), gg.zeros(2, 3))


def test_a_program_that_differs_with_its_sizes_is_refused():
    def loop(x):
        for _ in range(x.shape[0]):
            x = gg.exp(x)
        return x

    with pytest.raises(errors.OnnxError, match=r"runs different programs for different sizes.*fixed sizes|batch=5"):
        gg.onnx.export(loop, gg.zeros(5, 2))
    agrees(loop, (gg.full((2, 2), -1.0),), dynamic_axes={})


def test_a_number_that_follows_the_size_is_refused():
    with pytest.raises(errors.OnnxError, match=r"a number of multiply.*test_export_models.py.*changes with the sizes"):
        gg.onnx.export(lambda x: x * (1 / x.shape[0]), gg.zeros(4, 2))


def test_wrong_options():
    model, x = nn.Linear(2, 3), gg.zeros(4, 2)
    for options, words in (
        ({"opset": 9}, "from 18 to 23"),
        ({"input_names": ["a", "b"]}, "the model has 1 inputs"),
        ({"dynamic_axes": {"input": {5: "batch"}}}, "no axis 5"),
        ({"dynamic_axes": {"x": {0: "batch"}}}, "no input 'x'; the inputs are 'input'"),
    ):
        with pytest.raises(errors.ArgumentError, match=words):
            gg.onnx.export(model, x, **options)
    with pytest.raises(errors.OnnxError, match=r"name the axes that vary"):
        gg.onnx.export(model, gg.zeros(2))
    with pytest.raises(errors.ShapeError, match=r"linear at .*test_export_models.py"):
        gg.onnx.export(model, gg.zeros(4, 3))
    with pytest.raises(FileNotFoundError, match=r"no/where.onnx'"):
        gg.onnx.export(model, x, "no/where.onnx")


def test_state_that_is_written_is_refused():
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", gg.zeros(1))

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    with pytest.raises(errors.OnnxError, match=r"writes to .*calls"):
        gg.onnx.export(Counter(), gg.zeros(2, 3))


def test_what_is_passed_through_and_shared():
    tied = nn.Linear(3, 3, bias=False)
    model = nn.Sequential(tied, nn.Tanh(), tied, nn.Identity())
    exported = gg.onnx.export(model, gg.randn(2, 3))
    assert [one.name for one in exported.graph.initializer] == ["0.weight"]
    x, y = gg.randn(2, 3), gg.randn(2, 2)
    made = session(gg.onnx.export(lambda x, y: (y, x + 1, x + 1), (x, y)))
    np.testing.assert_array_equal(run(made, (x, y))[0], y.numpy())


def test_weights_that_are_too_large_for_one_file_lie_beside_it(tmp_path):
    import onnx
    from glassgrad.onnx import exporting

    model, path = nn.Linear(30, 20), tmp_path / "large.onnx"
    exporting.write(onnx, gg.onnx.export(model, gg.randn(2, 30)), path, largest=1000)
    assert (tmp_path / "large.onnx.data").stat().st_size >= 4 * 600
    assert path.stat().st_size < 1000
    same(session(path), model, (gg.randn(3, 30),))
    np.testing.assert_array_equal(gg.onnx.load(path).weight.detach().numpy(), model.weight.detach().numpy())


def test_a_path_in_place_of_the_input() -> None:
    model = gg.nn.Linear(2, 1)
    with pytest.raises(errors.ArgumentError, match=r"Next: onnx.export\(model, x, 'm.onnx'\)"):
        gg.onnx.export(model, "m.onnx", gg.zeros(1, 2))
