"""Values that nothing uses, loops that end too early, and signs that stand for another one."""

from __future__ import annotations

from tests.doctor.reading.case import LOOP, Case

_BLOCK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(4, 4), nn.Dropout(0.1)
    def forward(self, x):
"""
_TRAINED = """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

CASES = (
    Case(
        "constant cut in each pass",
        """
class Weighted(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)
    def forward(self, logits, y):
        self.weights = self.weights[y]  #!
        return (self.weights * F.cross_entropy(logits, y, reduction="none")).mean()
""",
        (("        self.weights = self.weights[y]", "        picked = self.weights[y]"),),
    ),
    Case(
        "constant cut in each pass",
        """
class Places(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.table = torch.randn(1, length, width)
    def forward(self, x):
        steps = x.size(1)
        self.table = self.table[:, :steps].to(x.device)  #!
        return x + self.table
""",
        (("self.table = self.table[:, :steps].to(x.device)", "self.table = self.table.to(x.device)"),),
    ),
    Case(
        "constant cut in each pass",
        """
class Focal:
    def __init__(self, alpha):
        self.alpha = torch.tensor(alpha)
    def __call__(self, logits, y):
        self.alpha = self.alpha.to(logits.device)
        self.alpha = torch.index_select(self.alpha, 0, y)  #!
        return (self.alpha * F.cross_entropy(logits, y, reduction="none")).mean()
""",
        (("        self.alpha = torch.index_select(self.alpha, 0, y)", "        picked = self.alpha[y]"),),
    ),
    Case(
        "weights kept by reference",
        """
def run(model, scores):
    top, kept = 0.0, None
    for score in scores:
        if score > top:
            top, kept = score, model.state_dict()  #!
    model.load_state_dict(kept)
""",
        (("score, model.state_dict()", "score, copy.deepcopy(model.state_dict())"),),
    ),
    Case(
        "result thrown away",
        """
def update(v, state, target):
    target.detach()  #!
    return F.mse_loss(v(state), target)
""",
        (("    target.detach()", "    target = target.detach()"),),
    ),
    Case(
        "weights kept by reference",
        """
best, kept = 1e9, None
for epoch in range(9):
    score = fit(model)
    if score < best:
        best, kept = score, None
        kept = dict(model.state_dict())  #!
model.load_state_dict(kept)
""",
        (("dict(model.state_dict())", "{name: one.clone() for name, one in model.state_dict().items()}"),),
    ),
    Case(
        "moving average never updated",
        """
from torch.optim.swa_utils import AveragedModel
model = nn.Linear(4, 3)
average = AveragedModel(model)
def accuracy(x, y):
    return (average(x).argmax(1) == y).float().mean()  #!
""",
        (("def accuracy", "average.update_parameters(model)\ndef accuracy"),),
    ),
    Case(
        "result never used",
        _BLOCK
        + """
        out = self.layer(x)
        out = out + x
        out = self.drop(x)  #!
        return out
""",
        (("self.drop(x)", "self.drop(out)"),),
    ),
    Case(
        "result never used",
        _BLOCK
        + """
        residual = x  #!
        out = self.layer(x)
        return self.drop(out)
""",
        (("self.drop(out)", "self.drop(out) + residual"),),
    ),
    Case(
        "result never used",
        _BLOCK
        + """
        _ = self.drop(x)
        mixed = self.layer(x)  #!
        return self.drop(x)
""",
        (("return self.drop(x)", "return self.drop(mixed)"),),
    ),
    Case(
        "mask never used",
        """
def learn():
    state, reward, following, done = memory.sample(32)  #!
    target = reward + 0.9 * value(following).amax(1).detach()
    loss = F.mse_loss(value(state).amax(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("0.9 * value", "(1 - done) * 0.9 * value"),),
    ),
    Case(
        "loss overwritten",
        _TRAINED
        + """
for x, targets in batches:
    loss = 0.0
    for head, target in zip(heads, targets):
        loss = F.cross_entropy(head(model(x)), target)  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("loss = F.cross", "loss = loss + F.cross"),),
    ),
    Case(
        "loop ends in its first round",
        _TRAINED
        + """
def epoch(batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()  #!
""",
        (("        return", "    return"),),
    ),
    Case(
        "same batch in each step",
        _TRAINED
        + """
from torch.utils.data import DataLoader
loader = DataLoader(pairs, batch_size=32)
for step in range(100):
    x, y = next(iter(loader))  #!
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
""",
        (("batch_size=32", "batch_size=32, shuffle=True"),),
    ),
    Case(
        "sign instead of a sum",
        """
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss =+ 0.1 * penalty(model)  #!
    loss.backward()
    optimizer.step()
""",
        (("=+", "+="),),
    ),
    Case(
        "residual connection missing",
        """
class ResBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    def forward(self, x):
        return self.layers(x)  #!
""",
        (("return self.layers(x)", "return x + self.layers(x)"),),
    ),
    Case(
        "moving average never updated",
        """
class Average:
    def __init__(self, model):
        self.model, self.shadow = model, [one.detach().clone() for one in model.parameters()]
    def update(self):
        for mine, one in zip(self.shadow, self.model.parameters()):
            mine.mul_(0.9).add_(0.1 * one.detach())
    def copy_to(self):
        for mine, one in zip(self.shadow, self.model.parameters()):
            one.data.copy_(mine)
"""
        + _TRAINED
        + """
average = Average(model)
for epoch in range(9):
    train(model)
average.copy_to()  #!
""",
        (("    train(model)\n", "    train(model)\n    average.update()\n"),),
    ),
    Case(
        "target moves with the model",
        _TRAINED
        + """
target_net = model  #!
target_net.eval()
""",
        (("= model\n", "= copy.deepcopy(model)\n"),),
    ),
    Case(
        "added to itself",
        _BLOCK
        + """
        x = self.layer(x)
        x = x + x  #!
        return self.drop(x)
""",
        (("x = self.layer(x)\n        x = x + x", "y = self.layer(x)\n        x = x + y"),),
    ),
    Case(
        "weights kept by reference",
        _TRAINED
        + """
for epoch in range(9):
    train(model)
    if score(model) > highest:
        best = model.state_dict()  #!
model.load_state_dict(best)
""",
        (("model.state_dict()", "copy.deepcopy(model.state_dict())"),),
    ),
    Case(
        "weights kept by reference",
        """
class Stopper:
    def look(self, score, model):
        if score < self.least:
            self.weights = model.state_dict()  #!
def fit(model, stopper):
    stopper.look(train(model), model)
    model.load_state_dict(stopper.weights)
""",
        (("model.state_dict()", "copy.deepcopy(model.state_dict())"),),
    ),
    Case(
        "weights kept by reference",
        _TRAINED
        + """
for epoch in range(9):
    train(model)
    if score(model) > highest:
        best_model = model  #!
""",
        (("= model\n", "= copy.deepcopy(model)\n"),),
    ),
    Case(
        "argmax over all axes",
        _TRAINED + LOOP + "    right += (torch.argmax(model(x)) == y).sum().item()  #!\n",
        (("argmax(model(x))", "argmax(model(x), dim=1)"),),
    ),
    Case(
        "mask never used",
        """
for step in range(9):
    state, action, reward, next_state = memory.sample(32)  #!
    target = reward + gamma * old(state).max(1)[0].detach()
    loss = F.mse_loss(model(state).gather(1, action).squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("old(state)", "old(next_state)"),),
    ),
    Case(
        "validation trains as well",
        _TRAINED
        + """
for epoch in range(9):
    for phase in ["train", "val"]:
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()  #!
""",
        (("            optimizer.step()", "            if phase == 'train':\n                optimizer.step()"),),
    ),
)
