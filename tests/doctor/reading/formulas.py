"""Attention, schedules and counters that are written nearly right."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_ATTENTION = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.scale = nn.Linear(8, 8), nn.Linear(8, 8), 8 ** -0.5
    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(1, 2)
"""
_STEPS = """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

CASES = (
    Case(
        "weight instead of pos_weight",
        """
y = (torch.rand(90, 4) > 0.9).float()
positives = y.mean(0)
factor = torch.as_tensor((1 - positives) / positives)
loss_of = nn.BCEWithLogitsLoss(weight=factor)  #!
""",
        (("(weight=", "(pos_weight="),),
    ),
    Case(
        "weight instead of pos_weight",
        """
def error(logits, y, n_neg, n_pos):
    return F.binary_cross_entropy_with_logits(logits, y, weight=n_neg / n_pos)  #!
""",
        (("weight=n_neg / n_pos", "weight=mask"),),
    ),
    Case(
        "class weights favour the frequent",
        """
from collections import Counter
def shares(labels):
    counted, found = Counter(labels), {}
    for kind in range(2):
        found[kind] = counted[kind] / len(labels)
    return found
weights = shares(labels)
criterion = nn.CrossEntropyLoss(weight=torch.tensor([weights[0], weights[1]]))  #!
""",
        (("counted[kind] / len(labels)", "len(labels) / counted[kind]"),),
    ),
    Case(
        "class weights favour the frequent",
        """
n_pos, n_neg = labels.sum(), (1 - labels).sum()
ratio = n_pos / n_neg  #!
criterion = nn.BCEWithLogitsLoss(pos_weight=ratio)
""",
        (("n_pos / n_neg", "n_neg / n_pos"),),
    ),
    Case(
        "loss term never used",
        _STEPS
        + """
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    edge_loss = F.mse_loss(model(edge), wanted)  #!
    loss.backward()
    optimizer.step()
""",
        (("    loss.backward", "    loss = loss + edge_loss\n    loss.backward"),),
    ),
    Case(
        "noise scaled by its variance",
        """
kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0)
roots = kept.sqrt()
added = 1.0 - kept  #!
def noisy(x, t, noise):
    return roots[t][:, None] * x + added[t][:, None] * noise
""",
        (("1.0 - kept", "(1.0 - kept).sqrt()"),),
    ),
    Case(
        "noise scaled by its variance",
        "noisy = kept.sqrt()[t, None] * x + (1 - kept[t, None]) * noise  #!\n",
        (("(1 - kept[t, None])", "(1 - kept[t, None]).sqrt()"),),
    ),
    Case(
        "sample without a gradient",
        """
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.deviation, self.decoder = nn.Linear(8, 2), nn.Linear(8, 2), nn.Linear(2, 8)
    def forward(self, x):
        hidden = torch.distributions.Normal(self.mean(x), F.softplus(self.deviation(x)))
        z = hidden.sample()  #!
        return self.decoder(z)
""",
        (("hidden.sample()", "hidden.rsample()"),),
    ),
    Case(
        "mask behind the softmax",
        _ATTENTION
        + """
        weights = torch.softmax(scores, -1)
        weights = weights.masked_fill(mask, float("-inf"))  #!
        return weights @ x
""",
        (("weights.masked_fill(mask, float(", "weights.masked_fill(mask, abs(0.0) * int("), ('"-inf"', '"1"')),
    ),
    Case(
        "scaled behind the softmax",
        _ATTENTION
        + """
        weights = torch.softmax(scores, -1) * self.scale  #!
        return weights @ x
""",
        (("torch.softmax(scores, -1) * self.scale", "torch.softmax(scores * self.scale, -1)"),),
    ),
    Case(
        "plateau in the wrong mode",
        _STEPS
        + """
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)  #!
for epoch in range(9):
    accuracy = train(model)
    plateau.step(accuracy)
""",
        (("patience=2", 'mode="max", patience=2'),),
    ),
    Case(
        "step in the wrong rounds",
        _STEPS
        + """
for at, (x, y) in enumerate(batches):
    (F.cross_entropy(model(x), y) / 4).backward()
    if at % 4:  #!
        optimizer.step()
        optimizer.zero_grad()
""",
        (("if at % 4:", "if at % 4 == 3:"),),
    ),
    Case(
        "class weights favour the frequent",
        """
counts = torch.bincount(labels).float()
weights = counts / counts.sum()  #!
criterion = nn.CrossEntropyLoss(weight=weights)
""",
        (("counts / counts.sum()", "counts.sum() / counts"),),
    ),
    Case(
        "class weights favour the frequent",
        """
counts = torch.bincount(labels, minlength=5)
weights = counts.float()  #!
criterion = nn.CrossEntropyLoss(weight=weights)
""",
        (("criterion", "weights.reciprocal_()\ncriterion"),),
    ),
    Case(
        "class weights favour the frequent",
        """
tagged = (tags_y == 1).sum(dim=0)  #!
criterion = nn.BCEWithLogitsLoss(pos_weight=tagged.to("cpu"))
""",
        (("(tags_y == 1).sum(dim=0)", "(tags_y == 0).sum(dim=0) / (tags_y == 1).sum(dim=0)"),),
    ),
)
