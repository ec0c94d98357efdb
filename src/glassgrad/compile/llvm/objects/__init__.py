"""Object code: translated in pieces, read, placed in memory and named by all that it depends on.

In: modules of LLVM IR. Out: addresses of functions, and bytes that the disk keeps.

`translate.py` divides a module among cores; `machine.py` says what code depends on; `linking.py` places code without
LLVM, with `elf.py` and `pages.py` below it.
"""
