"""Typical mistakes in the 26 gradients: what is written, what is written instead, the step, words of the hint."""

MISTAKES = [
    ("-1.0 / n", "-1.0", "dlogprobs", "each one counts 1/n"),
    ("= -1.0 / n", "= 1.0 / n", "dlogprobs", "minus in front of the mean"),
    ("dlogprobs / probs", "dlogprobs * probs", "dprobs", "slope of log(p) is 1/p"),
    ("(dprobs * counts).sum(1, keepdims=True)", "dprobs * counts", "dshare", "a sum over that axis"),
    ("dtotal = -dshare", "dtotal = dshare", "dtotal", "Look at the signs"),
    ("    dcounts += dtotal\n", "", "dcounts", "counts is used twice"),
    ("dlogits @ W2.T", "dlogits @ W2", "dh", "which index is summed over"),
    ("dlogits.sum(0)", "dlogits", "db2", "Slopes add over paths"),
    ("(1.0 - h**2)", "(1.0 - act**2)", "dact", "h is the tanh"),
    ("-0.5 * inv**3", "-0.5 * inv**2", "dvar", "exponent"),
    ("dvar / (n - 1)", "dvar / n", "ddiff2", "divides by n - 1"),
    ("ddiff += ddiff2 * 2 * diff", "ddiff = ddiff2 * 2 * diff", "ddiff", "diff is used twice"),
    ("dpre = ddiff.copy()", "dpre = ddiff", "backward as a whole", "one array"),
    ("np.add.at(dC, contexts, demb)", "dC[contexts] = demb", "dC", "collects all of its gradients"),
    ("return dlogits / n", "return dlogits", "dlogits in one go", "a factor 1/n is missing"),
    ("/ (n - 1))\n", "/ n)\n", "dpre in one go", "variance divides by n - 1"),
    ("- dact.mean(0)", "", "dpre in one go", "The mean has one too"),
]
