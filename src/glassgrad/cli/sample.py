"""`glassgrad sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# `tasks.drawing.SampleOptions` checks the bounds of the numbers, since its messages cover NaN as well.


def sample(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or a model.safetensors file.")],
    count: Annotated[
        int | None,
        typer.Option("-n", "--count", metavar="N", min=1, help="How many to print (default: 20 words, 1 text)."),
    ] = None,
    prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="The beginning of each word or text.")] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="0 takes the most likely character each time; 1 keeps the model's probabilities."
        ),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="N", help="Draw only from the N most likely characters; 0 for all.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(metavar="X", help="Draw only from the most likely characters, which have probability X together."),
    ] = None,
    length: Annotated[int | None, typer.Option(metavar="N", help="Characters of each text (default: 500).")] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="The same seed prints the same words (default: 1).")
    ] = None,
) -> int:
    """Print words or text that a trained model generates."""
    from glassgrad.tasks.sample import load_model
    from glassgrad.tasks.sample import sample as pieces

    learner, description = load_model(run)
    given: dict[str, object] = {"count": count, "prompt": prompt, "length": length, "seed": seed}
    given |= {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    written = ""
    try:
        for written in pieces(learner, description, given):
            print(written, end="", flush=True)
    finally:
        if written and not written.endswith("\n"):  # an interrupt in the middle of a text
            print(flush=True)
    return 0
