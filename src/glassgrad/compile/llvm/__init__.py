"""The native emitter: writes the kernels of a plan as LLVM IR and compiles them for this machine.

Input: a plan (`compile.plan`). Output: machine code, which `compile.native` runs.

- Which ops have native code: loops in `table.py` and `loops/composite.py`, other kernels in `SOLIDS` of
  `module/solid.py`; `without_code.py` lists ops without native code.
- How a step becomes one module of IR: `module/`.
- How a loop nest is written: `loops/`, with the functions of `math/`.
- Matrix products, convolutions, attention and recurrent layers: `products/`, `convolutions/`, `sequences/`.
- How IR becomes object code in memory: `objects/`.
- Facts for the plan and for the documentation: `abilities.py`, `code_form.py`.
"""
