"""Faults planted in healthy trainings, and healthy ones: `python -m tests.doctor.faults` prints the doctor's findings.

    python -m tests.doctor.faults [HALF] [SEED] [WORDS] [--seeds N] [--keep FILE] [--table]

Each fault lists the findings that name it: the fault counts as found if one of them is a warning or an error (or an
info, if the fault says so). Thresholds were set on the trainings of one half; the table of the documentation is made
with those of the other. WORDS select runs by their names, `--seeds 3` also runs the two seeds after SEED, and `--keep`
continues at the end of a file of results.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.doctor.script import run_script
from tests.doctor.healthy import healthy, tasks_of
from tests.doctor.small_models import digits_mlp
from tests.doctor.trainings import HALVES, Training, entropy


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault: what it changes in a training, and the titles of the findings that name it."""

    name: str
    tasks: tuple[str, ...]
    change: dict[str, Any]
    found_by: tuple[str, ...]
    least: str = "warning"


def _scaled(factor: float, *, last: bool = False) -> Callable[[Any, Any], None]:
    def prepare(lib: Any, model: Any) -> None:
        with lib.no_grad():
            weights = [parameter for parameter in model.parameters() if len(parameter.shape) > 1]
            for weight in weights[-1:] if last else weights:
                weight *= factor

    return prepare


def _killed(lib: Any, model: Any) -> None:
    with lib.no_grad():
        for name, parameter in list(model.named_parameters())[:-2]:
            if name.endswith("bias"):
                parameter -= 30.0


def _repeated(lib: Any, features: int) -> Any:
    nn = lib.nn
    first, layer = nn.Linear(features, 64), nn.Linear(64, 64)
    layers = [first, nn.ReLU(), layer, nn.ReLU(), layer, nn.ReLU(), layer, nn.ReLU()]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(64, 10))


def _cut(lib: Any, features: int) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = lib.nn.Linear(features, 32), lib.nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            hidden = self.first(x.reshape(len(x), -1)).relu()
            return self.second(hidden.detach())

    return Net()


def _spare(lib: Any, features: int) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = lib.nn.Linear(features, 32), lib.nn.Linear(32, 10)
            self.spare = lib.nn.Linear(32, 32)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x.reshape(len(x), -1)).relu())

    return Net()


def _sigmoids(lib: Any, features: int) -> Any:
    return digits_mlp(lib, depth=8, activation="Sigmoid", features=features)


def _deep_tanh(lib: Any, features: int) -> Any:
    return digits_mlp(lib, depth=24, activation="Tanh", features=features)


def _narrow(lib: Any, features: int) -> Any:
    return lib.nn.Sequential(lib.nn.Flatten(), lib.nn.Linear(features, 1), lib.nn.Linear(1, 10))


def _few(rng: np.random.Generator, y: np.ndarray, at: int, batch: int) -> np.ndarray:
    return rng.integers(0, 48, batch)


def _softmax(lib: Any, output: Any, target: Any) -> Any:
    return entropy(lib, lib.softmax(output, -1), target)


def _sigmoid_of_logits(lib: Any, output: Any, target: Any) -> Any:
    hot = lib.nn.functional.one_hot(target, output.shape[-1]) * 1.0
    return lib.nn.functional.binary_cross_entropy_with_logits(lib.sigmoid(output), hot)


def _log_of_raw(lib: Any, output: Any, target: Any) -> Any:
    return -lib.log(output)[lib.arange(len(target)), target].mean()


def _root(lib: Any, output: Any, target: Any) -> Any:
    return entropy(lib, output, target) + lib.sqrt(lib.relu(output)).mean()


def _divided(lib: Any, output: Any, target: Any) -> Any:
    return entropy(lib, output / lib.relu(output).amin(-1, keepdim=True), target)


def _crossed(lib: Any, output: Any, target: Any) -> Any:
    return ((output - target) ** 2).mean()


def _crossed_the_other_way(lib: Any, output: Any, target: Any) -> Any:
    return ((output.squeeze(1) - target.reshape(-1, 1)) ** 2).mean()


def _detached(lib: Any, output: Any, target: Any) -> Any:
    loss = entropy(lib, output, target)
    return lib.tensor(loss.item(), requires_grad=True)


def _by_class(rng: np.random.Generator, y: np.ndarray, at: int, batch: int) -> np.ndarray:
    order = np.argsort(y, kind="stable")
    first = at * batch % (len(y) - batch)
    return order[first : first + batch]


def _poisoned(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[::7, ..., 0] = np.nan
    return x


def _in_evaluation(lib: Any, model: Any) -> None:
    model.eval()


def _validated_in_training(lib: Any, model: Any, x: Any) -> None:
    with lib.no_grad():
        model(x)


def _nan_weight(lib: Any, model: Any) -> None:
    with lib.no_grad():
        next(iter(model.parameters())).reshape(-1)[0] = float("nan")


def _times(factor: float) -> Callable[[Training], float]:
    return lambda training: factor * training.rate


def _noise(y: np.ndarray) -> np.ndarray:
    return np.random.default_rng(5).permutation(y)


FIVE_FAULTS = """
import sys
import numpy as np
import LIBRARY as lib

np.seterr(all="ignore")
# As the first lines of a process are: the generators of the library have no seed of the user's.
if "glassgrad" in lib.__name__:
    random = sys.modules["glassgrad.engine.random"]
    random.default_generator = random.Generator()
    random.default_generator._start(int(sys.argv[1]))
else:
    lib.seed()
rng = np.random.default_rng(int(sys.argv[1]))
x, y = rng.normal(size=(256, 8)).astype(np.float32), rng.integers(0, 3, 256)
layers = [lib.nn.Linear(8, 16), lib.nn.Sigmoid()]
for _ in range(7):
    layers += [lib.nn.Linear(16, 16), lib.nn.Sigmoid()]
model = lib.nn.Sequential(*layers, lib.nn.Linear(16, 3))
optimizer = lib.optim.SGD(model.parameters(), lr=10)
for step in range(20):
    rows = rng.integers(0, 256, 32)
    output = model(lib.tensor(x[rows]))
    loss = -lib.log(output)[np.arange(32), y[rows]].mean()
    loss.backward()
    optimizer.step()
"""

CLASSIFIERS = ("names MLP", "digits MLP", "digits CNN")
EVERY = (*CLASSIFIERS, "LSTM", "GPT")
RATE = (
    "rate above the curvature", "rate unfit for the weights", "learning rate out of the usual", "loss rises",
    "exploding gradient", "loss not finite", "gradients zigzag", "dead units",
)  # fmt: skip  # a table

_LONG = {"steps": 240, "preset": "full"}
"""For what only the course of the loss shows: the share of a fast loop's time leaves few steps to see PyTorch's in."""

FAULTS: tuple[Fault, ...] = (
    Fault("zero_grad forgotten", EVERY, {"order": "bs"}, ("zero_grad is missing",)),
    Fault("step before backward", CLASSIFIERS, {"order": "szb"}, ("step before backward",)),
    Fault("zeroed between backward and step", CLASSIFIERS, {"order": "bzs"}, ("no gradients in a step",)),
    Fault("no step", ("digits MLP", "GPT"), {"order": "zb"}, ("no step",)),
    Fault("loss made anew", CLASSIFIERS, {"loss": _detached}, ("loss detached",)),
    Fault("softmax before cross entropy", EVERY, {"loss": _softmax}, ("softmax twice",)),
    Fault("sigmoid before its loss", ("digits MLP", "digits CNN"), {"loss": _sigmoid_of_logits},
          ("activation before its loss",)),
    Fault("log of a raw output", CLASSIFIERS, {"loss": _log_of_raw}, ("logarithm of what can reach 0",)),
    Fault("root of 0", ("digits MLP", "digits CNN"), {"loss": _root}, ("root of 0",)),
    Fault("division by 0", ("digits MLP", "digits CNN"), {"loss": _divided}, ("division by 0",)),
    Fault("(n, 1) against (n,)", ("regression",), {"loss": _crossed}, ("broadcast in the loss",)),
    Fault("(n,) against (n, 1)", ("regression",), {"loss": _crossed_the_other_way}, ("broadcast in the loss",)),
    Fault("rate 10", CLASSIFIERS, {"optimizer": "SGD", "rate": 10.0}, RATE),
    Fault("rate 100 times too high", EVERY, {"rate": _times(100)}, RATE),
    Fault("rate 0", ("digits MLP", "GPT"), {"rate": 0.0}, ("learning rate out of the usual",)),
    Fault("rate a million times too low", ("digits MLP", "LSTM"), {"rate": _times(1e-6)},
          ("rate unfit for the weights",)),
    Fault("eight sigmoids", ("digits MLP",), {"model": _sigmoids}, ("sigmoids too deep", "vanishing gradient")),
    Fault("twenty-four tanh", ("digits MLP",), {"model": _deep_tanh}, ("vanishing gradient",)),
    Fault("weights 20 times too large", ("names MLP", "digits MLP"), {"prepare": _scaled(20.0)},
          ("first loss far off", "saturated", "exploding gradient")),
    Fault("last layer 100 times too large", CLASSIFIERS, {"prepare": _scaled(100.0, last=True)},
          ("first loss far off",)),
    Fault("dead ReLUs", ("digits MLP",), {"prepare": _killed}, ("dead units",)),
    Fault("raw pixels", ("digits MLP", "digits CNN"), {"inputs": lambda x: x * 255}, ("inputs unnormalised",)),
    Fault("constant inputs", ("digits MLP", "digits CNN"), {"inputs": np.ones_like}, ("inputs constant",)),
    Fault("NaN in the data", ("digits MLP", "digits CNN", "regression"), {"inputs": _poisoned}, ("NaN in the data",)),
    Fault("NaN in a weight", ("names MLP", "digits MLP"), {"prepare": _nan_weight}, ("loss not finite",)),
    Fault("labels from 1 on", ("names MLP", "digits MLP"), {"targets": lambda y: y + 1}, ("stopped",)),
    Fault("labels mixed up", ("digits MLP",), {"targets": _noise, **_LONG}, ("loss does not fall",)),
    Fault("sorted by class", ("digits MLP", "digits CNN"), {"indices": _by_class}, ("data not shuffled",)),
    Fault("one layer three times", ("digits MLP",), {"model": _repeated}, ("layers shared",)),
    Fault("detach in the model", ("digits MLP",), {"model": _cut}, ("no gradient",)),
    Fault("a layer not used", ("digits MLP",), {"model": _spare}, ("no gradient",)),
    Fault("half of the parameters given", ("names MLP", "digits MLP"),
          {"parameters": lambda model: list(model.parameters())[-2:]}, ("parameters without an optimizer",)),
    Fault("learnt by heart", ("digits MLP", "digits CNN"), {"indices": _few, "held_out": True, **_LONG},
          ("overfitting",), least="info"),
    Fault("one number between inputs and classes", ("digits MLP",),
          {"model": _narrow, "optimizer": "Adam", "rate": 0.03, "held_out": True, **_LONG},
          ("underfitting", "loss does not fall"), least="info"),
    Fault("evaluation mode", ("digits CNN",), {"prepare": _in_evaluation, "validate": None},
          ("evaluation mode in training",)),
    Fault("validation in training mode", ("digits CNN",), {"validate": _validated_in_training, "preset": "full"},
          ("training mode in evaluation",)),
)  # fmt: skip  # a table


def planted(fault: Fault, task: Training) -> Training:
    """Return a training with a fault in it."""
    changed = {"steps": 30, **fault.change}
    if callable(changed.get("rate")):
        changed["rate"] = changed["rate"](task)
    if "model" in changed:
        changed["model"] = partial(changed["model"], features=task.features)
    if changed.get("optimizer") not in {None, task.optimizer}:
        changed["options"] = {}
    return replace(task, **changed)


def cases(half: str) -> Iterator[tuple[str, str, str, Training, Fault | None]]:
    """Yield (kind, name, library, training, the fault in it) of every run of a half."""
    tasks = tasks_of(half)
    for fault in FAULTS:
        for task in fault.tasks:
            for library in ("ours", "torch"):
                yield "fault", f"{fault.name}: {task}", library, planted(fault, tasks[task]), fault
    for name, training in healthy(half):
        for library in ("ours", "torch"):
            yield "healthy", name, library, training, None
    for name in ("names MLP", "digits MLP", "LSTM"):
        yield "healthy", f"{name}, compiled", "ours", replace(tasks[name], compiled=True), None


FIVE = {
    "no seed", "sigmoids too deep", "logarithm of what can reach 0", "zero_grad is missing",
    "learning rate out of the usual",
}  # fmt: skip  # a table


def five(library: str, seed: int) -> set[str]:
    """Run the loop with five faults as a script; return those of them that are not named with a line."""
    from glassgrad.engine import random

    kept = random.default_generator
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "five.py"
            path.write_text(FIVE_FAULTS.replace("LIBRARY", library), encoding="utf-8")
            watched, ended = run_script(path, [str(seed)])
    finally:
        random.default_generator = kept
    assert ended
    named = {finding.rule for one in watched for finding in one.findings if ".py:" in finding.where}
    return FIVE - named


def judge(training: Training, lib: Any, seed: int, fault: Fault | None) -> tuple[bool, list[str]]:
    """Run one case; return whether the doctor was right, and the titles of its warnings and errors."""
    findings = training.run(lib, seed).findings
    counted = [finding for finding in findings if finding.severity != "info" or (fault and fault.least == "info")]
    titles = [f"{finding.severity} {finding.rule}" for finding in counted]
    if fault is None:
        return not titles, titles
    return any(finding.rule in fault.found_by for finding in counted), titles


def results(half: str, seed: int, words: list[str], kept: Path | None) -> Iterator[dict[str, Any]]:
    """Yield what came of each run, those in a file of results as they stand there."""
    import torch

    import glassgrad as gg

    torch.set_num_threads(1)
    libraries = {"ours": gg, "torch": torch}
    lines = kept.read_text(encoding="utf-8").splitlines() if kept is not None and kept.exists() else []
    known = {(one["half"], one["seed"], one["name"], one["library"]): one for one in map(json.loads, lines)}
    for kind, name, library, training, fault in cases(half):
        if words and not any(word in f"{kind} {name} {library}" for word in words):
            continue
        found = known.get((half, seed, name, library))
        if found is None:
            right, titles = judge(training, libraries[library], seed, fault)
            found = {"half": half, "seed": seed, "kind": kind, "name": name, "library": library}
            found |= {"right": right, "titles": titles}
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
        yield found


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of the faults, two in a row."""
    by_name: dict[str, list[bool]] = {}
    for one in found:
        if one["kind"] == "fault":
            by_name.setdefault(one["name"].partition(":")[0], []).append(one["right"])
    cells = [f"{name} | {sum(right)} of {len(right)}" for name, right in by_name.items()]
    half = (len(cells) + 1) // 2
    yield "| planted | found | planted | found |"
    yield "|---|---|---|---|"
    for left, right in itertools.zip_longest(cells[:half], cells[half:], fillvalue=" | "):
        yield f"| {left} | {right} |"


def main(arguments: list[str]) -> None:
    """Run what is asked for, and print what was not found, false alarms, and the sums."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("half", nargs="?", choices=HALVES, default="reporting")
    options.add_argument("seed", nargs="?", type=int, default=1)
    options.add_argument("words", nargs="*")
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--keep", type=Path)
    options.add_argument("--table", action="store_true")
    given = options.parse_args(arguments)
    found = []
    seeds = range(given.seed, given.seed + given.seeds)
    for one in (one for seed in seeds for one in results(given.half, seed, given.words, given.keep)):
        found.append(one)
        if not one["right"]:
            mark = "MISSED" if one["kind"] == "fault" else "ALARM"
            told = f"{one['name']} ({one['library']}, seed {one['seed']})"
            print(f"{mark:<7} {told}: {'; '.join(one['titles']) or 'nothing'}", flush=True)
    print()
    if given.table:
        print("\n".join(table(found)))
    for kind in ("fault", "healthy"):
        right = [one["right"] for one in found if one["kind"] == kind]
        print(f"{kind}: {sum(right)} of {len(right)} right ({sum(right) / max(len(right), 1):.1%})")
    errors = sum(any(title.startswith("error") for title in one["titles"]) for one in found if one["kind"] == "healthy")
    print(f"healthy runs with an error: {errors}")
    if not given.words:
        missing = [five(library, at) for library in ("glassgrad", "torch") for at in range(20)]
        print(f"the loop with five faults, all of them named: {missing.count(set())} of {len(missing)}")


if __name__ == "__main__":
    main(sys.argv[1:])
