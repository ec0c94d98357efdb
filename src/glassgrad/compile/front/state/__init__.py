"""The state of a function: everything that it can reach, reads or may change.

Input: a function and its arguments. Output: tensors that become inputs, places that every call compares, effects that
every call repeats.

| question | file |
|---|---|
| which tensors and values a function can reach | `reach.py`, with `kinds.py` for classes and modules |
| which names its code reads, counts up or only stores | `bytecode_reads.py` |
| how a place is named, compared and restored | `edges.py` (compared), `places.py` (changed) |
| which changes of Python objects each call repeats | `effects.py` |
| which tensors are new in a trace, and which are state | `newcomers.py`, `alive.py`, `lifted.py` |
| tensors that share memory | `memory.py` |
| environment variables, iterators, gradients that are read | `environment.py`, `iterators.py`, `grad_watch.py` |
"""
