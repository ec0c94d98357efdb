"""Repeated layers and time steps: one loop forward, one back, and the gradients of the tape."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import glassgrad as gg
from glassgrad import nn
from glassgrad.nn import functional as F

CLASSES = [0, 1, 2, 0, 1, 2]


def checked(function, model, *args, simplify=False, loops=True, rtol=None):
    """The source of a function, after its gradients have been compared with those of the tape."""
    source = gg.backward_source(function, simplify=simplify, loops=loops)(*args)
    loss, gradients = source.function()(*[source.data[name] for name in source.arguments])
    model.zero_grad()
    total = function(*args)
    total.backward()
    single = total.array.dtype == np.float32
    rtol = rtol or (1e-6 if single else 1e-12)
    np.testing.assert_allclose(loss, total.item(), rtol=10 * rtol)
    named = dict(model.named_parameters())
    assert len(gradients) == sum(one.grad is not None for one in named.values())
    largest = max(float(np.abs(one.grad.array).max()) for one in named.values() if one.grad is not None)
    for name, parameter in named.items():
        if parameter.grad is not None:
            found, wanted = gradients[f"d{name.replace('.', '_')}"], parameter.grad.array
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=10 * rtol, atol=10 * rtol * largest, err_msg=name)
    return source


def loops(source):
    """The headers of the loops, without comments."""
    lines = [line.partition("#")[0].strip() for line in source.split("def main")[0].splitlines()]
    return [line for line in lines if line.startswith("for ") and "range(" in line and line.endswith(":")]


def body(source):
    """The lines of the function, without comments and blank space behind them."""
    text = source[source.index("def forward_backward") : source.index("def main")]
    return [line.partition("  #")[0].rstrip() for line in text.splitlines()]


class Deep(nn.Module):
    """Equal layers with an activation."""

    def __init__(self, widths, residual=False):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in itertools.pairwise(widths)])
        self.residual = residual

    def forward(self, x):
        h = x
        if self.residual:
            for layer in self.layers:
                h = h + layer(h).tanh()
            return h
        for layer in self.layers:
            h = layer(h).tanh()
        return h


@pytest.mark.parametrize("simplify", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_six_layers_are_written_as_by_hand(simplify, dtype):
    gg.manual_seed(0)
    model = Deep([8] * 7)
    model.float() if dtype == np.float32 else model.double()

    def loss(x, y):
        return F.cross_entropy(model(x), y)

    x = gg.tensor(np.random.default_rng(1).normal(size=(6, 8)).astype(dtype))
    source = checked(loss, model, x, gg.tensor(CLASSES), simplify=simplify)
    assert loops(source) == ["for i in range(6):", "for i in reversed(range(6)):"]
    assert source.arguments == ("x", "y", "layers_weight", "layers_bias")
    lines = body(source)
    for line in (
        "    h[0] = x",
        "        h[i + 1] = np.tanh(h[i] @ layers_weight[i].T + layers_bias[i])",
        "        dlayer = dh * (1 - h[i + 1]**2)",
        "        dlayers_bias[i] = dlayer.sum(axis=0)",
        "        dh = dlayer @ layers_weight[i]",
        "        dlayers_weight[i] = dlayer.T @ h[i]",
    ):
        assert line in lines, line
    assert "# for layer in self.layers:" in source
    commented = [line for line in source.splitlines() if line.startswith("        d") and "# " in line]
    assert sum("h = layer(h).tanh()   [" in line for line in commented) == 4


def test_a_first_layer_of_another_width_stays_outside():
    gg.manual_seed(0)
    model = Deep([4, 8, 8, 8, 8, 3])

    def loss(x):
        return (model(x) ** 2).mean()

    source = checked(loss, model, gg.randn(6, 4))
    assert loops(source) == ["for i in range(4):", "for i in reversed(range(4)):"]
    assert "h[5]" not in source, "the last layer has another width: its result is in no list"


@pytest.mark.parametrize("widths", [[4, 5, 6, 7, 8], [4, 3], [6, 6]])
def test_layers_of_different_widths_and_single_layers_are_no_loop(widths):
    gg.manual_seed(0)
    model = Deep(widths)

    def loss(x):
        return (model(x) ** 2).mean()

    source = checked(loss, model, gg.randn(6, widths[0]))
    assert loops(source) == []
    assert "[None]" not in source


@pytest.mark.parametrize("simplify", [False, True])
def test_residual_layers_add_up_their_gradients(simplify):
    gg.manual_seed(0)
    model = Deep([5] * 6, residual=True).double()

    def loss(x):
        return (model(x) ** 2).mean()

    source = checked(loss, model, gg.randn(6, 5).double(), simplify=simplify)
    assert loops(source) == ["for i in range(5):", "for i in reversed(range(5)):"]
    assert "        dh = dh + dlayer @ layers_weight[i]" in body(source)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q = q.view(batch, length, self.heads, -1).transpose(1, 2)
        k = k.view(batch, length, self.heads, -1).transpose(1, 2)
        v = v.view(batch, length, self.heads, -1).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        mask = gg.triu(gg.ones(length, length), 1) == 1
        weights = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))


class TransformerBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Transformer(nn.Module):
    def __init__(self, layers, width=8, vocabulary=11, length=5):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([TransformerBlock(width, 2) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(gg.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


@pytest.mark.parametrize("simplify", [False, True])
def test_a_transformer_of_four_blocks(simplify, golden):
    gg.manual_seed(0)
    model = Transformer(4).double()
    rng = np.random.default_rng(3)
    tokens, targets = (gg.tensor(rng.integers(0, 11, (3, 5))) for _ in range(2))

    def loss(tokens, targets):
        return model(tokens, targets)

    source = checked(loss, model, tokens, targets, simplify=simplify)
    assert loops(source) == ["for i in range(4):", "for i in reversed(range(4)):"]
    assert "dqkv[:, :, 8:16] += dk" in source
    twelve = Transformer(12).double()
    longer = gg.backward_source(twelve, simplify=simplify)(tokens, targets)
    assert len(longer.splitlines()) <= len(source.splitlines()) + 2, "a deeper model is no longer to read"
    golden(f"source/transformer{'_simplified' * simplify}.py.txt", source)


class Recurrent(nn.Module):
    def __init__(self, inputs=4, width=6):
        super().__init__()
        self.wx, self.wh, self.out = nn.Linear(inputs, width), nn.Linear(width, width, bias=False), nn.Linear(width, 3)

    def forward(self, xs, every=False):
        h = gg.zeros(xs.shape[0], 6, dtype=xs.dtype)
        scores = []
        for t in range(xs.shape[1]):
            h = (self.wx(xs[:, t]) + self.wh(h)).tanh()
            scores.append(self.out(h))
        return gg.stack(scores, 1) if every else scores[-1]


@pytest.mark.parametrize("simplify", [False, True])
def test_time_steps_with_shared_weights_add_to_one_gradient(simplify, golden):
    gg.manual_seed(0)
    model = Recurrent().double()

    def loss(xs, y):
        return F.cross_entropy(model(xs), y)

    source = checked(loss, model, gg.randn(6, 8, 4).double(), gg.tensor(CLASSES), simplify=simplify)
    assert loops(source) == ["for t in range(8):", "for t in reversed(range(8)):"], "under the name of the user's index"
    lines = body(source)
    for line in (
        "    h[0] = np.zeros((6, 6), np.float64)",
        "        h[t + 1] = np.tanh(xs[:, t] @ wx_weight.T + wx_bias + h[t] @ wh_weight.T)",
        "    dwh_weight = np.zeros((6, 6), np.float64)",
        "        dh_pre = dh * (1 - h[t + 1]**2)",
        "        dwh_weight += dh_pre.T @ h[t]",
        "        dwx_weight += dh_pre.T @ xs[:, t]",
    ):
        assert line in lines, line
    golden(f"source/recurrent{'_simplified' * simplify}.py.txt", source)


def test_time_steps_that_all_have_a_result():
    gg.manual_seed(0)
    model = Recurrent().double()
    xs = gg.randn(6, 5, 4).double()
    source = checked(lambda xs: (model(xs, every=True) ** 2).mean(), model, xs)
    assert loops(source)[0] == "for t in range(5):"


class Convolutions(nn.Module):
    def __init__(self, layers=4, channels=3):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.convs = nn.ModuleList([nn.Conv2d(channels, channels, 3, padding=1) for _ in range(layers)])
        self.last = nn.Linear(channels, 3)

    def forward(self, x, y):
        h = self.stem(x).relu()
        for conv in self.convs:
            h = conv(h).relu()
        return F.cross_entropy(self.last(h.mean((2, 3))), y)


@pytest.mark.parametrize("simplify", [False, True])
def test_a_stack_of_convolutions(simplify):
    gg.manual_seed(0)
    model = Convolutions().double()
    x = gg.randn(6, 1, 5, 5).double()
    source = checked(model, model, x, gg.tensor(CLASSES), simplify=simplify)
    assert loops(source) == ["for i in range(4):", "for i in reversed(range(4)):"]
    assert "dh = conv2d_input(dconv, convs_weight[i], size=(5, 5), padding=((1, 1), (1, 1)))" in source


class Two(nn.Module):
    """Two groups of layers that repeat, of different kinds."""

    def __init__(self):
        super().__init__()
        self.first = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.between = nn.Linear(4, 6)
        self.second = nn.ModuleList([nn.Linear(6, 6) for _ in range(5)])

    def forward(self, x):
        for layer in self.first:
            x = layer(x).tanh()
        x = self.between(x)
        for layer in self.second:
            x = x + layer(x).sigmoid()
        return x


@pytest.mark.parametrize("simplify", [False, True])
def test_two_groups_of_layers(simplify):
    gg.manual_seed(0)
    model = Two().double()
    source = checked(lambda x: (model(x) ** 2).sum(), model, gg.randn(2, 4).double(), simplify=simplify)
    assert loops(source) == [
        "for i in range(3):",
        "for i in range(5):",
        "for i in reversed(range(5)):",
        "for i in reversed(range(3)):",
    ]


def test_layers_of_a_sequential_are_a_loop_too():
    gg.manual_seed(0)
    parts = [part for _ in range(5) for part in (nn.Linear(6, 6), nn.Tanh())]
    model = nn.Module()
    model.net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), *parts, nn.Linear(6, 3))
    model.double()
    source = checked(lambda x, y: F.cross_entropy(model.net(x), y), model, gg.randn(6, 4).double(), gg.tensor(CLASSES))
    assert loops(source) == ["for i in range(5):", "for i in reversed(range(5)):"]
    assert '[data[f"net_{2 * i + 2}_weight"] for i in range(5)]' in source


def test_a_layer_of_the_list_that_comes_first_has_its_number():
    """Where only layers 1 to 4 are alike, the loop counts from 1, and layer 0 is entry 0."""
    gg.manual_seed(0)
    model = Deep([4, 8, 8, 8, 8, 8]).double()

    def loss(x):
        h = model.layers[0](x).sigmoid()
        for layer in list(model.layers)[1:]:
            h = layer(h).tanh()
        return (h**2).mean()

    source = checked(loss, model, gg.randn(3, 4).double())
    assert loops(source) == ["for i in range(1, 5):", "for i in reversed(range(1, 5)):"]
    assert "layers_weight[0]" in source
    assert "dlayers_weight[0] =" in source


@pytest.mark.parametrize("simplify", [False, True])
def test_files_with_loops_check_themselves_without_the_library(tmp_path, simplify):
    gg.manual_seed(0)
    model = Deep([5] * 5)
    path = tmp_path / "deep.py"
    source = gg.backward_source(lambda x: (model(x) ** 2).mean(), simplify=simplify)(gg.randn(3, 5))
    source.save(path)
    done = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "dlayers_3_weight" in done.stdout
    path.write_text(path.read_text().replace("dh = dlayer @", "dh = 2 * dlayer @"))
    broken = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True, check=False)
    assert broken.returncode != 0
    assert "differ" in broken.stderr


# --- random stacks --------------------------------------------------------------------------------


class Random(nn.Module):
    """Layers that repeat, of a kind drawn at random, with something before and after them."""

    def __init__(self, layers, width, plan):
        super().__init__()
        self.plan = plan
        self.first = nn.Linear(3, width)
        self.layers = nn.ModuleList([nn.Linear(width, width, bias=plan["bias"]) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(layers)])
        self.shared = nn.Linear(width, width)

    def forward(self, x):
        plan = self.plan
        if plan["first"]:
            x = self.first(x)
        kept = x
        total = 0.0
        for layer, norm in zip(self.layers, self.norms, strict=True):
            inner = norm(x) if plan["norm"] else x
            inner = getattr(layer(inner), plan["activation"])()
            if plan["shared"]:
                inner = inner * self.shared(x).sigmoid()
            x = x + inner if plan["residual"] else inner
            if plan["from_start"]:
                x = x - 0.5 * kept
            if plan["sum"]:
                total = total + (x * x).mean()
        return (x**2).mean() + total


PLANS = st.fixed_dictionaries({
    "bias": st.booleans(), "first": st.booleans(), "norm": st.booleans(), "residual": st.booleans(),
    "shared": st.booleans(), "from_start": st.booleans(), "sum": st.booleans(),
    "activation": st.sampled_from(["tanh", "relu", "sigmoid", "exp"]),
})  # fmt: skip  # a table


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(layers=st.integers(1, 6), plan=PLANS, double=st.booleans(), simplify=st.booleans())
def test_random_stacks_agree_with_the_tape_rolled_up_or_not(layers, plan, double, simplify):
    double = double or plan["activation"] == "exp"  # exp of exp of exp is too much for single precision
    gg.manual_seed(layers)
    model = Random(layers, 4 if plan["first"] else 3, plan)
    for parameter in model.parameters():
        parameter.array *= 0.3  # so that exp after exp stays small
    x = gg.tensor(np.random.default_rng(layers).normal(size=(5, 3)) * 0.3)
    if double:
        model.double()
    else:
        model.float()
        x = x.float()

    def loss(x):
        return model(x)

    source = checked(loss, model, x, simplify=simplify)
    if layers >= 4:
        assert any("reversed" in line for line in loops(source)), plan
    flat = checked(loss, model, x, simplify=simplify, loops=False)
    assert loops(flat) == []
    if layers >= 4:
        assert len(body(source)) < len(body(flat))
    results = [one.function()(*[one.data[name] for name in one.arguments])[1] for one in (source, flat)]
    for name, gradient in results[0].items():
        np.testing.assert_array_equal(gradient, results[1][name], err_msg=name)
