"""Typical mistakes in topological orders: what is written, what is written instead, the step, words of the hint."""

from pathlib import Path

SOLUTION = Path(__file__).parents[1] / "solutions" / Path(__file__).name
WHOLE = SOLUTION.read_text(encoding="utf-8").partition("\n\n\n")[0]
RECURSIVE = """def order(root):
    found = []
    def visit(node):
        if node not in found:
            for arg in node.args:
                visit(arg)
            found.append(node)
    visit(root)
    return found[::-1]
"""
EVERY_PATH = """def order(root):
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        if node in found:
            found.remove(node)
        found.append(node)
        stack.extend(node.args)
    return found
"""
FIRST_SEEN = """def order(root):
    found = [root]
    for node in found:
        found.extend(arg for arg in dict.fromkeys(node.args) if arg not in found)
    return found
"""
MISTAKES = [
    (WHOLE, RECURSIVE, "a deep graph", "too deep for recursion"),
    (WHOLE, RECURSIVE.replace("[::-1]", ""), "a diamond", "begins with what is oldest"),
    (WHOLE, EVERY_PATH, "many paths", "not come to an end"),
    (WHOLE, FIRST_SEEN, "a diamond", "stands before"),
    (WHOLE, RECURSIVE.replace("if node not in found", "if True"), "a diamond", "more than once"),
    ("    return found\n", "", "a diamond", "`return` missing"),
    ("found.append(node)", "pass", "a diamond", "lacks"),
    ("            if waiting[arg] == 0:\n", "            if waiting[arg] >= 0:\n", "a diamond", "more than once"),
    (
        "            if waiting[arg] == 0:\n",
        "            while waiting[arg] != 0:\n",
        "a diamond",
        "not come to an end",
    ),
    ("slopes[arg] += ", "slopes[arg] = ", "gradients", "what arrives is added"),
    ("slopes[node] * slope", "slope", "gradients", "the sender's own gradient"),
    ("    slopes[root] = 1.0\n", "", "gradients", "Somebody has to begin"),
    ("    return slopes\n", "", "gradients", "a dictionary"),
]
