"""Turn machine code into a callable: its memory, its threads, its cache on disk.

Input: a module and the layout of its memory. Output: a `NativeStep`, or a function of eager mode.

- How a step is called: `executable.py`; ops that Python computes in it: `host_calls.py`.
- The records that the stages hand over: `assemble.py`. The number of shares of a step: `threads.py`.
- The pool of threads, and memory: `runtime.py`, `common_memory.py`; memory touched before its use: `ahead.py`.
- The cache on disk: `cache.py` for machine code, `cache_entry.py` for steps.
- Work of eager mode: `products.py`, `chunks.py`, `rows.py`, `channels.py`, `largest.py`, `moments.py`, `updates.py`.
"""
