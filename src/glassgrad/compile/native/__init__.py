"""From machine code to a function that runs: its memory, its threads, its cache on disk.

In: a module and the layout of its memory. Out: a `NativeStep`, or a function of eager mode.

- How a step is called: `executable.py`; ops that Python computes in it: `host_calls.py`.
- What the stages hand over: `assemble.py`. Into how many shares a step is cut: `threads.py`.
- The pool of threads, and memory: `runtime.py`, `common_memory.py`; memory touched ahead of its use: `ahead.py`.
- The cache on disk: `cache.py` for machine code, `cache_entry.py` for steps.
- Work of eager mode: `products.py`, `chunks.py`, `rows.py`, `channels.py`, `largest.py`, `moments.py`, `updates.py`.
"""
