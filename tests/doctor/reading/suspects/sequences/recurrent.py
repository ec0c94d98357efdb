"""Suspects about recurrent layers."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.{0}
        self.cell = nn.GRUCell(4, 8)
        self.head = nn.Linear(16, 2)
    def forward(self, x, lengths, h=None):
        {1}
"""


def _net(layer: str, *lines: str, after: str = "") -> str:
    """Return a module with a recurrent layer and a forward pass."""
    return _NET.format(layer, "\n        ".join(lines)) + after


_BOTH = "GRU(4, 8, batch_first=True, bidirectional=True)"
_FIRST = "GRU(4, 8, batch_first=True)"
_PADS = "def collate(rows):\n    return nn.utils.rnn.pad_sequence(rows, batch_first=True)\n"
_LOOP = "for t in range(x.size(1)):"
_CLEAN = "return self.head(torch.stack(outputs, dim=1))"

CASES = (
    Case(
        "final states joined by a view",
        _net(_BOTH, "_, h = self.rnn(x)", "return self.head(h.view(-1, 16))  #!"),
        (("h.view(-1, 16)", "torch.cat([h[-2], h[-1]], dim=1)"),),
    ),
    Case(
        "one of several final states",
        _net("LSTM(4, 8, num_layers=2)", "_, (h, c) = self.rnn(x)", "return self.head(h[0])  #!"),
        (("h[0]", "h[-1]"),),
    ),
    Case(
        "last step of both directions",
        _net(_BOTH, "out, _ = self.rnn(x)", "return self.head(out[:, -1])  #!"),
        (("out[:, -1]", "out.mean(1)"),),
    ),
    Case(
        "recurrent layer along the batch",
        _net("LSTM(4, 8)  #!", "out, _ = self.rnn(x)", "return self.head(out).mean(dim=1)"),
        (("LSTM(4, 8)", "LSTM(4, 8, batch_first=True)"),),
    ),
    Case(
        "batch-first outputs read by example",
        _net(_FIRST, "out, _ = self.rnn(x)", "return self.head(out[-1])  #!"),
        (("out[-1]", "out[:, -1]"),),
    ),
    Case(
        "turned before a batch-first layer",
        _net(_FIRST, "x = x.permute(1, 0, 2)  #!", "out, _ = self.rnn(x)", "return self.head(out[:, -1])"),
        (("        x = x.permute(1, 0, 2)\n", ""),),
    ),
    Case(
        "stacked along the first axis",
        _net(
            _FIRST,
            "outputs = []",
            _LOOP,
            "    h = self.cell(x[:, t], h)",
            "    outputs.append(h)",
            "return self.head(torch.stack(outputs))  #!",
        ),
        (("stack(outputs)", "stack(outputs, dim=1)"),),
    ),
    Case(
        "last step may be padding",
        _net(
            _FIRST,
            "out, _ = self.rnn(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True))",
            "out, sizes = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)",
            "return self.head(out[:, -1])  #!",
        ),
        (("out[:, -1]", "out[torch.arange(len(x)), sizes - 1]"),),
    ),
    Case(
        "last step may be padding",
        _net(_FIRST, "out, _ = self.rnn(x)", "return self.head(out[:, -1])  #!", after=_PADS),
        (("out[:, -1]", "out[torch.arange(len(x)), lengths - 1]"),),
    ),
    Case(
        "packing with the time first",
        _net(
            _FIRST,
            "packed = nn.utils.rnn.pack_padded_sequence(x, lengths)  #!",
            "_, h = self.rnn(packed)",
            "return self.head(h[-1])",
        ),
        (("(x, lengths)", "(x, lengths, batch_first=True)"),),
    ),
    Case(
        "padded with the time first",
        _net(_FIRST, "_, h = self.rnn(x)", "return self.head(h[-1])")
        + "def collate(rows):\n    return nn.utils.rnn.pad_sequence(rows)  #!\n",
        (("pad_sequence(rows)", "pad_sequence(rows, batch_first=True)"),),
    ),
    Case(
        "sorted by length without the rest",
        _net(
            _FIRST,
            "lengths, order = lengths.sort(descending=True)  #!",
            "packed = nn.utils.rnn.pack_padded_sequence(x[order], lengths, batch_first=True)",
            "_, h = self.rnn(packed)",
            "return self.head(h[-1])",
        ),
        (("self.head(h[-1])", "self.head(h[-1])[order.argsort()]"),),
    ),
    Case(
        "lengths of padded rows",
        """
def collate(rows):
    padded = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in padded])  #!
    return padded, lengths
""",
        (("for row in padded", "for row in rows"),),
    ),
    Case(
        "sequence of a single step",
        _net(_FIRST, "x = x.unsqueeze(1)  #!", "out, _ = self.rnn(x)", "return self.head(out[:, -1])"),
        (("unsqueeze(1)", "unsqueeze(-1)"),),
    ),
    Case(
        "each step from the same state",
        _net(
            _FIRST,
            "outputs = []",
            _LOOP,
            "    new = self.cell(x[:, t], h)  #!",
            "    outputs.append(new)",
            _CLEAN,
        ),
        (("    outputs.append(new)", "    h = new\n            outputs.append(new)"),),
    ),
    Case(
        "state thrown away in a loop",
        _net(
            _FIRST,
            "outputs = []",
            _LOOP,
            "    out, _ = self.rnn(x[:, t : t + 1])  #!",
            "    outputs.append(out[:, 0])",
            _CLEAN,
        ),
        (("out, _ = self.rnn(x[:, t : t + 1])", "out, h = self.rnn(x[:, t : t + 1], h)"),),
    ),
    Case(
        "state set back at each step",
        _net(
            _FIRST,
            "outputs = []",
            _LOOP,
            "    h = torch.zeros(len(x), 8)  #!",
            "    h = self.cell(x[:, t], h)",
            "    outputs.append(h)",
            _CLEAN,
        ),
        (("            h = torch.zeros(len(x), 8)\n", ""),),
    ),
    Case(
        "state detached at each step",
        _net(
            _FIRST,
            "outputs = []",
            _LOOP,
            "    h = self.cell(x[:, t], h)",
            "    outputs.append(h)",
            "    h = h.detach()  #!",
            _CLEAN,
        ),
        (("            h = h.detach()\n", ""),),
    ),
    Case(
        "state of another batch",
        _net(
            _FIRST,
            "out, state = self.rnn(x, self.state)  #!",
            "self.state = state.detach()",
            "return self.head(out[:, -1])",
        ),
        (("state = self.rnn(x, self.state)", "state = self.rnn(x)"),),
    ),
    Case(
        "state of another batch",
        """
model = nn.GRU(4, 8, batch_first=True)
h = torch.zeros(1, 16, 8)
for rows in torch.randperm(160).split(16):
    out, h = model(x[rows], h)  #!
    h = h.detach()
    loss = out.mean()
    loss.backward()
""",
        (("out, h = model(x[rows], h)", "out, h = model(x[rows])"),),
    ),
    Case(
        "h and c exchanged",
        _net("LSTM(4, 8, batch_first=True)", "_, (c, h) = self.rnn(x)  #!", "return self.head(h[-1])"),
        (("(c, h)", "(h, c)"),),
    ),
    Case(
        "dropout of a single layer",
        _net("GRU(4, 8, dropout=0.3, batch_first=True)  #!", "_, h = self.rnn(x)", "return self.head(h[-1])"),
        (("dropout=0.3, ", ""),),
    ),
    Case(
        "both directions predict what follows",
        _net(_BOTH + "  #!", "out, _ = self.rnn(x)", "return self.head(out)")
        + "loss = F.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())\n",
        ((", bidirectional=True", ""),),
    ),
    Case(
        "gate with the other activation",
        """
def step(x, c, h):
    i = torch.sigmoid(a(x) + b(h))
    f = torch.sigmoid(d(x) + e(h))
    g = torch.sigmoid(p(x) + q(h))  #!
    return f * c + i * g
""",
        (("g = torch.sigmoid", "g = torch.tanh"),),
    ),
    Case(
        "decoder without the state of its encoder",
        """
class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(4, 8, batch_first=True)
        self.decoder = nn.GRU(4, 8, batch_first=True)
    def forward(self, source, target):
        _, state = self.encoder(source)
        out, _ = self.decoder(target)  #!
        return out
""",
        (("self.decoder(target)", "self.decoder(target, state)"),),
    ),
    Case(
        "state that no layer reads",
        """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 8, batch_first=True)
    def forward(self, x, hidden):
        out, hidden = self.rnn(x)  #!
        return out, hidden
""",
        (("self.rnn(x)", "self.rnn(x, hidden)"),),
    ),
    Case(
        "sorted by length without the rest",
        _net(
            _FIRST,
            "lengths, order = lengths.sort(descending=True)",
            "packed = nn.utils.rnn.pack_padded_sequence(x[order], lengths, batch_first=True)",
            "_, h = self.rnn(packed)",
            "return self.head(h[-1][order])  #!",
        ),
        (("[order])", "[order.argsort()])"),),
    ),
    Case(
        "batch-first outputs read by example",
        _net(_FIRST, "out, _ = self.rnn(x)", "return self.head(out.mean(dim=0))  #!"),
        (("dim=0", "dim=1"),),
    ),
    Case(
        "state thrown away in a loop",
        """
state = None
for chunk in chunks:
    out, _ = model(chunk, state)  #!
""",
        (("out, _ =", "out, state ="),),
    ),
)
