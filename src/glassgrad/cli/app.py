"""The typer application: which commands there are."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from glassgrad.cli import explain, sample, train_images, train_names, train_plane, train_text

app = typer.Typer(
    help="Train small networks and look at their gradients.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
train = typer.Typer(help="Train a model.", no_args_is_help=True)
app.add_typer(train, name="train")
train.command("names")(train_names.names)
train.command("text")(train_text.text)
train.command("xor")(train_plane.xor)
train.command("moons")(train_plane.moons)
train.command("digits")(train_images.digits)
train.command("mnist")(train_images.mnist)
app.command("sample")(sample.sample)
app.command("explain")(explain.explain)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print("glassgrad", version("glassgrad"))
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def command() -> Any:
    """Return the application as a click command."""
    return typer.main.get_command(app)
