"""Typical mistakes in softmax: what is written, what is written instead, the step, words of the hint."""

MISTAKES = [
    ("return e / e.sum(1, keepdims=True)", "return e / e.sum()", "softmax", "Each row is a distribution"),
    ("return e / e.sum(1, keepdims=True)", "return e / e.sum(0)", "softmax", "the columns add up to 1"),
    ("np.exp(x - x.max(1, keepdims=True))", "np.exp(x)", "softmax of large numbers", "subtracted from a row for free"),
    ("np.exp(x - x.max(1, keepdims=True))", "np.exp(x - x.max())", "softmax of large numbers", "underflow"),
    ("shifted = x - x.max(1, keepdims=True)\n", "shifted = x\n", "log-softmax", "overflows for large scores"),
    ("shifted - np.log(np.exp(shifted).sum(1, keepdims=True))", "np.log(softmax(x))", "log-softmax", "on paper"),
    ("p * (dp - (dp * p).sum(1, keepdims=True))", "p * (1 - p) * dp", "the gradient of softmax", "all others too"),
    ("(dp * p).sum(1, keepdims=True)", "(dp * p).sum()", "the gradient of softmax", "over all samples"),
    ("(dp * p).sum(1", "dp.sum(1", "the gradient of softmax", "not a plain sum"),
    ("return -log_softmax", "return log_softmax", "cross-entropy", "falls towards 0"),
    ("targets].mean()", "targets].sum()", "cross-entropy", "the mean over the samples"),
    ("-log_softmax(x)[", "-np.log(softmax(x))[", "cross-entropy", "confidently wrong"),
    ("return dx / len(x)", "return dx", "the gradient of cross-entropy", "number of samples"),
    ("    dx[np.arange(len(x)), targets] -= 1\n", "", "the gradient of cross-entropy", "Subtract the truth"),
    ("dx[np.arange(len(x)), targets] -= 1", "dx -= 1", "the gradient of cross-entropy", "1 is subtracted everywhere"),
]
