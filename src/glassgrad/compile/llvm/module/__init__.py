"""The module of a step: LLVM IR as text, functions and calls, shares of threads, the table of phases.

In: kernels of a plan (`compile.plan`). Out: one module of LLVM IR, ready for `objects/`.

`ir.py` writes IR; `solid.py` and `solid_base.py` say how kernels that are no loop nests become code; `step.py` joins
all kernels of a schedule; `support.py` is the native half of the runtime; `target.py` turns a module into a function.
"""
