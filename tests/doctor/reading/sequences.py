"""Faults of masks, padding, axes and windows."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_ATTENTION = """
class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        {0}
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        {1}
"""
_LANGUAGE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.attention, self.head = nn.Embedding(9, 8), Attention(8), nn.Linear(8, 9)
    def forward(self, x):
        return self.head(self.attention(self.token(x)))
model = Model()
optimizer = torch.optim.Adam(model.parameters())
for text in batches:
    scores = model(text[:, :-1])
    loss = F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_PADDED = """
def collate(rows):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=0)
"""

CASES = (
    Case(
        "targets seen by the model",
        _ATTENTION.format(
            "self.past = torch.tril(torch.ones(d, d), diagonal=1)  #!",
            "scores = q @ k.transpose(-2, -1) / d**0.5\n"
            "        scores = scores.masked_fill(self.past[:t, :t] == 0, float('-inf'))\n"
            "        return torch.softmax(scores, dim=-1) @ v",
        ),
        ((", diagonal=1", ""),),
    ),
    Case(
        "targets seen by the model",
        _ATTENTION.format(
            "self.d = d",
            "return F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        )
        + _LANGUAGE.replace("model(text[:, :-1])", "model(text)").replace(
            "text[:, 1:].flatten())", "text.flatten())  #!"
        ),
        (
            ("scores = model(text)", "scores = model(text[:, :-1])"),
            ("text.flatten())", "text[:, 1:].flatten())"),
        ),
    ),
    Case(
        "mask inverted",
        _ATTENTION.format(
            "self.register_buffer('mask', torch.triu(torch.ones(d, d), diagonal=1).bool())",
            "keep = self.mask[:t, :t]\n        return F.scaled_dot_product_attention(q, k, v, attn_mask=keep)  #!",
        ),
        (("attn_mask=keep", "attn_mask=~keep"),),
    ),
    Case(
        "mask inverted",
        _ATTENTION.format(
            "self.past = torch.tril(torch.ones(d, d))",
            "scores = q @ k.transpose(-2, -1) / d**0.5\n"
            "        scores = scores.masked_fill(self.past[:t, :t] == 1, float('-inf'))  #!\n"
            "        return torch.softmax(scores, dim=-1) @ v",
        ),
        (("== 1", "== 0"),),
    ),
    Case(
        "mask inverted",
        """
PAD = 0
layer = nn.MultiheadAttention(8, 2, batch_first=True)
def attend(x, tokens):
    real = tokens != PAD
    return layer(x, x, x, key_padding_mask=real)[0]  #!
""",
        (("tokens != PAD", "tokens == PAD"),),
    ),
    Case(
        "targets seen by the model",
        _ATTENTION.format(
            "self.d = d",
            "scores = q @ k.transpose(-2, -1) / self.d**0.5\n        weights = F.softmax(scores, dim=-1)  #!\n"
            "        return weights @ v",
        )
        + _LANGUAGE,
        (("        weights", "        scores = scores + torch.full((t, t), -1e9).triu(1)\n        weights"),),
    ),
    Case(
        "softmax along the wrong axis",
        _ATTENTION.format(
            "self.d = d",
            "scores = q @ k.transpose(1, 2) / self.d**0.5\n        return F.softmax(scores, dim=1) @ v  #!",
        ),
        (("dim=1", "dim=2"),),
    ),
    Case(
        "attention across the batch",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.head = nn.Embedding(9, 8), nn.Linear(8, 2)
        one = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)  #!
        self.encoder = nn.TransformerEncoder(one, num_layers=2)
    def forward(self, x):
        hidden = self.encoder(self.token(x))
        return self.head(hidden.mean(dim=1))
""",
        (("dim_feedforward=16", "dim_feedforward=16, batch_first=True"),),
    ),
    Case(
        "padding counts in the loss",
        _PADDED
        + """
model = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, collate_fn=collate)
def loss_of(tokens, labels):
    scores = model(tokens)
    return F.cross_entropy(scores.transpose(1, 2), labels)  #!
""",
        (("labels)\n", "labels, ignore_index=0)\n"),),
    ),
    Case(
        "padding in the mean",
        _PADDED
        + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.mix, self.head = nn.Embedding(9, 8), nn.Linear(8, 8), nn.Linear(8, 2)
    def forward(self, x):
        hidden = self.mix(self.token(x)).tanh()
        return self.head(hidden.mean(dim=1))  #!
""",
        (("hidden.mean(dim=1)", "hidden.sum(dim=1)"),),
    ),
    Case(
        "target among the inputs",
        """
def windows(series, n):
    inputs, targets = [], []
    for i in range(len(series) - n):
        inputs.append(series[i : i + n])
        targets.append(series[i + n - 1])  #!
    return torch.stack(inputs), torch.stack(targets)
""",
        (("series[i + n - 1]", "series[i + n]"),),
    ),
    Case(
        "unstable formula",
        """
class Loss:
    def __call__(self, output, labels):
        return -(labels * torch.log(output)).sum(dim=1).mean()  #!
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
    def forward(self, x):
        return torch.softmax(self.layer(x), dim=1)
model, criterion = Model(), Loss()
for x, y in batches:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("torch.softmax", "F.log_softmax"), ("torch.log(output)", "output")),
    ),
)
