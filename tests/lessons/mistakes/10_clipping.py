"""Typical mistakes in clipping: what is written, what is written instead, the step, words of the hint."""

BODY = """    length = np.sqrt(sum((one * one).sum() for one in gradients))
    scale = limit / length if length > limit else 1.0
    return [one * scale for one in gradients]
"""
MISTAKES = [
    (
        BODY,
        "    return [one * min(1, limit / np.sqrt((one * one).sum())) for one in gradients]\n",
        "clipping by norm",
        "by itself",
    ),
    ("limit / length if", "1 / length if", "clipping by norm", "length is 1 now"),
    (
        "np.sqrt(sum((one * one).sum() for one in gradients))",
        "sum((one * one).sum() for one in gradients)",
        "clipping by norm",
        "A root",
    ),
    (
        "np.sqrt(sum((one * one).sum() for one in gradients))",
        "max(abs(one).max() for one in gradients)",
        "clipping by norm",
        "largest entry",
    ),
    (" if length > limit else 1.0", "", "short gradients", "made longer"),
    (" if length > limit else 1.0", "", "a gradient of zeros", "0 / 0"),
    (
        "    return [one * scale for one in gradients]\n",
        "    for one in gradients:\n        one *= scale\n    return gradients\n",
        "clipping by norm",
        "make new ones",
    ),
    (
        "    return [one * scale for one in gradients]\n",
        "    [one * scale for one in gradients]\n",
        "clipping by norm",
        "`return`",
    ),
    ("np.clip(one, -limit, limit)", "np.minimum(one, limit)", "clipping by value", "negative entries"),
    ("np.clip(one, -limit, limit)", "one.clip(0, limit)", "clipping by value", "begins at -limit"),
    ("np.degrees(np.arccos(min(cosine, 1.0)))", "np.arccos(min(cosine, 1.0))", "the angle", "in radians"),
    ("np.degrees(np.arccos(min(cosine, 1.0)))", "cosine", "the angle", "the cosine"),
    ("np.isfinite(one).all()", "not np.isnan(one).any()", "usable gradients", "an infinity"),
    (
        "all(np.isfinite(one).all() for one in gradients)",
        "np.isfinite(gradients[0]).all()",
        "usable gradients",
        "last array",
    ),
    ("all(np.isfinite(one).all()", "all(np.isfinite((one * one).sum())", "usable gradients", "squares overflow"),
]
