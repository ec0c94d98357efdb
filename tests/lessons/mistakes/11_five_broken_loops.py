"""Typical mistakes in mending loops: what is written, what is written instead, the step, words of the hint."""

FIRST = """    for _ in range(100):
        optimizer.zero_grad()
        loss = ((model(X).squeeze(1) - NUMBERS) ** 2).mean()
        loss.backward()
"""
LAST = """        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def loop_5"""
MISTAKES = [
    (
        FIRST,
        "    optimizer.zero_grad()\n" + FIRST.replace("        optimizer.zero_grad()\n", ""),
        "loop 1",
        "before the loop",
    ),
    (
        FIRST,
        FIRST.replace("        optimizer.zero_grad()\n", "") + "        optimizer.zero_grad()\n",
        "loop 1",
        "Forget, compute",
    ),
    (FIRST, FIRST.replace("optimizer.zero_grad()", "model.train()"), "loop 1", "gradients of all the steps before"),
    (FIRST, FIRST.replace("range(100)", "range(3)"), "loop 1", "number of steps"),
    ("scores = model(X)\n", "scores = model(X).sigmoid()\n", "loop 2", "takes scores"),
    ("scores = model(X)\n", "scores = 1.0 * model(X).softmax(-1)\n", "loop 2", "takes scores"),
    ("predicted = model(X).squeeze(1)", "predicted = model(X).squeeze(0)", "loop 3", "shape of their difference"),
    ("predicted = model(X).squeeze(1)", "predicted = model(X).mean()", "loop 3", "shape of their difference"),
    (LAST, LAST.replace("        optimizer.zero_grad()\n", ""), "loop 4", "all the steps before"),
    (
        LAST,
        LAST.replace("        loss.backward()\n", "").replace(
            "        optim", "        loss.backward()\n        optim", 1
        ),
        "loop 4",
        "Forget, compute, use",
    ),
    (LAST, LAST.replace("        optimizer.step()\n", ""), "loop 4", "does not call step"),
    ("gg.full((2,), 0.5, requires_grad=True)\n", "gg.full((2,), 0.5)\n", "loop 5", "require"),
    (
        "optim.SGD([weight], lr=0.1)\n",
        "optim.SGD([weight], lr=0.1)\n    weight = (weight + 0.0).detach().requires_grad_()\n",
        "loop 5",
        "never moved",
    ),
    ("    return weight\n", "    return loss\n", "loop 5", "has to return the weight"),
]
