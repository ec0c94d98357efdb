"""Run directories with a truncated file or a changed byte: each command continues or names the damaged file."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUICK = ("--data", "words.txt", "--steps", "20", "--hidden", "4", "--embedding", "2")


def test_commands_on_damaged_runs_end_with_a_message(folder: Path, glassgrad: Callable[..., Any]) -> None:
    assert glassgrad("train", "names", *QUICK, "--run-dir", "whole").code == 0
    draw = random.Random(5)
    commands = [("train", "names", "--resume", "run", "--steps", "21"), ("sample", "run")]
    names = ["config.toml", "metrics.jsonl", "model.safetensors", "state.safetensors"]
    refusals = 0
    for name in names:
        content = (Path("whole") / name).read_bytes()
        for change in ("cut", "flip"):
            place = draw.randrange(max(len(content), 1))
            damaged = bytearray(content[:place] if change == "cut" else content)
            if change == "flip" and content:
                damaged[place] ^= 1 << draw.randrange(8)
            for command in commands:
                shutil.rmtree("run", ignore_errors=True)
                shutil.copytree("whole", "run")
                (Path("run") / name).write_bytes(damaged)
                result = glassgrad(*command)
                said = f"{name}, {change} at {place}: {command}: {result.err}"
                assert result.code in {0, 2}, said
                assert "Traceback" not in result.err, said
                refusals += result.code == 2
    assert refusals >= len(names)
