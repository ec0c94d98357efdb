"""The recipes of CONTRIBUTING.md, performed: small real additions, and the files for them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Text that goes into a file: before the first `before`, at the end where there is none; a new file is made."""

    path: str
    text: str
    before: str = ""


LISTS = "__all__ = ["
OP = """

cubed = elementwise("cubed", lambda xp, x: x * x * x, (lambda y, x: 3 * square(x),), saves="x")
cubed.describe("x**3", "3 * x**2", reals(-3, 3), edge=EDGES)
"""

LAYER = '''class Scaled(Module):
    """Every feature times a number that is learned.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Scaled(2)(gg.ones(1, 2)).detach()
        tensor([[1., 1.]])
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features
        self.weight = Parameter(creation.ones(features))

    def forward(self, input: Any) -> Any:
        return F.scaled(input, self.weight)

    def extra_repr(self) -> str:
        return str(self.features)


'''
LAYER_FUNCTION = '''def scaled(input: Array, weight: Array) -> Array:
    """input * weight; input (..., n), weight (n,)."""
    return input * weight


'''

OPTIMIZER = '''"""Steps of one size along the signs of the gradient (Bernstein et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glassgrad.ops.core import Array
from glassgrad.ops.elementwise import sign
from glassgrad.optim.optimizer import Optimizer


class SignSGD(Optimizer):
    """p -= lr * sign(g).

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.SignSGD([w], lr=0.5)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([2.5])
    """

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, **hints: Any) -> None:
        super().__init__(params, {"lr": lr}, hints)

    def update(self, p: Array, g: Array, state: Any, group: Any) -> Array:
        return p - group.lr * sign(g)


__all__ = ["SignSGD"]
'''

SCHEDULE = '''class InverseLR(LRScheduler):
    """The rate of the beginning over the number of the step.

    Example:
        >>> import glassgrad as gg
        >>> optimizer = gg.optim.SGD(gg.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = gg.optim.lr_scheduler.InverseLR(optimizer)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def rate(self, lr: float, base: float) -> float:
        return base / (1 + self.last_epoch)

    def closed(self, base: float) -> float:
        return base / (1 + self.last_epoch)


'''

FINDING = """@warning("one example", "Check up a batch of the size you train with.")
def _one_example(found: CheckUp) -> Iterator[str]:
    if found.targets is not None and found.targets.facts.summary.count == 1:
        yield "the batch is one example"


"""
FINDING_CASE = """def one_example(lib: Any) -> Any:
    return net(lib), (X[:1], Y[:1]), entropy(lib)


"""

TASK = '''"""The task parabola: a small network learns y = x**2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.data import RandomBatches
from glassgrad.tasks import options as shared
from glassgrad.tasks.task import KEPT, CommandTask, TaskKind, settled
from glassgrad.train.config import option, resolve


@dataclass(frozen=True)
class ParabolaConfig:
    """Every hyperparameter of `glassgrad train parabola`, with its defaults."""

    model: str = option("mlp", "which model to train", choices=("mlp",))
    engine: str = shared.engine(("eager", "compiled"))
    hidden: int = option(8, "units of the hidden layer", low=1, high=1e6)
    steps: int = option(200, "training steps", low=1, high=1e12)
    rate: float = option(0.1, "learning rate", above=0, high=1e6)
    seed: int = shared.seed()
    log_every: int = shared.log_every(10)
    eval_every: int = option(100, "steps between tests", low=1, high=1e12, resumable=True)
    save_every: float = shared.save_every()


class ParabolaTask(CommandTask):
    """Points on the parabola, the network and its optimizer."""

    held_out = "test"

    def __init__(self, config: ParabolaConfig) -> None:
        from glassgrad import nn, optim
        from glassgrad.engine.random import manual_seed
        from glassgrad.train.learners.engine import EngineLearner, StepOptions

        self.steps, self.eval_every = config.steps, config.eval_every
        self.x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
        self.batch_at = RandomBatches(self.x, self.x**2, 16, config.seed).at
        manual_seed(config.seed)
        model = nn.Sequential(nn.Linear(1, config.hidden), nn.Tanh(), nn.Linear(config.hidden, 1))
        learner = EngineLearner(
            model,
            optim.SGD(model.parameters(), lr=config.rate),
            loss_fn=nn.functional.mse_loss,
            options=StepOptions(config.engine == "compiled"),
        )
        super().__init__(config, learner)

    def rate_at(self, step: int) -> float:
        return self.config.rate

    def evaluate(self) -> dict[str, float]:
        return {"loss": float(np.mean((np.asarray(self.learner.logits(self.x)) - self.x**2) ** 2))}

    def description(self) -> dict[str, Any]:
        return {"task": "parabola", "config": settled(self.config)}

    def introduction(self) -> Iterator[str]:
        yield f"points     {len(self.x)}"

    def assess(self) -> dict[str, float]:
        return {"train_loss": self.evaluate()["loss"], "test_loss": self.evaluate()["loss"]}

    def results(self, final: Mapping[str, float], run: Path) -> Iterator[str]:
        yield f"final loss {final['test_loss']:.6f}"


KINDS = (
    TaskKind(
        "parabola",
        f"Teach a small network the parabola.\\n\\n{KEPT}",
        ParabolaConfig,
        lambda layers: resolve(ParabolaConfig, layers),
        ParabolaTask,
        axis="squared error",
    ),
)
'''

SOURCE = "src/glassgrad/"
RECIPES: dict[str, list[Edit]] = {
    "An op": [Edit(f"{SOURCE}ops/elementwise.py", OP)],
    "A layer": [
        Edit(f"{SOURCE}nn/layers/linear.py", LAYER, LISTS),
        Edit(f"{SOURCE}nn/layers/linear.py", '"Scaled", ', '"Linear"]'),
        Edit(f"{SOURCE}nn/functional/products.py", LAYER_FUNCTION, LISTS),
        Edit(f"{SOURCE}nn/functional/products.py", '"scaled", ', '"linear"]'),
        Edit("tests/nn/layer_cases.py", '    case("Scaled", 4, inputs=(3, 4)),\n', "]  # without a twin"),
    ],
    "An optimizer": [
        Edit(f"{SOURCE}optim/sign_sgd.py", OPTIMIZER),
        Edit("tests/optim/optimizer_cases.py", '*cases("SignSGD"), ', "*LION]"),
    ],
    "A schedule": [
        Edit(f"{SOURCE}optim/lr_scheduler/decay.py", SCHEDULE, LISTS),
        Edit(f"{SOURCE}optim/lr_scheduler/decay.py", '"InverseLR", ', '"LinearLR", "Multi'),
        Edit(
            "tests/optim/test_schedules_against_torch.py",
            '    "inverse": lambda s, o: s.InverseLR(o),\n',
            "}  # without a twin",
        ),
    ],
    "A rewrite rule": [
        Edit(f"{SOURCE}compile/ir/passes/rules.py", '    ("abs(abs(x))", "abs(x)"),\n', "    # powers\n"),
    ],
    "A finding of the doctor": [
        Edit(f"{SOURCE}doctor/rules/batch.py", FINDING, "RULES = "),
        Edit("tests/doctor/test_checkup.py", FINDING_CASE, "def labels_alike("),
        Edit(
            "tests/doctor/test_checkup.py",
            '    "one example": (one_example, "one example"),\n',
            '    "labels alike": (',
        ),
    ],
    "A task of the command line": [Edit(f"{SOURCE}tasks/parabola.py", TASK)],
}
