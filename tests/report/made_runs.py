"""Run directories made by hand, with scripts planted in every text of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad.train.kept import samples
from glassgrad.train.show.monitoring import RECORD

PLANTED = '</script><img src=x onerror="window.planted=1"><script>window.planted=1</script>&\''


def made_run(
    folder: Path, rate: float = 0.1, *, words: str = "", steps: int = 400, watched: bool = True, ended: str = "finished"
) -> Path:
    """Make a run whose loss falls; `words` are put into every place that takes any."""
    folder.mkdir(parents=True)
    lines: list[dict[str, Any]] = []
    for step in range(10, steps + 1, 10):
        loss = 0.5 + np.exp(-rate * step / 20) + (4.0 if step == 200 else 0.0)
        lines.append({"event": "train", "step": step, "loss": loss, "rate": rate, "seconds": step / 50})
        lines[-1] |= {"data_seconds": 0.05, "step_seconds": 0.15, f"extra{words}": float(step)}
        if step % 100 == 0:
            lines.append({"event": f"test{words}", "step": step, "loss": loss + 0.1, "accuracy": 1 - loss / 4})
    if ended == "finished":
        lines.append({"event": "final", "step": steps, "train_loss": 0.6, "test_accuracy": 0.9, "seconds": steps / 50})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    title = json.dumps(f"names{words}")
    (folder / "config.toml").write_text(f"task = {title}\n\n# learning rate{words}\nrate = {rate}\n\nseed = 3\n")
    session = {"began": "2026-01-01T00:00:00+00:00", "command": ["python", f"train{words}.py"], "ended": ended}
    (folder / "run.json").write_text(json.dumps({"steps": steps, "sessions": [session]}))
    if words:
        samples.write_samples(folder, samples.texts(words, [words, "anna"]))
    else:
        images, logits = np.arange(4 * 36).reshape(4, 6, 6), np.eye(4)
        samples.write_samples(folder, samples.wrong_images(logits, images, np.array([0, 1, 3, 2])))
    if watched:
        _monitor(folder / RECORD, words)
    return folder


def _monitor(path: Path, words: str) -> None:
    gg.manual_seed(0)
    model = gg.nn.Sequential(gg.nn.Linear(4, 6), gg.nn.ReLU(), gg.nn.Linear(6, 2))
    if words:
        model.add_module(words.replace(".", ""), gg.nn.Linear(2, 2))
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    x = gg.randn(16, 4)
    with gg.GradientMonitor(model, path=path) as monitor:
        for _ in range(12):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            monitor.update(loss)
            optimizer.step()
