"""The intermediate representation: the graph, its verifier, and the passes that rewrite it.

Input: instructions, as the tracer appends them. Output: a smaller graph with the same results.

| question | file |
|---|---|
| what a graph, an instruction and a value are; how a graph is printed and hashed | `graph.py` |
| which graphs are valid | `well_formed.py` |
| what a graph computes, by NumPy | `evaluate.py` |
| which rewrites there are, and in which order | `passes/__init__.py`; the algebraic ones in `passes/rules.py` |
| totals of a program: arithmetic, bytes, kernels | `totals.py` |
"""
