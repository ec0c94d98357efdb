"""Typical mistakes with gradients on their way: what is written, what instead, the step, words of the hint."""

ZERO, BACK, STEP = "    optimizer.zero_grad()\n", "    loss.backward()\n", "    optimizer.step()\n"
CLIP = "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"

MISTAKES = [
    ("    for handle in handles:\n        handle.remove()\n", "", "listen", "handle.remove()"),
    ("arrived[0].norm()", "(sent_on[0] if sent_on[0] is not None else gg.zeros(1)).norm()", "listen", "sends on"),
    ("return heard", "return heard[::-1]", "listen", "last layer comes first"),
    ("model.named_children()", "model.named_modules()", "listen", "expected 2, 1, 0"),
    ("nn.functional.mse_loss(model(x), target).backward()", "model(x)", "listen", "Nothing was heard"),
    ("t.register_hook(lambda g: g / 2)", "t.register_hook(lambda g: None)", "halve", "replaces the gradient"),
    ("g / 2", "g * 2", "halve", "doubled"),
    ("t.register_hook(lambda g: g / 2)", "t.array[...] /= 2", "halve", "value itself"),
    ("np.median(norms[:step])", "np.mean(norms[:step])", "first jump", "take the median"),
    ("range(5, len(norms))", "range(1, len(norms))", "first jump", "too early"),
    ("range(5, len(norms))", "range(5, len(norms) - 1)", "first jump", "last step counts"),
    ("np.sqrt(sum((g * g).sum() for g in gradients))", "sum(np.sqrt((g * g).sum()) for g in gradients)", "clip",
     "root of the sum of all squares"),
    ("[g * (limit / norm) for g in gradients]", "[np.clip(g, -limit, limit) for g in gradients]", "clip", "turns"),
    ("if norm <= limit:", "if norm > limit:", "clip", "Which way round"),
    ("if norm <= limit:", "if False:", "clip", "made longer"),
    (ZERO, "", "train step", "step before are still in it"),
    (BACK + CLIP, CLIP + BACK, "train step", "Clip after backward"),
    (CLIP + STEP, STEP + CLIP, "train step", "Clip after backward"),
    (ZERO + BACK, BACK + ZERO, "train step", "thrown away"),
    ('beta * state.get("v", 0.0) + g', 'beta * state.get("v", 0.0) + (1 - beta) * g', "momentum", "running mean"),
    ('beta * state.get("v", 0.0) + g', "g", "momentum", "plain SGD"),
    ('p - rate * state["v"]', 'p + rate * state["v"]', "momentum", "up the slope"),
    ('state["m"] / (1 - b1**t), state["s"] / (1 - b2**t)', 'state["m"], state["s"]', "adam", "begin at 0"),
    ("np.sqrt(s)", "s", "adam", "its root"),
]  # fmt: skip  # a table
