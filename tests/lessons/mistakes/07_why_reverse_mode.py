"""Typical mistakes in both modes: what is written, what is written instead, the step, words of the hint."""

PRODUCT = """    whole = matrices[0]
    for matrix in matrices[1:]:
        whole = matrix @ whole
    return whole @ v
"""
MISTAKES = [
    (
        "    for matrix in matrices:\n        v = matrix @ v\n    return v\n",
        PRODUCT,
        "push",
        "Two matrices were multiplied",
    ),
    ("v = matrix @ v", "v = v @ matrix", "push", "wrong order, and the vector"),
    ("for matrix in matrices:", "for matrix in reversed(matrices):", "push", "Which step meets the vector first"),
    ("in reversed(matrices)", "in matrices", "pull", "Which step meets the vector first"),
    ("for row in np.eye(n)], axis=1)", "for row in np.eye(n)])", "the Jacobian by columns", "stacked as rows"),
    (
        "np.stack([reverse_sweep(row) for row in np.eye(m)])",
        "reverse_sweep(np.ones(m))",
        "the Jacobian by rows",
        "alone",
    ),
    ("if n < m", "if n > m", "which is cheaper", "a sweep per input"),
    ('("reverse", m)', '("reverse", n)', "which is cheaper", "how many sweeps"),
    (
        "self.speed * other.value + self.value * other.speed",
        "self.speed * other.speed",
        "a product of pairs",
        "grows by",
    ),
    (" + self.value * other.speed", "", "a product of pairs", "second factor moves too"),
    ("np.cos(self.value) * self.speed", "np.cos(self.value)", "a sine of a pair", "speed of its own"),
    ("np.cos(self.value) *", "-np.cos(self.value) *", "a sine of a pair", "with a plus"),
]
