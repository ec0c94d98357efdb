"""The native emitter: the kernels of a plan as LLVM IR, translated for this machine.

In: a plan (`compile.plan`). Out: machine code, which `compile.native` runs.

- Which ops have native code: loops in `table.py` and `loops/composite.py`, other kernels in `SOLIDS` of
  `module/solid.py`, and `without_code.py` for those that have none.
- How a step becomes one module of IR: `module/`.
- How a loop nest is written: `loops/`, with the functions of `math/`.
- Matrix products, convolutions, attention and recurrent layers: `products/`, `convolutions/`, `sequences/`.
- How IR becomes object code in memory: `objects/`.
- What the plan and the documentation must know of all this: `abilities.py`, `code_form.py`.
"""
