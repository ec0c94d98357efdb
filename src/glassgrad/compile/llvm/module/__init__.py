"""The module of a step: LLVM IR as text, functions and calls, shares of threads, the table of phases.

Input: kernels of a plan (`compile.plan`). Output: one module of LLVM IR, which `target.py` compiles through `objects/`.

- How IR is written: `ir.py`; short forms for sizes that are arguments: `words.py`.
- How the kernels of a schedule become phases: `step.py`; how they can be cut, and their cost: `cuts.py`.
- Kernels other than loop nests: `solid.py`, with base classes in `solid_base.py`.
- The abilities of the machine, and how text becomes callable code: `target.py`; BLAS: `blas.py`.
- The native half of the runtime: `support.py`; the loop over chunks of large arrays: `chunks.py`.
- How functions are shared: inside a large step `alike.py`, among eager kernels `units.py`.
"""
