"""Bugs that remain after mending, or that mending made: what is written, what instead, the step, words of the hint."""

ZERO, BACK = "            optimizer.zero_grad()\n", "            loss.backward()\n"
STEP, END = "            optimizer.step()\n", "    return ended(model)\n\n\ndef loop_2"
BLOCK, NO_BLOCK = "with watch(model, optimizer):\n", "if model:\n"
FIRST = "        for x, y in batches():\n            truth"

MISTAKES = [
    (ZERO + BACK + STEP + END, BACK + STEP + END, "loop 1", "all steps before"),
    ("loss = F.cross_entropy(model(x), y)\n            losses.append(loss.item())",
     "loss = gg.tensor(F.cross_entropy(model(x), y).item(), requires_grad=True)", "loop 2", "without a history"),
    ("model(x).log_softmax(1)", "(model(x).relu() / 3).log()", "loop 4", "something that can be 0"),
    ("lr=0.5", "lr=5", "loop 5", "decides how far they go"),
    ("nn.init.zeros_(model[0].bias)", "nn.init.constant_(model[0].bias, -20.0)", "loop 6", "How do they begin"),
    ("(pixels - pixels.mean(0)) / pixels.std(0)", "pixels / 255", "loop 7", "is their mean 0 now"),
    ("middle = [part for _ in range(3) for part in (nn.Linear(32, 32), nn.Tanh())]",
     "middle = 3 * [nn.Linear(32, 32), nn.Tanh()]", "loop 11", "one and the same"),
    ("            model.eval()\n            reached", "            reached", "loop 12", "in training mode"),
    (BLOCK + FIRST, NO_BLOCK + FIRST, "loop 3", "leave it around the loop"),
]  # fmt: skip  # a table
