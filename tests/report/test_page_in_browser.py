"""The page in a real browser, in typical use: clicked, filtered, by keyboard, on a phone, in dark mode."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import glassgrad as gg
from glassgrad.train import Callback, Trainer, TrainingConfig, write_report
from glassgrad.train.kept.metrics import read_metrics
from glassgrad.train.show.monitoring import RECORD, Monitoring
from glassgrad.train.show.page_server import PageServer
from tests.report.browsing import NEEDS_BROWSER, PHONE, Opened, violations
from tests.report.made_runs import PLANTED, made_run

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("single")
    run = made_run(folder / PLANTED.replace("/", ""), words=PLANTED)
    return write_report(run, path=folder / "page.html")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    runs = [made_run(folder / f"run-{at}", rate, watched=at == 0) for at, rate in enumerate((0.1, 0.02, 0.5))]
    return write_report(*runs, path=folder / "page.html")


def test_a_run_is_clicked_through_and_nothing_planted_runs(browser: Any, single: Path) -> None:
    with Opened(browser, single) as page:
        assert page.inner_text("h1") == PLANTED.replace("/", "")
        assert PLANTED in page.inner_text("#samples")
        finding = page.locator("details.finding").first
        finding.locator("summary").click()
        finding.locator(".evidence .advice").wait_for()  # browsers tell of an opened element a little later
        assert "threshold" in finding.inner_text()
        assert "step 200: " in finding.inner_text()
        loss = page.locator("figure.chart", has=page.get_by_role("heading", name="Loss", exact=True))
        key = loss.locator("button.key").first
        key.click()
        assert key.get_attribute("aria-pressed") == "false"
        key.click()
        loss.locator(".plot").focus()
        page.keyboard.press("Home")
        assert "step 10 " in loss.locator(".readout").inner_text()
        page.locator("#curves .controls select").select_option("time")
        loss.locator(".plot").focus()
        page.keyboard.press("End")
        assert "after 8 s" in loss.locator(".readout").inner_text()
        page.locator("#curves .controls input[type=checkbox]").check()
        page.locator("#layers .controls select").first.select_option("gradient norm")
        page.locator("#layers .controls input").fill("2.w")
        page.locator("#layers .map").first.focus()
        page.keyboard.press("ArrowLeft")
        assert "2.weight" in page.locator("#layers .readout").first.inner_text()
        page.locator("#about").get_by_label("filter").fill("seed")
        assert page.locator("table.settings tbody tr").count() == 1
        page.get_by_label("Change between light and dark").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"


WRITTEN = """() => {
    const write = CanvasRenderingContext2D.prototype.fillText;
    window.written = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
        if (this.canvas.className === "bars") window.written.push(text);
        write.call(this, text, ...at);
    };
}"""


def test_histograms_are_marked_with_round_numbers(browser: Any, single: Path) -> None:
    with Opened(browser, single) as page:
        page.evaluate(WRITTEN)
        page.get_by_label("Change between light and dark").click()  # draws all again
        page.wait_for_function("window.written.length > 2")
        numbers = [float(text.replace("\u2212", "-")) for text in page.evaluate("window.written")]
    distance = numbers[-1] - numbers[-2]
    assert 0 in numbers
    assert f"{distance:.0e}"[0] in "125"
    assert distance == pytest.approx(float(f"{distance:.0e}"))
    assert all(number == pytest.approx(round(number / distance) * distance) for number in numbers)


def test_runs_are_sorted_filtered_and_chosen(browser: Any, several: Path) -> None:
    with Opened(browser, several) as page:
        names = page.locator("table.runs tbody th")
        sort = page.get_by_role("button", name="rate")
        sort.click()
        assert names.all_inner_texts() == ["run-1", "run-0", "run-2"]
        page.get_by_role("button", name="rate").click()
        assert names.all_inner_texts() == ["run-2", "run-0", "run-1"]
        legend = page.locator("#curves figure").first.locator("button.key")
        assert legend.count() == 6
        page.get_by_label("draw run-0").uncheck()
        assert legend.count() == 4
        page.locator("#runs").get_by_label("filter").fill("rate=0.5")
        assert names.all_inner_texts() == ["run-2"]
        assert legend.count() == 2
        page.get_by_label("layers, samples and settings of").select_option("run-1")
        assert "0.02" in page.inner_text("table.settings")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["single", "several"])
def test_axe_finds_nothing_and_a_phone_is_wide_enough(
    browser: Any, request: pytest.FixtureRequest, which: str, scheme: str
) -> None:
    with Opened(browser, request.getfixturevalue(which), viewport=PHONE, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert not violations(page)


class _Slowly(Callback):
    every = 1

    def on_step_end(self, run: Any) -> None:
        time.sleep(0.01)


@pytest.fixture
def trainer(tmp_path: Path) -> Any:
    """Make trainers of one watched run, whose record is written several times a second."""

    def made() -> Trainer:
        gg.manual_seed(0)
        x = gg.randn(64, 2)
        loader = gg.utils.data.DataLoader(gg.utils.data.TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8)
        model = gg.nn.Linear(2, 2)
        config = TrainingConfig(
            epochs=2_000, engine="eager", log_every=5, save_every=0.3, progress="none", run_dir=str(tmp_path / "run")
        )
        optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
        loss_fn = gg.nn.functional.cross_entropy
        return Trainer(model, optimizer, loss_fn, loader, config=config, callbacks=[_Slowly(), Monitoring(every=5)])

    return made


def _begin(trainer: Trainer, *, resume: bool = False) -> tuple[threading.Thread, list[Any]]:
    """Train in a thread; return it, and where its result will be."""
    results: list[Any] = []
    training = threading.Thread(target=lambda: results.append(trainer.fit(resume=resume)))
    training.start()
    return training, results


@pytest.mark.slow
def test_a_page_follows_a_training_and_stops_it_twice(browser: Any, tmp_path: Path, trainer: Any) -> None:
    training, results = _begin(trainer())
    record = tmp_path / "run" / "metrics.jsonl"
    while not record.exists() or len(read_metrics(record)) < 4 or not (tmp_path / "run" / RECORD).exists():
        time.sleep(0.05)
    with PageServer(tmp_path / "run") as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        page = browser.new_page()
        page.goto(server.url)
        steps = page.locator(".tile", has_text="steps").locator("dd")
        layer_map = page.locator("#layers .map").first
        first, columns = steps.inner_text(), layer_map.get_attribute("aria-label")
        page.wait_for_function("first => document.querySelectorAll('.tile dd')[1].textContent !== first", arg=first)
        page.wait_for_function(
            "old => document.querySelector('#layers .map').getAttribute('aria-label') !== old", arg=columns
        )
        layer_map.focus()
        page.keyboard.press("End")
        watched = int(page.locator("#layers .readout").first.inner_text().split()[1].replace(",", ""))
        assert watched > int(first.split()[0].replace(",", ""))
        stop = page.get_by_role("button", name="stop the run")
        stop.click()
        page.get_by_text("The run is not running: stopped.").wait_for()
        training.join()
        again, more = _begin(trainer(), resume=True)
        page.get_by_text("The run goes on; this page follows it.").wait_for()
        stop.click()
        page.get_by_text("The run is not running: stopped.").wait_for()
        page.close()
        server.shutdown()
        serving.join()
    again.join()
    assert not results[0].finished
    assert more[0].step > results[0].step
