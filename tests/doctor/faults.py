"""Faults planted in healthy trainings, and healthy ones: `python -m tests.doctor.faults` prints what the doctor finds.

Each fault lists the findings that name it: one of them, as a warning or an error, is what counts as found. Thresholds
were set on the runs of seed 0; the table is that of seed 1, or of the seed that is given.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.doctor.script import run_script
from tests.doctor.trainings import TASKS, Training, digits_cnn, digits_mlp, entropy, names_mlp, squares


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


def _repeated(lib: Any) -> Any:
    nn = lib.nn
    layer = nn.Linear(64, 64)
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU(), layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(64, 10))


def _cut(lib: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = lib.nn.Linear(64, 32), lib.nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            hidden = self.first(x.reshape(len(x), -1)).relu()
            return self.second(hidden.detach())

    return Net()


def _spare(lib: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.spare, self.second = lib.nn.Linear(64, 32), lib.nn.Linear(32, 32), lib.nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x.reshape(len(x), -1)).relu())

    return Net()


def _with_dropout(lib: Any) -> Any:
    return digits_mlp(lib, dropout=0.3)


def _sigmoids(lib: Any) -> Any:
    return digits_mlp(lib, depth=8, activation="Sigmoid")


def _deep_tanh(lib: Any) -> Any:
    return digits_mlp(lib, depth=16, activation="Tanh")


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
RATE = ("rate unfit for the weights", "learning rate out of the usual", "loss rises", "exploding gradient",
        "loss not finite", "gradients zigzag", "dead units")  # fmt: skip  # a table

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
    Fault("rate 100 times too high", EVERY, {"rate": 1.0}, RATE),
    Fault("rate 0", ("digits MLP", "GPT"), {"rate": 0.0}, ("learning rate out of the usual",)),
    Fault("rate a million times too low", ("digits MLP", "LSTM"), {"rate": 3e-9}, ("rate unfit for the weights",)),
    Fault("eight sigmoids", ("digits MLP",), {"model": _sigmoids}, ("sigmoids too deep", "vanishing gradient")),
    Fault("sixteen tanh", ("digits MLP",), {"model": _deep_tanh}, ("vanishing gradient",)),
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
    Fault("labels mixed up", ("digits MLP",), {"targets": _noise, "steps": 240}, ("loss does not fall",)),
    Fault("sorted by class", ("digits MLP", "digits CNN"), {"indices": _by_class}, ("data not shuffled",)),
    Fault("one layer three times", ("digits MLP",), {"model": _repeated}, ("layers shared",)),
    Fault("detach in the model", ("digits MLP",), {"model": _cut}, ("no gradient",)),
    Fault("a layer not used", ("digits MLP",), {"model": _spare}, ("no gradient",)),
    Fault("half of the parameters given", ("names MLP", "digits MLP"),
          {"parameters": lambda model: list(model.parameters())[-2:]}, ("parameters without an optimizer",)),
    Fault("evaluation mode", ("digits CNN",), {"prepare": _in_evaluation}, ("evaluation mode in training",)),
    Fault("validation in training mode", ("digits CNN",), {"validate": _validated_in_training, "preset": "full"},
          ("training mode in evaluation",)),
)  # fmt: skip  # a table


def healthy() -> Iterator[tuple[str, Training]]:
    """Yield trainings in which nothing is wrong: depths, widths, optimizers, rates and batch sizes."""
    for name, task in TASKS.items():
        yield name, task
        yield f"{name}, SGD", dataclasses.replace(task, optimizer="SGD", rate=0.05, options={"momentum": 0.9})
        yield f"{name}, AdamW", dataclasses.replace(task, optimizer="AdamW", rate=1e-3)
        yield f"{name}, batch 64", dataclasses.replace(task, batch=64, preset="full", steps=40)
    mlp, letters, cnn = TASKS["digits MLP"], TASKS["names MLP"], TASKS["digits CNN"]
    for depth in (1, 3, 5):
        yield (
            f"digits MLP, {depth} deep",
            dataclasses.replace(mlp, model=lambda lib, depth=depth: digits_mlp(lib, depth=depth)),
        )
    for activation in ("Tanh", "GELU", "SiLU", "LeakyReLU", "Sigmoid"):
        yield (
            f"digits MLP, {activation}",
            dataclasses.replace(mlp, model=lambda lib, activation=activation: digits_mlp(lib, activation=activation)),
        )
    yield "digits MLP, dropout", dataclasses.replace(mlp, model=_with_dropout)
    yield "names MLP, wide", dataclasses.replace(letters, model=lambda lib: names_mlp(lib, width=200))
    yield "names MLP, economy", dataclasses.replace(letters, preset="economy")
    yield "digits MLP, RMSprop", dataclasses.replace(mlp, optimizer="RMSprop", rate=1e-3)
    yield "digits MLP, Adagrad", dataclasses.replace(mlp, optimizer="Adagrad", rate=1e-2)
    yield "digits CNN, no norm", dataclasses.replace(cnn, model=lambda lib: digits_cnn(lib, norm=False))
    yield "digits CNN, wide", dataclasses.replace(cnn, model=lambda lib: digits_cnn(lib, channels=16))
    yield "regression, SGD alone", dataclasses.replace(TASKS["regression"], optimizer="SGD", rate=0.01, loss=squares)


def cases() -> Iterator[tuple[str, str, str, Training, tuple[str, ...], str]]:
    """Yield (kind, name, library, training, what finds it, least severity) of every run."""
    for fault in FAULTS:
        for task in fault.tasks:
            changed = {"steps": 30, **fault.change}
            for library in ("ours", "torch"):
                training = dataclasses.replace(TASKS[task], **changed)
                yield "fault", f"{fault.name}: {task}", library, training, fault.found_by, fault.least
    for name, training in healthy():
        for library in ("ours", "torch"):
            yield "healthy", name, library, training, (), ""
    for name in ("names MLP", "digits MLP", "LSTM"):
        yield "healthy", f"{name}, compiled", "ours", dataclasses.replace(TASKS[name], compiled=True), (), ""


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


def judge(kind: str, training: Training, lib: Any, seed: int, found_by: tuple[str, ...]) -> tuple[bool, list[str]]:
    """Run one case; return whether the doctor was right, and the titles of its warnings and errors."""
    findings = training.run(lib, seed).findings
    named = [finding for finding in findings if finding.severity != "info"]
    titles = [f"{finding.severity} {finding.rule}" for finding in named]
    if kind == "healthy":
        return not titles, titles
    return any(finding.rule in found_by for finding in named), titles


def main(arguments: list[str]) -> None:
    import torch

    import glassgrad as gg

    torch.set_num_threads(1)
    libraries = {"ours": gg, "torch": torch}
    seed = next((int(one) for one in arguments if one.isdigit()), 1)
    only = [one for one in arguments if not one.isdigit() and not one.startswith("-")]
    right = {"fault": [0, 0], "healthy": [0, 0]}
    alarms = 0
    by_name: dict[str, list[int]] = {}
    for kind, name, library, training, found_by, _ in cases():
        if only and not any(one in f"{kind} {name} {library}" for one in only):
            continue
        good, titles = judge(kind, training, libraries[library], seed, found_by)
        right[kind][0] += good
        right[kind][1] += 1
        alarms += kind == "healthy" and any(title.startswith("error") for title in titles)
        known = by_name.setdefault(name.partition(":")[0] if kind == "fault" else "healthy", [0, 0])
        known[0] += good
        known[1] += 1
        if not good:
            print(f"{'MISSED' if kind == 'fault' else 'ALARM':<7} {name} ({library}): {'; '.join(titles) or 'nothing'}")
    print()
    for name, (count, whole) in by_name.items():
        print(f"{name:<36} {count:>3} of {whole}")
    for kind, (count, whole) in right.items():
        print(f"{kind}: {count} of {whole} right ({count / max(whole, 1):.1%})")
    print(f"healthy runs with an error: {alarms}")
    if not only:
        missing = [five(library, at) for library in ("glassgrad", "torch") for at in range(20)]
        print(f"the loop with five faults, all of them named: {missing.count(set())} of {len(missing)}")


if __name__ == "__main__":
    main(sys.argv[1:])
