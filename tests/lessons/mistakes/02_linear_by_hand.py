"""Typical mistakes in linear layers: what is written, what is written instead, the step, words of the hint."""

MISTAKES = [
    ("2 * y / y.size", "2 * y", "dy", "a mean over all entries"),
    ("2 * y / y.size", "y / y.size", "dy", "y + y"),
    ("dy @ w.T", "dy @ w", "dx", "what is summed over"),
    ("dw = x.T @ dy", "dw = dy.T @ x", "dw", "what is summed over"),
    ("db = dy.sum(axis=0)", "db = dy", "db", "broadcast b over the samples"),
    ("db = dy.sum(axis=0)", "db = dy.sum(axis=1)", "db", "runs over the samples"),
    ("dweight = dy.T @ x", "dweight = x.T @ dy", "the layer", "transposed"),
    ("dbias = dy.sum(axis=0)", "dbias = dy", "the layer", "sum over them"),
    ("dbias = dy.sum(axis=0)", "dbias = dy.mean(axis=0)", "the layer", "not a mean"),
    ("    return dx, dweight, dbias\n", "", "the layer", "return three gradients"),
    (" + x2.T @ dy2", "", "a layer used twice", "The second one adds its own"),
    ("dx = dy @ weight\n", "dx = dy @ weight.T\n", "the layer", "dx = dy @ weight.T"),
]
