"""Typical mistakes in the loops of a step: what is written, what instead, the step, words of the hint."""

ADD, SUM = "c[i * n + j] += a", "            sums[j] += g\n"

MISTAKES = [
    (ADD, "c[i * n + j] = a", "product", "Only the last term"),
    ("c[i * n + j] +=", "c[j * m + i] +=", "product", "columns, one after the other"),
    ("a[i * a_row + p * a_column]", "a[i * k + p]", "product", "column after column"),
    ("b[p * b_row + j * b_column]", "b[p * n + j]", "product", "column after column"),
    ("product(inputs, outputs, batch, x, 1, inputs, dy, outputs, 1)",
     "product(outputs, inputs, batch, dy, 1, outputs, x, inputs, 1)", "gradient of the weight", "its transpose"),
    ("product(inputs, outputs, batch, x, 1, inputs, dy, outputs, 1)",
     "product(inputs, outputs, batch, list(x), 1, inputs, dy, outputs, 1)", "gradient of the weight", "a copy"),
    ("w, 1, outputs)", "w, inputs, 1)", "gradient of the input", "distances"),
    ("product(batch, inputs, outputs, dy, outputs, 1, w, 1, outputs)",
     "product(inputs, batch, outputs, w, outputs, 1, dy, 1, outputs)", "gradient of the input", "its transpose"),
    ("(1 - hidden[at] * hidden[at])", "(1 - hidden[at])", "one loop", "1 - y²"),
    ("            dhidden[at] = g\n", "", "one loop", "written over it"),
    (SUM, "            sums[j] += dhidden[at] / (1 - hidden[at] * hidden[at])\n", "one loop", "before the rule"),
    ("bias[j] -= rate", "bias[j] += rate", "one loop", "up the slope"),
    ("rate * sums[j]", "rate * sums[j] / batch", "one loop", "no mean"),
    ("sums[j] += g", "sums[j] = g", "one loop", "every row adds"),
    (SUM, "            sums[j] += dhidden[at]\n", "each element once", "for both results"),
    ("first <= other_last and", "first < other_last and", "arena", "alive in turn 1"),
    ("first <= other_last and other_first <= last and ", "", "arena", "Nothing shares memory"),
    ("key=lambda number: -values[number][0]", "key=lambda number: values[number][0]", "arena", "comes first"),
]  # fmt: skip  # a table
