"""Faults of the order of the calls, of schedules, modes and seeds."""

from __future__ import annotations

from tests.doctor.reading.case import LOOP, Case

_MODEL = """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_EPOCHS = """
for epoch in range(epochs):
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


def in_order(*lines: str) -> str:
    return (
        _MODEL
        + "for x, y in batches:\n    loss = F.cross_entropy(model(x), y)\n"
        + "".join(f"    {line}\n" for line in lines)
    )


CASES = (
    Case(
        "zero_grad is missing",
        in_order("loss.backward()  #!", "optimizer.step()"),
        (("    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()"),),
    ),
    Case(
        "zero_grad is missing",
        """
def update(loss):
    loss.backward()  #!
    optimizer.step()
def train():
    for x, y in batches:
        update(F.cross_entropy(model(x), y))
""",
        (("    loss.backward()", "    for p in model.parameters():\n        p.grad = None\n    loss.backward()"),),
    ),
    Case(
        "gradients never used",
        _MODEL
        + """
for x, y in batches:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
optimizer.step()  #!
""",
        (("    optimizer.zero_grad()\n", ""),),
    ),
    Case(
        "no step",
        _MODEL
        + """
for x, y in batches:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()  #!
""",
        (("for x", "def step_of(x, optimizer):\n    optimizer.step()\nfor x"),),
    ),
    Case(
        "no backward pass",
        in_order("optimizer.zero_grad()", "optimizer.step()  #!"),
        (("optimizer.step()", "loss.backward(); optimizer.step()"),),
    ),
    Case(
        "step before backward",
        in_order("optimizer.zero_grad()", "optimizer.step()  #!", "loss.backward()"),
        (("optimizer.step()\n    loss.backward()", "loss.backward()\n    optimizer.step()"),),
    ),
    Case(
        "no gradients in a step",
        in_order("loss.backward()", "optimizer.zero_grad()  #!", "optimizer.step()"),
        (("optimizer.zero_grad()\n    optimizer.step()", "optimizer.step()\n    optimizer.zero_grad()"),),
    ),
    Case(
        "clipping before backward",
        in_order(
            "optimizer.zero_grad()",
            "nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #!",
            "loss.backward()",
            "optimizer.step()",
        ),
        (
            (
                "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    loss.backward()",
                "loss.backward()\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
            ),
        ),
    ),
    Case(
        "clipping after the step",
        in_order(
            "optimizer.zero_grad()",
            "loss.backward()",
            "optimizer.step()",
            "nn.utils.clip_grad_value_(model.parameters(), 1.0)  #!",
        ),
        (
            (
                "optimizer.step()\n    nn.utils.clip_grad_value_(model.parameters(), 1.0)",
                "nn.utils.clip_grad_value_(model.parameters(), 1.0)\n    optimizer.step()",
            ),
        ),
    ),
    Case(
        "clipping scaled gradients",
        in_order(
            "optimizer.zero_grad()",
            "scaler.scale(loss).backward()",
            "nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #!",
            "scaler.step(optimizer)",
            "scaler.update()",
        ),
        (("    nn.utils", "    scaler.unscale_(optimizer)\n    nn.utils"),),
    ),
    Case(
        "graph retained",
        in_order("optimizer.zero_grad()", "loss.backward(retain_graph=True)  #!", "optimizer.step()"),
        (("optimizer.step()", "penalty(loss).backward()\n    optimizer.step()"),),
    ),
    Case(
        "schedule before the step",
        _MODEL
        + """
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
for epoch in range(9):
    schedule.step()  #!
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
""",
        (
            ("    schedule.step()\n", ""),
            ("        optimizer.step()\n", "        optimizer.step()\n    schedule.step()\n"),
        ),
    ),
    Case(
        "schedule stepped for each batch",
        _MODEL
        + "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)\n"
        + _EPOCHS
        + "        schedule.step()  #!\n",
        (("        schedule.step()", "    schedule.step()"),),
    ),
    Case(
        "schedule stepped for each batch",
        _MODEL
        + "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)\n"
        + _EPOCHS
        + "        schedule.step()  #!\n",
        (("T_max=epochs", "T_max=epochs * len(batches)"),),
    ),
    Case(
        "schedule stepped for each epoch",
        _MODEL
        + "schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=9, steps_per_epoch=len(batches))\n"
        + _EPOCHS
        + "    schedule.step()  #!\n",
        (("    schedule.step()", "        schedule.step()"),),
    ),
    Case(
        "optimizer made in the loop",
        _MODEL
        + """
for epoch in range(9):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 / (epoch + 1))  #!
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
""",
        (("    optimizer = torch.optim.Adam", "    model = nn.Linear(4, 3)\n    optimizer = torch.optim.Adam"),),
    ),
    Case(
        "parameters without an optimizer",
        _MODEL + "model[3] = nn.Linear(8, 10)  #!\n" + LOOP,
        (
            (
                "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel[3] = nn.Linear(8, 10)\n",
                "model[3] = nn.Linear(8, 10)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
            ),
        ),
    ),
    Case(
        "parameters without an optimizer",
        _MODEL + "model[3] = nn.Linear(8, 10)  #!\n" + LOOP,
        (("8, 10)\n", "8, 10)\nlast = torch.optim.SGD(model[3].parameters(), lr=0.1)\n"),),
    ),
    Case(
        "parameters without an optimizer",
        "def fit(net):\n    return torch.optim.SGD(net.parameters(), lr=0.1)\n"
        + _MODEL
        + "model[3] = nn.Linear(8, 10)  #!\n"
        + LOOP,
        (("8, 10)\n", "8, 10)\nfit(model)\n"),),
    ),
    Case(
        "parameters without an optimizer",
        _MODEL + "model = nn.Sequential(nn.Linear(4, 3))  #!\n" + LOOP,
        (("\nmodel = nn.Sequential(nn.Linear(4, 3))", "\nmodel = nn.Sequential(model, nn.Softplus())"),),
    ),
    Case(
        "evaluation mode in training",
        _MODEL
        + _EPOCHS
        + """    model.eval()  #!
    with torch.no_grad():
        print(model(x))
""",
        (("    for x, y", "    model.train()\n    for x, y"),),
    ),
    Case(
        "training mode in evaluation",
        _MODEL
        + LOOP
        + """
with torch.no_grad():
    right = model(x).argmax(1) == y  #!
""",
        (("with torch", "model.eval()\nwith torch"),),
    ),
    Case(
        "training mode in evaluation",
        """
class Net(nn.Module):
    def __init__(self, share=0.2):
        super().__init__()
        self.rest, self.out = nn.Dropout(share), nn.Linear(4, 2)
    def forward(self, x):
        return self.out(self.rest(x))
model = Net()
optimizer = torch.optim.Adam(model.parameters())
"""
        + LOOP
        + "with torch.no_grad():\n    right = model(x).argmax(1) == y  #!\n",
        (("share=0.2", "share=0.0"),),
    ),
    Case(
        "training mode in evaluation",
        """
maker = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
judge = nn.Linear(4, 1)
first, second = torch.optim.Adam(judge.parameters()), torch.optim.Adam(maker.parameters())
for real, given in batches:
    fake = maker(given)
    first.zero_grad()
    (F.softplus(-judge(real)) + F.softplus(judge(fake.detach()))).mean().backward()
    first.step()
    second.zero_grad()
    F.softplus(-judge(fake)).mean().backward()
    second.step()
with torch.no_grad():
    print(maker(kept))  #!
""",
        (("maker(kept)", "maker(torch.randn(64, 8))"),),
    ),
    Case(
        "training mode in evaluation",
        _MODEL + LOOP + "with torch.no_grad():\n    drawn = torch.stack([model(x)])  #!\n",
        (("[model(x)]", "[model(x) for _ in range(9)]"),),
    ),
    Case(
        "training mode in evaluation",
        _MODEL + LOOP + "with torch.no_grad():\n    for each in x:\n        print(model(each))  #!\n",
        (("model(each)", "model(x)"),),
    ),
    Case(
        "gradients in evaluation",
        _MODEL
        + LOOP
        + """
def score():
    model.eval()
    right = 0
    for x, y in held_out:
        right += (model(x).argmax(1) == y).sum().item()  #!
    model.train()
score()
""",
        (("def score", "@torch.no_grad()\ndef score"),),
    ),
    Case(
        "gradients in evaluation",
        _MODEL
        + LOOP
        + """
model.eval()
for x, y in held_out:
    print(model(x))  #!
""",
        (("    print(model(x))", "    with torch.no_grad():\n        print(model(x))"),),
    ),
    Case(
        "method not called",
        in_order("optimizer.zero_grad  #!", "loss.backward()", "optimizer.step()").replace(
            "    loss.backward()", "    model.zero_grad()\n    loss.backward()"
        ),
        (("optimizer.zero_grad\n", "optimizer.zero_grad()\n"),),
    ),
    Case(
        "no_grad without a block",
        "torch.no_grad()  #!\nprint(model(x))\n",
        (("torch.no_grad()\n", "with torch.no_grad():\n    "),),
    ),
    Case(
        "seed set in the loop",
        _MODEL + LOOP.replace("    optimizer.zero_grad()", "    torch.manual_seed(0)  #!\n    optimizer.zero_grad()"),
        (("    torch.manual_seed(0)\n", ""),),
    ),
    Case(
        "seed set in the loop",
        """
class Pictures(torch.utils.data.Dataset):
    def __getitem__(self, at):
        np.random.seed(3)  #!
        return np.random.rand(4)
""",
        (("seed(3)", "seed(at)"),),
    ),
    Case(
        "zero_grad is missing",
        _MODEL
        + """
for epoch in range(epochs):
    for x, y in batches:
        loss = F.cross_entropy(model(x), y)
        loss.backward()  #!
    optimizer.step()
""",
        (("    for x, y", "    optimizer.zero_grad()\n    for x, y"),),
    ),
    Case(
        "gradients never used",
        _MODEL
        + """
for epoch in range(100):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
optimizer.step()  #!
""",
        (("for epoch in range(100)", "for x, y in batches"),),
    ),
)
