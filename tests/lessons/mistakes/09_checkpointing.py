"""Typical mistakes in checkpointing: what is written, what is written instead, the step, words of the hint."""

AGAIN = """            h_i = h
            for w in segment[:i]:
                h_i = layer(h_i, w)
            dy, dw = layer_backward(dy, h_i, segment[i], layer(h_i, segment[i]))
"""
MISTAKES = [
    (
        "        kept.append(x)\n        for w in segment:\n            x = layer(x, w)\n",
        "        for w in segment:\n            kept.append(x)\n            x = layer(x, w)\n",
        "forward",
        "the input of each, and nothing else",
    ),
    (
        "        kept.append(x)\n        for w in segment:\n            x = layer(x, w)\n",
        "        for w in segment:\n            x = layer(x, w)\n        kept.append(x)\n",
        "forward",
        "the results of the segments",
    ),
    ("    return x, kept\n", "    return x\n", "forward", "two things"),
    ("return dweights[::-1]", "return dweights", "backward", "in reverse"),
    ("            dy, dw = layer_backward(", "            _, dw = layer_backward(", "backward", "to the one before it"),
    ("zip(reversed(kept), reversed(segments))", "zip(kept, segments)", "backward", "right"),
    (
        "dy, inside[i], segment[i], inside[i + 1])",
        "dy, h, segment[i], inside[i + 1])",
        "backward",
        "the layer before it",
    ),
    (
        "            dy, dw = layer_backward(dy, inside[i], segment[i], inside[i + 1])\n",
        AGAIN,
        "no layer more than once",
        "note what each of its layers gave",
    ),
    ("return k + n / k", "return n / k", "the bill", "inputs of all segments"),
    ("return k + n / k", "return k + n", "the bill", "not all of them"),
    (
        "return min(range(1, n + 1), key=lambda k: bill(n, k))",
        "return n // 2",
        "the best number of segments",
        "far from",
    ),
    ("return min(range(1, n + 1), key=lambda k: bill(n, k))", "return n", "the best number of segments", "every layer"),
]
