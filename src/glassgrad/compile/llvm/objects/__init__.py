"""Object code: loaded into memory, and named by everything that it depends on.

Input: object files. Output: addresses of functions, and bytes for the cache on disk.

- Several object files as one: `separate.py`.
- What object code depends on: `machine.py`; how the processor is identified without LLVM: `processor.py`.
- How code is loaded into memory without LLVM: `linking.py`, based on `elf.py` and `pages.py`.
- Which functions a file calls and exports: `symbols.py`.
"""
