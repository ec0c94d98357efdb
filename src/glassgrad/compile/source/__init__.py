"""Programs for people: a graph as readable, runnable NumPy source with the user's names.

In: a graph with the origins of its instructions. Out: a `Source` (`document.py`), text that runs.

| question | file |
|---|---|
| `backward_source`, from function to text | `readable.py`; for a compiled function `listing.py` |
| the backward pass of a forward graph | `differentiate.py` |
| forward and backward lines of the body | `source.py`, with `lines.py` and the user's `statements.py` |
| one instruction as text | `expressions.py`; ops without a formula in `reading.py` |
| functions that a program needs and NumPy lacks | `functions.py`, `helpers.py` |
| line breaks and comments | `layout.py` |
| names of values | the folder `naming` |
| loops instead of repeated lines, closed-form gradients | the folder `rewriting` |
| modules of PyTorch | `torch_fx.py` |
"""
