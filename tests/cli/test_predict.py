"""`glassgrad predict` and `glassgrad eval` with trained models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from glassgrad.cli import run
from glassgrad.data.images import shipped_digits
from glassgrad.data.pictures import read_digit


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One short run of each kind of task."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "others.txt").write_text("\n".join(["bob", "bobby", "bo"] * 4))
    text = folder / "text.txt"
    text.write_text("to be or not to be, that is the question. " * 40)
    words = folder / "words.txt"
    words.write_text("\n".join(["anna", "hannah", "nana", "ann", "hanna"] * 4))
    for name, options in {
        "digits": ["digits", "--epochs", "6", "--engine", "manual"],
        "moons": ["moons", "--steps", "300", "--engine", "manual"],
        "names": ["names", "--steps", "200", "--data", str(words), "--engine", "manual"],
        "gru": ["names", "--model", "gru", "--steps", "3", "--data", str(words), "--engine", "eager"],
        "text": [
            "text",
            "--data",
            str(text),
            "--steps",
            "3",
            "--context",
            "8",
            "--width",
            "8",
            "--layers",
            "1",
            "--engine",
            "eager",
        ],
    }.items():
        assert run(["train", *options, "--out", str(folder / name)]) == 0
    return folder


def answers(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, object]]:
    capsys.readouterr()
    assert run([*map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_pictures_of_the_data_set_are_recognised(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shipped_digits()
    files = []
    for place in range(20):
        files.append(tmp_path / f"{place}.npy")
        np.save(files[-1], data.train_images[place])
    found = answers(capsys, "predict", runs / "digits", *files)
    right = [int(str(one["answer"])) == label for one, label in zip(found, data.train_labels[:20], strict=True)]
    assert sum(right) >= 18
    assert [one["input"] for one in found] == list(map(str, files))


def test_a_drawn_digit_is_cut_out_scaled_and_centred(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow comes with matplotlib")
    ink = np.full((120, 200), 255, np.uint8)
    ink[20:110, 150:165] = 0  # a one, dark on light, at the right of a wide sheet
    image.fromarray(ink).save(tmp_path / "one.png")
    image.fromarray(255 - ink).save(tmp_path / "dark.png")
    found = read_digit(tmp_path / "one.png", (28, 28), 255)
    np.testing.assert_allclose(found, read_digit(tmp_path / "dark.png", (28, 28), 255), atol=1e-4)
    rows, columns = np.flatnonzero(found.any(axis=1)), np.flatnonzero(found.any(axis=0))
    assert (len(rows), found.max()) == (20, 255)
    assert abs(rows.mean() - 13.5) <= 1
    assert abs(columns.mean() - 13.5) <= 1


def test_points_words_and_texts(runs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text("0.0,1.0\n1.0,-0.5\n")
    assert [one["answer"] for one in answers(capsys, "predict", runs / "moons", file, "0,1")] == ["0", "1", "0"]
    for model in ("names", "gru"):
        (found,) = answers(capsys, "predict", runs / model, "hanna")
        assert str(found["answer"]).endswith("nats per character")
        assert {entry["label"] for entry in found["next"]} <= {"(end)", "a", "h", "n"}
    likely, odd = answers(capsys, "predict", runs / "names", "anna", "hhhh")
    assert float(str(likely["answer"]).split()[0]) < float(str(odd["answer"]).split()[0])
    (found,) = answers(capsys, "predict", runs / "text", "to be or not to be")
    assert sum(entry["probability"] for entry in found["next"]) <= 1


def test_eval_gives_the_numbers_of_the_end_of_the_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("digits", "moons", "names", "gru", "text"):
        (found,) = answers(capsys, "eval", runs / name)
        final = json.loads((runs / name / "metrics.jsonl").read_text().splitlines()[-1])
        assert final["event"] == "final"
        for key, value in found.items():
            assert value == pytest.approx(final[key], rel=1e-5), (name, key)
    assert {"train_loss", "validation_loss", "test_loss"} <= set(answers(capsys, "eval", runs / "names")[0])


def test_a_resumed_run_may_be_longer_and_quiet(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / "longer"
    assert run(["train", "xor", "--steps", "20", "--engine", "manual", "--quiet", "--out", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    for steps, code in ((50, 0), (40, 2)):
        assert run(["train", "xor", "--resume", str(path), "--steps", str(steps), "--quiet"]) == code
    assert "--steps of a run can only grow: it began with 50, given 40" in capsys.readouterr().err
    assert "steps = 50" in (path / "config.toml").read_text()
    records = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert [one["step"] for one in records if one["event"] == "train"] == [10, 20, 30, 40, 50]
    assert [one["step"] for one in records if one["event"] == "final"] == [50]
    assert run(["train", "xor", "--resume", str(path), "--rate", "1", "--quiet"]) == 2
    assert "--rate of a run cannot change" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["predict", "digits"], "error: give the model an input: one or more pictures of a digit"),
        (["predict", "digits", "none.png"], "error: cannot read none.png as a picture: there is no such file"),
        (["predict", "digits", "."], "error: cannot read . as a picture: it is a directory"),
        (["predict", "moons", "1"], "error: '1' is not a point: expected two numbers such as 0.5,-1, or a file"),
        (["predict", "moons", "nan,1"], "error: 'nan,1' is not a point"),
        (["predict", "names", "anna", "Anna"], "error: the model has never seen 'A'; it knows ahn"),
        (["predict", "names", ""], "error: an empty text ('') has nothing to predict"),
        (["predict", "gru", "hannahannahanna"], "error: 'hannahannahanna' has 15 characters; this model reads up to 6"),
        (["predict", "nowhere", "x"], "there is no such file or directory"),
        (["eval", "digits", "--data", "."], "error: no digits in .: no subfolder 0 to 9 holds a picture"),
        (["eval", "moons", "--data", "."], "error: --data has no effect on the task moons"),
        (["eval", "digits/model.safetensors"], "is a file; `glassgrad eval` needs the run directory"),
        (["eval", "names", "--data", "others.txt"], "the model reads only data with exactly its own, ahn"),
    ],
)  # fmt: skip  # a table
def test_what_cannot_be_used_is_refused(
    runs: Path, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    capsys.readouterr()
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.out == ""


def test_a_report_draws_the_graph_of_the_next_step(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["report", str(runs / "text")]) == 0
    drawn, page = map(Path, capsys.readouterr().out.split())
    assert (drawn, page) == (runs / "text" / "step.html", runs / "text" / "report.html")
    assert '"graph":"step.html"' in page.read_text()
    assert '"kind":"update"' in drawn.read_text()
    metrics = (runs / "names" / "metrics.jsonl").read_bytes()
    assert run(["report", str(runs / "names")]) == 0
    found = capsys.readouterr()
    assert found.out.split() == [str(runs / "names" / "report.html")]
    assert found.err.startswith("no graph of a step: ")
    assert "by hand" in found.err
    assert (runs / "names" / "metrics.jsonl").read_bytes() == metrics
    assert run(["report", str(runs / "names"), "--graph"]) == 2
