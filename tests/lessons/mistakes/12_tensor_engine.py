"""Typical mistakes in an engine: what is written, what is written instead, the step, words of the hint."""

MISTAKES = [
    ("g = g.sum(in_front)", "g = g[(0,) * len(in_front)]", "shrink", "both gradients count"),
    ("g = g.sum(in_front)", "g = g.mean(in_front)", "shrink", "not averaged"),
    (", keepdims=True) if stretched", ") if stretched", "shrink", "with length 1"),
    ("self.grad, self.owned = self.grad + g, True", "self.grad += g", "receive", "belongs to others too"),
    ("self.grad, self.owned = self.grad + g, True", "self.grad = g", "receive", "gets the sum"),
    ("self.grad, self.owned = g, False", "self.grad = g", "receive", "t.owned was still True"),
    ("self.grad, self.owned = g, False", "self.grad, self.owned = g.copy(), True", "receive", "was copied"),
    ("-g * y / b.data", "g * y / b.data", "divide", "the sign is not"),
    ("-g * y / b.data", "-g / b.data**2", "divide", "Where is a?"),
    ("g * y * (1 - y)", "g * (1 - y * y)", "sigmoid", "slope of tanh"),
    ("g * y * (1 - y)", "g * a.data * (1 - a.data)", "sigmoid", "with the result, y"),
    ("g @ np.swapaxes(b.data, -1, -2)", "(b.data @ np.swapaxes(g, -1, -2))", "matmul", "wrong order"),
    ("np.swapaxes(a.data, -1, -2) @ g", "a.data.T @ g", "matmul", "only the last two"),
    ("np.broadcast_to(np.expand_dims(g, axis), a.data.shape)", "g", "total", "shape of the result"),
    (
        "np.broadcast_to(np.expand_dims(g, axis), a.data.shape)",
        "np.zeros_like(a.data) + g",
        "total",
        "put the axis back",
    ),
    ("np.add.at(out, rows, g)", "out[rows] = g", "pick", "last gradient only"),
    ("np.add.at(out, rows, g)", "out[rows] += g", "pick", "last gradient only"),
    ("key=lambda t: t.tick, reverse=True", "key=lambda t: (t is not root, t.tick)", "backward", "NoneType"),
    (
        "            receive(argument, rule(t.grad))\n",
        "            argument.grad = rule(t.grad)\n",
        "backward",
        "before",
    ),
    (
        "for t in sorted(found, key=lambda t: t.tick, reverse=True):\n",
        "queue = [root]\n    for t in queue:\n        queue += [a for a, _ in t.made_from if a not in queue]\n",
        "backward",
        "before the second gradient had arrived",
    ),
]
