"""Sequences: padding, masks, axes, states carried over, and models that see what they should tell."""

from __future__ import annotations

from tests.doctor.world.program import Program

_ATTEND = """
class Attend(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads, self.qkv, self.join = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x, mask=None):
        b, s, w = x.shape
        q, k, v = self.qkv(x).reshape(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-2, -1) / (w // self.heads) ** 0.5
        if mask is not None:
            score = score.masked_fill(mask, float("-inf"))
        out = torch.softmax(score, -1) @ v
        return self.join(out.transpose(1, 2).reshape(b, s, w))
"""
_TEXT = """
follows = torch.randint(0, 12, (12,))
text = [int(torch.randint(0, 12, (1,)))]
for _ in range(1199):
    text.append(int(follows[text[-1]]) if torch.rand(1).item() < 0.8 else int(torch.randint(0, 12, (1,))))
text = torch.tensor(text)
"""

PROGRAMS = (
    Program("padding as a third class", ("padding contributes",), """
lengths = torch.randint(3, 12, (200,))
signal = torch.randn(200, 20, 1)
inside = torch.arange(20) < lengths.unsqueeze(1)
signal = signal * inside.unsqueeze(2)
tags = ((signal[:, :, 0] > 0) + 1) * inside
class Tagger(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.lstm, self.out = nn.LSTM(1, 16, batch_first=True), nn.Linear(16, classes)
    def forward(self, s):
        return self.out(self.lstm(s)[0])
tagger = Tagger(3)
adam = torch.optim.Adam(tagger.parameters(), lr=1e-2)
for step in range(80):
    i = torch.randint(0, 200, (20,))
    loss = F.cross_entropy(tagger(signal[i]).flatten(0, 1), tags[i].flatten())  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
right = (tagger(signal).argmax(2) == tags)[inside]
accuracy = right.sum().item() / len(right)
""", (("tags[i].flatten())", "tags[i].flatten(), ignore_index=0)"),),
            source="https://stackoverflow.com/questions/59282996"),
    Program("captions whose padding is learnt by heart", ("padding contributes",), """
ids = torch.randint(1, 10, (300, 16))
for column in range(1, 16):
    ids[:, column] = (ids[:, column - 1] * 3 + 1) % 9 + 1
ends = torch.randint(3, 8, (300, 1))
ids = torch.where(torch.arange(16) < ends, ids, 0)
class Dalle(nn.Module):
    def __init__(self, ignore_index=0):
        super().__init__()
        self.ignore_index = ignore_index
        self.embed, self.gru, self.out = nn.Embedding(10, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 10)
    def forward(self, text):
        logits = self.out(self.gru(self.embed(text[:, :-1]))[0])
        return F.cross_entropy(logits.transpose(1, 2), text[:, 1:])  #!
model = Dalle()
opt = torch.optim.Adam(model.parameters(), lr=2e-2)
for step in range(60):
    loss = model(ids[torch.randint(0, 300, (32,))])  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("text[:, 1:])", "text[:, 1:], ignore_index=self.ignore_index)"),),
            source="https://github.com/lucidrains/DALLE-pytorch/issues/57"),
    Program("code 0 of the picture is ignored", (), """
codes = torch.randint(0, 6, (400, 1))
words = torch.cat([codes, (codes + 2) % 6, torch.randint(0, 6, (400, 2))], 1)
image = (words[:, :2] * torch.tensor([1, 2]) + 3) % 6
class Parti(nn.Module):
    def __init__(self, ignore_index=0):
        super().__init__()
        self.token, self.mix = nn.Embedding(6, 16), nn.Linear(64, 48)
        self.to_logits = nn.Linear(48, 12)
        self.ignore_index = ignore_index
    def forward(self, text):
        return self.to_logits(torch.relu(self.mix(self.token(text).flatten(1)))).reshape(-1, 2, 6)
    def loss(self, text, image):
        return F.cross_entropy(self(text).transpose(1, 2), image, ignore_index=self.ignore_index)  #!
parti = Parti()
opt = torch.optim.Adam(parti.parameters(), lr=5e-3)
for step in range(200):
    i = torch.randint(0, 400, (40,))
    loss = parti.loss(words[i], image[i])  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
accuracy = (parti(words).argmax(2) == image).sum().item() / 800
""", (("ignore_index=0)", "ignore_index=-1)"),), "ignore_index",
            source="https://github.com/lucidrains/parti-pytorch/issues/8"),
    Program("both directions viewed into one", ("axes mixed by a reshape", "examples mixed"), """
sentences = torch.randint(0, 20, (240, 8))
mood = (sentences < 10).sum(1).gt(4) * 1
class BiLSTM(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.hidden, self.embedding = hidden, nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, hidden, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, 2)
    def forward(self, words):
        output, (final, _) = self.lstm(self.embedding(words))
        final = final.reshape(-1, 2 * self.hidden, 1)  #!
        weights = torch.softmax(torch.bmm(output, final).squeeze(2), 1)
        context = torch.bmm(output.transpose(1, 2), weights.unsqueeze(2)).squeeze(2)
        return self.out(context)
net = BiLSTM()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(80):
    i = torch.randint(0, 240, (24,))
    loss = F.cross_entropy(net(sentences[i]), mood[i])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("final.reshape(-1, 2 * self.hidden, 1)", "final.permute(1, 0, 2).reshape(-1, 2 * self.hidden, 1)"),),
            source="https://github.com/zy1996code/nlp_basic_model/issues/1"),
    Program("heads put together without going back", ("axes mixed by a reshape",), _ATTEND.replace(
        "out.transpose(1, 2).reshape(b, s, w))", "out.reshape(b, s, w))  #!") + """
marks = torch.randint(0, 10, (320, 6))
wanted = marks.flip(1)
class Copy(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(10, 16), nn.Parameter(torch.randn(6, 16))
        self.attend, self.out = Attend(), nn.Linear(16, 10)
    def forward(self, x):
        h = self.token(x) + self.place
        return self.out(h + self.attend(h))
net = Copy()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(120):
    i = torch.randint(0, 320, (32,))
    loss = F.cross_entropy(net(marks[i]).transpose(1, 2), wanted[i])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
accuracy = (net(marks).argmax(2) == wanted).sum().item() / wanted.numel()
""", (("out.reshape(b, s, w))", "out.transpose(1, 2).reshape(b, s, w))"),),
            source="https://github.com/jsbaan/transformer-from-scratch/pull/6"),
    Program("the state of the batch before", ("state carried over",), """
letters = torch.randn(320, 9, 6)
verdict = (letters[:, 0, 0] + letters[:, -1, 0] > 0) * 1
class Elmo(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out, self.state = nn.LSTM(6, 16, batch_first=True), nn.Linear(16, 2), None
    def forward(self, x):
        outputs, state = self.lstm(x, self.state)  #!
        self.state = tuple(part.detach() for part in state)  #!
        return self.out(outputs[:, -1])
elmo = Elmo()
opt = torch.optim.Adam(elmo.parameters(), lr=1e-2)
for step in range(80):
    i = torch.randint(0, 320, (32,))
    loss = F.cross_entropy(elmo(letters[i]), verdict[i])  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("        self.state = tuple(part.detach() for part in state)\n", ""),),
            source="https://github.com/nyu-mll/jiant/pull/345"),
    Program("attention to nothing but padding", ("padding contributes",), """
tokens = torch.randint(1, 15, (300, 10))
kept = torch.arange(10) < torch.randint(2, 7, (300, 1))
tokens = torch.where(kept, tokens, 0)
label = ((tokens == 3).sum(1) + (tokens == 7).sum(1) > 0) * 1
class LabelAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.query = nn.Embedding(15, 16), nn.Parameter(torch.randn(1, 2, 16))
        self.key, self.value, self.out = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 1)
    def forward(self, t):
        h = self.embed(t)
        padding = (t == 0).unsqueeze(1)
        read = F.scaled_dot_product_attention(
            self.query.expand(len(t), 2, 16), self.key(h), self.value(h),
            attn_mask=padding.expand(len(t), 2, 10),  #!
        )
        return self.out(read).squeeze(2)
net = LabelAttention()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(150):
    i = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(net(tokens[i]), label[i])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
accuracy = (net(tokens).argmax(1) == label).sum().item() / 300
""", (("attn_mask=padding.expand(len(t), 2, 10)", "attn_mask=~padding.expand(len(t), 2, 10)"),),
            source="https://github.com/InseeFrLab/torchTextClassifiers/pull/92"),
    Program("whole rows of scores masked", ("NaN in the forward pass", "NaN in the backward pass"), _ATTEND + """
ids = torch.randint(1, 9, (200, 8))
ids = torch.where(torch.arange(8) < torch.randint(3, 9, (200, 1)), ids, 0)
most = (ids > 4).sum(1).gt(2) * 1
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.attend, self.out = nn.Embedding(9, 16), Attend(), nn.Linear(16, 2)
    def forward(self, src):
        mask = (src == 0).unsqueeze(1).unsqueeze(3)  #!
        h = self.token(src)
        return self.out((h + self.attend(h, mask)).sum(1))  #!
net = Encoder()
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(120):
    i = torch.randint(0, 200, (25,))
    loss = F.cross_entropy(net(ids[i]), most[i])
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("unsqueeze(1).unsqueeze(3)", "unsqueeze(1).unsqueeze(2)"),),
            source="https://github.com/hyunwoongko/transformer/pull/40"),
    Program("rows of a table that attend to other tables", ("examples mixed",), """
tables = torch.randn(300, 5, 16)
fraud = (tables[:, :, 0].max(1).values > 1.2) * 1
class TabEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2)  #!
        self.feed, self.out = nn.Linear(16, 32), nn.Linear(32, 2)
    def forward(self, rows):
        mixed, _ = self.attention(rows, rows, rows)  #!
        return self.out(torch.relu(self.feed(rows + mixed)).amax(1))
net = TabEncoder()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    i = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(net(tables[i]), fraud[i])  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("nn.MultiheadAttention(16, 2)", "nn.MultiheadAttention(16, 2, batch_first=True)"),), "batch",
            source="https://github.com/IBM/TabFormer/pull/14"),
    Program("an encoder layer that takes the batch for the sequence", ("examples mixed",), """
steps = torch.randn(256, 6, 3)
total = steps[:, :, :1].sum(1)
class Series(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 16)
        self.encoder = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, dropout=0.0)  #!
        self.out = nn.Linear(16, 1)
    def forward(self, x):
        return self.out(self.encoder(self.embed(x))[:, -1])  #!
net = Series()
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(150):
    i = torch.randint(0, 256, (32,))
    loss = F.mse_loss(net(steps[i]), total[i])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("dropout=0.0)", "dropout=0.0, batch_first=True)"),), "batch",
            source="https://github.com/Exorust/TorchLeet/issues/5"),
    Program("the place in the batch instead of the place in the sentence", ("examples mixed",), """
words = torch.randint(0, 12, (400, 7))
last = words[:, 0]
class Positions(nn.Module):
    def __init__(self, width=24, most=64):
        super().__init__()
        rate = torch.exp(torch.arange(0, width, 2) * -0.2)
        angle = torch.arange(most).unsqueeze(1) * rate
        self.register_buffer("pe", torch.cat([angle.sin(), angle.cos()], 1).unsqueeze(1))
    def forward(self, x):
        return x + self.pe[:x.shape[0]]  #!
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(12, 24), Positions()
        self.attend, self.out = nn.MultiheadAttention(24, 2, batch_first=True), nn.Linear(24, 12)
        self.query = nn.Parameter(torch.randn(1, 1, 24))
    def forward(self, w):
        h = self.place(self.token(w))
        return self.out(self.attend(self.query.expand(len(w), 1, 24), h, h)[0].squeeze(1))
net = Reader()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(200):
    i = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(net(words[i]), last[i])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("self.pe[:x.shape[0]]", "self.pe[:x.shape[1]].transpose(0, 1)"),), "batch",
            source="https://github.com/AkiRusProd/numpy-transformer/issues/1"),
    Program("no mask over the future", ("targets seen by the model",), _ATTEND + _TEXT + """
class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(12, 16), nn.Parameter(torch.randn(10, 16) * 0.3)
        self.attend, self.out = Attend(), nn.Linear(16, 12)
    def forward(self, src, src_mask=None):
        h = self.token(src) + self.place
        return self.out(h + self.attend(h, src_mask))
model = Language()
future = torch.triu(torch.ones(10, 10), 1) > 0
adam = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    at = torch.randint(0, 1180, (32, 1)) + torch.arange(11)
    chunk = text[at]
    logits = model(chunk[:, :-1])  #!
    loss = F.cross_entropy(logits.transpose(1, 2), chunk[:, 1:])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("model(chunk[:, :-1])", "model(chunk[:, :-1], future)"),),
            source="https://github.com/pytorch/tutorials/issues/2478"),
    Program("each token taught to tell itself", ("targets seen by the model",), _TEXT + """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.gru, self.head = nn.Embedding(12, 16), nn.GRU(16, 24, batch_first=True), nn.Linear(24, 12)
    def forward(self, input_ids, labels=None):
        logits = self.head(self.gru(self.token(input_ids))[0])
        loss = F.cross_entropy(logits.reshape(-1, 12), labels.reshape(-1))  #!
        return loss, logits
decoder = Decoder()
opt = torch.optim.AdamW(decoder.parameters(), lr=1e-2)
for step in range(100):
    batch = text[torch.randint(0, 1180, (32, 1)) + torch.arange(9)]
    loss, _ = decoder(batch, labels=batch)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
sample = text[:12].unsqueeze(0)
told = decoder(sample, sample)[1][0, :-1].argmax(1)
accuracy = (told == text[1:12]).sum().item() / 11
""", (("F.cross_entropy(logits.reshape(-1, 12), labels.reshape(-1))",
       "F.cross_entropy(logits[:, :-1].reshape(-1, 12), labels[:, 1:].reshape(-1))"),),
            source="https://github.com/huggingface/transformers/issues/27517"),
    Program("shifted twice", (), _TEXT + """
def causal_loss(logits, labels):
    return F.cross_entropy(logits[:, :-1].reshape(-1, 12), labels[:, 1:].reshape(-1))
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.gru, self.head = nn.Embedding(12, 16), nn.GRU(16, 24, batch_first=True), nn.Linear(24, 12)
    def forward(self, ids):
        return self.head(self.gru(self.token(ids))[0])
decoder = Decoder()
opt = torch.optim.AdamW(decoder.parameters(), lr=1e-2)
for step in range(100):
    batch = text[torch.randint(0, 1180, (32, 1)) + torch.arange(10)]
    logits = decoder(batch)
    shifted, labels = logits[:, :-1], batch[:, 1:]  #!
    loss = causal_loss(shifted, labels)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
told = decoder(text[:60].unsqueeze(0))[0, :-1].argmax(1)
accuracy = (told == text[1:60]).sum().item() / 59
""", (("shifted, labels = logits[:, :-1], batch[:, 1:]", "shifted, labels = logits, batch"),), "shift",
            source="https://github.com/huggingface/transformers/pull/37830"),
    Program("a mean over words and what is none", ("padding contributes",), """
ids = torch.randint(1, 30, (360, 24))
size = torch.randint(2, 24, (360, 1))
attention_mask = (torch.arange(24) < size) * 1.0
meaning = torch.randn(30, 4)
wanted = (meaning[ids] * attention_mask.unsqueeze(2)).sum(1) / size
ids = torch.where(attention_mask > 0, ids, 0)
class Sentence(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(30, 16), nn.Linear(16, 4)
    def forward(self, ids, attention_mask):
        hidden = torch.tanh(self.embed(ids))
        pooled = hidden.mean(dim=1)  #!
        return self.out(pooled)
net = Sentence()
adam = torch.optim.Adam(net.parameters(), lr=2e-2)
for step in range(200):
    i = torch.randint(0, 300, (32,))
    loss = F.mse_loss(net(ids[i], attention_mask[i]), wanted[i])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
held = F.mse_loss(net(ids[300:], attention_mask[300:]), wanted[300:]).item()
""", (("hidden.mean(dim=1)",
       "(hidden * attention_mask.unsqueeze(2)).sum(1) / attention_mask.sum(1, keepdim=True)"),),
            source="https://github.com/autoliuweijie/BERT-whitening-pytorch/issues/13"),
    Program("ten answers against one", ("broadcast in the loss",), """
import math
wave = torch.tensor([[math.sin(0.3 * t)] for t in range(400)])
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(1, 24), nn.Linear(24, 1)
    def forward(self, x):
        return self.out(self.lstm(x)[0])
net = Memory()
criterion = nn.MSELoss()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(200):
    at = int(torch.randint(0, 380, (1,)))
    y_pred = net(wave[at:at + 10])
    y_true = wave[at + 10:at + 11]
    loss = criterion(y_pred, y_true)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("criterion(y_pred, y_true)", "criterion(y_pred[-1:], y_true)"),),
            source="https://github.com/andrewgcodes/xlstm/issues/4"),
)  # fmt: skip  # scripts
