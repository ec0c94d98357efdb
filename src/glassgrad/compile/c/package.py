"""The files around `step.c`: the header, the reader and writer of weights, an example, a Makefile and a README."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glassgrad import errors
from glassgrad.compile.c.words import TYPES
from glassgrad.compile.ir.graph import dtype_text
from glassgrad.errors.packages import needed
from glassgrad.ops.core import Array

_SAFE = {"f32": "F32", "f64": "F64", "b1": "BOOL"}


@dataclass(frozen=True)
class Field:
    """A member of the struct that the file of weights holds.

    Attributes:
        name: its name in C.
        key: its name in the file: the user's expression for it.
        kind: element kind.
        value: the array now.
        note: a comment.
        many: whether it is declared as an array.
    """

    name: str
    key: str
    kind: str
    value: Array
    note: str = ""
    many: bool = True

    def read(self, file: str, to: str) -> str:
        """Return the call of `step_read` that reads this array."""
        inside, kind = json.dumps(f"{json.dumps(self.key)}:{{"), json.dumps(json.dumps(safe_name(self.kind)))
        return f"step_read({file}, {inside}, {kind}, {to}, sizeof {to.removeprefix('&')})"

    @property
    def place(self) -> str:
        return f"s->{self.name}" if self.many else f"&s->{self.name}"

    def declaration(self, size: str) -> str:
        bracket = f"[{size}]" if self.many else ""
        note = f" /* {self.note} */" if self.note else ""
        return f"    {TYPES[self.kind]} {self.name}{bracket};{note}"


def safe_name(kind: str) -> str:
    """Return the name of an element kind in a safetensors file."""
    return _SAFE.get(kind, kind.upper())


def weights_header(fields: Sequence[Field]) -> bytes:
    """Return the first bytes of a safetensors file with these arrays, which then follow one another."""
    entries, at = {}, 0
    for one in fields:
        value = one.value
        entries[one.key] = {
            "dtype": safe_name(one.kind),
            "shape": list(value.shape),
            "data_offsets": [at, at + value.nbytes],
        }
        at += value.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def weights_file(fields: Sequence[Field]) -> bytes:
    """Return a safetensors file."""
    arrays = b"".join(np.ascontiguousarray(one.value).tobytes() for one in fields)
    return weights_header(fields) + arrays


def read_weights(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read the arrays of a safetensors file.

    Raises:
        ArgumentError: if it is none.
    """
    with needed("safetensors", "files of weights"):
        from safetensors import SafetensorError
        from safetensors.numpy import load
    try:
        return dict(load(Path(path).read_bytes()))
    except SafetensorError as error:
        raise errors.C_WEIGHTS(path=path, reason=error) from None


_READER = """\
/* --- weights: a safetensors file is the length of its header, the header as JSON, and the arrays --------------- */

int step_read(const char *path, const char *name, const char *dtype, void *to, size_t bytes)
{
    static char header[STEP_HEADER_BYTES];
    unsigned char length[8];
    long first = 0, last = 0;
    size_t size = 0;
    FILE *file = fopen(path, "rb");
    bool fine = file != NULL && fread(length, 1, 8, file) == 8;
    for (int i = 7; i >= 0 && fine; i--) {
        size = size << 8 | length[i];
    }
    fine = fine && size < sizeof header && fread(header, 1, size, file) == size;
    header[fine ? size : 0] = '\\0';
    const char *entry = strstr(header, name);
    const char *end = entry == NULL ? NULL : strchr(entry, '}');
    const char *kind = end == NULL ? NULL : strstr(entry, dtype);
    const char *place = end == NULL ? NULL : strstr(entry, "\\"data_offsets\\":[");
    fine = kind != NULL && kind < end && place != NULL && place < end;
    fine = fine && sscanf(strchr(place, '[') + 1, "%ld,%ld", &first, &last) == 2;
    fine = fine && (size_t)(last - first) == bytes && fseek(file, (long)size + 8 + first, SEEK_SET) == 0;
    fine = fine && fread(to, 1, bytes, file) == bytes;
    if (file != NULL) {
        fclose(file);
    }
    return fine ? 0 : -1;
}
"""


def _text_of_c(raw: bytes) -> str:
    """Return bytes as lines of C strings."""
    text = "".join(chr(one) if 32 <= one < 127 and chr(one) not in '"\\?' else f"\\{one:03o}" for one in raw)
    lines = [""]
    for piece in re.findall(r"\\\d{3}|.", text):
        if len(lines[-1]) + len(piece) > 96:
            lines.append("")
        lines[-1] += piece
    return "\n".join(f'    "{one}"' for one in lines)


def storage(fields: Sequence[Field]) -> str:
    """Return `step_init`, `step_load` and `step_save`."""
    header = weights_header(fields)
    reads = [f"    if ({one.read('path', one.place)} != 0) {{\n        return -1;\n    }}" for one in fields]
    writes = [
        f"    fine = fine && fwrite({one.place}, 1, sizeof s->{one.name}, file) == sizeof s->{one.name};"
        for one in fields
    ]
    return f"""\
{_READER}
int step_load(struct step *s, const char *path)
{{
{chr(10).join(reads)}
    return 0;
}}

int step_init(struct step *s, const char *path)
{{
    memset(s, 0, sizeof *s);
    return step_load(s, path);
}}

int step_save(const struct step *s, const char *path)
{{
    static const char header[] =
{_text_of_c(header)};
    FILE *file = fopen(path, "wb");
    if (file == NULL) {{
        return -1;
    }}
    bool fine = fwrite(header, 1, sizeof header - 1, file) == sizeof header - 1;
{chr(10).join(writes)}
    return fclose(file) == 0 && fine ? 0 : -1;
}}
"""


def header_text(
    title: str, sizes: Mapping[int, str], arena: int, members: Sequence[str], run: str, before: str, room: int
) -> str:
    """Return `step.h`."""
    named = "\n".join(f"    {name} = {size}," for size, name in sizes.items())
    enum = f"/* sizes */\nenum {{\n{named}\n}};\n" if named else ""
    return f"""\
/* {title}

   Fill a struct with step_init, call step_run once for every batch, and store it with step_save. Nothing is allocated;
   values between kernels lie in one static arena. */
#ifndef STEP_H
#define STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

{enum}
enum {{
    STEP_ARENA_BYTES = {arena},
    STEP_HEADER_BYTES = {room},
}};

{before}/* everything that lasts from step to step, under the names of the Python program */
struct step {{
{chr(10).join(members)}
}};

/* Read a file of weights. Returns 0, or -1 if it cannot be read or lacks an array. */
int step_init(struct step *s, const char *path);
int step_load(struct step *s, const char *path);
/* Write a file of weights, which gg.load reads. Returns 0, or -1 if it cannot be written. */
int step_save(const struct step *s, const char *path);
/* Read one array of a safetensors file: `name` and `dtype` as they stand in its header. */
int step_read(const char *path, const char *name, const char *dtype, void *to, size_t bytes);

{run}

#endif
"""


def run_comment(checks: Sequence[tuple[int, str]], computed: bool) -> str:
    """Return what `step_run` returns, as a comment."""
    lines = ["/* One step. Returns 0."]
    lines += [
        f"   Returns {number} and changes nothing if an index in {name} is outside of its axis."
        for number, name in checks
    ]
    if computed:
        lines.append("   Returns -1 and keeps the state if an index that the step computes is outside of its axis.")
    return "\n".join(lines) + " */"


def main_text(arguments: Sequence[Field], results: Sequence[Field], loss: Field | None) -> str:
    """Return `main.c`, which runs steps on one example batch."""
    declared = [f"static {TYPES[one.kind]} {one.name}[{max(one.value.size, 1)}];" for one in (*arguments, *results)]
    reads = [f"""{one.read('"step.example"', one.name)} != 0""" for one in arguments]
    given = ", ".join(["&model", *(one.name for one in (*arguments, *results))])
    shown = (
        f'        printf("%4d  {loss.name} %.9g\\n", turn, (double){loss.name}[0]);\n'
        if loss is not None
        else '        printf("%4d\\n", turn);\n'
    )
    test = f" ||\n        {' || '.join(reads)}" if reads else ""
    return f"""\
/* Runs steps on one batch, prints the loss, and stores the result. Replace step.example by your own data. */
#include <stdio.h>
#include <stdlib.h>

#include "step.h"

static struct step model;
{chr(10).join(declared)}

int main(int count, char **words)
{{
    const int turns = count > 1 ? atoi(words[1]) : 20;
    if (step_init(&model, "step.weights") != 0{test}) {{
        fprintf(stderr, "step.weights or step.example cannot be read\\n");
        return 1;
    }}
    for (int turn = 1; turn <= turns; turn++) {{
        const int status = step_run({given});
        if (status != 0) {{
            fprintf(stderr, "step_run returned %d\\n", status);
            return 1;
        }}
{shown}    }}
    return step_save(&model, "trained.weights") == 0 ? 0 : 1;
}}
"""


OPTIONS = "-std=c11 -O3 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math -fopenmp-simd -DGG_SIMD"
"""The options of the compiler."""

MAKEFILE = f"""\
CC = cc
CFLAGS = {OPTIONS}
WARNINGS = -Wall -Wextra -Wconversion
LDLIBS = -lm

step: main.c step.c step.h
\t$(CC) $(CFLAGS) $(WARNINGS) -o $@ main.c step.c $(LDLIBS)
"""


def readme_text(title: str, struct_bytes: int, arena: int, lines: int) -> str:
    """Return the README."""
    return f"""\
{title}

    make && ./step 20        # 20 steps on the batch of step.example; the result is trained.weights

step.h, step.c   the step: {lines:,} lines, {struct_bytes:,} bytes of state, {arena:,} bytes for values between kernels
step.weights     the state at the time of export (safetensors)
main.c           an example to start from; step_run takes one batch
-DGG_USE_CBLAS   in CFLAGS, with -lcblas or -lopenblas in LDLIBS, takes products from a BLAS
-fopenmp         in CFLAGS shares large products among threads
In Python, gg.load("trained.weights") reads the state, and load_c of the compiled function goes on from it.
"""


def shape_note(value: Array) -> str:
    """Return a comment with type and shape."""
    return f"{dtype_text(value.dtype)}[{', '.join(map(str, value.shape))}]"
