"""Time whole trainings of `glassgrad train`, ours and PyTorch's, from the same initial weights on the same batches.

    python -m benchmarks.training mnist --set data=FOLDER --set model=cnn
    python -m benchmarks.training names --set data=FILE --set model=lstm --set steps=2000

Options are the fields of the task's configuration. The time is that of only the training steps; the time of compiling
stands beside it. With dropout, each library draws its own numbers, so the losses agree only in the mean.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks import results
from glassgrad.tasks.images import CLASSES, DIGITS, MNIST
from glassgrad.tasks.names import NAMES
from glassgrad.tasks.text import TEXT
from glassgrad.train.config import command_line, rules

KINDS = {kind.name: kind for kind in (DIGITS, MNIST, NAMES, TEXT)}
WARM = 3
"""Steps that are not timed: the first of them compiles."""


class TorchLearner:
    """A twin of a task's model in PyTorch, with the four methods of a learner that a training needs."""

    def __init__(self, task, compiled):
        import torch

        self.torch, config = torch, task.config
        torch.manual_seed(config.seed)
        self.model = twin_of(task)
        self.optimizer = optimizer_of(self.model, config)
        self.clip = getattr(config, "clip", 0.0) if sequences(config) else 0.0
        self.step = torch.compile(self._step) if compiled else self._step

    def _step(self, inputs, targets):
        loss = self.loss(self.model(inputs), targets)
        self.optimizer.zero_grad()
        loss.backward()
        if self.clip:
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss

    def loss(self, logits, targets):
        if logits.ndim > 2:
            logits, targets = logits.flatten(0, 1), targets.flatten()
        return self.torch.nn.functional.cross_entropy(logits, targets)

    def train(self, inputs, targets):
        return self.step(self.torch.from_numpy(inputs), self.torch.from_numpy(targets)).item()

    def set_rate(self, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def logits(self, inputs):
        self.model.eval()
        with self.torch.no_grad():
            found = self.model(self.torch.from_numpy(np.ascontiguousarray(inputs))).numpy()
        self.model.train()
        return found


def sequences(config):
    """Return whether the model predicts a token at every place, with AdamW and clipping."""
    return config.model not in {"mlp", "cnn", "bigram"}


def twin_of(task):
    import torch

    from benchmarks import twins

    config = task.config
    if hasattr(task.data, "size"):
        model = twins.image_model(config, task.data.size, CLASSES)
    elif config.model == "gpt":
        width = getattr(config, "width", None) or config.embedding
        context = task.data.longest + 1 if hasattr(task.data, "longest") else config.context
        model = twins.GPT(task.data.tokenizer.size, context, width, config.heads, config.layers, config.dropout)
    else:
        model = twins.CharRNN(
            task.data.tokenizer.size, config.model, config.embedding, config.hidden, config.layers, config.dropout
        )
    weights = {name: torch.tensor(np.array(array)) for name, array in task.learner.weights().items()}
    model.load_state_dict(weights)
    return model


def optimizer_of(model, config):
    import torch

    if not sequences(config):
        return torch.optim.RMSprop(model.parameters(), lr=config.rate, alpha=config.alpha, momentum=config.momentum)
    betas = (getattr(config, "beta1", 0.9), getattr(config, "beta2", 0.999))
    return torch.optim.AdamW(model.parameters(), lr=config.rate, betas=betas, weight_decay=config.weight_decay)


def trained(task, learner, step):
    """Train to the end; return the milliseconds per step, the seconds until the timed steps, and the measures."""
    began, since = time.perf_counter(), None
    for number in range(task.steps):
        if number == WARM:
            since = time.perf_counter()
        learner.set_rate(task.rate_at(number))
        float(step(*task.batch_at(number)))
    each = 1e3 * (time.perf_counter() - since) / (task.steps - WARM)
    task.learner = learner
    return each, since - began, task.evaluate()


def compare(kind, options, engines):
    """Yield a line of the table for each engine."""
    for engine in engines:
        ours = engine.startswith("glassgrad")
        own = "compiled" if engine == "glassgrad compiled" else "eager"
        task = kind.build(kind.configure([command_line({**options, "engine": own})]))
        learner = task.learner if ours else TorchLearner(task, engine.endswith("compile"))
        each, before, found = trained(task, learner, learner.step if ours else learner.train)
        accuracy = f"{found['accuracy']:.2%}" if "accuracy" in found else ""
        yield (
            f"| {engine} | {task.steps:,} | {found['loss']:.4f} | {accuracy} | {each:.2f} | "
            f"{each * task.steps / 1e3:.1f} | {before:.1f} |"
        )


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=sorted(KINDS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a field of the configuration")
    parser.add_argument("--engines", default="glassgrad compiled,PyTorch", help="also: glassgrad eager, torch.compile")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    given = parser.parse_args()
    kind = KINDS[given.task]
    known = rules(kind.config)
    pairs = dict(entry.split("=", 1) for entry in given.set)
    options = {key: known[key][0](value) for key, value in pairs.items()}
    try:
        import torch

        torch.set_num_threads(given.threads)
    except ImportError:
        print("PyTorch is not installed: only glassgrad is measured")
        given.engines = "glassgrad compiled"
    lines = ["| | steps | held-out loss | accuracy | ms a step | seconds | before, s |", "|---" + 6 * "|--:" + "|"]
    print(*lines, sep="\n")
    for line in compare(kind, options, given.engines.split(",")):
        print(line, flush=True)
        lines.append(line)
    if given.write:
        write(given.task, pairs, "\n".join(lines))


def write(task, pairs, table):
    """Put a table into RESULTS.md, under the command that makes it, with only the names of files."""
    shown = {key: Path(value).name if key == "data" else value for key, value in pairs.items()}
    options = (f"--set {key}={value}" for key, value in shown.items())
    command = " ".join(["python -m benchmarks.training", task, *options])
    which = "-".join([task, *(value for key, value in shown.items() if key == "model")])
    results.write_section(
        f"training-{which}",
        f"Whole training: {which.replace('-', ', ')}",
        f"Command: `{command}`\n\n{table}\n\n{results.machine_lines()}",
    )


if __name__ == "__main__":
    main()
