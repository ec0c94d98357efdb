"""Typical mistakes in the chain rule: what is written, what is written instead, the step, words of the hint."""

MISTAKES = [
    ("f(x - nudge)) / (2 * nudge)", "f(x)) / nudge", "slope by nudging", "to one side only"),
    ("/ (2 * nudge)", "/ nudge", "slope by nudging", "two nudges"),
    (" / (2 * nudge)", "", "slope by nudging", "per unit of x"),
    ("return (f(x", "(f(x", "slope by nudging", "`return` missing"),
    ("dmiss = 2 * miss", "dmiss = miss", "dmiss", "counts twice"),
    ("    dw += w\n", "", "dw", "w is used twice"),
    ("dw = dscaled * x", "dw = dscaled * w", "dw", "magnified by x"),
    ("dx = dscaled * w", "dx = dscaled * x", "dx", "magnified by w"),
    ("slopes[maker] += slope", "slopes[maker] = slope", "slopes of a book", "slopes add"),
    ("in reversed(book)", "in book", "slopes of a book", "begin with the last"),
    ("slope * slopes[name]", "slope", "slopes of a book", "times the slope of the number that sends it"),
    ("    slopes[book[-1][0]] = 1.0\n", "", "slopes of a book", "Somebody has to begin"),
]
