"""`glassgrad export`: the model of a run as ONNX, as a program in NumPy, and for PyTorch."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.tasks.torch_program import program
from glassgrad.tasks.trained import open_trained
from glassgrad.train.config import Layer, flag, read_toml
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.loop import Loop
from tests.cli.conftest import Result
from tests.onnx.running import needs_runtime, session

Call = Callable[..., Result]
TASKS = {
    "moons": (["moons", "--steps", "20"], np.random.default_rng(0).normal(size=(5, 2)).astype("f")),
    "gru": (["names", "--model", "gru", "--steps", "2", "--data", "words.txt"], np.arange(12).reshape(4, 3) % 5),
}


def trained(glassgrad: Call, task: str) -> Path:
    options, _ = TASKS[task]
    engine = "manual" if task == "moons" else "eager"
    assert glassgrad("train", *options, "--engine", engine, "--out", task).code == 0
    return Path(task)


@needs_runtime
@pytest.mark.parametrize("task", TASKS)
def test_a_run_as_onnx_computes_what_it_did(glassgrad: Call, task: str) -> None:
    run = trained(glassgrad, task)
    found = glassgrad("export", run, "--to", "onnx")
    assert found.out.split() == [str(run / "model.onnx")]
    made = session(run / "model.onnx")
    inputs = TASKS[task][1]
    (logits,) = made.run(None, {"input": inputs})
    np.testing.assert_allclose(logits, open_trained(run).learner.logits(inputs), rtol=1e-5, atol=1e-5)
    described = json.loads(made.get_modelmeta().custom_metadata_map["glassgrad"])
    assert described["task"] == ("moons" if task == "moons" else "names")
    assert "data" not in described["config"]


def test_a_run_as_a_program_in_numpy(glassgrad: Call) -> None:
    run = trained(glassgrad, "moons")
    assert glassgrad("export", run, "--to", "numpy", "--out", "moons.py").out.split() == ["moons.py", "moons.npz"]
    text = Path("moons.py").read_text(encoding="utf-8")
    assert "import numpy as np" in text
    assert "import glassgrad" not in text
    runpy.run_path("moons.py", run_name="__main__")  # it checks itself
    program = runpy.run_path("moons.py")
    arguments = program["load"]()
    del arguments["expected"]
    arguments["input"] = TASKS["moons"][1][:1]
    expected = open_trained(run).learner.logits(arguments["input"])
    np.testing.assert_allclose(program["Sequential"](**arguments), expected, rtol=1e-5, atol=1e-6)


def test_a_run_for_pytorch(glassgrad: Call) -> None:
    run = trained(glassgrad, "moons")
    glassgrad("export", run, "--to", "torch")
    state = gg.load(run / "model_torch.safetensors")
    assert set(state) == set(open_trained(run).learner.weights())
    text = (run / "model_torch.py").read_text(encoding="utf-8")
    assert "model = nn.Sequential(\n    nn.Linear(in_features=2" in text


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_pytorch_loads_it_and_computes_the_same(glassgrad: Call, task: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch reads what is exported")
    run = trained(glassgrad, task)
    glassgrad("export", run, "--to", "torch")
    theirs = runpy.run_path(str(run / "model_torch.py"))["model"]
    inputs = TASKS[task][1]
    found = theirs(torch.from_numpy(inputs)).detach().numpy()
    np.testing.assert_allclose(found, open_trained(run).learner.logits(inputs), rtol=1e-5, atol=1e-5)


MODELS = {
    "bigram": gg.models.Bigram(7),
    "mlp": gg.models.NamesMLP(7),
    "rnn": gg.models.CharRNN(7, cell="rnn", hidden=8),
    "lstm": gg.models.CharRNN(7, cell="lstm", hidden=8, layers=2, dropout=0.1),
    "gpt": gg.models.GPT(7, context=8, width=16, heads=2, layers=2, dropout=0.1),
}


def test_pytorch_computes_what_a_cnn_of_digits_did(glassgrad: Call) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch reads what is exported")
    options = ("--model", "cnn", "--channels", "2", "--hidden", "8", "--epochs", "1", "--batch", "512")
    assert glassgrad("train", "digits", *options, "--engine", "eager", "--out", "cnn").code == 0
    glassgrad("export", "cnn", "--to", "torch")
    theirs = runpy.run_path("cnn/model_torch.py")["model"].eval()
    run = open_trained(Path("cnn"))
    images = np.random.default_rng(0).random((5, 1, 8, 8), dtype="f")
    found = theirs(torch.from_numpy(images)).detach().numpy()
    assert found.shape == (5, 10)
    np.testing.assert_allclose(found, run.learner.logits(images), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_a_program_for_pytorch_computes_the_same(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch runs the program")
    ours, scope = MODELS[name].eval(), {}
    exec(program(ours), scope)  # noqa: S102 - what is under test
    theirs = scope["model"]
    theirs.load_state_dict({key: torch.from_numpy(value.numpy().copy()) for key, value in ours.state_dict().items()})
    tokens = np.random.default_rng(0).integers(0, 7, (3, 3 if name == "mlp" else 8))
    found = theirs.eval()(torch.from_numpy(tokens)).detach().numpy()
    np.testing.assert_allclose(found, ours(gg.from_numpy(tokens)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_class_without_a_program_is_left_to_the_reader() -> None:
    assert program(gg.nn.Bilinear(2, 2, 1)) is None


def test_refusals(glassgrad: Call, folder: Path) -> None:
    run = trained(glassgrad, "moons")
    for arguments, words in (
        (["nowhere", "--to", "onnx"], "no such file or directory"),
        ([run, "--to", "pdf"], "invalid value for '--to': 'pdf' is not one of 'onnx', 'numpy', 'torch'"),
        ([run, "--to", "onnx", "--out", "x.txt"], "the file of --to onnx ends in .onnx"),
        ([run, "--to", "torch", "--out", run / "model.safetensors"], "is the model itself"),
        ([run, "--to", "torch", "--out", "no/where.safetensors"], "cannot write"),
    ):
        found = glassgrad("export", *arguments)
        assert (found.code, found.out) == (2, "")
        assert words in found.err
    gg.save(gg.nn.Linear(2, 2).state_dict(), "own.safetensors")
    assert glassgrad("export", "own.safetensors", "--to", "onnx").code == 2


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_run_as_a_program_in_c(glassgrad: Call) -> None:
    """The written program computes what the model does on the example, which it holds."""
    run = trained(glassgrad, "moons")
    found = glassgrad("export", run, "--to", "c")
    folder = run / "model_c"
    assert {Path(line).name for line in found.out.split()} >= {"step.h", "step.c", "step.weights", "Makefile"}
    made = subprocess.run(["make", "CC=gcc"], cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "warning" not in made.stderr
    assert subprocess.run(["./step", "1"], cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("task", TASKS)
def test_the_training_of_a_run_goes_on_in_c(glassgrad: Call, task: str) -> None:
    """The written step begins where the checkpoint ends, with the batch that comes next, and changes nothing."""
    run = RunDirectory(trained(glassgrad, task))
    kept = run.state.read_bytes()
    found = glassgrad("export", run.path, "--to", "c", "--training")
    assert (found.code, found.err) == (0, "")
    folder = run.path / "step_c"
    made = subprocess.run(["make", "CC=gcc"], cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    out = subprocess.run(["./step", "6"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert run.state.read_bytes() == kept
    kind = open_trained(run.path).kind
    going_on = kind.build(
        kind.configure([read_toml(run.config, kind.config, kind.name), Layer({"engine": "eager"}, flag)])
    )
    loop = Loop(going_on)
    loop.read(run)
    going_on.set_rate(going_on.rate_at(loop.step - 1))
    batch = going_on.batch_at(loop.step)
    expected = [float(going_on.step(*batch)) for _ in range(6)]
    np.testing.assert_allclose([float(line.split()[-1]) for line in out.splitlines()], expected, rtol=1e-4)
    assert expected[-1] != expected[0]


def test_only_c_writes_a_training_and_only_of_a_run_with_a_step(glassgrad: Call) -> None:
    run = trained(glassgrad, "moons")
    for arguments, words in (
        ([run, "--to", "onnx", "--training"], "--training belongs to --to c; --to onnx writes the model"),
        ([run / "model.safetensors", "--to", "c", "--training"], "no run"),
    ):
        found = glassgrad("export", *arguments)
        assert (found.code, found.out) == (2, "")
        assert words in found.err
