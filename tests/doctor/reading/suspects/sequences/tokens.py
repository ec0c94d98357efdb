"""Suspects about tokens: positions, decoding, vocabularies, CTC."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_READER = """
class Reader(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.embed, self.pos_embed = nn.Embedding(9, d), nn.Embedding(20, d)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, batch_first=True), 2)
    def forward(self, x):
        {0}
"""
_WAVES = """
def table(n, d):
    place = torch.arange(n).unsqueeze(1)
    rate = torch.exp(torch.arange(0, d, 2) * ({0}np.log(10000.0) / d)){1}
    pe = torch.zeros(n, d)
    pe[:, 0::2] = torch.sin(place * rate)
    pe[:, 1::2] = torch.{2}(place * rate){3}
    return pe
"""
CASES = (
    Case(
        "one row of the positions",
        _READER.format("return self.encoder(self.embed(x) + self.pe[:, x.size(1)])  #!"),
        (("self.pe[:, x.size(1)]", "self.pe[:, :x.size(1)]"),),
    ),
    Case(
        "positions along the batch",
        _READER.format("return self.encoder(self.embed(x) + self.pe[:x.size(0)])  #!"),
        (("x.size(0)", "x.size(1)"),),
    ),
    Case(
        "positions looked up by tokens",
        _READER.format("return self.encoder(self.embed(x) + self.pos_embed(x))  #!"),
        (("self.pos_embed(x)", "self.pos_embed(torch.arange(x.size(1)))"),),
    ),
    Case(
        "attention without positions",
        _READER.format("return self.encoder(self.embed(x))  #!").replace(", self.pos_embed", ", self.other"),
        (("self.embed(x))", "self.embed(x) + self.positions)"),),
    ),
    Case(
        "formula of the positions",
        _WAVES.format("-", "", "sin", "  #!"),
        (("pe[:, 1::2] = torch.sin", "pe[:, 1::2] = torch.cos"),),
    ),
    Case(
        "formula of the positions",
        _WAVES.format("", "  #!", "cos", ""),
        (("(np.log", "(-np.log"),),
    ),
    Case(
        "positions not added",
        _READER.format("return self.encoder(self.embed(x) * self.pe[:, :x.size(1)])  #!"),
        ((" * self.pe", " + self.pe"),),
    ),
    Case(
        "positions not added",
        """
class Positions(nn.Module):
    def forward(self, x):
        return x + self.table[:, : x.size(1)]
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.position = Positions()
    def forward(self, x):
        return x + self.position(x)  #!
""",
        (("return x + self.position(x)", "return self.position(x)"),),
    ),
    Case(
        "embeddings divided by a root",
        _READER.format("x = self.embed(x) / x.size(-1) ** 0.5  #!\n        return self.encoder(x)"),
        (("/ x.size(-1) ** 0.5", "* x.size(-1) ** 0.5"),),
    ),
    Case(
        "rotation of halves",
        """
def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((x2, -x1), dim=-1)  #!
""",
        (("(x2, -x1)", "(-x2, x1)"),),
    ),
    Case(
        "cache behind the new step",
        "k = torch.cat([k, past_k], dim=1)  #!\n",
        (("[k, past_k]", "[past_k, k]"),),
    ),
    Case(
        "teacher forcing turned round",
        "step = guess.argmax(1) if teacher_force else target[t]  #!\n",
        (("guess.argmax(1) if teacher_force else target[t]", "target[t] if teacher_force else guess.argmax(1)"),),
    ),
    Case(
        "teacher forcing in the evaluation",
        """
class Translator(nn.Module):
    def forward(self, source, target, teacher_forcing_ratio=0.5):
        return self.decode(source, target, teacher_forcing_ratio)
model = Translator()
with torch.no_grad():
    scores = model(source, target)  #!
""",
        (("model(source, target)", "model(source, target, 0)"),),
    ),
    Case(
        "first place of the scores",
        """
for _ in range(20):
    logits = model(ids)
    best = logits[:, 0].argmax(-1, keepdim=True)  #!
    ids = torch.cat([ids, best], dim=1)
""",
        (("logits[:, 0]", "logits[:, -1]"),),
    ),
    Case(
        "wrong side of the cut",
        "logits[logits > limit] = -float('inf')  #!\n",
        (("logits > limit", "logits < limit"),),
    ),
    Case(
        "padding that is the end token",
        "EOS = 2\nPAD = EOS  #!\n",
        (("PAD = EOS", "PAD = 0"),),
    ),
    Case(
        "ignored index of another token",
        "loss = F.cross_entropy(x, y, ignore_index=EOS)  #!\n",
        (("ignore_index=EOS", "ignore_index=PAD"),),
    ),
    Case(
        "padding index of another number",
        """
rows = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=0)
embed = nn.Embedding(9, 4, padding_idx=1)  #!
""",
        (("padding_idx=1", "padding_idx=0"),),
    ),
    Case(
        "end token only looked for",
        """
EOS = 1
rows = [encode(text) for text in texts]
while True:
    token = step(token)
    if token == EOS:  #!
        break
""",
        (("encode(text)", "encode(text) + [EOS]"),),
    ),
    Case(
        "numbers of a set",
        "index = {word: i for i, word in enumerate(set(words))}  #!\n",
        (("enumerate(set(words))", "enumerate(sorted(set(words)))"),),
    ),
    Case(
        "vocabulary of the test texts",
        "train_index = build_vocab(train_texts)\ntest_index = build_vocab(test_texts)  #!\n",
        (("build_vocab(test_texts)", "train_index"),),
    ),
    Case(
        "unknown words share the padding",
        "embed = nn.Embedding(9, 4, padding_idx=0)\nids = [index.get(word, 0) for word in words]  #!\n",
        (("index.get(word, 0)", "index.get(word, 1)"),),
    ),
    Case(
        "pretrained vectors stay as they are",
        "embed = nn.Embedding.from_pretrained(vectors)  #!\n",
        (("(vectors)", "(vectors, freeze=False)"),),
    ),
    Case(
        "hash of a word as its index",
        "ids = [hash(word) % 1000 for word in words]  #!\n",
        (("hash(word) % 1000", "index[word]"),),
    ),
    Case(
        "tokens forced into the table",
        "embed = nn.Embedding(9, 4)\nx = embed(ids.clamp(max=8))  #!\n",
        (("ids.clamp(max=8)", "ids"),),
    ),
    Case(
        "tokens as numbers",
        "scores = model(tokens.float())  #!\n",
        (("tokens.float()", "tokens"),),
    ),
)
