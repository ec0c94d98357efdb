"""The page of the playground in a real browser: typed in, hovered over, dragged, stopped, reloaded, saved."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.report.browsing import NEEDS_BROWSER, Opened, violations
from tests.report.playground_server import PAGE, PANES, PLANTED, TEXT, PlaygroundServer, pane

pytestmark = NEEDS_BROWSER

NAMES = ["values", "graph", "backward", "derivation", "check", "kernels", "cost", "doctor", "output"]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 800}


@pytest.fixture
def server() -> Iterator[PlaygroundServer]:
    made = PlaygroundServer()
    yield made
    made.end()


@contextmanager
def opened(browser: Any, server: PlaygroundServer, address: str = "", **options: Any) -> Iterator[Any]:
    """Open the page; it must ask for nothing from elsewhere, and nothing may go wrong in it."""
    context = browser.new_context(**{"viewport": DESK, **options})
    page = context.new_page()
    page.set_default_timeout(10_000)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: request.url.startswith((server.url, "data:")) or said.append(request.url))
    page.goto(server.url + address)
    page.wait_for_selector(".cm-content")
    yield page
    assert page.evaluate("window.planted") is None
    assert not [one for one in said if "ERR_CONNECTION" not in one and "Failed to load resource" not in one], said
    context.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds. The page's policy forbids Playwright's own way, to evaluate a text in it."""
    last = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < last, "it never comes true"
        time.sleep(0.02)


def status(page: Any) -> str:
    return str(page.inner_text(".status"))


def settled(page: Any) -> None:
    """Wait until a run is over."""
    until(lambda: status(page).startswith("ran in"))


def put(page: Any, text: str) -> None:
    """Replace the program, key by key where it matters."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def program(page: Any) -> str:
    """Return the program that the editor shows."""
    lines = page.locator(".cm-line").all_inner_texts()
    return "\n".join(line.rstrip("\n") for line in lines)


def value_of(page: Any, name: str) -> str:
    """Return the value that the pane Values shows of a variable."""
    return str(page.locator(f"section.variable[aria-label='{name}'] .value").inner_text())


def ran(server: PlaygroundServer) -> list[str]:
    return [given["text"] for what, given in server.asked if what == "run"]


def test_values_follow_the_keys(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        assert "2" in value_of(page, "a")
        put(page, "speed = 12.5\n")
        page.wait_for_selector("section.variable[aria-label='speed']")
        assert "12.5" in value_of(page, "speed")
        page.keyboard.press("Control+End")
        page.keyboard.type("tail = 7")
        page.wait_for_selector("section.variable[aria-label='tail']")
        assert ran(server)[-1] == "speed = 12.5\ntail = 7"
        page.keyboard.type(" +")
        failed = page.wait_for_selector(".failure-line")
        assert "SyntaxError" in failed.inner_text()
        assert page.locator(".cm-failed").first.is_visible()
        assert "line 2" in page.inner_text(".status")
        assert "7" in value_of(page, "tail")  # what was known stays, paler
        page.keyboard.press("Backspace")
        page.keyboard.press("Backspace")
        page.wait_for_selector(".failure-line", state="detached")
        page.get_by_role("tab", name="Output").click()
        assert "printed nothing" in page.inner_text("#panel-output")


def test_completions_and_signatures_come_from_the_server(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        put(page, "import glassgrad as gg\ny = gg")
        page.keyboard.type(".te")
        page.wait_for_selector(".cm-tooltip-autocomplete li >> nth=1")
        assert page.locator(".cm-completionInfo").inner_text().endswith(PLANTED)
        page.wait_for_timeout(100)  # the editor takes no Enter right after a list has opened
        page.keyboard.press("Enter")
        page.keyboard.type("(")
        assert "tensor(data, dtype=None)" in page.wait_for_selector(".signature").inner_text()
        assert page.locator(".signature strong").inner_text() == "data"
        place = next(given for what, given in server.asked if what == "signature")
        assert (place["line"], place["column"]) == (2, 14)
        page.keyboard.press("Escape")
        page.wait_for_selector(".signature", state="detached")
        page.keyboard.type("3)")
        assert program(page) == "import glassgrad as gg\ny = gg.tensor(3)"


def test_lines_are_linked_both_ways(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server, "#backward") as page:
        row = page.locator("#panel-backward .row", has_text="da = dy * b")
        row.hover()
        assert page.locator(".cm-linked").inner_text().startswith("a = 2.0")
        page.locator(".cm-line").nth(2).hover()
        page.wait_for_selector("#panel-backward .row.chosen")
        assert "y = a * b" in page.locator("#panel-backward .row.chosen").inner_text()
        page.mouse.move(640, 5)
        page.wait_for_selector("#panel-backward .row.chosen", state="detached")
        page.locator("#panel-backward .listing").focus()
        for _ in range(4):
            page.keyboard.press("ArrowDown")
        assert page.locator(".cm-linked").inner_text().startswith("a = 2.0")
        page.get_by_role("tab", name="Kernels").click()
        page.get_by_label("shown as").select_option("assembly")
        page.locator("#panel-kernels .row", has_text="vmulps").hover()
        assert page.locator(".cm-linked").inner_text().startswith("c = 40")
        page.locator(".cm-line").nth(1).hover()
        page.wait_for_selector(".kernel.chosen")
        assert page.locator(".kernel.chosen").inner_text().startswith("reduce 2")
        page.get_by_role("tab", name="Graph").click()
        page.locator(".cm-line").nth(0).hover()
        page.wait_for_selector("svg.graph g.box.found")
        assert page.locator("svg.graph g.box.found .title").text_content() == "a"


def test_numbers_are_dragged(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        box = page.locator(".cm-number").first.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.keyboard.down("Alt")
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 20, y)
        page.mouse.move(x + 40, y)
        page.mouse.up()
        page.keyboard.up("Alt")
        assert program(page).startswith("a = 3.0\n")
        until(lambda: value_of(page, "a").endswith("3"))
        page.keyboard.press("Control+z")
        assert program(page).startswith("a = 2.0\n")
        page.locator(".cm-number").nth(1).click()
        page.keyboard.press("Alt+ArrowUp")
        assert "b = -3.4\n" in program(page)
        page.keyboard.press("Alt+Shift+ArrowDown")
        assert "b = -4.4\n" in program(page)
        slider = page.get_by_label("Number at the cursor")
        slider.focus()
        page.keyboard.press("End")
        assert re.search(r"b = [5-9]\.\d+\n", program(page))
        until(lambda: ran(server)[-1].splitlines() == program(page).splitlines())
        assert value_of(page, "c").endswith("40")


@pytest.mark.parametrize(
    ("number", "bounds"),
    [
        ("2.0", ("0", "4", "0.04")),
        ("-3.5", ("-7", "7", "0.07")),
        ("1e-3", ("0", "0.002", "0.00002")),
        ("0.0", ("-1", "1", "0.02")),
        ("3", ("0", "10", "1")),
        ("-40", ("-80", "80", "1")),
        ("5000", ("0", "10000", "100")),
    ],
)
def test_a_slider_reaches_to_the_double_of_its_number(
    browser: Any, server: PlaygroundServer, number: str, bounds: tuple[str, str, str]
) -> None:
    with opened(browser, server) as page:
        settled(page)
        put(page, f"a = {number}")  # the cursor stands behind it
        slider = page.get_by_label("Number at the cursor")
        slider.wait_for()
        found = [slider.get_attribute(name) for name in ("min", "max", "step")]
        assert [float(one) for one in found] == [float(one) for one in bounds]


def test_a_program_without_an_end_is_stopped_and_the_page_goes_on(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        put(page, "while True: pass\n")
        stop = page.get_by_role("button", name="Stop")
        until(lambda: status(page) == "running …")
        stop.click()
        page.wait_for_selector(".notice >> text=Stopped")
        put(page, "after = 5.0\n")
        page.wait_for_selector("section.variable[aria-label='after']")
        assert not page.locator(".notice").is_visible()


def test_a_new_run_replaces_one_that_hangs(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        put(page, "while True: pass\n")
        until(lambda: status(page) == "running …")
        put(page, "after = 5.0\n")
        page.wait_for_selector("section.variable[aria-label='after']")


def test_a_reload_and_another_tab_lose_nothing(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        put(page, "mine = 1.0\n")
        page.wait_for_selector("section.variable[aria-label='mine']")
        other = page.context.new_page()
        other.goto(server.url)
        other.wait_for_selector("section.variable[aria-label='a']")
        assert program(other) == TEXT
        put(other, "yours = 2.0\n")
        other.wait_for_selector("section.variable[aria-label='yours']")
        page.reload()
        page.wait_for_selector("section.variable[aria-label='mine']")
        assert program(page) == "mine = 1.0\n"
        other.reload()
        other.wait_for_selector("section.variable[aria-label='yours']")


def test_a_server_that_is_gone_is_waited_for(browser: Any) -> None:
    server = PlaygroundServer()
    with opened(browser, server) as page:
        settled(page)
        server.end()
        put(page, "kept = 9.0\n")
        page.wait_for_selector(".banner >> text=does not answer")
        again = PlaygroundServer(server.server_port)
        page.wait_for_selector(".banner", state="hidden")
        page.wait_for_selector("section.variable[aria-label='kept']")
        assert ran(again)[-1] == "kept = 9.0\n"
        again.end()


def test_a_training_loop_is_shown_paused_and_stepped(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        put(page, "train = 1.0\n")
        page.wait_for_selector(".training >> text=step")
        page.get_by_role("button", name="pause").click()
        page.wait_for_selector("button >> text=go on")
        page.wait_for_timeout(200)
        shown = page.inner_text(".training output")
        page.wait_for_timeout(200)
        assert page.inner_text(".training output") == shown
        page.get_by_role("button", name="one step").click()
        until(lambda: page.inner_text(".training output") != shown)
        before, after = (
            int(re.findall(r"step (\d+)", text)[0]) for text in (shown, page.inner_text(".training output"))
        )
        assert after == before + 1
        page.get_by_role("button", name="go on").click()
        settled(page)
        assert page.inner_text(".training output").startswith("step 60")
        assert page.locator(".training canvas.boundary").is_visible()
        assert page.locator(".training .plot canvas").count() == 1


def test_the_gallery_opens_examples_and_judges_exercises(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        page.get_by_role("button", name="Examples").click()
        page.get_by_label("Search the gallery").fill("prod")
        assert page.locator(".card").count() == 1
        page.keyboard.press("Enter")
        page.wait_for_selector("section.variable[aria-label='x']")
        assert program(page) == "x = 6.0\ny = 7.0\n"
        assert "example=product" in page.evaluate("location.hash")
        assert page.locator(".questions li").all_inner_texts() == ["Why?", PLANTED]
        page.locator(".cm-content").click()
        page.keyboard.press("Control+z")
        assert program(page) == TEXT
        page.goto(server.url + "#values&example=exercise-07")
        page.wait_for_selector("section.variable[aria-label='answer']")
        page.get_by_role("button", name="Judge").click()
        page.wait_for_selector(".questions >> text=Not yet")
        put(page, "answer = 42\n")
        page.get_by_role("button", name="Judge").click()
        page.wait_for_selector(".questions >> text=Passed")
        page.reload()
        page.wait_for_selector("section.variable[aria-label='answer']")
        assert program(page) == "answer = 42\n"  # the address names the example, but the text is the reader's own


def test_the_program_is_saved_as_a_file(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server, accept_downloads=True) as page:
        settled(page)
        page.locator(".menu summary").click()
        with page.expect_download() as saved:
            page.get_by_role("button", name="Notebook").click()
        assert saved.value.suggested_filename == "playground.ipynb"
        assert Path(saved.value.path()).read_text() == TEXT
        assert ("export", {"text": TEXT, "format": "ipynb"}) in server.asked


def test_what_a_program_prints_stays_text(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server, "#output") as page:
        put(page, "print(1)\n")
        page.wait_for_selector("#panel-output .output >> text=onerror")
        assert page.locator("#panel-output .output").inner_text() == PLANTED + "\n"
        page.get_by_role("tab", name="Values").click()
        page.wait_for_selector(f"section.variable >> text={PLANTED[:8]}")
        assert page.locator("#panel-values img").count() == 0


def test_numbers_that_are_none_are_said(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server) as page:
        settled(page)
        assert page.locator("section.variable[aria-label='odd'] td").all_inner_texts() == ["1", "NaN", "−∞"]
        page.locator("section.variable[aria-label='many'] .value .map").focus()
        page.keyboard.press("Home")
        assert "column 0  ·  row 0  ·  0" in page.text_content("section.variable[aria-label='many'] .value")


def test_the_graph_is_played(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server, "#graph") as page:
        page.wait_for_selector("svg.graph g.box")
        assert page.locator("svg.graph g.box").count() == 3
        page.get_by_role("button", name="To the backward pass").click()
        said = page.inner_text(".moment")
        assert said.startswith("backward at y arrives 1; it sends ")
        assert "−3.5 to a" in said
        assert page.locator("svg.graph g.box.graded .title").text_content() == "y = mul"
        assert page.locator(".cm-linked").inner_text().startswith("c = 40")
        assert "its arguments" in page.inner_text(".node-facts")


def test_formulas_need_no_font_and_costs_a_roof(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server, "#derivation") as page:
        page.wait_for_selector(".derivation math mfrac")
        assert page.locator(".derivation .formula").count() == 3
        assert page.locator(".derivation math").count() == 8  # a formula is cut before each sign; words are text
        page.get_by_role("tab", name="Check").click()
        page.wait_for_selector("#panel-check >> text=1 of 2 gradients differ")
        page.get_by_role("tab", name="Cost").click()
        page.wait_for_selector(".roofline .dot")
        assert page.locator(".roofline .dot").count() == 2
        rows = page.locator("#panel-cost tbody tr").all_inner_texts()
        assert "60 %" in rows[0]  # 12 MB in a millisecond, of 20 GB a second
        assert "67 %" in rows[1]


def test_long_formulas_break_on_a_phone(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server, "#derivation", viewport=PHONE) as page:
        page.wait_for_selector(".derivation math mfrac")
        last = page.locator(".derivation .formula").last
        assert "binary_cross_entropy_with_logits(v3" in last.inner_text()
        parts = "document.querySelectorAll('.formula, .formula > span')"
        assert page.evaluate(f"[...{parts}].every((one) => one.scrollWidth <= one.clientWidth)")
        top, bottom = (last.locator("span").nth(at).bounding_box()["y"] for at in (0, -1))
        assert bottom > top


def test_findings_begin_with_a_capital_unless_it_is_a_name(browser: Any, server: PlaygroundServer) -> None:
    with opened(browser, server, "#doctor") as page:
        page.wait_for_selector(".finding")
        assert page.locator(".finding strong").all_inner_texts() == ["zero_grad is missing", "The rate is high"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_every_pane_is_accessible_and_fits(
    browser: Any, server: PlaygroundServer, scheme: str, size: dict[str, int]
) -> None:
    with opened(browser, server, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        for name in NAMES:
            page.goto(f"{server.url}#{name}")
            settled(page)
            page.wait_for_timeout(100)
            assert violations(page) == [], name
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size["width"], name
        page.get_by_role("button", name="Examples").click()
        assert violations(page) == []
        if size is PHONE:
            page.keyboard.press("Escape")
            editor, tabs = (page.locator(one).bounding_box() for one in (".cm-editor", ".tabs"))
            assert editor["y"] + editor["height"] <= tabs["y"]


def test_a_saved_page_shows_the_same_without_a_server(browser: Any, tmp_path: Path) -> None:
    events: list[Any] = [{"event": "output", "text": "said\n", "stream": "stdout"}]
    events += [
        {"event": "pane", "name": name, "data": pane(name, TEXT)} for name in ("values", *PANES) if name != "check"
    ]
    recording = json.dumps({"text": TEXT, "events": events}).replace("<", "\\u003c")
    frame, style, code = ((PAGE / f"playground.{kind}").read_text() for kind in ("html", "css", "js"))
    code = (PAGE / "formulas.js").read_text() + code
    link, script = '<link rel="stylesheet" href="playground.css">', '<script src="playground.js" defer></script>'
    assert link in frame
    assert script in frame
    data = f'<script type="application/json" id="data">{recording}</script>'
    path = tmp_path / "saved.html"
    path.write_text(frame.replace(link, f"<style>{style}</style>").replace(script, f"{data}<script>{code}</script>"))
    with Opened(browser, path, ".cm-content", viewport=DESK) as shown:
        assert "2" in value_of(shown, "a")
        assert program(shown) == TEXT
        shown.locator(".cm-content").click()
        shown.keyboard.type("changed")
        assert program(shown) == TEXT
        for name, there in (
            ("Graph", "svg.graph g.box"),
            ("Derivation", "math"),
            ("Cost", ".roofline"),
            ("Doctor", ".finding"),
        ):
            shown.get_by_role("tab", name=name).click()
            shown.wait_for_selector(there)
        shown.get_by_role("tab", name="Check").click()
        assert "not recorded" in shown.inner_text("#panel-check")
        shown.get_by_role("tab", name="Output").click()
        assert shown.inner_text("#panel-output .output") == "said\n"
        assert shown.get_by_role("button", name="Run").count() == 0
