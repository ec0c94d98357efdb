"""The backward pass as a program: it runs with only NumPy, keeps the user's names, and agrees with the tape."""

from __future__ import annotations

import ast
import math
import subprocess
import sys

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.compile.ir.graph import GraphBuilder
from glassgrad.compile.numpy.text import Text
from glassgrad.compile.source.functions import HELPERS, definitions
from glassgrad.compile.source.reading import READING
from glassgrad.nn import functional as F
from tests.compile.source.names_in_steps import PARAMETERS, STEPS, arguments, names_loss
from tests.ops.cases import cases

# Lines of the hand derivation of this network that is commonly taught: softmax and batch norm each in one line.
BY_HAND = 25


def sections(source):
    """The assignments of the forward and of the backward section."""
    found, section = {"forward": [], "backward": []}, None
    for line in source.splitlines():
        if line.strip().startswith("# forward"):
            section = "forward"
        elif line.strip().startswith("# backward"):
            section = "backward"
        elif line.startswith("    gradients = "):
            section = None
        elif section and line.strip():
            found[section].append(line)
    return found


def assigned(lines):
    tree = ast.parse("def f():\n" + "\n".join(lines))
    found = []
    for node in tree.body[0].body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name):
            found.append(target.id)
    return found


def tape_gradients(args):
    loss = names_loss(*args)
    return loss, gg.autograd.grad(loss, args[2:])


@pytest.mark.parametrize("simplify", [False, True])
def test_the_names_network_agrees_with_the_tape(simplify):
    args = arguments()
    source = gg.backward_source(names_loss, simplify=simplify)(*args)
    loss, gradients = source.function()(*(x.detach().numpy() for x in args))
    wanted, by_tape = tape_gradients(args)
    np.testing.assert_allclose(loss, wanted.item(), rtol=1e-12)
    for name, one in zip(PARAMETERS, by_tape, strict=True):
        np.testing.assert_allclose(gradients[f"d{name}"], one.array, atol=1e-6, rtol=1e-6, err_msg=name)


def test_every_step_keeps_its_name_and_order():
    lines = sections(gg.backward_source(names_loss)(*arguments()))
    forward = [name for name in assigned(lines["forward"]) if name in STEPS]
    assert tuple(forward) == STEPS
    backward = assigned(lines["backward"])
    for name in [*(step for step in STEPS if step != "embedded"), *PARAMETERS]:
        assert f"d{name}" in backward, f"the gradient of {name} has no line"


def test_backward_lines_name_their_forward_line_and_rule():
    lines = sections(gg.backward_source(names_loss)(*arguments()))["backward"]
    assert any("hidden = shifted.tanh()   [tanh: 1 - y**2]" in line for line in lines)
    assert any("dw2 = hidden.T @ dscores" in line and "scores = hidden @ w2" in line for line in lines)
    uncommented = [line for line in lines if "#" not in line]
    assert len(uncommented) <= 4, uncommented  # the seed, and zeros whose comment follows a line below


def test_simplified_it_is_no_longer_than_by_hand():
    source = gg.backward_source(names_loss, simplify=True)(*arguments())
    backward = sections(source)["backward"]
    assert len(backward) <= BY_HAND
    assert any("softmax - one_hot" in note for note in source.notes)
    assert any("normalisation" in note for note in source.notes)
    for note in source.notes:
        assert note in source, "the file says which rules were used"
    text = "\n".join(backward)
    assert "dcounts" not in text
    assert "dvariance" not in text
    in_steps = sections(gg.backward_source(names_loss)(*arguments()))["backward"]
    assert len(assigned(backward)) < len(assigned(in_steps)) / 2


@pytest.mark.parametrize("simplify", [False, True])
def test_the_file_checks_itself_without_the_library(tmp_path, simplify):
    path = tmp_path / "names.py"
    gg.backward_source(names_loss, simplify=simplify)(*arguments(np.float32)).save(path)
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert imported <= {"math", "numpy", "pathlib"}
    run = [sys.executable, "-I", str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything agrees" in done.stdout
    path.write_text(path.read_text().replace("dw2 = hidden.T @", "dw2 = 2 * hidden.T @"))
    broken = subprocess.run(run, capture_output=True, text=True, check=False)
    assert broken.returncode != 0
    assert "differ" in broken.stderr


def test_the_golden_sources(golden):
    for simplify, name in ((False, "names_steps.py.txt"), (True, "names_simplified.py.txt")):
        golden(f"source/{name}", gg.backward_source(names_loss, simplify=simplify)(*arguments(np.float32)))


READABLE = [case for case in cases(differentiable=False) if case.prim.name in READING]


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.id)
def test_the_text_of_every_op_computes_the_op(case):
    """In a namespace with nothing but NumPy and the helpers."""
    args, params = case.draw(2)
    args = [np.asarray(x) for x in args]
    builder = GraphBuilder()
    operands = [builder.input(x.shape, x.dtype) for x in args]
    with np.errstate(all="ignore"):
        aval = case.prim.abstract(*operands, **params)
    builder.apply(case.prim.name, operands, aval.shape, aval.dtype, params)
    space = {"np": np, "math": math, **{f"x{at}": x for at, x in enumerate(args)}}
    written = READING[case.prim.name](builder.instrs[0], [Text(f"x{at}") for at in range(len(args))]).code
    exec(definitions(HELPERS), space)  # noqa: S102 - the text under test
    with np.errstate(all="ignore"):
        found = np.asarray(eval(written, space))  # noqa: S307 - our own expression, no builtins
        wanted = np.asarray(case.prim.compute(tuple(args), params))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12, err_msg=written)


# --- models ---------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        inner = self.up(self.norm(x)).relu()
        return x + self.down(inner)


@pytest.mark.parametrize("simplify", [False, True])
@pytest.mark.parametrize("loss_of", [F.cross_entropy, lambda x, y: F.nll_loss(F.log_softmax(x, 1), y)])
def test_a_model_with_layers(simplify, loss_of):
    gg.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), Block(8), nn.BatchNorm1d(8), nn.GELU("tanh"), nn.Linear(8, 3)).double()
    x, y = gg.randn(6, 5).double(), gg.tensor([0, 1, 2, 0, 1, 2])

    def run(x, y):
        return loss_of(model(x), y)

    running = model[2].running_mean.array.copy()
    source = gg.backward_source(run, simplify=simplify)(x, y)
    np.testing.assert_array_equal(model[2].running_mean.array, running)
    inputs = [source.data[name] for name in source.arguments]
    loss, gradients = source.function()(*inputs)
    run(x, y).backward()
    np.testing.assert_allclose(loss, run(x, y).item(), rtol=1e-10)
    parameters = list(model.parameters())
    assert len(gradients) == len(parameters)
    shapes = sorted(gradient.shape for gradient in gradients.values())
    assert shapes == sorted(p.shape for p in parameters)
    wanted = sorted(float(np.abs(p.grad.array).sum()) for p in parameters)
    found = sorted(float(np.abs(gradient).sum()) for gradient in gradients.values())
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    if simplify:
        assert len(source.notes) >= 3


class Deep(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.first = nn.Linear(5, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(layers)])
        self.last = nn.Linear(width, 3)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


@pytest.mark.parametrize("simplify", [False, True])
def test_layers_that_repeat_are_loops(simplify, golden):
    def run(x, y):
        logits = model(x)
        return F.cross_entropy(logits, y)

    lengths = []
    for layers in (2, 4, 7):
        gg.manual_seed(0)
        model = Deep(6, layers).double()
        x, y = gg.randn(6, 5).double(), gg.tensor([0, 1, 2, 0, 1, 2])
        source = gg.backward_source(run, simplify=simplify)(x, y)
        assert f"for i in range({layers}):" in source
        assert f"for i in reversed(range({layers})):" in source
        loss, gradients = source.function()(*[source.data[name] for name in source.arguments])
        model.zero_grad()
        total = run(x, y)
        total.backward()
        np.testing.assert_allclose(loss, total.item(), rtol=1e-12)
        for name, parameter in model.named_parameters():
            found = gradients[f"d{name.replace('.', '_')}"]
            np.testing.assert_allclose(found, parameter.grad.array, rtol=1e-7, atol=1e-10, err_msg=name)
        lengths.append(sum(map(len, sections(source).values())))
        if layers == 4:
            golden(f"source/layers{'_simplified' * simplify}.py.txt", source)
    assert lengths[2] - lengths[0] <= 24, "only the lists of parameters grow with the number of layers"


def test_lines_that_do_not_repeat_exactly_stay():
    def run(a, b, c):
        first = (a * 1.0).tanh()
        second = (b * 2.0).tanh()
        third = (c * 3.0).sigmoid()
        return (first * first).sum() + (second * second).sum() + (third * third).sum()

    leaves = [gg.randn(3).requires_grad_() for _ in range(3)]
    source = gg.backward_source(run)(*leaves)
    assert "for i in" not in source
    _, gradients = source.function()(*[source.data[name] for name in source.arguments])
    for name, one in zip("abc", gg.autograd.grad(run(*leaves), leaves), strict=True):
        np.testing.assert_allclose(gradients[f"d{name}"], one.array, rtol=1e-5)


def test_targets_that_are_ignored_are_not_simplified_away():
    logits = gg.randn(4, 3).double().requires_grad_()
    targets = gg.tensor([0, -100, 2, 1])
    source = gg.backward_source(F.cross_entropy, simplify=True)(logits, targets)
    assert source.notes == ()
    _, gradients = source.function()(*[source.data[name] for name in source.arguments])
    (wanted,) = gg.autograd.grad(F.cross_entropy(logits, targets), logits)
    (found,) = gradients.values()
    np.testing.assert_allclose(found, wanted.array, atol=1e-12)


def test_a_product_with_the_variance_is_no_normalisation():
    def loss(x):
        centred = x - x.mean(1, keepdim=True)
        return (centred / ((centred * centred).mean(1, keepdim=True) + 1e-5).reciprocal()).square().sum()

    x = gg.randn(3, 4).double().requires_grad_()
    source = gg.backward_source(loss, simplify=True)(x)
    assert source.notes == ()
    _, gradients = source.function()(*[source.data[name] for name in source.arguments])
    np.testing.assert_allclose(gradients["dx"], gg.autograd.grad(loss(x), x)[0].array, rtol=1e-9)


def test_what_has_no_loss_is_refused():
    w = gg.ones(3, requires_grad=True)
    with pytest.raises(errors.CompileError, match=r"returned float32\[3\]"):
        gg.backward_source(lambda x: w * x)(gg.ones(3))
    with pytest.raises(errors.CompileError, match="needs a function that returns its loss"):
        gg.backward_source(lambda x: x.sum())(gg.ones(3))


def test_an_op_without_numpy_text_is_refused():
    w = gg.ones(3, requires_grad=True)
    told = r"(?s)digamma at .*test_backward_source.py.* has no NumPy source: its forward calls psi, which is no"
    with pytest.raises(errors.CompileError, match=told):
        gg.backward_source(lambda x: (w * x).digamma().sum())(gg.ones(3))


def _agrees(function, *leaves, simplify=False):
    """Compare the gradients that a source finds with those of the tape."""
    source = gg.backward_source(function, simplify=simplify)()
    _, found = source.function()(*[source.data[name] for name in source.arguments])
    for name, one in zip(found, gg.autograd.grad(function(), leaves), strict=True):
        np.testing.assert_allclose(found[name], one.array, rtol=1e-6, err_msg=name)
    return source


@pytest.mark.parametrize("simplify", [False, True])
def test_gradients_stop_where_they_stop_on_the_tape(simplify):
    w = gg.tensor([1.0, 2.0], requires_grad=True)
    x = gg.tensor([3.0, 4.0])

    def detached():
        return (w * x * w.detach()).sum()

    def through_data():
        return (w * x * w.data).sum()

    def without_recording():
        with gg.no_grad():
            target = (w * 2).tanh()
        return ((w - target) ** 2).sum()

    def straight_through():
        rounded = w + (w.round() - w).detach()
        return (rounded * x).sum()

    for function in (detached, through_data, without_recording, straight_through):
        _agrees(function, w, simplify=simplify)


def test_a_row_for_padding_gets_no_gradient():
    table = nn.Embedding(5, 3, padding_idx=0)
    tokens = gg.tensor([[0, 1], [2, 0]])

    def loss():
        return (table(tokens) ** 2).sum()

    source = _agrees(loss, table.weight)
    _, found = source.function()(*[source.data[name] for name in source.arguments])
    assert not found["dweight"][0].any()


class Rounded(gg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


def test_what_changes_a_gradient_out_of_sight_is_refused():
    w = gg.tensor([1.2, 2.7], requires_grad=True)

    def hooked():
        y = w * 2
        y.register_hook(lambda g: 10 * g)
        return y.sum()

    def half_custom():
        return (Rounded.apply(w) * w).sum()

    def custom():
        return Rounded.apply(w).sum()

    for function in (hooked, half_custom, custom):
        with pytest.raises(
            errors.CompileError, match="the gradient of w differs from that of the ops of the forward pass"
        ):
            gg.backward_source(function)()


def test_a_function_that_walks_back_itself_is_taken_for_its_loss():
    """Whatever it does with the gradients afterwards, and whatever was there before."""
    w = gg.tensor([1.0, 2.0], requires_grad=True)

    def step(x):
        loss = ((w * x) ** 2).sum()
        loss.backward()
        nn.utils.clip_grad_norm_([w], 1.0)
        return loss

    for before in (None, gg.tensor([100.0, 100.0])):
        w.grad = before
        source = gg.backward_source(step)(gg.tensor([3.0, 4.0]))
        np.testing.assert_allclose(source.data["dw"], [18.0, 64.0])
        _, gradients = source.function()(*[source.data[name] for name in source.arguments])
        np.testing.assert_allclose(gradients["dw"], [18.0, 64.0])
        assert w.grad is before


STEPS_OF_TEXT = """
def loss(x):
    h = (x @ w).tanh()
    out = h @ w + 1
    return (out ** 2).mean()
"""


@pytest.mark.parametrize("simplify", [False, True])
def test_without_source_text_values_are_named_after_their_ops(simplify):
    space = {"gg": gg, "w": gg.tensor([[1.0, 2.0], [0.5, -1.0]], requires_grad=True)}
    exec(STEPS_OF_TEXT, space)  # noqa: S102 - what a notebook or a REPL without lines in linecache does
    x = gg.tensor([[3.0, 4.0], [1.0, 2.0]])
    expression = eval("lambda x: ((w * x).sigmoid() * w).sum()", space)  # noqa: S307 - a constant, as above
    comprehended = [lambda x, k=k: ((x @ space["w"]).relu() * k).sum() for k in (1, 2)]
    for function in (space["loss"], expression, *comprehended):
        source = gg.backward_source(function, simplify=simplify)(x)
        _, gradients = source.function()(*[source.data[name] for name in source.arguments])
        (wanted,) = gg.autograd.grad(function(x), space["w"])
        (found,) = gradients.values()
        np.testing.assert_allclose(found, wanted.array, rtol=1e-6)
        names = assigned([line for lines in sections(source).values() for line in lines])
        assert not [name for name in names if name.startswith("v") and name[1:].isdigit()]
        assert any(name in {"tanh", "relu", "sigmoid_out"} for name in names), names


def test_nothing_happens_to_the_model_or_the_stream():
    gg.manual_seed(3)
    w = gg.ones(4, requires_grad=True)
    before = gg.default_generator.get_state()
    source = gg.backward_source(lambda x: (F.dropout(w, 0.5) * x).sum())(gg.ones(4))
    assert gg.default_generator.get_state() == before
    assert w.grad is None
    _, gradients = source.function()(*[source.data[name] for name in source.arguments])
    assert set(gradients["dw"].tolist()) <= {0.0, 2.0}
