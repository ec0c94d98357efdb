"""Suspects about training loops: optimizers and schedules."""

from __future__ import annotations

from tests.doctor.reading.case import LOOP, Case

_ADAM = "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)"
_EPOCHS = """
for epoch in range(20):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
CASES = (
    Case(
        "model changed behind its optimizer",
        f"""
{_ADAM}
model.fc = nn.Linear(8, 2)  #!
"""
        + LOOP,
        ((f"{_ADAM}\n", ""), ("model.fc = nn.Linear(8, 2)", f"model.fc = nn.Linear(8, 2)\n{_ADAM}")),
    ),
    Case(
        "weights released behind the optimizer",
        """
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))  #!
train(model, optimizer)
for p in model.parameters():
    p.requires_grad = True
"""
        + LOOP,
        (("filter(lambda p: p.requires_grad, model.parameters())", "model.parameters()"),),
    ),
    Case(
        "optimizer of a part",
        "optimizer = torch.optim.Adam(model.encoder.parameters(), lr=1e-3)  #!\n" + LOOP,
        (("model.encoder.", "model."),),
    ),
    Case(
        "groups that leave weights out",
        """
decayed = [p for name, p in model.named_parameters() if "bias" not in name]  #!
optimizer = torch.optim.Adam([{"params": decayed, "weight_decay": 1e-4}])
""",
        ((' if "bias" not in name', ""),),
    ),
    Case(
        "two optimizers of the same weights",
        """
first = torch.optim.Adam(net.parameters(), lr=1e-3)
second = torch.optim.Adam(net.parameters(), lr=1e-3)  #!
""",
        (("second = torch.optim.Adam(net.", "second = torch.optim.Adam(critic."),),
    ),
    Case(
        "optimizer made where it is called again",
        """
def train_epoch(model, batches):
    optimizer = torch.optim.Adam(model.parameters())  #!
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

for epoch in range(10):
    train_epoch(model, batches)
""",
        (("for epoch in range(10):\n    train_epoch(model, batches)", "train_epoch(model, batches)"),),
    ),
    Case(
        "rate of an optimizer",
        "optimizer = torch.optim.Adam(model.parameters(), lr=0.1)  #!\n",
        (("lr=0.1", "lr=0.001"),),
    ),
    Case(
        "weight decay out of the usual",
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)  #!\n",
        (("weight_decay=0.1", "weight_decay=1e-4"),),
    ),
    Case(
        "moments out of the usual",
        "optimizer = torch.optim.Adam(model.parameters(), betas=(0.999, 0.9))  #!\n",
        (("(0.999, 0.9)", "(0.9, 0.999)"),),
    ),
    Case(
        "epsilon of an optimizer",
        "optimizer = torch.optim.Adam(model.parameters(), eps=0.1)  #!\n",
        (("eps=0.1", "eps=1e-8"),),
    ),
    Case(
        "steps uphill",
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1, maximize=True)  #!\n",
        ((", maximize=True", ""),),
    ),
    Case(
        "arguments by position",
        "optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, 5e-4)  #!\n",
        (("0.9, 5e-4", "0.9, weight_decay=5e-4"),),
    ),
    Case(
        "key that no optimizer reads",
        'groups = [{"params": head.parameters(), "learning_rate": 0.1}]  #!\n',
        (("learning_rate", "lr"),),
    ),
    Case(
        "half-precision weights",
        """
model = Net().half()
optimizer = torch.optim.Adam(model.parameters())  #!
""",
        ((".half()", ""),),
    ),
    Case(
        "rate changed where no optimizer reads it",
        """
lr = 0.1
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for epoch in range(10):
    lr = lr * 0.9  #!
    optimizer.step()
""",
        (("lr = lr * 0.9", 'optimizer.param_groups[0]["lr"] *= 0.9'),),
    ),
    Case(
        "schedule in the loop over batches",
        "schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)\n"
        + _EPOCHS.rstrip()
        + "\n        schedule.step()  #!\n",
        (("        schedule.step()", "    schedule.step()"),),
    ),
    Case(
        "schedule in the loop over epochs",
        "schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2000)\n"
        + _EPOCHS.rstrip()
        + "\n    schedule.step()  #!\n",
        (("\n    schedule.step()", "\n        schedule.step()"),),
    ),
    Case(
        "factor of a schedule",
        "schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.1)  #!\n",
        (("0.1", "0.95"),),
    ),
    Case(
        "length of a cosine",
        "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)  #!\n"
        + _EPOCHS.rstrip()
        + "\n    schedule.step()\n",
        (("T_max=5", "T_max=20"),),
    ),
    Case(
        "multiplier that is a rate",
        """
optimizer = torch.optim.SGD(model.parameters(), lr=config.lr)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: max(config.lr * 0.9**t, 1e-6))  #!
""",
        (("config.lr * 0.9", "0.9"),),
    ),
    Case(
        "multiplier that is a rate",
        """
optimizer = torch.optim.SGD(model.parameters(), lr=config.base)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: config.lr * 0.9**t)  #!
""",
        (("lr=config.base", "lr=1.0"),),
    ),
    Case(
        "multiplier that is a rate",
        """
def rate(step):
    return 0.001 * BASE_LR  #!

schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
""",
        (("0.001 * BASE_LR", "min(1.0, (step + 1) / 100)"),),
    ),
    Case(
        "warm-up by a whole number",
        """
def scale(step):
    return min(1.0, step // warmup)  #!
""",
        (("//", "/"),),
    ),
    Case(
        "power before a division",
        "rate = base * 0.1 ** epoch // 30  #!\n",
        (("0.1 ** epoch // 30", "0.1 ** (epoch // 30)"),),
    ),
    Case(
        "decay upon decay",
        """
for epoch in range(10):
    lr = lr * 0.95 ** epoch  #!
""",
        (("lr * 0.95 ** epoch", "0.1 * 0.95 ** epoch"),),
    ),
    Case(
        "rate multiplied at each batch",
        _EPOCHS.rstrip() + '\n        optimizer.param_groups[0]["lr"] *= 0.9  #!\n',
        (("        optimizer.param_groups", "    optimizer.param_groups"),),
    ),
    Case(
        "argument of a schedule's step",
        "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)\n"
        + _EPOCHS.rstrip()
        + "\n    schedule.step(val_loss)  #!\n",
        (("step(val_loss)", "step()"),),
    ),
    Case(
        "optimizer that never steps",
        """
first = torch.optim.Adam(encoder.parameters())
second = torch.optim.Adam(decoder.parameters())  #!
first.zero_grad()
second.zero_grad()
first.step()
""",
        (("first.step()", "first.step()\nsecond.step()"),),
    ),
    Case(
        "rate of the first group only",
        """
groups = [{"params": body, "lr": 0.1}, {"params": head}]
optimizer.param_groups[0]["lr"] = rate  #!
""",
        ((', {"params": head}', ""),),
    ),
    Case(
        "schedule that counts examples",
        "schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 0, 5, len(train_set))  #!\n",
        (("train_set", "train_loader"),),
    ),
    Case(
        "two schedules of one optimizer",
        """
first = torch.optim.lr_scheduler.StepLR(optimizer, 10)
second = torch.optim.lr_scheduler.StepLR(optimizer, 10)  #!
""",
        (("second = torch.optim.lr_scheduler.StepLR(optimizer", "second = torch.optim.lr_scheduler.StepLR(other"),),
    ),
    Case(
        "cosine without pi",
        "rate = 0.5 * base * (1 + np.cos(epoch / epochs))  #!\n",
        (("epoch / epochs", "np.pi * epoch / epochs"),),
    ),
    Case(
        "written into a copy of the state",
        'optimizer.state_dict()["param_groups"][0]["lr"] = rate  #!\n',
        (("optimizer.state_dict()[", "optimizer.__dict__["),),
    ),
    Case(
        "rate that loaded state replaces",
        """
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
saved = optimizer.state_dict()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
optimizer.load_state_dict(saved)  #!
""",
        (("lr=0.02", "lr=0.001"),),
    ),
    Case(
        "schedule in the loop over epochs",
        "schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup))\n"
        + _EPOCHS.rstrip()
        + "\n    schedule.step()  #!\n",
        (("\n    schedule.step()", "\n        schedule.step()"),),
    ),
)
