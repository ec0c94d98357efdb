"""`glassgrad export`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Form(StrEnum):
    """The formats of an export."""

    onnx = "onnx"
    numpy = "numpy"
    torch = "torch"
    c = "c"


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or a model.safetensors file.")],
    to: Annotated[
        Form,
        typer.Option(
            "--to",
            help="onnx: one file for other runtimes. numpy: a program in NumPy and its weights. "
            "torch: weights, and a program that builds the model and loads them. c: a folder with a program in C.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="By default a file (for c a folder) in the run directory."),
    ] = None,
    training: Annotated[
        bool,
        typer.Option(
            "--training",
            help="With --to c: the training step and its optimizer, as of the last checkpoint, instead of the model.",
        ),
    ] = False,
) -> int:
    """Write a trained model for another program."""
    from glassgrad.tasks.exported import export_model, export_training

    for path in export_training(run, to.value, out) if training else export_model(run, to.value, out):
        print(path)
    return 0
