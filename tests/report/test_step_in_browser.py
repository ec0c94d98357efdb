"""The page of a step in a real browser: opened, searched, played, and its lines and kernels followed to their ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.base.drawing.graph import Edge, Graph, Kernel, Line, Node, numbers_of
from glassgrad.base.drawing.step_page import step_page
from tests.report.browsing import NEEDS_BROWSER, PHONE, Opened, violations
from tests.report.made_runs import PLANTED

pytestmark = NEEDS_BROWSER
BOX = "svg.graph g.box"


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @gg.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step.show(gg.randn(8, 2), gg.randint(0, 3, (8,)), path=tmp_path_factory.mktemp("step") / "step.html")


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = [
        Node("input", name=PLANTED, value=numbers_of(np.array([1.0, 2.0]))),
        Node(
            "op", PLANTED, PLANTED, PLANTED, (2,), PLANTED, where=PLANTED, source=PLANTED, module=(PLANTED,), root=True
        ),
    ]
    graph = Graph(PLANTED, nodes, [Edge(0, 1, PLANTED)], {(PLANTED,): PLANTED}, notes=[PLANTED])
    graph.lines = [Line(PLANTED, [1])]
    graph.kernels = [Kernel(PLANTED, [PLANTED], PLANTED, 1, 1, [1], [])]
    path = tmp_path_factory.mktemp("evil") / "page.html"
    path.write_text(step_page(graph, [(PLANTED, [PLANTED], [[PLANTED]])], PLANTED))
    return path


def test_a_step_is_opened_played_searched_and_followed(browser: Any, step: Path) -> None:
    with Opened(browser, step, BOX, has_touch=True) as page:
        page.get_by_role("button", name="Shut all").click()
        page.locator(f"{BOX}.module", has_text="model · Sequential").click()
        page.locator(f"{BOX}.module:not(.open)", has_text="0 · Linear").click()
        assert page.locator(f"{BOX}.parameter", has_text="model.0.weight").count() == 1
        page.get_by_label("Search ops and modules").fill("tanh(")
        page.locator(".found button").first.click()
        assert page.inner_text("#node h3") == "tanh = tanh"
        assert "tanh = np.tanh(" in page.inner_text(".program .chosen >> nth=0")
        assert page.locator(f"{BOX}.chosen", has_text="tanh = tanh").count() == 1
        page.locator(".program button", has_text="dmodel_0_weight = ").click()
        assert "matmul" in page.inner_text("#node h3")
        assert page.locator(".program .chosen").count() == 1
        page.get_by_role("button", name="To the backward pass").click()
        assert page.inner_text(".moment").startswith("backward at loss arrives 1; it sends ")
        slider = page.get_by_label("Moment of the step")
        slider.focus()
        page.keyboard.press("Home")
        assert page.inner_text(".moment").startswith("forward ")
        page.keyboard.press("ArrowRight")
        assert "(2 of " in page.inner_text(".moment")
        page.locator("table.kernels button").last.click()
        assert page.locator("table.kernels tr.chosen").count() == 1
        page.get_by_label("colour by").select_option("kernel")
        assert page.locator(f"{BOX} rect.stripe").count() > 3
        frame = page.locator(".frame")
        frame.focus()
        before = page.get_attribute("svg.graph > g", "transform")
        page.keyboard.press("+")
        assert page.get_attribute("svg.graph > g", "transform") != before
        page.mouse.move(400, 400)
        page.mouse.wheel(0, 300)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("0")
        settle(page)
        _touch(page)


def scale_of(page: Any) -> float:
    return float(page.get_attribute("svg.graph > g", "transform").rpartition("scale(")[2].rstrip(")"))


def settle(page: Any) -> None:
    """Wait until neither the page nor the graph moves any more: wheels scroll smoothly, and fitting takes a frame."""
    where = "() => [scrollY, document.querySelector('svg.graph > g').getAttribute('transform')].join()"
    seen: list[str] = []
    while len(seen) < 4 or len(set(seen[-4:])) > 1:
        page.wait_for_timeout(100)
        seen.append(page.evaluate(where))
        assert len(seen) < 100, "it never comes to rest"


def wait_for(page: Any, condition: str) -> None:
    """Wait until a condition on the `place` of the graph holds: its transformation as text, and its scale."""
    text = 'document.querySelector("svg.graph > g").getAttribute("transform")'
    place = f"{{text: {text}, scale: parseFloat({text}.split('scale(')[1])}}"
    page.wait_for_function(f"() => {{ const place = {place}; return {condition}; }}", timeout=10_000)


def _touch(page: Any) -> None:
    """Zoom with two fingers, and move with one."""
    frame = page.locator(".frame").bounding_box()
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": x + dx, "y": y + dy, "id": at} for at, (dx, dy) in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    before = scale_of(page)
    touch("touchStart", (-20, 0), (20, 0))
    for reach in (30, 40, 60):
        touch("touchMove", (-reach, 0), (reach, 0))
    touch("touchEnd")
    wait_for(page, f"Math.abs(place.scale / {3 * before} - 1) < 0.01")  # a browser handles touches with its next frame
    moved = page.get_attribute("svg.graph > g", "transform")
    touch("touchStart", (0, 0))
    touch("touchMove", (0, -50))
    touch("touchEnd")
    wait_for(page, f"place.text !== {moved!r}")
    assert scale_of(page) == pytest.approx(3 * before, rel=0.01)
    assert page.evaluate("window.visualViewport.scale") == 1  # the page itself was not zoomed


def test_names_of_a_step_stay_text(browser: Any, evil: Path) -> None:
    with Opened(browser, evil, BOX) as page:
        page.get_by_label("Search ops and modules").fill("onerror")
        page.locator(".found button").last.click()
        assert PLANTED in page.inner_text("#node")
        page.get_by_label("One on").click()
        page.locator("table.kernels button").click()
        assert page.inner_text("h1") == PLANTED


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, {"width": 1300, "height": 850}], ids=["phone", "desk"])
def test_axe_finds_nothing_in_a_step(browser: Any, step: Path, size: dict[str, int], scheme: str) -> None:
    with Opened(browser, step, BOX, viewport=size, color_scheme=scheme) as page:
        page.get_by_label("One on").click()
        page.get_by_label("Search ops and modules").fill("model")
        assert not violations(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.slow
def test_two_thousand_ops_open_within_two_seconds_of_processor_time(browser: Any, tmp_path: Path) -> None:
    w = gg.tensor(0.3, requires_grad=True)

    def function(x: Any) -> Any:
        for _ in range(1000):
            x = (x * w).sin()
        return x.sum()

    path = gg.compile(function).show(gg.randn(4), path=tmp_path / "step.html")
    with Opened(browser, path, BOX) as page:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        assert "2001" in page.inner_text(".phases")
        assert found["ProcessTime"] < 2.0
        assert page.locator(BOX).count() < 200
