"""The other outputs of a run besides its page: figures, mistakes, and the display in a notebook."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.cli import run
from glassgrad.doctor import MonitorData
from glassgrad.report.page.layers import histograms_of
from glassgrad.train import Trainer, TrainingConfig, write_figures
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.kept.samples import mistakes
from glassgrad.train.show.figures import smoothed
from glassgrad.train.show.monitoring import RECORD
from glassgrad.train.show.page_server import PageServer
from glassgrad.train.show.run_data import run_data
from glassgrad.utils.data import DataLoader, TensorDataset
from tests.report.made_runs import PLANTED, made_run

FIGURES = ["histograms", "layers", "loss", "norms", "update_ratios"]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.slow
def test_a_watched_run_has_five_figures(watched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(watched), "--figures", str(tmp_path / "figures"), "--format", "svg"]) == 0
    found = sorted((tmp_path / "figures").iterdir())
    assert capsys.readouterr().out.split() == [str(tmp_path / "figures" / f"{name}.svg") for name in _ORDER]
    assert [path.stem for path in found] == FIGURES
    assert all(path.read_text().startswith("<?xml") for path in found)


_ORDER = ["loss", "layers", "update_ratios", "norms", "histograms"]


def test_figures_that_cannot_be_made_say_why(watched: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentError, match="png, svg, pdf"):
        write_figures(watched, tmp_path, format="gif")
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.InputError, match="cannot write figures"):
        write_figures(watched, tmp_path / "file")
    bare = made_run(tmp_path / "bare", watched=False)
    assert [path.name for path in write_figures(bare, tmp_path / "figures")] == ["loss.png"]


def test_a_smoothed_loss_is_a_mean_of_what_came_before() -> None:
    values = np.array([4.0, np.nan, 2.0, 2.0, np.inf, 2.0])
    found = smoothed(values, 4.0)
    assert found[0] == found[1] == 4.0
    assert found[2] == pytest.approx((0.75 * 4 + 2) / 1.75)
    assert 2 < found[-1] < found[2]
    noisy = 1 + np.random.default_rng(0).standard_normal(2_000)
    assert smoothed(noisy, 40.0)[200:].std() < noisy.std() / 5


def test_mistakes_of_pictures_and_of_numbers() -> None:
    logits = np.array([[1.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 1.0, 0.0]])
    labels = np.array([0, 2, 0])
    texts = mistakes(logits, np.arange(30.0).reshape(3, 10), labels)
    assert texts["title"].startswith("2 of 3 examples")
    assert texts["texts"][0] == "(10, 11, 12, 13, 14, 15, 16, 17, ...) is of class 2, taken for 1 with 91 %"
    for shape in ((3, 5, 4), (3, 1, 5, 4)):
        pictures = mistakes(logits, np.arange(60.0).reshape(shape), labels)
        assert pictures["size"] == [5, 4]
        assert [one["target"] for one in pictures["images"]] == [2, 0]


def trained(folder: Path, targets: Any, loss_fn: Any, outputs: int) -> Any:
    gg.manual_seed(0)
    x = gg.randn(48, 3)
    loader = DataLoader(TensorDataset(x, targets(x)), batch_size=16)
    model = nn.Linear(3, outputs)
    config = TrainingConfig(epochs=2, engine="eager", run_dir=str(folder), progress="none", log_every=1)
    return Trainer(
        model, optim.SGD(model.parameters(), lr=0.1), loss_fn, loader, val_loader=loader, config=config
    ).fit()


def test_a_trainer_keeps_what_its_classifier_gets_wrong(tmp_path: Path) -> None:
    result = trained(tmp_path / "run", lambda x: (x[:, 0] > 0).long(), nn.functional.cross_entropy, 2)
    kept = json.loads((tmp_path / "run" / "samples.json").read_text())
    assert "of 48 examples classified wrongly" in kept["title"]
    shown = result._repr_html_()
    assert "<td>6</td>" in shown
    assert "<polyline" in shown
    assert "finished" in shown
    directory = RunDirectory(tmp_path / "run")._repr_html_()
    assert "train loss" in directory
    assert "<polyline" in directory


def test_a_regression_keeps_no_mistakes(tmp_path: Path) -> None:
    trained(tmp_path / "run", lambda x: x[:, :1], nn.functional.mse_loss, 1)
    assert not (tmp_path / "run" / "samples.json").exists()


def test_names_of_directories_stay_text_in_notebooks(tmp_path: Path) -> None:
    folder = tmp_path / PLANTED.replace("/", "")
    folder.mkdir()
    assert "<img" not in RunDirectory(folder)._repr_html_()


def test_graphs_show_themselves() -> None:
    step = gg.compile(lambda x: x * x)
    step(gg.ones(2))
    assert step.graph._repr_html_().startswith("<pre>graph")


def test_only_new_samples_of_layers_are_sent(watched: Path) -> None:
    data = MonitorData.load(watched / RECORD)
    half = int(data.steps[len(data) // 2])
    whole = run_data(watched, after=0)
    assert np.frombuffer(_bytes(whole["layers"]["steps"]["f8"])).tolist() == data.steps.tolist()
    news = run_data(watched, after=0, watched=(half, half))
    assert np.frombuffer(_bytes(news["layers"]["steps"]["f8"])).tolist() == data.after(half).steps.tolist()
    before = histograms_of(data.before(half + 1))
    assert before is not None
    assert news["histograms"]["gradient"]["reach"] == before["gradient"]["reach"]
    assert "layers" not in run_data(watched, after=0, watched=(half, int(data.steps[-1])))


def test_the_server_of_a_live_page_answers_with_what_is_new(watched: Path) -> None:
    last = int(MonitorData.load(watched / RECORD).steps[-1])
    with PageServer(watched) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        serving.start()
        try:
            for query, layers in ((f"first={last}&last={last}", False), ("", True), ("first=x&last=", True)):
                with urlopen(f"{server.url}data?after=3&{query}") as answer:  # noqa: S310 - the server of this test
                    news = json.load(answer)
                assert news["records"] > 3
                assert ("layers" in news) is layers
        finally:
            server.shutdown()
            serving.join()


def _bytes(text: str) -> bytes:

    return base64.b64decode(text)
