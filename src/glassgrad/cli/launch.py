"""`glassgrad launch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def launch(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python file; with -m the name of a module.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[ARGS]...", help="Arguments of the script.")] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "-n", "--ranks", metavar="N", help="Number of processes (default in a Slurm job: its number of tasks)."
        ),
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", "--module", metavar="", help="SCRIPT is a module, as `-m glassgrad`.")
    ] = False,
    prefix: Annotated[
        bool, typer.Option("--prefix", metavar="", help="Begin each line with its rank, such as `[2] `.")
    ] = False,
    hostfile: Annotated[
        Path | None,
        typer.Option("--hostfile", metavar="FILE", help="The machines, one line `host` or `host:ranks` each."),
    ] = None,
    starter: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="PROGRAM",
            help="The launcher: an mpiexec or srun, by name or path (default: MPICH's of the extra `mpi`).",
            show_default=False,
        ),
    ] = "",
) -> int:
    """Run a program as several processes over MPI; they end together."""
    from glassgrad.cli import launching

    plan = launching.plan(script, arguments or [], count, module, prefix, hostfile, starter)
    return launching.run(plan)
