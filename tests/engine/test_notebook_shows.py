"""The display of objects in a notebook: complete, escaped, and short for large ones."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import glassgrad as gg
from glassgrad.doctor import Finding
from glassgrad.optim import SGD


class Tags(HTMLParser):
    """Collects the text, and raises where tags are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.texts.append(data)


def read(shown: object) -> Tags:
    """Parse what an object shows in a notebook."""
    found = Tags()
    found.feed(shown._repr_html_())
    assert found.open == []
    return found


def test_a_matrix_is_a_table_of_its_numbers() -> None:
    x = gg.tensor([[1.0, 2.5], [1 / 3, -4.0]], requires_grad=True)
    found = read(x)
    assert found.texts == ["Tensor · (2, 2) · float32 · requires grad", "1", "2.5", "0.3333", "-4"]
    assert "from exp at " in read(x.exp()).texts[0]


def test_a_large_matrix_shows_its_ends() -> None:
    found = read(gg.arange(10_000).reshape(100, 100))
    assert (found.seen.count("tr"), found.seen.count("td")) == (9, 81)
    assert found.texts[1] == "0"
    assert found.texts[-1] == "9999"
    assert "…" in found.texts


@pytest.mark.parametrize("x", [gg.tensor(3.0), gg.zeros(0, 2), gg.ones(2, 2, 2)], ids=["scalar", "empty", "three"])
def test_other_shapes_show_their_text(x) -> None:
    assert repr(x) in read(x).texts


def test_a_module_is_a_tree_and_everything_is_escaped() -> None:
    class Odd(gg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = gg.nn.Sequential(gg.nn.Linear(2, 3), gg.nn.ReLU())

        def extra_repr(self) -> str:
            return "<b>&"

    found = read(Odd())
    assert "b" not in found.seen
    assert found.texts[:2] == ["Odd(<b>&)", " · 9 parameters"]
    assert "(0): Linear(in_features=2, out_features=3, bias=True)" in found.texts
    assert " · Parameter · (3, 2)" in found.texts


def test_compiled_functions_findings_and_optimizers_are_tables() -> None:
    @gg.compile(backend="numpy")
    def step(x):
        return x * 2

    step(gg.ones(2))
    texts = read(step).texts
    assert texts[0].startswith("compiled test_compiled")
    assert texts[texts.index("traces") + 1] == "1"
    found = read(Finding("a <rule>", "error", "seen & done", "do this", remedy="x = 1"))
    assert found.texts == ["error: a <rule>", "seen", "seen & done", "do", "do this", "line", "x = 1", *found.texts[7:]]
    assert found.texts[7:][:1] == ["see"]
    texts = read(SGD([gg.ones(3, requires_grad=True)], lr=0.5)).texts
    assert texts[:3] == ["SGD", "group", "parameters"]
    assert texts[texts.index("0") + 1] == "3"


def test_a_monitor_is_a_table_of_its_latest_sample() -> None:
    model = gg.nn.Linear(2, 1, bias=False)
    with gg.GradientMonitor(model) as monitor:
        assert read(monitor).texts == ["no step was sampled yet"]
        for factor in (1.0, 2.0):
            model.zero_grad()
            (model(gg.tensor([[3.0, 4.0]])) * factor).sum().backward()
            monitor.update(0.25)
    found = read(monitor)
    assert found.texts[0] == "step 1 · loss 0.25 · 2 samples"
    assert found.texts[6:8] == ["weight", "10"]
    assert read(monitor.data).texts == found.texts
    assert repr(monitor) == "<GradientMonitor of Linear: 2 samples, one in 1 steps>"
