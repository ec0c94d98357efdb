"""metrics.jsonl survives being cut anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from glassgrad.train.kept.metrics import MetricsLog, drop_after, read_metrics


def written(path: Path, steps: int = 5) -> bytes:
    with MetricsLog(path) as log:
        for step in range(1, steps + 1):
            log.write(event="train", step=step, loss=1 / 3 * step)
        log.write(event="final", step=steps, train_loss=1.0)
    return path.read_bytes()


def test_a_record_is_on_disk_before_the_next_line_of_code(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "m.jsonl")
    log.write(event="train", step=1, loss=0.1)
    assert json.loads((tmp_path / "m.jsonl").read_text()) == {"event": "train", "step": 1, "loss": 0.1}
    log.close()


def test_numbers_come_back_bit_for_bit(tmp_path: Path) -> None:
    written(tmp_path / "m.jsonl")
    assert read_metrics(tmp_path / "m.jsonl")[2]["loss"] == 1 / 3 * 3


def test_a_file_cut_at_any_byte_reads_as_its_whole_lines(tmp_path: Path) -> None:
    content = written(tmp_path / "whole.jsonl")
    records = read_metrics(tmp_path / "whole.jsonl")
    cut = tmp_path / "cut.jsonl"
    for length in range(len(content) + 1):
        cut.write_bytes(content[:length])
        found = read_metrics(cut)
        # Without its newline a last line may still be whole.
        assert found == records[: len(found)]
        assert content[:length].count(b"\n") <= len(found) <= content[:length].count(b"\n") + 1


def test_going_on_after_a_cut_line_keeps_the_lines_apart(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    content = written(path)
    path.write_bytes(content[:-10])
    drop_after(path, 3)
    with MetricsLog(path) as log:
        log.write(event="train", step=4, loss=9.0)
    assert [record["step"] for record in read_metrics(path)] == [1, 2, 3, 4]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_the_end_of_a_run_is_dropped_as_it_is_written_again(tmp_path: Path) -> None:
    written(tmp_path / "m.jsonl", steps=3)
    drop_after(tmp_path / "m.jsonl", 3)
    assert [record["event"] for record in read_metrics(tmp_path / "m.jsonl")] == ["train"] * 3


def test_a_missing_file_has_no_records(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "none.jsonl") == []


def test_nan_is_refused_as_it_is_no_json(tmp_path: Path) -> None:
    with MetricsLog(tmp_path / "m.jsonl") as log, pytest.raises(ValueError, match="JSON"):
        log.write(event="train", step=1, loss=float("nan"))
