"""Every file is opened for bytes, or with encoding and line ends: Windows would otherwise change the content."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.sources import Source, parsed, python_files, source

PACKAGE = python_files("src")
# Calls of os.open that write nothing to a file: a folder is synchronised, an output is closed, `open` passes its flags.
NO_CONTENT = {
    ("atomic.py", "path"),
    ("display.py", "os.devnull"),
    ("__init__.py", "os.devnull"),
    ("private.py", "path"),
}


def calls(source: Source) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls that open or write files, by the last part of their names."""
    for name, node in source.opening:
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if name in {"read_text", "write_text"} and not owner:
            continue  # a function of that name, no method of a path
        if name == "open" and owner in {"Image", "webbrowser", "tokenize"}:
            continue  # a picture, an address, a program in the encoding that it declares
        if name == "open" and owner == "os":
            yield "os.open", node
        else:
            yield name, node


def mode_of(name: str, node: ast.Call) -> str:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    # The mode of a method of a path is its first argument, that of a function its second.
    is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in {"io", "os", "gzip"}
    place = 0 if is_method and name == "open" else 1
    given = keywords.get("mode", node.args[place] if len(node.args) > place else None)
    default = {"write_text": "w", "NamedTemporaryFile": "w+b", "TextIOWrapper": "w"}.get(name, "r")
    return given.value if isinstance(given, ast.Constant) else default


def faults(name: str, source: Source) -> list[str]:
    """Return what a file's calls leave to the system."""
    found = []
    for kind, node in calls(source):
        keywords = {keyword.arg for keyword in node.keywords}
        if kind == "os.open":
            exempt = (name, ast.unparse(node.args[0])) in NO_CONTENT
            if not exempt and "BINARY" not in ast.unparse(node.args[1]):
                found.append(f"{name}:{node.lineno} os.open without O_BINARY")
            continue
        mode = mode_of(kind, node)
        if "b" in mode:
            continue
        if "encoding" not in keywords:
            found.append(f"{name}:{node.lineno} {kind} without an encoding")
        if set(mode) & set("wax+") and "newline" not in keywords:
            found.append(f"{name}:{node.lineno} {kind} without line ends")
    return found


def test_nothing_is_left_to_the_system() -> None:
    assert not [fault for path in PACKAGE for fault in faults(path.name, source(path))]


def test_the_scan_sees_the_calls_there_are() -> None:
    kinds = [kind for path in PACKAGE for kind, _ in calls(source(path))]
    assert kinds.count("os.open") >= 6
    assert kinds.count("open") >= 5


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("os.open(path, os.O_WRONLY | os.O_CREAT)", "O_BINARY"),
        ("open(path)", "encoding"),
        ("open(path, 'w')", "encoding"),
        ("open(path, mode='a', encoding='utf-8')", "line ends"),
        ("path.open('w', encoding='utf-8')", "line ends"),
        ("Path('x').write_text(text, encoding='utf-8')", "line ends"),
        ("path.read_text()", "encoding"),
        ("os.fdopen(handle, 'w')", "encoding"),
        ("io.TextIOWrapper(raw)", "encoding"),
    ],
)
def test_the_scan_finds_faults(line: str, what: str) -> None:
    assert what in " ".join(faults("some.py", parsed(line)))


# Stands for Windows: descriptors that were not opened as binary translate line ends, and text files take the code page.
TRANSLATING = """
import os, sys, builtins, io
BINARY = 1 << 28
os.O_BINARY = BINARY
binary, plain_open, plain_write = set(), os.open, os.write
def fake_open(path, flags, mode=0o777, **rest):
    descriptor = plain_open(path, flags & ~BINARY, mode, **rest)
    (binary.add if flags & BINARY else binary.discard)(descriptor)
    return descriptor
def fake_write(descriptor, content):
    if descriptor in binary or descriptor < 3:
        return plain_write(descriptor, content)
    plain_write(descriptor, bytes(content).replace(b"\\n", b"\\r\\n"))
    return len(content)
os.open, os.write = fake_open, fake_write
plain = io.open
def translating(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *rest, **more):
    if "b" not in mode:
        encoding = encoding or "cp1252"
        newline = "\\r\\n" if newline is None and set(mode) & set("wax+") else newline
    return plain(file, mode, buffering, encoding, errors, newline, *rest, **more)
builtins.open = io.open = translating
"""
WRITING = """
import glassgrad as gg, numpy as np, warnings
from pathlib import Path
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from glassgrad.train import Checkpoint, Trainer, TrainingConfig
from glassgrad.train.kept.metrics import MetricsLog, read_metrics
from glassgrad.utils.data import DataLoader, TensorDataset
folder = Path(sys.argv[1])
gg.manual_seed(0)
data = TensorDataset(gg.randn(40, 3), gg.randint(0, 2, (40,)))
def trainer(**options):
    gg.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    config = TrainingConfig(epochs=2, progress="none", log_every=1, run_dir=str(folder / "run"), log_to="csv")
    optimizer, batches = optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=8)
    return Trainer(model, optimizer, F.cross_entropy, batches, config=config)
trainer().fit(until=3)
result = trainer().fit(resume=True)
assert result.finished
model = nn.Linear(2, 2)
gg.save({"w": model.weight, "note": "\\n" * 10 + "é"}, folder / "weights")
assert gg.load(folder / "weights")["note"] == "\\n" * 10 + "é"
checkpoint = Checkpoint(folder / "own", model=model)
checkpoint.save(note="\\n\\x1aé")
assert checkpoint.load() == {"note": "\\n\\x1aé"}
assert gg.compile(lambda x: x * 2)(gg.ones(2)).tolist() == [2, 2]
program = gg.compile(lambda x: gg.exp(x), backend="numpy")
program(gg.ones(2))
try:
    program.source.save(folder / "program.py")
except gg.errors.GlassgradError:
    pass
for path in folder.rglob("*"):
    if path.is_file() and path.suffix in {".jsonl", ".toml", ".csv", ".py"}:
        assert b"\\r" not in path.read_bytes(), path
        assert b"\\n" in path.read_bytes(), path
assert len(read_metrics(folder / "run" / "metrics.jsonl")) > 5
print("all", sorted(path.name for path in (folder / "run").iterdir()))
"""


def test_files_come_back_where_text_is_translated(tmp_path: Path) -> None:
    own = {"PYTHONPATH": os.pathsep.join(sys.path), "GLASSGRAD_CACHE_DIR": str(tmp_path / "cache")}
    environment = {**os.environ, **own}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRANSLATING + WRITING, tmp_path],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.stdout.startswith("all"), done.stderr
    assert "metrics.jsonl" in done.stdout
