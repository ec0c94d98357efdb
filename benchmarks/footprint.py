"""Size on disk, time of import and memory of libraries as they are installed here: `python -m benchmarks.footprint`.

The size counts the files of a package and of everything that it requires, without extras and without bytecode. The time
goes from the start of Python to the first array, in a fresh process, with the files in the disk's cache; the time of an
empty program is subtracted. `python -m benchmarks.footprint torch jax` measures only these.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from benchmarks.results import machine_lines, markdown_table


class Library(NamedTuple):
    """The distribution of a library, those beside it that it cannot run without, and a program that makes an array."""

    title: str
    distribution: str
    also: tuple[str, ...]
    program: str


LIBRARIES = (
    Library("NumPy", "numpy", (), "import numpy; numpy.array([1.0])"),
    Library("glassgrad", "glassgrad", (), "import glassgrad; glassgrad.tensor([1.0])"),
    Library("PyTorch", "torch", (), "import torch; torch.tensor([1.0])"),
    Library("JAX", "jax", (), "import jax.numpy as jnp; jnp.array([1.0])"),
    Library("tinygrad", "tinygrad", (), "from tinygrad import Tensor; Tensor([1.0])"),
    Library("HIPS autograd", "autograd", (), "import autograd.numpy as anp; anp.array([1.0])"),
    Library("MLX, CPU", "mlx", ("mlx-cpu",), "import mlx.core as mx; mx.array([1.0])"),
    Library("micrograd", "micrograd", (), "from micrograd.engine import Value; Value(1.0)"),
)
PEAK = "; import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"


def needed(names: Sequence[str]) -> set[str]:
    """Return the names of distributions and of all that they require here, without extras.

    Raises:
        PackageNotFoundError: one of the given distributions is not installed.
    """
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        found.add(name)
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def files(name: str) -> Iterator[Path]:
    """Yield the files of a distribution that exist, without bytecode; those of its folder if it is a checkout."""
    one = metadata.distribution(name)
    origin = json.loads(one.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        spec = importlib.util.find_spec(name.replace("-", "_"))
        places = Path(spec.origin).parent.rglob("*") if spec and spec.origin else ()
    else:
        places = (Path(str(file.locate())) for file in one.files or ())
    yield from (place for place in places if place.suffix != ".pyc" and place.is_file())


def size(names: Sequence[str]) -> int:
    """Return the bytes of distributions with all that they require."""
    return sum(path.stat().st_size for path in {path for name in needed(names) for path in files(name)})


def started(program: str, rounds: int) -> tuple[float, float]:
    """Return the median seconds that a program takes beyond an empty one, and the median of its peak in megabytes."""

    def run(text: str) -> tuple[float, float]:
        began = time.perf_counter()
        process = subprocess.run([sys.executable, "-c", text + PEAK], capture_output=True, text=True, check=True)
        return time.perf_counter() - began, int(process.stdout.split()[-1]) / 1024  # Linux counts in KiB

    run(program)  # brings the files into the cache and writes the bytecode
    pairs = [(run("pass"), run(program)) for _ in range(rounds)]
    return statistics.median(b[0] - a[0] for a, b in pairs), statistics.median(b[1] for _, b in pairs)


def row(library: Library, rounds: int) -> list[str]:
    """Return the cells of a library; dashes if it is not installed."""
    try:
        version, size_of = metadata.version(library.distribution), size((library.distribution, *library.also))
    except metadata.PackageNotFoundError:
        return [library.title, "not installed", "–", "–", "–"]
    seconds, megabytes = started(library.program, rounds)
    return [library.title, version, f"{size_of / 1e6:.3g} MB", f"{seconds:.2f} s", f"{megabytes:.0f} MB"]


def main() -> None:
    """Measure the libraries, or those whose distributions are given, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="DISTRIBUTION", help="such as torch; by default all")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    rows = [row(one, given.rounds) for one in LIBRARIES if not given.names or one.distribution in given.names]
    print(markdown_table(["library", "version", "on disk", "first array", "memory"], rows))
    print(f"\n{machine_lines()}")


if __name__ == "__main__":
    main()
