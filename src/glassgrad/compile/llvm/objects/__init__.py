"""Object code: placed in memory, and named by all that it depends on.

In: modules of LLVM IR. Out: addresses of functions, and bytes that the disk keeps.

- Several object files as one: `separate.py`.
- What object code depends on: `machine.py`; how the processor is asked without LLVM: `processor.py`.
- How code is placed in memory without LLVM: `linking.py`, with `elf.py` and `pages.py` below it.
- Which functions a file calls and offers: `symbols.py`.
"""
