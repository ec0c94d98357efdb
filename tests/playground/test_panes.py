"""Every pane of every example beside the library's own answers for the same program, run without the playground."""

from __future__ import annotations

import base64
import contextlib
import io
import re
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.doctor.reading.beside import joined
from glassgrad.doctor.script import run_script
from glassgrad.lessons.limits import Watchdog
from glassgrad.lessons.playground import gallery
from glassgrad.lessons.playground.events import Output, Sender
from glassgrad.lessons.playground.loop import Loop, witnessed
from glassgrad.lessons.playground.panes import Panes
from glassgrad.lessons.playground.program import Program, read, run
from glassgrad.lessons.program import execute

EXAMPLES = [str(one["name"]) for one in gallery.listed() if "-" not in str(one["name"])]
# The finding that names the fault; where there is none, whatever the command says is enough.
BROKEN = {
    "broken_gradients_add": "zero_grad-is-missing",
    "broken_softmax_twice": "softmax-twice",
    "broken_rate": "",
    "broken_detached": "",
    "broken_order": "",
}


class Lines(io.StringIO):
    """Takes the events of a loop."""


def ran(text: str, file: str) -> tuple[Program, Loop, Lines]:
    """Run a program as a process of the playground does."""
    gg.manual_seed(0)
    lines = Lines()
    send = Sender(lines)
    guard = Watchdog(lambda reason, line: None, file, 60.0)
    program = read(text, file)
    loop = Loop(send, guard, program, lambda: None)
    with witnessed(loop), contextlib.redirect_stdout(Output(send, "stdout")), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(program)
    loop.over()
    guard.stop()
    return program, loop, lines


@cache
def panes(name: str) -> Panes:
    """The panes of an example."""
    found, loop, _ = ran(gallery.text_of(name), f"{name}.example.py")
    assert found.error is None, found.error
    return Panes(found, trains=loop.steps > 0)


@cache
def plainly(name: str) -> dict[str, Any]:
    """The variables of an example that Python has run, with the gradients of the loss."""
    gg.manual_seed(0)
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        execute(compile(gallery.text_of(name), f"{name}.example.py", "exec"), names)
        with contextlib.suppress(errors.AutogradError):  # the program has called it
            names["loss"].backward()
    return names


def numbers(data: Any) -> np.ndarray:
    """The numbers of an array of a pane."""
    if "numbers" in data:
        return np.array(data["numbers"], float)
    heat = data["heat"]
    return np.frombuffer(base64.b64decode(heat["data"]), "<f4").reshape(heat["rows"], heat["columns"])


def trains(name: str) -> bool:
    return "optimizer.step()" in gallery.text_of(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_values_and_gradients(name: str) -> None:
    variables = {one["name"]: one for one in panes(name).values()["variables"]}
    plain = plainly(name)
    tensors = {key: one for key, one in plain.items() if isinstance(one, gg.Tensor) and not key.startswith("_")}
    assert tensors.keys() <= variables.keys()
    for key, tensor in tensors.items():
        shown = variables[key]
        assert shown["shape"] == list(tensor.shape)
        assert shown["requires_grad"] == tensor.requires_grad
        assert key in gallery.text_of(name).splitlines()[shown["line"] - 1]
        if tensor.numel() <= 64:
            np.testing.assert_allclose(numbers(shown["value"]), tensor.detach().numpy(), rtol=1e-5, atol=1e-6)
        else:
            assert shown["value"]["mean"] == pytest.approx(float(tensor.detach().float().mean()), rel=1e-4, abs=1e-5)
        if tensor.is_leaf and tensor.requires_grad:
            grad = np.zeros(tensor.shape) if tensor.grad is None else tensor.grad.numpy()
            assert shown["grad"]["mean"] == pytest.approx(float(grad.mean()), rel=1e-4, abs=1e-6), key
            if grad.size <= 64:
                np.testing.assert_allclose(numbers(shown["grad"]), grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["product_and_sine", "paths_add", "matrix_product", "batch_norm", "attention"])
def test_gradients_of_what_is_between(name: str) -> None:
    """The oracle asks for the gradient of each intermediate in a run of its own."""
    names: dict[str, Any] = {}
    execute(compile(gallery.text_of(name), f"{name}.example.py", "exec"), names)
    between = {
        key: one for key, one in names.items() if isinstance(one, gg.Tensor) and one.requires_grad and not one.is_leaf
    }
    wanted = gg.autograd.grad(names["loss"], list(between.values()), allow_unused=True)
    shown = {one["name"]: one for one in panes(name).values()["variables"]}
    assert len(between) > 0
    for key, grad in zip(between, wanted, strict=True):
        np.testing.assert_allclose(numbers(shown[key]["grad"]), grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_graph(name: str) -> None:
    graph = panes(name).graph()
    nodes = {one["id"]: one for one in graph["nodes"]}
    assert sorted(nodes) == sorted(graph["order"]) == sorted(graph["backward"])
    place = {node: at for at, node in enumerate(graph["order"])}
    assert all(place[one["from"]] < place[one["to"]] for one in graph["edges"])
    last = nodes[graph["order"][-1]]
    assert last["grad"]["numbers"] in (1.0, [1.0])
    assert numbers(last["value"]) == pytest.approx(plainly(name)["loss"].item(), rel=1e-4)
    text = gallery.text_of(name).splitlines()
    assert all(one["line"] is None or text[one["line"] - 1].strip() for one in graph["nodes"])
    if not trains(name) and "backward()" not in gallery.text_of(name):
        names: dict[str, Any] = {}
        execute(compile(gallery.text_of(name), f"{name}.example.py", "exec"), names)
        drawn = gg.draw(names["loss"]).graph.nodes
        own = [one["op"] for one in graph["nodes"] if one["op"] != "input"]
        assert sorted(own) == sorted(one.op for one in drawn if one.kind == "op")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_backward_program_computes_the_loss(name: str) -> None:
    found = panes(name).pane("backward")
    replay = panes(name).replay
    text = gallery.text_of(name).splitlines()
    assert len(found["lines"]) == found["program"].rstrip("\n").count("\n") + 1
    linked = [one for one in found["lines"] if one["source_line"]]
    assert linked
    assert all(text[one["source_line"] - 1].strip() for one in linked)
    names: dict[str, Any] = {}
    execute(compile(found["program"], "backward.py", "exec"), names)
    entry = replay.title if replay.title in names else "step"
    given = {one.name: one.array for one in (*replay.data, *replay.leaves)}
    code = names[entry].__code__
    arguments = code.co_varnames[: code.co_argcount]
    if set(arguments) <= set(given):
        result = names[entry](*(np.array(given[one]) for one in arguments))
        loss = result[0] if isinstance(result, tuple) else result
        assert float(loss) == pytest.approx(plainly(name)["loss"].item(), rel=1e-4)
    else:
        assert name in {"convolution", "char_gpt", "names_mlp"}, set(arguments) - set(given)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_derivation(name: str) -> None:
    steps = panes(name).derivation()["steps"]
    ops = [one for one in panes(name).graph()["nodes"] if one["op"] != "input"]
    assert [one["name"] for one in steps[: len(ops)]] == [one["id"] for one in ops]
    assert steps[len(ops)]["text"].endswith(" = 1")
    assert len(steps) == len(ops) + 1 + sum(len(step.edges) for step in panes(name).record.steps)
    for one in steps:
        assert one["tex"].count("{") - one["tex"].count(r"\{") == one["tex"].count("}") - one["tex"].count(r"\}")


def test_the_derivation_is_that_of_a_textbook() -> None:
    texts = [one["text"] for one in panes("product_and_sine").derivation()["steps"]]
    assert texts[-1].startswith("d")
    assert any("cos(x)" in one for one in texts)
    assert any(one.endswith("(x) = 2") or "* (x)" in one for one in texts)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "char_gpt"])
def test_the_check(name: str) -> None:
    found = panes(name).check()["inputs"]
    assert len(found) == len(panes(name).replay.leaves) > 0
    for one in found:
        assert one["passed"], one
        assert one["numeric"] == pytest.approx(one["analytic"], rel=2e-3, abs=1e-4)


def test_the_check_finds_a_wrong_rule() -> None:
    text = """
import glassgrad as gg
class Cube(gg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x ** 2
x = gg.tensor(2.0, requires_grad=True)
y = gg.tensor(2.0, requires_grad=True)
loss = Cube.apply(x) * y.sin()
"""
    found, _, _ = ran(text, "wrong.example.py")
    by_name = {one["name"]: one for one in Panes(found).check()["inputs"]}
    assert (by_name["x"]["passed"], by_name["y"]["passed"]) == (False, True)
    assert by_name["x"]["numeric"] == pytest.approx(by_name["x"]["analytic"] * 1.5, rel=1e-3)


@pytest.mark.parametrize("name", EXAMPLES)
def test_kernels_and_their_cost(name: str) -> None:
    made = panes(name)
    kernels, cost = made.pane("kernels")["kernels"], made.pane("cost")
    assert [one["name"] for one in kernels] == [one["name"] for one in cost["kernels"]]
    assert len({one["name"] for one in kernels}) == len(kernels)
    assert [one["flops"] for one in cost["kernels"]] == [row.flops for row in made.code.compiled.rows]
    assert 0 < cost["total_seconds"] == pytest.approx(sum(one["seconds"] or 0 for one in cost["kernels"]))
    assert cost["peak_flops"] > 1e8
    assert cost["peak_bandwidth"] > 1e8
    text = gallery.text_of(name).splitlines()
    for one in kernels:
        assert one["nest"]
        assert all(text[line - 1].strip() for line in one["lines"])
        if one["llvm"] is not None:
            assert one["llvm"].startswith("define")
            assert re.search(r"\bret", one["asm"]), one["name"]
        if one["c"] is not None:
            assert "static void" in one["c"]
    assert any(one["c"] for one in kernels)
    assert any(one["lines"] for one in kernels)


@pytest.mark.parametrize("name", BROKEN)
def test_the_doctor_says_what_the_command_says(name: str, tmp_path: Any) -> None:
    path = tmp_path / "playground.py"
    path.write_text(gallery.text_of(name))
    gg.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watched, _ = run_script(path)
    watched, rest = joined(str(path), watched)
    wanted = [*(one for each in watched for one in each.findings), *rest]
    gg.manual_seed(0)
    provenance.resolve.cache_clear()  # equal code in another file
    found = panes(name).doctor()["findings"]
    assert [one["name"] for one in found] == [one.name for one in wanted]
    assert found
    assert not BROKEN[name] or BROKEN[name] in {one["name"] for one in found}
    assert all(str(tmp_path) not in one["text"] for one in found)
    assert any(one["line"] for one in found)


@pytest.mark.parametrize("name", ["product_and_sine", "attention"])
def test_a_healthy_program_that_does_not_train_has_no_findings(name: str) -> None:
    assert panes(name).doctor()["findings"] == []


@pytest.mark.parametrize("name", ["linear_regression", "xor", "ring"])
def test_a_loop_tells_of_its_progress(name: str) -> None:
    import json

    _, loop, lines = ran(gallery.text_of(name), f"{name}.loop.py")
    events = [json.loads(line) for line in lines.getvalue().splitlines()]
    steps = [one["loop"] for one in events if one["event"] == "progress"]
    assert [one["step"] for one in steps] == sorted({one["step"] for one in steps})
    total = int(re.search(r"range\((\d+)\)", gallery.text_of(name))[1])
    assert steps[-1]["step"] == loop.steps == total
    assert {one["total"] for one in steps} == {total}
    assert steps[-1]["loss"] == pytest.approx(plainly(name)["loss"].item(), rel=1e-5)
    if name != "linear_regression":
        grid, model = steps[-1]["grid"], plainly(name)["model"]
        cells = np.frombuffer(base64.b64decode(grid["data"]), "<f4").reshape(grid["rows"], grid["columns"])
        corner = gg.tensor(np.array([[grid["low"][0], grid["high"][1]]], np.float32))
        out = model(corner).detach().numpy()[0]
        assert cells[0, 0] == pytest.approx(out[0] if len(out) == 1 else out[1] - out[0], rel=1e-4)
        assert {label for _, _, label in grid["points"]} == {0.0, 1.0}


TRAINING = """
import glassgrad as gg
from glassgrad import optim
count, _hidden, rate = 6, 0.5, 0.25
w = gg.ones(2, requires_grad=True)
optimizer = optim.SGD([w], lr=rate)
{loop}
    optimizer.zero_grad()
    (w * w).sum().backward()
    samples = [f"step {{step}}", 3]
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("loop", "steps", "total", "last_step"),
    [
        ("for step in range(2, count):", 4, 4, 5),
        ("for step in [1, 2]:", 2, None, 2),
        ("step = 0\nwhile (step := step + 1) < 4:", 3, None, 3),
        ("for step in range(2):\n    pass\nfor step in range(1):", 1, 1, 0),
    ],
)
def test_a_loop_tells_its_length_and_its_samples(loop: str, steps: int, total: int | None, last_step: int) -> None:
    import json

    _, watched, lines = ran(TRAINING.format(loop=loop), f"{len(loop)}.total.py")
    last = [json.loads(line) for line in lines.getvalue().splitlines()][-1]["loop"]
    assert (last["step"], last["total"], watched.steps) == (steps, total, steps)
    assert last["values"] == {"rate": 0.25}
    assert last["grid"]["samples"] == [f"step {last_step}"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("loss = x * 2\nother = x * 3", "loss"),
        ("first = x * 2\nother = x * 3", "other"),
        ("loss = x * 2\nx * 3", "result"),
        ("vector = gg.stack([x, x])\nnumber = vector.sum()", "number"),
        ("def f(v):\n    return v.sin()\n[f(x)][0]", "result"),
    ],
)
def test_which_value_is_the_result(text: str, name: str) -> None:
    head = "import glassgrad as gg\nx = gg.tensor(1.0, requires_grad=True)\n"
    made, _, _ = ran(f"{head}{text}\n", f"{len(text)}.result.py")
    assert Panes(made).replay.title == name


@pytest.mark.parametrize("text", ["x = 1", "import glassgrad as gg\nx = gg.ones(3, requires_grad=True)\ny = x * 2", ""])
def test_a_program_without_a_result_has_values_alone(text: str) -> None:
    made, _, _ = ran(text, "without.example.py")
    assert isinstance(Panes(made).values()["variables"], list)
    for name in ("graph", "backward", "derivation", "check", "kernels", "cost"):
        with pytest.raises(errors.ArgumentError, match="no result to differentiate"):
            Panes(made).pane(name)
    with pytest.raises(errors.InputError, match="no pane 'nothing'"):
        Panes(made).pane("nothing")


def test_arrays_of_all_kinds() -> None:
    text = """
import numpy as np, glassgrad as gg
bad = np.array([1.0, np.nan, -np.inf])
wide = np.arange(300 * 200, dtype=np.float64).reshape(300, 200)
long = gg.arange(1000)
truth = np.array([True, False])
none = np.zeros((0, 3))
words = np.array(['a'])
half = gg.ones(2).to(gg.bfloat16)
many = 10 ** 400
"""
    made, _, _ = ran(text, "kinds.example.py")
    found = {one["name"]: one for one in Panes(made).values()["variables"]}
    assert found["bad"]["value"]["numbers"] == [1.0, None, None]
    assert found["bad"]["value"]["nonfinite"] == [[1, "nan"], [2, "-inf"]]
    heat = numbers(found["wide"]["value"])
    assert heat.shape == (128, 128)
    assert heat.mean() == pytest.approx(59_999 / 2, rel=0.01)
    assert heat[0, 0] < heat[0, -1] < heat[-1, 0] < heat[-1, -1]
    assert found["long"]["value"]["heat"]["rows"] == 32
    assert found["truth"]["value"]["numbers"] == [True, False]
    assert found["none"]["value"]["numbers"] == []
    assert found["words"]["value"] is None
    assert found["half"]["value"]["numbers"] == [1.0, 1.0]
    assert found["many"]["value"] is None


def test_the_same_text_again_is_at_its_own_lines() -> None:
    """Python calls code equal that differs in its file alone."""
    text = gallery.text_of("product_and_sine")
    for number in range(2):
        made, _, _ = ran(text, f"again{number}.py")
        lines = [one["source_line"] for one in Panes(made).pane("backward")["lines"] if one["source_line"]]
        assert set(lines) == {10}
        assert {one["line"] for one in Panes(made).graph()["nodes"]} == {None, 10}
