"""The data of a step's page: values and cotangents of eager mode; lines and kernels lead to the right ops."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.base.drawing.graph import LEAVES, Graph, Node
from glassgrad.base.drawing.step_page import page_data, step_page
from glassgrad.compile.showing import recalled, remembered
from glassgrad.compile.view.groups import gather
from glassgrad.compile.view.show import step_graph
from glassgrad.explanation import explain

F = nn.functional
PLANTED = "</script><img src=x onerror=window.planted=1>"


def named(graph: Graph, name: str) -> Node:
    return next(node for node in graph.nodes if node.name == name and node.kind != "update")


def small(x: Any, w: Any, b: Any) -> Any:
    product = x * w
    h = (product + b).tanh()
    return h * h + 0.5 * h


@pytest.fixture(scope="module")
def numbers() -> Graph:
    args = [gg.tensor(value, dtype=gg.float64, requires_grad=True) for value in (2.0, -0.3, 0.1)]
    return step_graph(small, tuple(args), {})


def test_values_and_gradients_are_those_of_eager_mode(numbers: Graph) -> None:
    x, w, b = (gg.tensor(value, dtype=gg.float64, requires_grad=True) for value in (2.0, -0.3, 0.1))
    loss = small(x, w, b)
    loss.backward()
    for name, leaf in (("x", x), ("w", w), ("b", b)):
        node = named(numbers, name)
        assert node.kind == "input"
        assert float(node.gradient.text) == pytest.approx(float(leaf.grad), rel=1e-3)
    root = next(node for node in numbers.nodes if node.root)
    assert float(root.value.text) == pytest.approx(float(loss), rel=1e-3)
    assert root.gradient.text == "1"
    assert named(numbers, "h").formula == "tanh(v4)"


def test_what_edges_send_adds_up_to_the_gradient(numbers: Graph) -> None:
    at = numbers.nodes.index(named(numbers, "h"))
    parts = [edge for edge in numbers.edges if edge.tail == at]
    assert len(parts) == 3
    assert sum(float(edge.sent.text) for edge in parts) == pytest.approx(
        float(numbers.nodes[at].gradient.text), rel=1e-3
    )
    slope = next(edge for edge in numbers.edges if edge.head == at)
    assert slope.number == pytest.approx(1 - np.tanh(-0.5) ** 2)


def test_lines_and_nodes_lead_to_each_other(numbers: Graph) -> None:
    def nodes_of(begin: str) -> list[str]:
        found = [line for line in numbers.lines if line.text.strip().startswith(begin)]
        assert len(found) == 1, found
        assert found[0].backward == begin.startswith("d")
        return [numbers.nodes[at].op for at in found[0].nodes]

    assert nodes_of("product = ") == ["multiply"]
    assert nodes_of("h = ") == ["add", "tanh"]
    assert nodes_of("dproduct = ") == ["tanh"]
    assert nodes_of("dx = ") == ["multiply"]


def test_every_op_that_is_no_view_has_a_kernel(numbers: Graph) -> None:
    ops = {at for at, node in enumerate(numbers.nodes) if node.kind == "op"}
    assert ops == {at for kernel in numbers.kernels for at in kernel.nodes}
    assert {at for kernel in numbers.kernels for at in kernel.gradients} <= ops
    if numbers.kernels[0].kind != "numpy":
        assert all(kernel.seconds is not None and kernel.seconds > 0 for kernel in numbers.kernels)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return self.drop(self.inner(x)).relu() + x


@pytest.fixture(scope="module")
def training() -> tuple[Any, Any, Any, Any]:
    gg.manual_seed(0)
    model = nn.Sequential(Block(), Block(), nn.Linear(4, 3))
    optimizer = optim.Adam(model.parameters())

    @gg.compile(backend="numpy")  # kernels are looked at in a smaller function
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, model, gg.randn(8, 4), gg.randint(0, 3, (8,))


def test_a_step_has_modules_updates_and_lines_of_both_passes(training: Any) -> None:
    step, _, x, y = training
    graph = step_graph(step.function, (x, y), {}, backend="numpy")
    assert graph.modules["model", "0"] == "Block"
    assert graph.modules["model", "1", "inner"] == "Linear"
    assert any(path[-1] == "cross_entropy" for path in graph.modules)
    updates = [node for node in graph.nodes if node.kind == "update" and node.name == "model.2.weight"]
    assert [node.module[0] for node in updates] == ["optimizer.step()"]
    assert all(
        node.late for node in graph.nodes if node.module[:1] == ("optimizer.step()",) and node.kind not in LEAVES
    )
    weight = named(graph, "model.2.weight")
    assert weight.kind == "parameter"
    assert weight.gradient.norm > 0
    assert sum(weight.gradient.bins) == 12
    back = [line for line in graph.lines if line.backward]
    assert back
    assert all(line.nodes for line in back)


def test_showing_changes_nothing(training: Any, tmp_path: Path) -> None:
    step, model, x, y = training
    state = {name: np.array(value) for name, value in model.state_dict().items()}
    gg.manual_seed(3)
    wanted = gg.rand(4).numpy()
    gg.manual_seed(3)
    assert step.show(x, y, path=tmp_path / "step.html") == tmp_path / "step.html"
    assert np.array_equal(gg.rand(4).numpy(), wanted)
    for name, value in model.state_dict().items():
        assert np.array_equal(state[name], value.numpy()), name
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(module._hooks is None for module in model.modules())


def test_a_step_shows_the_call_that_was_traced_as_long_as_its_arguments_live(tmp_path: Path) -> None:
    @gg.compile
    def loss(x: Any) -> Any:
        return (x * x).sum()

    with pytest.raises(errors.CompileError, match="before the first call"):
        loss.show(path=tmp_path / "a.html")
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    loss(x)
    assert (
        '"text":"[1.0, 2.0]"' in loss.show(path=tmp_path / "a.html").read_text()
        or '"text":"[1, 2]"' in (tmp_path / "a.html").read_text()
    )
    del x
    gc.collect()
    page = loss.show(path=tmp_path / "b.html").read_text()
    assert "the arguments of earlier calls are gone" in page
    with pytest.raises(errors.InputError, match="cannot write the page"):
        loss.show(path=tmp_path / "none" / "b.html")


def test_without_a_display_the_path_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path))
    explanation = explain(lambda x: x * x, 3.0)
    assert explanation.show().parent == tmp_path
    assert f"The page is at {tmp_path}" in capsys.readouterr().out
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    explanation.show()
    assert opened == [next(tmp_path.iterdir()).as_uri()]
    assert not capsys.readouterr().out


def test_a_notebook_shows_the_page_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[dict[str, str], bool]] = []
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    display = SimpleNamespace(display=lambda data, *, raw: shown.append((data, raw)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    file = explain(lambda x: x * x, 3.0).show()
    [(data, raw)] = shown
    assert raw
    assert data["text/html"].startswith('<iframe sandbox="allow-scripts" ')
    assert str(file) in data["text/plain"]


def test_arguments_are_remembered_weakly() -> None:
    held = remembered((gg.ones(2), [1, "a", None]), {"flag": True})
    assert recalled(held) is None
    x = gg.ones(2)
    args, kwargs = recalled(remembered((x, [1, "a", None]), {"flag": True})) or ((), {})
    assert args[0] is x
    assert (args[1], kwargs) == ([1, "a", None], {"flag": True})


def test_long_levels_are_gathered_in_order() -> None:
    graph = Graph("long", [Node("op", "sin", name=f"v{at}", where=f"a.py:{at // 150}") for at in range(600)], [])
    gather(graph)
    boxes: dict[tuple[str, ...], set[object]] = {}
    for at, node in enumerate(graph.nodes):
        for length in range(len(node.module) + 1):
            below = node.module[: length + 1] if length < len(node.module) else at
            boxes.setdefault(node.module[:length], set()).add(below)
    assert max(map(len, boxes.values())) <= 40
    first = [min(at for at, node in enumerate(graph.nodes) if node.module[: len(path)] == path) for path in boxes]
    assert first == sorted(first)


def test_a_function_that_cannot_be_traced_is_shown_as_it_ran() -> None:
    def function(x: Any) -> Any:
        return x.exp() if float(x) > 0 else x

    page = explain(function, 2.0).page()
    assert "; it cannot be traced" in page
    assert '"title":"Backward"' in page


def test_nothing_of_the_data_becomes_a_part_of_the_page() -> None:
    node = Node("op", PLANTED, PLANTED, PLANTED, where=PLANTED, source=PLANTED, module=(PLANTED,))
    graph = Graph(PLANTED, [node], [], {(PLANTED,): PLANTED}, notes=[PLANTED])
    page = step_page(graph, [(PLANTED, [PLANTED], [[PLANTED]])], PLANTED)
    assert "<img" not in page
    assert page.count("</script>") == 2
    assert page_data(graph)["nodes"][0]["op"] == PLANTED
