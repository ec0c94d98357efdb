"""`glassgrad export`: the model of a run for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.api import compile as compiled
from glassgrad.data.atomic import write_atomically
from glassgrad.engine.mode import no_grad
from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.creation import from_numpy
from glassgrad.onnx.exporting import export
from glassgrad.serialization import save
from glassgrad.tasks.task import Example
from glassgrad.tasks.torch_program import program
from glassgrad.tasks.trained import Trained, content, open_trained
from glassgrad.train.config import Layer, flag, read_toml
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.learners.engine import EngineLearner
from glassgrad.train.loop import Loop

FILES = {"onnx": "model.onnx", "numpy": "model_numpy.py", "torch": "model_torch.safetensors", "c": "model_c"}
"""The formats of an export, and the names of their files; that of C is a folder."""
TRAINING = "step_c"
"""The folder of a training step in C."""


def export_model(path: Path, to: str, out: Path | None = None) -> list[Path]:
    """Write the model of a run, or of a model file, for another program; return the files.

    Raises `errors.InputError` if there is no model, or if it cannot be written there.
    """
    trained = open_trained(path)
    if trained.kind.example is None:
        raise errors.MODEL_OF_NO_TASK(path=trained.file, what=content(trained.description), known="none")
    own = Path(FILES[to])
    place = out or (path if path.is_dir() else path.parent) / own
    if place.suffix != own.suffix:
        raise errors.EXPORT_ENDING(path=place, to=to, ending=own.suffix)
    if place.resolve() == trained.file.resolve():
        raise errors.EXPORT_ITSELF(path=place)
    model = _on_the_engine(trained).eval()
    try:
        return _WRITERS[to](model, trained, trained.kind.example(trained.description), place)
    except OSError as error:
        raise errors.EXPORT_NOT_WRITTEN(path=place, reason=error.strerror or error) from None


def export_training(path: Path, to: str, out: Path | None = None) -> list[Path]:
    """Write the training step of a run in C: with the state of its last checkpoint, and its next batch as the example.

    Raises `errors.InputError` if there is no run with a step, or if it cannot be written there; `errors.CompileError`
    for a step that C cannot say.
    """
    if to != "c":
        raise errors.EXPORT_TRAINING(to=to)
    run, kind = RunDirectory.existing(path), open_trained(path).kind
    stored = read_toml(run.config, kind.config, kind.name)
    # The engines share the form of a checkpoint; only the one that can be traced has a step to write.
    task = kind.build(kind.configure([stored, Layer({"engine": "eager"}, flag)]))
    loop = Loop(task)
    loop.read(run)
    if not loop.step:
        raise errors.EXPORT_NO_STEP(path=path, task=kind.name)
    learner = task.learner
    assert isinstance(learner, EngineLearner)
    learner.set_rate(task.rate_at(min(loop.step, task.steps - 1)))
    function, batch, _ = learner.one_step(*task.batch_at(loop.step))
    call = compiled(function, backend="numpy", strict=True)
    held = [one for state in learner.optimizer.state.values() for one in state.values() if isinstance(one, Tensor)]
    weights = (*learner.model.parameters(), *learner.model.buffers())
    before = Snapshot(arrays=[one.array for one in (*weights, *held)], randoms=True)
    call(*batch)
    before.restore()  # what is written begins where the checkpoint ends
    files: list[Path] = call.export_c(out or path / TRAINING)
    return files


def _on_the_engine(trained: Trained) -> Any:
    """Return the model as a module; a hand-written model is rebuilt with the same weights."""
    config = trained.description["config"]
    if config.get("engine") != "manual" or trained.kind.restore is None:
        return trained.learner.model
    learner = trained.kind.restore({**trained.description, "config": {**config, "engine": "eager"}})
    learner.load_weights(trained.learner.weights())
    return learner.model


def _onnx(model: Any, trained: Trained, example: Example, place: Path) -> list[Path]:
    names: dict[str, Any] = {"input_names": ["input"], "output_names": ["logits"]}
    exported = export(model, from_numpy(example.inputs), dynamic_axes={"input": example.axes}, **names)
    exported.metadata_props.add(key="glassgrad", value=json.dumps(_plain(trained.description)))
    write_atomically(place, exported.SerializeToString())
    return [place]


def _numpy(model: Any, trained: Trained, example: Example, place: Path) -> list[Path]:
    """Write a program for one example, and a file with the weights and the example for its self-check."""
    call = compiled(model, backend="numpy")
    inputs = np.ascontiguousarray(example.inputs[:1])
    with no_grad():
        expected = call(from_numpy(inputs)).numpy()
    source = call.source
    first, *weights = source.arguments
    state = {name.replace(".", "_"): tensor.numpy() for name, tensor in model.state_dict().items()}
    arrays = {first: inputs, **{name: _weight(state, name) for name in weights}, "expected": expected}
    beside = place.with_suffix(".npz")
    place.write_text(_CHECKED.format(source=source.rstrip(), entry=source.entry), encoding="utf-8", newline="\n")
    with beside.open("wb") as file:
        np.savez(file, **arrays)
    return [place, beside]


def _weight(state: Mapping[str, Any], argument: str) -> Any:
    """Return the weight for an argument of a program; the argument may begin with the name of the model."""
    fitting = [name for name in state if argument == name or argument.endswith(f"_{name}")]
    return state[max(fitting, key=len)]


_CHECKED = '''{source}


def load():
    """The weights and an example, by the names of the arguments above, and the result that is expected."""
    with np.load(Path(__file__).with_suffix(".npz")) as held:
        return {{name: held[name] for name in held}}


if __name__ == "__main__":
    arguments = load()
    expected = arguments.pop("expected")
    found = {entry}(**arguments)
    largest = abs(found - expected).max()
    print("the largest difference to glassgrad is", largest)
    assert largest <= 1e-4 * max(1, abs(expected).max())
'''


def _c(model: Any, trained: Trained, example: Example, place: Path) -> list[Path]:
    """Write a program in C for a batch of the example's size."""
    call = compiled(model, backend="numpy")
    with no_grad():
        call(from_numpy(np.ascontiguousarray(example.inputs)))
    files: list[Path] = call.export_c(place)
    return files


def _torch(model: Any, trained: Trained, example: Example, place: Path) -> list[Path]:
    """Write the weights, and a program that loads them with PyTorch."""
    save(model.state_dict(), place)
    script = place.with_suffix(".py")
    script.write_text(_script(model, trained, example, place), encoding="utf-8", newline="\n")
    return [place, script]


def _script(model: Any, trained: Trained, example: Example, place: Path) -> str:
    about = "\n".join(f"    {line}".rstrip() for line in repr(model).splitlines())
    head = [
        f'"""The model of glassgrad\'s task {trained.kind.name!r}, with its weights in {place.name}.',
        "",
        about,
        "",
        f"Inputs are {example.inputs.dtype} of shape {('batch', *example.inputs.shape[1:])}.",
        '"""',
        "",
        "from pathlib import Path",
        "",
        "from safetensors.torch import load_file",
    ]
    load = f'state = load_file(Path(__file__).with_name("{place.name}"))'
    built = program(model)
    if built is None:
        told = (
            "# Write the model above in PyTorch; give its layers the names with which the names of the weights begin."
        )
        return "\n".join([*head, "", load, told]) + "\n"
    return "\n".join(head) + f"\n{built}{load}\nmodel.load_state_dict(state)\nmodel.eval()\n"


def _plain(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description that a program needs, without the path of the run's data."""
    config = {key: value for key, value in description["config"].items() if key != "data"}
    return {**{key: value for key, value in description.items() if key != "parts"}, "config": config}


_Writer = Callable[[Any, Trained, Example, Path], list[Path]]
_WRITERS: dict[str, _Writer] = {"onnx": _onnx, "numpy": _numpy, "torch": _torch, "c": _c}

__all__ = ["FILES", "TRAINING", "export_model", "export_training"]
