"""`glassgrad predict` and `glassgrad eval`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or a model.safetensors file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.", show_default=False)]


def predict(
    run: Run,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT...", help="Pictures of digits, points x,y, words or texts, depending on the task."
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show a picture as the model sees it.", show_default=False)
    ] = False,
    as_json: Json = False,
) -> int:
    """Print the predictions of a trained model for your inputs.

    Write -- before points whose first number is negative.
    """
    from glassgrad.tasks.trained import open_trained, predictions

    for one in predictions(open_trained(run), inputs or ()):
        if as_json:
            likely = [{"label": label, "probability": round(share, 6)} for label, share in one.likely]
            found = {"input": one.source, "answer": one.answer, one.about or "likely": likely}
            print(json.dumps(found, ensure_ascii=False))
            continue
        shares = "  ".join(f"{label} {share:.1%}" for label, share in one.likely)
        print(f"{one.source}  {one.answer}   ({one.about + ': ' if one.about else ''}{shares})")
        if show:
            print("\n".join(one.seen))
    return 0


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a finished run.")],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="PATH", help="Other data of the same kind, or the same data in another place."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Print losses and accuracies of a trained model on each part of its data."""
    from glassgrad.tasks.trained import assessed

    measures = assessed(run, data)
    if as_json:
        print(json.dumps(measures))
        return 0
    for name, value in measures.items():
        shown = f"{value:.2%}" if name.endswith("accuracy") else f"{value:.4f}"
        print(f"{name.replace('_', ' '):<20} {shown}")
    return 0
