"""A run directory as data for the page, and the command and the method that write it."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.cli import run as command
from glassgrad.doctor import MonitorData
from glassgrad.errors import InputError, RunError
from glassgrad.train import Trainer, TrainingConfig, write_report
from glassgrad.train.kept.sessions import read_sessions, session
from glassgrad.train.show.monitoring import RECORD
from glassgrad.train.show.run_data import run_data
from glassgrad.train.show.run_list import list_runs
from tests.report.made_runs import PLANTED, made_run


def unpacked(packed: dict[str, str]) -> Any:
    [(kind, text)] = packed.items()
    return np.frombuffer(base64.b64decode(text), f"<{kind}")


def page_data(path: Path) -> dict[str, Any]:
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert text
    found: dict[str, Any] = json.loads(text[1])
    return found


def test_everything_a_directory_says_is_in_the_data(tmp_path: Path) -> None:
    found = run_data(made_run(tmp_path / "run"))
    assert (found["name"], found["state"], found["step"], found["steps"]) == ("run", "finished", 400, 400)
    assert found["results"]["train loss"] == 0.6
    assert found["results"]["test accuracy"] == 0.9
    assert found["config"] == {"task": "names", "rate": 0.1, "seed": 3}
    assert found["helps"] == {"rate": "learning rate"}
    curves = {(curve["event"], curve["name"]): curve for curve in found["curves"]}
    loss = curves["train", "loss"]
    assert unpacked(loss["steps"]).tolist() == list(range(10, 401, 10))
    assert unpacked(loss["seconds"])[-1] == pytest.approx(8.0)
    np.testing.assert_allclose(unpacked(curves["train", "steps_per_second"]["values"]), 50, rtol=1e-5)
    assert unpacked(curves["test", "loss"]["steps"]).tolist() == [100, 200, 300, 400]
    assert len(unpacked(curves["before clipping", "gradient norm"]["values"])) == 12
    assert [len(image["pixels"]) for image in found["samples"]["images"]] == [72, 72]
    assert found["command"] == "python train.py"


def test_layers_and_signed_histograms_are_those_of_the_record(tmp_path: Path) -> None:
    path = made_run(tmp_path / "run")
    data = MonitorData.load(path / RECORD)
    found = run_data(path)
    layers = found["layers"]
    assert layers["parameters"] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    quantities = {one["name"]: unpacked(one["values"]) for one in layers["quantities"]}
    np.testing.assert_allclose(quantities["gradient norm"].reshape(4, 12), data.gradient_norm.T, rtol=1e-6)
    np.testing.assert_allclose(quantities["update ratio"].reshape(4, 12), data.update_ratio.T, rtol=1e-6)
    histograms = found["histograms"]
    shares = unpacked(histograms["parameter"]["shares"]).reshape(4, histograms["bins"], 12) / 65535
    reach = unpacked(histograms["parameter"]["reach"])
    gg.manual_seed(0)
    first = gg.nn.Linear(4, 6).weight.detach().numpy()
    edges = np.linspace(-reach[0], reach[0], histograms["bins"] + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    assert (shares[0, :, 0] * middle).sum() == pytest.approx(first.mean(), abs=2 * (edges[1] - edges[0]))
    assert shares.sum(1).min() > 0.8  # the outermost bins of a histogram may reach beyond those of the page


def test_only_what_is_new_is_in_the_data_after_a_step(tmp_path: Path) -> None:
    found = run_data(made_run(tmp_path / "run"), after=42)
    assert "config" not in found
    assert {int(unpacked(curve["steps"]).min()) for curve in found["curves"]} == {400}


def test_long_runs_keep_their_spikes(tmp_path: Path) -> None:
    lines = [{"event": "train", "step": step, "loss": 99.0 if step == 2_777 else 1.0} for step in range(1, 4_001)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    [loss] = run_data(tmp_path)["curves"]
    values = unpacked(loss["values"])
    assert (len(values) <= 1_500, values.max(), loss["points"]) == (True, 99.0, 4_000)


@pytest.mark.parametrize(
    ("ended", "reason", "state"),
    [
        ("finished", None, "finished"),
        ("failed", "loss is NaN", "failed: loss is NaN"),
        (None, None, "ended without a word"),
    ],
)
def test_states(tmp_path: Path, ended: str | None, reason: str | None, state: str) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"event": "train", "step": 1, "loss": 2.0}\n')
    told = {key: value for key, value in (("ended", ended), ("reason", reason)) if value}
    (tmp_path / "run.json").write_text(json.dumps({"sessions": [told]}))
    assert run_data(tmp_path)["state"] == state


def test_sessions_tell_how_they_ended(tmp_path: Path) -> None:
    with session(tmp_path, {"steps": 9}, 0) as told:
        assert "ended" not in read_sessions(tmp_path)["sessions"][0]
        told["ended"] = "stopped"
    with pytest.raises(RunError), session(tmp_path, {"steps": 9}, 4):
        raise RunError("the loss is NaN")
    found = read_sessions(tmp_path)
    assert [one["ended"] for one in found["sessions"]] == ["stopped", "failed"]
    assert found["sessions"][1]["reason"] == "the loss is NaN"
    assert found["sessions"][0]["versions"]["numpy"] == np.__version__
    (tmp_path / "run.json").write_text("[1")
    assert read_sessions(tmp_path) == {}


def test_what_is_planted_stays_text(tmp_path: Path) -> None:
    run = made_run(tmp_path / f"run{PLANTED.replace('/', '')}", words=PLANTED)
    path = write_report(run, path=tmp_path / "page.html")
    text = path.read_text()
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "onerror=\\" in text  # it is there, within the data
    assert page_data(path)["runs"][0]["samples"]["title"] == PLANTED


def test_the_command_writes_one_page_of_several_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = made_run(tmp_path / "a" / "run"), made_run(tmp_path / "b" / "run", 0.5, watched=False)
    out = tmp_path / "both.html"
    assert command(["report", str(first), str(second), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    runs = page_data(out)["runs"]
    assert [run["name"] for run in runs] == [str(first), str(second)]
    assert [run["config"]["rate"] for run in runs] == [0.1, 0.5]
    assert command(["report", str(first)]) == 0
    assert (first / "report.html").is_file()


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["report", str(tmp_path / "none")]) == 2
    assert "no run at" in capsys.readouterr().err
    run = made_run(tmp_path / "run", watched=False)
    assert command(["report", str(run), "-o", str(tmp_path / "none" / "page.html")]) == 2
    assert "cannot write the report" in capsys.readouterr().err
    with pytest.raises(InputError, match="no runs to report on"):
        write_report()


HUGE = "1" + "0" * 400
DAMAGE = {
    "an integer beyond floats": (
        "metrics.jsonl",
        f'{{"event": "train", "step": 2, "loss": {HUGE}, "seconds": {HUGE}}}',
    ),
    "a step beyond arrays": ("metrics.jsonl", f'{{"event": "train", "step": {HUGE}, "loss": 1}}'),
    "an event that is a list": ("metrics.jsonl", '{"event": ["train"], "step": 2, "loss": 1}'),
    "a loss that is text": ("metrics.jsonl", '{"event": "train", "step": 2, "loss": "low", "rate": []}'),
    "a session of other types": ("run.json", '{"sessions": [{"command": 5, "began": [], "versions": null}]}'),
    "an image of no size": ("samples.json", '{"title": "", "size": [Infinity, 1], "images": []}'),
    "an image without a probability": (
        "samples.json",
        '{"size": [1, 1], "images": [{"pixels": "00", "target": 1, "predicted": 2, "probability": NaN}]}',
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_page_is_made_of_what_a_damaged_directory_still_says(name: str, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", watched=False)
    file, text = DAMAGE[name]
    before = (run / file).read_text() if file == "metrics.jsonl" else ""
    (run / file).write_text(before + text + "\n")
    (shown,) = page_data(write_report(run))["runs"]
    assert shown["sessions"] in ([{}], [read_sessions(run)["sessions"][0]])
    assert (shown["step"], shown["results"]["test loss"]) == (400, pytest.approx(0.7353, abs=1e-4))
    assert list_runs(run)[0].step == 400


def test_a_file_name_that_is_no_unicode_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    try:
        run = made_run(tmp_path / os.fsdecode(b"run\xff"), watched=False)
    except (OSError, UnicodeError):
        pytest.skip("the file system takes only Unicode")
    assert "<title>run?</title>" in write_report(run, path=tmp_path / "report.html").read_text()


def test_a_run_that_cannot_be_read_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "run" / "metrics.jsonl").mkdir(parents=True)
    with pytest.raises(InputError, match=r"cannot read metrics\.jsonl"):
        write_report(tmp_path / "run")


def test_a_trainer_reports_on_its_run(tmp_path: Path) -> None:
    def trainer(run_dir: str) -> Trainer:
        x = gg.randn(32, 2)
        loader = gg.utils.data.DataLoader(gg.utils.data.TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8)
        model = gg.nn.Linear(2, 2)
        config = TrainingConfig(epochs=2, engine="eager", log_every=2, progress="none", run_dir=run_dir)
        return Trainer(
            model, gg.optim.SGD(model.parameters(), lr=0.1), gg.nn.functional.cross_entropy, loader, config=config
        )

    kept = trainer(str(tmp_path / "run"))
    kept.fit()
    [run] = page_data(kept.report(graph=False))["runs"]
    assert (run["state"], run["steps"], run["sessions"][0]["from_step"]) == ("finished", 8, 0)
    assert run["graph"] == ""
    [run] = page_data(kept.report(tmp_path / "page.html"))["runs"]
    assert run["graph"] == "run/step.html"
    graph = page_data(tmp_path / "run" / "step.html")
    names = {node.get("name") for node in graph["nodes"] if node["kind"] == "parameter"}
    assert (graph["title"], names) == ("run, a step", {"model.weight", "model.bias"})
    assert sum(node["kind"] == "update" for node in graph["nodes"]) == 2
    with pytest.raises(InputError, match="keeps none"):
        trainer("").report()
