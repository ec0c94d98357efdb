"""Programs in C: compiled by the machine's compiler, in an empty folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

# As in the written Makefile, without the options of this processor alone.
FAST = ["-O2", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-DGG_SIMD"]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
C_TYPES = {"float32": "float", "float64": "double", "int64": "int64_t"}

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def compiled(folder, sources, flags=FAST, compiler="gcc", name="test"):
    """Compile a program without any warning; return its path."""
    command = [compiler, *STRICT, *flags, "-o", name, *sources, "-lm"]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[:4000]
    return folder / name


def prepare(step, folder, batches):
    """Export a step, with a program that runs it on batches, prints the losses and stores its state."""
    step.export_c(folder)
    Path(folder / "data.bin").write_bytes(b"".join(one.array.tobytes() for batch in batches for one in batch))
    arrays = [one.array for one in batches[0]]
    names = [f"given{at}" for at in range(len(arrays))]
    declared = [
        f"static {C_TYPES[str(array.dtype)]} {name}[{array.size}];" for name, array in zip(names, arrays, strict=True)
    ]
    reads = [f"    if (fread({name}, 1, sizeof {name}, file) != sizeof {name}) return 3;" for name in names]
    kind = "double" if "double *loss" in (folder / "step.h").read_text() else "float"
    program = f"""\
#include <stdio.h>
#include "step.h"
static struct step model;
{chr(10).join(declared)}
int main(void)
{{
    FILE *file = fopen("data.bin", "rb");
    {kind} loss = 0;
    if (file == NULL || step_init(&model, "step.weights") != 0) return 2;
    for (int turn = 0; turn < {len(batches)}; turn++) {{
{chr(10).join(reads)}
        if (step_run(&model, {", ".join(names)}, &loss) != 0) return 4;
        printf("%.17g\\n", (double)loss);
    }}
    fclose(file);
    return step_save(&model, "trained.weights") == 0 ? 0 : 5;
}}
"""
    (folder / "test.c").write_text(program)


def losses_in_c(step, folder, batches, flags=FAST, compiler="gcc"):
    """Export a step, run it on batches in C, and store its state; return the losses."""
    prepare(step, folder, batches)
    run = subprocess.run(
        [str(compiled(folder, ["test.c", "step.c"], flags, compiler))],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, (run.returncode, run.stderr[:4000])
    return np.array([float(one) for one in run.stdout.split()])
