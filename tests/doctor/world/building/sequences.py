"""Reported faults of axes, sequences, attention and two players."""

from __future__ import annotations

from tests.doctor.world.program import Program

_SENTENCES = """
lengths = torch.randint(3, 11, (300,))
tokens = torch.randint(1, 30, (300, 10))
inside = torch.arange(10) < lengths[:, None]
tokens = tokens * inside
label = ((tokens > 15).sum(1) * 2 > lengths) * 1
"""
_CYCLE = """
begin = torch.randint(0, 12, (300, 1))
stride = torch.randint(1, 4, (300, 1))
tokens = (begin + stride * torch.arange(10)) % 12
"""
_LANGUAGE = """
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(60):
    part = tokens[torch.randint(0, 300, (24,))]
    logits = net(part[:, :-1])  #!
    loss = F.cross_entropy(logits.reshape(-1, 12), part[:, 1:].reshape(-1))  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
_STEP = """
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
_MOTION = """
track = torch.cumsum(torch.randn(320, 12, 3), 1) * 0.3
ends = (track[:, -1, 0] > 0) * 1
"""
_AXES = ("axes mixed by a reshape",)
_FUTURE = ("targets seen by the model",)
_PADDING = ("padding contributes",)
_WRONG = ("softmax along the wrong axis",)

PROGRAMS = (
    Program("heads and positions exchanged by view", _AXES, _MOTION + """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(3, 48), nn.Linear(16, 2)
    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 12, 4).chunk(3, 2)
        q, k, v = (one.reshape(batch, 4, length, 4) for one in (q, k, v))  #!
        weights = torch.softmax(q @ k.transpose(2, 3) / 2, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, 16).mean(1))
net = Attention()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(60):
    part = torch.randint(0, 320, (32,))
    loss = F.cross_entropy(net(track[part]), ends[part])
""" + _STEP, (("one.reshape(batch, 4, length, 4) for one", "one.transpose(1, 2) for one"),),
        source="https://github.com/zhouhaoyi/Informer2020/issues/59"),
    Program("channels folded into the frequencies", _AXES, """
sound = torch.randn(128, 1, 10, 7)
speaker = (sound[:, 0].mean(1)[:, 0] > 0) * 1
class Separator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lstm = nn.Conv2d(1, 8, 3, padding=1), nn.GRU(56, 16, batch_first=True)
        self.out = nn.Linear(16, 2)
    def forward(self, x):
        out = F.relu(self.conv(x))
        out = out.reshape(len(out), -1, 10).transpose(1, 2)  #!
        return self.out(self.lstm(out)[0].mean(1))
net = Separator()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(50):
    part = torch.randint(0, 128, (16,))
    loss = F.cross_entropy(net(sound[part]), speaker[part])
""" + _STEP, (("out.reshape(len(out), -1, 10).transpose(1, 2)", "out.transpose(1, 2).reshape(len(out), 10, -1)"),),
        source="https://github.com/vitrioil/Speech-Separation/issues/4"),
    Program("windows turned into channels by view", _AXES, _MOTION + """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(3, 6)
        self.conv, self.out = nn.Conv1d(6, 16, 3), nn.Linear(16, 2)
    def forward(self, x):
        x = self.lift(x)
        batch, height, width = x.shape
        x = x.reshape(batch, width, height)  #!
        return self.out(F.relu(self.conv(x)).mean(2))
net = Encoder()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(80):
    part = torch.randint(0, 320, (32,))
    loss = F.cross_entropy(net(track[part]), ends[part])
""" + _STEP, (("x.reshape(batch, width, height)", "x.transpose(1, 2)"),),
        source="https://github.com/zamanzadeh/CARLA/issues/16"),
    Program("rows of digits read without batch_first", ("sequence read at its beginning",), """
digits = torch.randn(320, 8, 8)
upper = (digits[:, :4].mean((1, 2)) > digits[:, 4:].mean((1, 2))) * 1
class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.classifier = nn.LSTM(8, 24, 2), nn.Linear(24, 2)  #!
    def forward(self, x):
        out, _ = self.lstm(x)
        return self.classifier(out[:, -1, :])  #!
net = Rnn()
opt = torch.optim.SGD(net.parameters(), lr=0.03)
for step in range(50):
    part = torch.randint(0, 320, (32,))
    out = net(digits[part])
    loss = F.cross_entropy(out.expand(32, 2), upper[part])
""" + _STEP, (("nn.LSTM(8, 24, 2)", "nn.LSTM(8, 24, 2, batch_first=True)"),),
        source="https://github.com/pytorch/pytorch/issues/1538"),
    Program("scores of branches normalised over the batch", (*_WRONG, "softmax over the batch"), """
x = torch.randn(320, 6)
y = (torch.where(x[:, 0] > 0, x[:, 1], x[:, 2]) > 0) * 1
class Selective(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList([nn.Linear(6, 16), nn.Linear(6, 16)])
        self.choose, self.softmax = nn.ModuleList([nn.Linear(16, 16), nn.Linear(16, 16)]), nn.Softmax(dim=1)  #!
        self.out = nn.Linear(16, 2)
    def forward(self, x):
        each = torch.stack([F.relu(one(x)) for one in self.branches])
        scores = torch.stack([one(each.sum(0)) for one in self.choose])
        return self.out((self.softmax(scores) * each).sum(0))  #!
net = Selective()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(100):
    part = torch.randint(0, 320, (32,))
    loss = F.cross_entropy(net(x[part]), y[part])
""" + _STEP, (("nn.Softmax(dim=1)", "nn.Softmax(dim=0)"),),
        source="https://github.com/xmu-xiaoma666/External-Attention-pytorch/issues/18"),
    Program("attention pooling that gives each position a 1", ("softmax of one number",), _MOTION + """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature, self.attention, self.out = nn.Linear(3, 16), nn.Linear(16, 1), nn.Linear(16, 2)
    def forward(self, x):
        h = torch.tanh(self.feature(x))
        weights = F.softmax(self.attention(h), dim=2)  #!
        return self.out((weights * h).sum(1))
net = Pool()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(80):
    part = torch.randint(0, 320, (32,))
    loss = F.cross_entropy(net(track[part]), ends[part])
""" + _STEP, (("dim=2)", "dim=1)"),), source="https://github.com/catalyst-team/catalyst/pull/285"),
    Program("the attention weight of one column", ("softmax of one number",), _MOTION + """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.attn = nn.LSTM(3, 12, batch_first=True), nn.Linear(15, 1)
        self.out = nn.Linear(12, 2)
    def forward(self, x):
        outputs, _ = self.lstm(x)
        scores = self.attn(torch.cat([x, outputs], 2).reshape(-1, 15))
        weights = F.softmax(scores, dim=1).reshape(len(x), -1, 1)  #!
        return self.out((weights * outputs).sum(1))
net = Head()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(50):
    part = torch.randint(0, 320, (32,))
    loss = F.cross_entropy(net(track[part]), ends[part])
""" + _STEP, (("F.softmax(scores, dim=1).reshape(len(x), -1, 1)", "F.softmax(scores.reshape(len(x), -1, 1), dim=1)"),),
        source="https://github.com/DEEP-PolyU/KEQA_WSDM19/issues/2"),
    Program("capsules that all attend with weight 1", ("softmax of one number",), """
points = torch.randn(300, 6, 2)
spread = (points.std(1).sum(1) > 2) * 1
class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.mask, self.out = nn.Linear(2, 12), nn.Linear(2, 1), nn.Linear(12, 2)
    def forward(self, points):
        attention_soft = torch.softmax(self.mask(points), 2)  #!
        return self.out((attention_soft * F.relu(self.part(points))).sum(1))
net = Capsules()
opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
for step in range(100):
    part = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(net(points[part]), spread[part])
""" + _STEP, (("torch.softmax(self.mask(points), 2)", "torch.softmax(self.mask(points), 1)"),),
        source="https://github.com/phanideepgampa/stacked-capsule-networks/pull/5"),
    Program("a decoder without a causal mask", _FUTURE, _CYCLE + """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place, self.out = nn.Embedding(12, 16), nn.Embedding(10, 16), nn.Linear(16, 12)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    def forward(self, tokens):
        h = self.embed(tokens) + self.place(torch.arange(tokens.shape[1]))
        return self.out(self.layer(h))  #!
net = Decoder()
""" + _LANGUAGE, (("self.layer(h)", "self.layer(h, src_mask=torch.triu(torch.full((9, 9), float('-inf')), 1))"),),
        source="https://github.com/alex-matton/causal-transformer-decoder/issues/1"),
    Program("the causal mask skipped if no mask is passed", _FUTURE, _CYCLE + """
class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place, self.qkv = nn.Embedding(12, 16), nn.Embedding(10, 16), nn.Linear(16, 48)
        self.out = nn.Linear(16, 12)
    def forward(self, tokens, mask=None):
        h = self.embed(tokens) + self.place(torch.arange(tokens.shape[1]))
        q, k, v = self.qkv(h).chunk(3, 2)
        scores = q @ k.transpose(1, 2) / 4
        if mask is not None:  #!
            scores = scores + mask
        return self.out(h + torch.softmax(scores, 2) @ v)  #!
net = Attend()
""" + _LANGUAGE, (("net(part[:, :-1])", "net(part[:, :-1], torch.triu(torch.full((9, 9), float('-inf')), 1))"),),
        source="https://github.com/facebookresearch/xformers/issues/103"),
    Program("causal not passed to the attention", _FUTURE, _CYCLE + """
def attend(q, k, v, causal=False):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
class Tokenizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place, self.qkv = nn.Embedding(12, 24), nn.Embedding(10, 24), nn.Linear(24, 72)
        self.out = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 12))
    def forward(self, tokens):
        h = self.embed(tokens) + self.place(torch.arange(tokens.shape[1]))
        q, k, v = self.qkv(h)[:, None].chunk(3, 3)
        return self.out(h + attend(q, k, v)[:, 0])  #!
net = Tokenizer()
""" + _LANGUAGE, (("attend(q, k, v)[:, 0]", "attend(q, k, v, causal=True)[:, 0]"),),
        source="https://github.com/lucidrains/dreamer4/issues/2"),
    Program("padding averaged with the words", _PADDING, _SENTENCES + """
class Label(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.score, self.out = nn.Embedding(30, 16), nn.Linear(16, 1), nn.Linear(16, 2)
    def forward(self, tokens):
        h = torch.tanh(self.embed(tokens))
        scores = self.score(h)
        weights = torch.softmax(scores, 1)  #!
        return self.out((weights * h).sum(1))  #!
net = Label()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(100):
    part = torch.randint(0, 300, (30,))
    logits = net(tokens[part])  #!
    loss = F.cross_entropy(logits, label[part])
""" + _STEP, (("scores = self.score(h)",
              "scores = self.score(h).masked_fill(tokens[:, :, None] == 0, float('-inf'))"),),
        source="https://github.com/InseeFrLab/torchTextClassifiers/pull/96"),
    Program("no attention mask for the padding", _PADDING, _SENTENCES + """
class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(30, 16), nn.Linear(16, 2)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    def forward(self, tokens):
        padding = tokens == 0
        h = self.layer(self.embed(tokens))  #!
        kept = (~padding)[:, :, None] * 1.0
        return self.out((h * kept).sum(1) / kept.sum(1))
net = Vision()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(60):
    part = torch.randint(0, 300, (30,))
    logits = net(tokens[part])  #!
    loss = F.cross_entropy(logits, label[part])
""" + _STEP, (("self.layer(self.embed(tokens))", "self.layer(self.embed(tokens), src_key_padding_mask=padding)"),),
        source="https://github.com/jingyaogong/minimind-v/issues/76"),
    Program("the loss of padded positions counted", _PADDING, """
lengths = torch.randint(3, 10, (300,))
tokens = (torch.randint(0, 11, (300, 1)) + torch.arange(10)) % 11 + 1
tokens = tokens * (torch.arange(10) < lengths[:, None])
class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.gru, self.out = nn.Embedding(12, 16), nn.GRU(16, 24, batch_first=True), nn.Linear(24, 12)
    def forward(self, tokens):
        return self.out(self.gru(self.embed(tokens))[0])
net = Student()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(60):
    part = tokens[torch.randint(0, 300, (24,))]
    logits = net(part[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 12), part[:, 1:].reshape(-1))  #!
""" + _STEP, (("part[:, 1:].reshape(-1))", "part[:, 1:].reshape(-1), ignore_index=0)"),),
        source="https://github.com/arcee-ai/DAM/pull/16"),
    Program("the state of the last batch for other sentences", ("state carried over",), _MOTION + """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out, self.state = nn.LSTM(3, 16, batch_first=True), nn.Linear(16, 2), None
    def forward(self, x):
        outputs, state = self.lstm(x, self.state)  #!
        self.state = tuple(one.detach() for one in state)  #!
        return self.out(outputs[:, -1])
net = Reader()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(60):
    part = torch.randint(0, 320, (32,))
    loss = F.cross_entropy(net(track[part]), ends[part])
""" + _STEP, (("        self.state = tuple(one.detach() for one in state)\n", ""),),
        source="https://github.com/allenai/bilm-tf/issues/220"),
    Program("a reset that reaches the last layer only", ("state carried over",), _MOTION + """
class Highway(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.GRU(3, 12, batch_first=True), nn.GRU(12, 12, batch_first=True)])
        self.out, self.states = nn.Linear(12, 2), [None, None]
    def reset(self):
        self.states[-1] = None  #!
    def forward(self, x):
        for at, layer in enumerate(self.layers):
            x, state = layer(x, self.states[at])  #!
            self.states[at] = state.detach()
        return self.out(x[:, -1])
net = Highway()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(50):
    part = torch.randint(0, 320, (32,))
    net.reset()
    loss = F.cross_entropy(net(track[part]), ends[part])
""" + _STEP, (("self.states[-1] = None", "self.states = [None, None]"),),
        source="https://github.com/jzilly/RecurrentHighwayNetworks/issues/5"),
)  # fmt: skip  # scripts
