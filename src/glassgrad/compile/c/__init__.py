"""The C target: a planned step as a program in portable C11 that a person can read.

Input: a trace (`Capture`), or a graph. Output: a folder with `step.h`, `step.c`, `step.weights`, `main.c`, a Makefile
and a README (`export.py`), or a shared library that runs here (`running.py`, for ``backend="c"``).

| question | file |
|---|---|
| which ops and kinds have C | `abilities.py`; what is refused in `refusals.py` |
| the way from a graph to kernels in order, with their memory | `stages.py` |
| types, numbers and names of C | `words.py`; names of sizes in `sizes.py` |
| an expression, and the functions that expressions call | `expressions.py`, `helpers.py`, through `builder.py` |
| a loop nest | `kernels/nests.py` |
| a product, a convolution or pool, a scatter or scan, a loop over time | files of the folder `kernels` |
| random numbers | `draws.py` |
| a kernel as a function, and the whole of `step.c` | `program.py`; header and other files in `package.py` |
"""
