"""Typical mistakes in layer norm: what is written, what is written instead, the step, words of the hint."""

MISTAKES = [
    ("db = dy.sum(0)", "db = dy", "db", "sum over the rows"),
    ("dw = (dy * hat).sum(0)", "dw = dy.sum(0)", "dw", "magnified by hat"),
    ("(dhat * centred).sum(1, keepdims=True)", "(dhat * centred).sum(0)", "ds", "sum along the row"),
    ("-0.5 * s**3", "-0.5 * s**2", "dvar", "exponent"),
    ("    dcentred += dvar * 2 * centred / n\n", "", "dcentred", "centred is used twice"),
    ("2 * centred / n", "2 * centred", "dcentred", "variance divides by n"),
    ("dmean = -dcentred", "dmean = dcentred", "dmean", "a minus in front"),
    ("dx = dcentred + dmean / n", "dx = dcentred", "dx", "x is used twice"),
    ("dx = dcentred + dmean / n", "dx = dcentred + dmean", "dx", "mean divides by n"),
    (" - hat * (d * hat).mean(1, keepdims=True)", "", "dx in one line", "The variance has one too"),
    ("d.mean(1, keepdims=True)", "d.mean(0)", "dx in one line", "expected"),
    ("    d = dy * w\n", "    d = dy\n", "dx in one line", "where is w"),
    ("return s * (", "return (", "dx in one line", "where is s"),
]
