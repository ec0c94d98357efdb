"""Suspects about steps and cells written by hand."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_CELL = """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 8)
    def forward(self, x, c=None):
        h = torch.zeros(len(x), 8)
        for t in range(x.size(1)):
            {0}
        return {1}
"""
_STEP = "h = torch.tanh(self.a(x[:, t]) + self.b(h))"
_DECODER = """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(9, 8), nn.GRUCell(8, 8), nn.Linear(8, 9)
    def forward(self, state, target):
        token, outputs = torch.zeros(len(state)).long(), []
        for t in range(target.size(1)):
            {0}
            outputs.append(self.head(state))
        return torch.stack(outputs, 1)
"""
_LSTM = """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 2)
    def forward(self, x, h, c):
        {0}
        {1}
"""
_GATES = """
def step(x, h, c):
    i, f, g, o = layer(torch.cat([x, h], 1)).chunk(4, 1)
    {0}
    return torch.sigmoid(o) * torch.tanh(c), c
"""

CASES = (
    Case(
        "state of a hand-made cell set back",
        _CELL.format(f"h = torch.zeros(len(x), 8)  #!\n            {_STEP}", "h"),
        (("            h = torch.zeros(len(x), 8)\n    ", "    "),),
    ),
    Case(
        "state of a hand-made cell never updated",
        _CELL.format(_STEP.replace("h = ", "h_new = ", 1) + "  #!", "h_new"),
        (("h_new", "h"),),
    ),
    Case(
        "gradient cut between steps",
        _CELL.format(_STEP.replace("self.b(h)", "self.b(h.detach())") + "  #!", "h"),
        (("h.detach()", "h"),),
    ),
    Case(
        "state of nothing in a loop",
        """
model = nn.GRU(4, 8)
for _ in range(20):
    scores, state = model(token, None)  #!
    token = scores.argmax(-1)
    tokens.append(token)
""",
        (("model(token, None)", "model(token, state)"),),
    ),
    Case(
        "each step reads the same input",
        _DECODER.format("state = self.cell(self.embed(token), state)  #!"),
        (
            (
                "state = self.cell(self.embed(token), state)",
                "state = self.cell(self.embed(token), state)\n            token = self.head(state).argmax(1)",
            ),
        ),
    ),
    Case(
        "decoder reads what it should say",
        _DECODER.format("state = self.cell(self.embed(target[:, t]), state)  #!")
        + "loss = F.cross_entropy(scores.flatten(0, 1), target.flatten())\n",
        (("self.embed(target[:, t])", "self.embed(target[:, t - 1])"),),
    ),
    Case(
        "cell state read as the result",
        _LSTM.format("_, (h, c) = self.lstm(x)", "return self.head(c[-1])  #!"),
        (("c[-1]", "h[-1]"),),
    ),
    Case(
        "one state for both of an LSTM",
        _LSTM.format("_, (h, c) = self.lstm(x, (h, h))  #!", "return self.head(h[-1])"),
        (("(h, h)", "(h, c)"),),
    ),
    Case(
        "equation of a cell",
        _GATES.format("c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.sigmoid(g)  #!"),
        (("torch.sigmoid(g)", "torch.tanh(g)"),),
    ),
    Case(
        "equation of a cell",
        _GATES.format("c = torch.sigmoid(i) * c + torch.sigmoid(f) * torch.tanh(g)  #!"),
        (("sigmoid(i)", "sigmoid(p)"), ("sigmoid(f)", "sigmoid(i)"), ("sigmoid(p)", "sigmoid(f)")),
    ),
    Case(
        "equation of a cell",
        """
def step(x, h):
    z, r = torch.sigmoid(a(x) + b(h)), torch.sigmoid(p(x) + q(h))
    n = torch.tanh(d(x) + r * e(h))
    return z * h + z * n  #!
""",
        (("z * n", "(1 - z) * n"),),
    ),
    Case(
        "each step reads the same input",
        """
def forecast(model, window, steps):
    values = []
    for _ in range(steps):
        value = model(window)  #!
        values.append(value)
    return values
""",
        (("values.append(value)", "values.append(value)\n        window = torch.cat([window[:, 1:], value], dim=1)"),),
    ),
)
