"""The program of a seed: its family, what it draws, its optimizer, and the step that both libraries run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.wild import losses, sequences, vectors
from benchmarks.wild.draw import Draw, Program
from benchmarks.workloads._images import drawn

FAMILIES: tuple[Callable[[Draw], Program], ...] = (
    vectors.classifier, sequences.recurrent, losses.equation, vectors.convolutions, sequences.encoder, vectors.flow,
    losses.actor_critic, vectors.signals, sequences.words, vectors.variational, losses.ode, sequences.edges,
    vectors.residuals, sequences.language, losses.diffusion, vectors.contrast, sequences.decoder, losses.penalty,
    vectors.regression, sequences.ratings, vectors.segmentation, sequences.cells, losses.values, vectors.autoencoder,
    sequences.adjacency, losses.inner_step, vectors.mixture, sequences.patches, losses.waves, sequences.bags,
    vectors.triplets, sequences.translation, losses.forces,
)  # fmt: skip  # a table
OPTIMIZERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SGD", {"lr": 1e-3}),
    ("SGD", {"lr": 1e-3, "momentum": 0.9}),
    ("SGD", {"lr": 1e-3, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}),
    ("Adam", {"lr": 1e-3}),
    ("Adam", {"lr": 3e-4, "betas": (0.5, 0.9)}),
    ("AdamW", {"lr": 1e-3, "weight_decay": 1e-2}),
    ("RMSprop", {"lr": 1e-3}),
    ("Adagrad", {"lr": 1e-2}),
    ("NAdam", {"lr": 1e-3}),
    ("Adamax", {"lr": 1e-3}),
)
CLIPPED = 0.25  # the part of programs that hold the norm of the gradients down


class Wild:
    """The program of a seed with its optimizer."""

    def __init__(self, seed: int) -> None:
        draw = Draw(seed)
        self.seed = seed
        # By turns, and the same turns for even and odd seeds: every family is in both halves equally often.
        self.program = FAMILIES[seed // 2 % len(FAMILIES)](draw)
        self.optimizer, self.options = draw.among(*OPTIMIZERS)
        self.clip = draw.random.random() < CLIPPED
        extra = f"{', gradients clipped' if self.clip else ''}{', last batch smaller' if draw.ragged else ''}"
        self.text = f"{self.program.text}; batch {draw.batch}, {self.optimizer}{extra}"

    def step(self, library: Any, dropout: float) -> Callable[..., Any]:
        """The training step in `library`; `dropout` is 1 for what the program says and 0 for none."""
        model = self.program.model(library, dropout)
        shapes = {name: tuple(value.shape) for name, value in model.named_parameters()}
        values = {name: library.tensor(value) for name, value in drawn(shapes, self.seed).items()}
        model.load_state_dict({**model.state_dict(), **values})
        trained = [value for value in model.parameters() if value.requires_grad]
        optimizer = getattr(library.optim, self.optimizer)(trained, **self.options)

        def step(*batch):
            loss = self.program.loss(library, model, *batch)
            optimizer.zero_grad()
            loss.backward()
            if self.clip:
                library.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            return loss

        return step
