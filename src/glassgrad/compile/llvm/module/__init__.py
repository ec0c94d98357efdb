"""The module of a step: LLVM IR as text, functions and calls, shares of threads, the table of phases.

In: kernels of a plan (`compile.plan`). Out: one module of LLVM IR, which `target.py` translates through `objects/`.

- How IR is written: `ir.py`; short forms for sizes that are arguments: `words.py`.
- How the kernels of a schedule become phases: `step.py`; how they can be cut, and their cost: `cuts.py`.
- How kernels that are no loop nests become code: `solid.py`, on the base classes of `solid_base.py`.
- What the machine can do, and how text becomes code that is called: `target.py`; BLAS: `blas.py`.
- The native half of the runtime: `support.py`; the loop over chunks of large arrays: `chunks.py`.
- How functions are shared: inside of a large step `alike.py`, among eager kernels `units.py`.
"""
