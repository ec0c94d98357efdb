"""Faults of epochs, schedules, folds and of what is kept from round to round."""

from __future__ import annotations

from tests.doctor.reading.case import LOOP, Case

_MODEL = "model = nn.Linear(4, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
_BATCHES = """
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""

CASES = (
    Case(
        "total of the last layer only",
        """
class Flow(nn.Module):
    def forward(self, x):
        total = torch.zeros(len(x))
        for step in self.steps_of_flow:
            x, total = step(x)  #!
        return x, total
""",
        (("x, total = step(x)", "x, part = step(x)\n            total = total + part"),),
    ),
    Case(
        "total of the last layer only",
        """
def complexity(model):
    kl = 0.0
    for name, module in model.named_modules():
        if hasattr(module, "kl"):
            kl = module.kl()  #!
    return kl
""",
        (("kl = module.kl()", "kl = kl + module.kl()"),),
    ),
    Case(
        "best value never changes",
        """
class Keeper:
    def __init__(self):
        self.best = None
    def seen(self, val_loss):
        if self.best is None or val_loss > self.best:  #!
            self.best = val_loss
            torch.save(val_loss, "best")
""",
        (("val_loss > self.best", "val_loss < self.best"),),
    ),
    Case(
        "schedule stepped for each epoch",
        _MODEL
        + """
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10 * len(loader))
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    schedule.step()  #!
""",
        (("    schedule.step()", "        schedule.step()"),),
    ),
    Case(
        "accumulated without division",
        """
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
every = 4
for at, (x, y) in enumerate(batches):
    loss = F.cross_entropy(model(x), y)
    loss.backward()  #!
    if (at + 1) % every == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
        (("    loss.backward()", "    (loss / every).backward()"),),
    ),
    Case(
        "schedule stepped for each batch",
        _MODEL
        + """
epochs = 30
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
def run(count):
    for epoch in range(count):
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()  #!
run(epochs)
""",
        (("            schedule.step()", "        schedule.step()"),),
    ),
    Case(
        "schedule stepped for each epoch",
        _MODEL
        + """
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
steps = 10 * len(loader)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    schedule.step()  #!
""",
        (("    schedule.step()", "        schedule.step()"),),
    ),
    Case(
        "schedule beyond the run",
        _MODEL
        + "schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [60, 80])  #!\nfor epoch in range(40):\n"
        + _BATCHES.strip("\n")
        + "\n    schedule.step()\n",
        (("[60, 80]", "[20, 80]"),),
    ),
    Case(
        "schedule never stepped",
        _MODEL
        + "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)  #!\nfor epoch in range(40):\n"
        + _BATCHES.strip("\n")
        + "\n",
        (("        optimizer.step()\n", "        optimizer.step()\n    schedule.step()\n"),),
    ),
    Case(
        "warm-up counts another number",
        """
def rate(epoch, at, count, warmup, top):
    total = epoch * count + at
    if total < warmup:
        return top * at / warmup
    return top
def share(epoch, at, count, warmup):
    total = epoch * count + at
    if total < warmup:
        return at / warmup  #!
    return 1.0
""",
        (
            ("        return at / warmup", "        return total / warmup"),
            ("top * at / warmup", "top * total / warmup"),
        ),
    ),
    Case(
        "folds share one model",
        """
def fit(model, rows):
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in rows:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
model = nn.Linear(4, 3)  #!
for fold, rows in enumerate(parts):
    fit(model, rows)
""",
        (
            (
                "model = nn.Linear(4, 3)\nfor fold, rows in enumerate(parts):\n",
                "for fold, rows in enumerate(parts):\n    model = nn.Linear(4, 3)\n",
            ),
        ),
    ),
    Case(
        "best value never changes",
        LOOP.strip("\n")
        + """
    score = F.mse_loss(model(x), y).item()
best_loss = float("inf")
for val_loss in losses:
    if val_loss > best_loss:  #!
        best_loss = val_loss
""",
        (("val_loss > best_loss", "val_loss < best_loss"), ("    score = F.mse_loss(model(x), y).item()\n", "")),
    ),
    Case(
        "best value never changes",
        """
class Keeper:
    def __init__(self):
        self.best_acc = 0.0
    def seen(self, val_acc):
        if val_acc < self.best_acc:  #!
            self.best_acc = val_acc
            torch.save(val_acc, "best")
""",
        (("val_acc < self", "val_acc > self"),),
    ),
    Case(
        "patience never reset",
        """
waited, best = 0, 1e9
for val_loss in losses:
    if val_loss < best:
        best = val_loss
    else:
        waited += 1  #!
        if waited >= 5:
            break
torch.save(best, "best")
""",
        (("        best = val_loss\n", "        best, waited = val_loss, 0\n"),),
    ),
)
