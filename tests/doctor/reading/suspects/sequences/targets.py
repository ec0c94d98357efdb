"""Suspects about targets of sequences and windows of series."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 8), nn.Linear(8, 9)
    def forward(self, x, y=None):
        return self.head(self.embed(x))
model = Model()
"""

CASES = (
    Case(
        "future hidden where nothing is predicted ahead",
        """
class Denoiser(nn.Module):
    def forward(self, x):
        hidden = nn.Transformer.generate_square_subsequent_mask(x.size(1))  #!
        return self.out(self.encoder(x, mask=hidden))
for noisy, clean in batches:
    loss = F.mse_loss(model(noisy), clean)
    loss.backward()
""",
        (("model(noisy), clean)", "model(noisy[:, :-1]), clean[:, 1:])"),),
    ),
    Case(
        "future hidden where nothing is predicted ahead",
        """
class Tagger(nn.Module):
    def forward(self, x):
        q, k, v = self.attention(x).chunk(3, -1)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))  #!
for words, tags in batches:
    loss = F.cross_entropy(model(words).flatten(0, 1), tags.flatten())
    loss.backward()
""",
        (("is_causal=True", "is_causal=False"),),
    ),
    Case(
        "shifted the wrong way",
        _MODEL
        + """
for ids in batches:
    logits = model(ids)
    loss = F.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, :-1].flatten())  #!
""",
        (("logits[:, 1:]", "logits[:, :-1]"), ("ids[:, :-1]", "ids[:, 1:]")),
    ),
    Case(
        "shifted twice",
        _MODEL
        + """
def make_pair(ids):
    return ids[:-1], ids[1:]
for x, y in batches:
    logits = model(x)[:, :-1]
    wanted = y[:, 1:]  #!
    loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
""",
        (("model(x)[:, :-1]", "model(x)"), ("y[:, 1:]", "y")),
    ),
    Case(
        "decoder gets its own targets",
        _MODEL
        + """
for source, target in batches:
    loss = F.cross_entropy(model(source, target).flatten(0, 1), target.flatten())  #!
""",
        (("model(source, target)", "model(source, target[:, :-1])"), ("target.flatten()", "target[:, 1:].flatten()")),
    ),
    Case(
        "no target mask",
        """
decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, batch_first=True), 2)
out = decoder(target[:, :-1], memory)  #!
loss = F.cross_entropy(out.flatten(0, 1), target[:, 1:].flatten())
""",
        (("memory)", "memory, tgt_mask=mask)"),),
    ),
    Case(
        "mask of another axis",
        """
layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
def run(x):
    mask = nn.Transformer.generate_square_subsequent_mask(x.size(0))  #!
    return layer(x, mask)
""",
        (("x.size(0)", "x.size(1)"),),
    ),
    Case(
        "view of scores into classes and places",
        "loss = F.cross_entropy(logits.view(len(x), 9, -1), y)  #!\n",
        (("logits.view(len(x), 9, -1)", "logits.transpose(1, 2)"),),
    ),
    Case(
        "mean over masked places",
        "loss = (losses * mask).mean()  #!\n",
        (("(losses * mask).mean()", "(losses * mask).sum() / mask.sum()"),),
    ),
    Case(
        "loss that knows no padding",
        """
PAD = 0
rows = [row + [PAD] * (20 - len(row)) for row in rows]


@torch.no_grad()
def share(logits, y):
    return (logits.argmax(-1) == y)[y != PAD].float().mean()


loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())  #!
""",
        (("y.flatten()", "y.flatten(), ignore_index=PAD"),),
    ),
    Case(
        "first step of the outputs never filled",
        """
def decode(y, steps):
    outputs = torch.zeros(steps, len(y), 9)
    for t in range(1, steps):
        outputs[t] = step(y[t - 1])
    return outputs
outputs = decode(y, 7)
loss = F.cross_entropy(outputs.flatten(0, 1), y.flatten())  #!
""",
        (("outputs.flatten(0, 1), y.flatten()", "outputs[1:].flatten(0, 1), y[1:].flatten()"),),
    ),
    Case(
        "perplexity to another base",
        "loss = F.cross_entropy(x, y)\nprint(2 ** loss.item())  #!\n",
        (("2 ** loss.item()", "loss.exp()"),),
    ),
    Case(
        "labels copied behind the masking",
        """
def corrupt(ids, chosen):
    ids[chosen] = MASK
    labels = ids.clone()  #!
    return ids, labels
""",
        (("    ids[chosen] = MASK\n    labels = ids.clone()", "    labels = ids.clone()\n    ids[chosen] = MASK"),),
    ),
    Case(
        "target in another scale than its window",
        """
class Rows:
    def __getitem__(self, i):
        seen = self.prices[i : i + 30]
        level = seen.mean()
        return torch.tensor((seen - level) / (seen.std() + 1e-6)), self.prices[i + 30]  #!
model = nn.Linear(30, 1)
for x, y in batches:
    guess = model(x).squeeze(1)
    loss = F.mse_loss(guess, y)
""",
        (("self.prices[i + 30]", "self.prices[i + 30] - level"),),
    ),
    Case(
        "target in another scale than its window",
        """
def windows(rows, model):
    pairs = []
    for i in range(len(rows) - 31):
        w = rows[i : i + 30]
        pairs.append((w / w[0] - 1, rows[i + 30]))  #!
    for x, y in pairs:
        loss = F.mse_loss(Model()(x), y)
class Model(nn.Module):
    pass
""",
        (("F.mse_loss(Model()(x), y)", "F.mse_loss((Model()(x) + 1) * first, y)"),),
    ),
    Case(
        "target within its window",
        """
def windows(series, n):
    xs, ys = [], []
    for i in range(n, len(series)):
        xs.append(series[i - n + 1 : i + 1])
        ys.append(series[i])  #!
    return xs, ys
""",
        (("series[i - n + 1 : i + 1]", "series[i - n : i]"),),
    ),
    Case(
        "target equal to its window",
        """
def batch(data, n):
    i = np.random.randint(len(data) - n)
    x = data[i : i + n]
    y = data[i : i + n]  #!
    return x, y
""",
        (("y = data[i : i + n]", "y = data[i + 1 : i + n + 1]"),),
    ),
    Case(
        "overlapping windows split at random",
        """
from sklearn.model_selection import train_test_split
windows = [series[i : i + 20] for i in range(len(series) - 20)]
train, test = train_test_split(windows, test_size=0.2)  #!
""",
        (("test_size=0.2", "test_size=0.2, shuffle=False"),),
    ),
    Case(
        "shifted against the time",
        'frame["target"] = frame["price"].shift(1)  #!\n',
        (("shift(1)", "shift(-1)"),),
    ),
    Case(
        "causal convolution that sees ahead",
        """
class CausalConv(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.pad, self.conv = 2 * n, nn.Conv1d(4, 4, 3, dilation=n)
    def forward(self, x):
        return self.conv(F.pad(x, (0, self.pad)))  #!
""",
        (("(0, self.pad)", "(self.pad, 0)"),),
    ),
    Case(
        "loss of the padding alone",
        "loss = (losses * pad_mask).sum() / pad_mask.sum()  #!\n",
        (("losses * pad_mask", "losses * (1 - pad_mask)"),),
    ),
    Case(
        "mean that counts the padding",
        "def pool(e, x, lengths):\n    return e.sum(1) / x.size(1)  #!\n",
        (("x.size(1)", "lengths[:, None]"),),
    ),
    Case(
        "example that is its own target",
        """
class Lines:
    def __getitem__(self, i):
        chunk = self.text[i : i + 20]
        return chunk, chunk  #!
loss = F.cross_entropy(scores, y)
""",
        (("return chunk, chunk", "return chunk[:-1], chunk[1:]"),),
    ),
    Case(
        "targets two steps ahead",
        """
def batch(data, n):
    i = np.random.randint(len(data) - n)
    x = data[i : i + n]
    y = data[i + 2 : i + n + 2]  #!
    return x, y
""",
        (("data[i + 2 : i + n + 2]", "data[i + 1 : i + n + 1]"),),
    ),
    Case(
        "loss over places that were not masked",
        """
ids[chosen] = MASK
loss = F.cross_entropy(scores.flatten(0, 1), words.flatten())  #!
""",
        (("words.flatten()", "words.flatten(), ignore_index=-100"),),
    ),
    Case(
        "rows of time against rows of examples",
        """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(4, 8), nn.Linear(8, 9)
    def forward(self, x):
        out, _ = self.rnn(x.transpose(0, 1))
        return self.head(out)
scores = Reader()(x)
loss = F.cross_entropy(scores.view(-1, 9), y.view(-1))  #!
""",
        (("y.view(-1)", "y.t().reshape(-1)"),),
    ),
    Case(
        "causal convolution that sees ahead",
        """
class Chomp(nn.Module):
    def forward(self, x):
        return x[:, :, self.n :]  #!
""",
        (("self.n :]", ": -self.n]"),),
    ),
    Case(
        "inputs as their own labels",
        """
class Speaker(nn.Module):
    def forward(self, ids, labels=None):
        logits = self.head(self.body(ids))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())
model = Speaker()
loss = model(batch, labels=batch)  #!
""",
        (("model(batch, labels=batch)", "model(batch[:, :-1], labels=batch[:, 1:])"),),
    ),
)
