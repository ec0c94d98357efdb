"""Typical mistakes about curvature: what is written, what is written instead, the step, words of the hint."""

MISTAKES = [
    ("gradient(w - h * v)) / (2 * h)", "gradient(w)) / h", "by nudging", "to one side only"),
    ("/ (2 * h)", "/ h", "by nudging", "two nudges"),
    ("gradient(w + h * v) - gradient(w - h * v)", "gradient(w + h) - gradient(w - h)", "by nudging", "along v"),
    ("(grad(loss)(w) * v).sum())(w)", "loss(w))(w)", "exactly", "That is the gradient"),
    (
        "return grad(lambda w: (grad(loss)(w) * v).sum())(w)",
        "return (grad(loss)(w) * v).sum()",
        "exactly",
        "half of the way",
    ),
    ("* v).sum())(w)", ").sum())(w)", "exactly", "weighted by v"),
    (
        "return grad(lambda w: (grad(loss)(w) * v).sum())(w)",
        "return (grad(loss)(w + 1e-4 * v) - grad(loss)(w - 1e-4 * v)) / 2e-4",
        "exactly",
        "nearly right, as a nudge is",
    ),
    ("for row in np.eye(n)], axis=1)", "for row in np.eye(n)])", "the whole matrix", "stacked as rows"),
    (
        "direction = turned / np.linalg.norm(turned)",
        "direction = turned * 1e9",
        "the largest curvature",
        "length back to 1",
    ),
    (
        "return direction @ product(direction)",
        "return np.linalg.norm(product(direction))",
        "the largest curvature",
        "no sign",
    ),
    (
        "return direction @ product(direction)",
        "return direction @ direction",
        "the largest curvature",
        "what H makes of it",
    ),
    ("return 2 / curvature", "return 1 / curvature", "the largest rate", "before the distance grows"),
    ("return 2 / curvature", "return curvature / 2", "the largest rate", "smaller the rate"),
]
