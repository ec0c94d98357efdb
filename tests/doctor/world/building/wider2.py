"""The second part of the faults of many kinds that were reported or that a manual warns of, gathered in rounds."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("argmax over the whole table of similarities", ("argmax over all axes",), """
pairs = torch.randn(320, 16)
image, text = nn.Linear(16, 8), nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 8))
optimizer = torch.optim.AdamW([*image.parameters(), *text.parameters()], lr=3e-3)
accuracy = []
for step in range(120):
    rows = torch.randperm(320)[:32]
    seen, read = F.normalize(image(pairs[rows]), dim=1), F.normalize(text(pairs[rows]), dim=1)
    logits = seen @ read.T / 0.1
    labels = torch.arange(32)
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    accuracy.append((torch.argmax(logits) == labels).sum().item() / 32)  #!
""", (("torch.argmax(logits)", "torch.argmax(logits, 1)"),), source="https://github.com/Zasder3/train-CLIP/issues/6"),
    Program("a checkpoint of which no name fits", ("nothing was loaded",), """
pre = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
checkpoint = {"model." + name: value.detach().clone() for name, value in pre.state_dict().items()}
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 3)
    def forward(self, x):
        return self.head(self.backbone(x))
model = Classifier()
model.backbone.load_state_dict(checkpoint, strict=False)  #!
x, y = torch.randn(300, 10), torch.randint(0, 3, (300,))
y = x[:, :3].argmax(1)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(100):
    rows = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (('{"model." + name: value', "{name: value"),), source="https://github.com/pytorch/examples/issues/1029"),
    Program("weights drawn from a normal of deviation 1", (
        "initial weights out of the usual",
        "saturated",
        "first loss far off",
        "exploding gradient",
    ), """
x = torch.randn(500, 20)
y = (x[:, :5].sum(1) > 0).long() + (x[:, 5:10].sum(1) > 0).long()
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [20, 128, 128, 128, 128, 3]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        for layer in self.layers:
            nn.init.normal_(layer.weight)  #!
            nn.init.zeros_(layer.bias)
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x)
net = Deep()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(12):
    for at in range(0, 500, 50):
        loss = F.cross_entropy(net(x[at:at + 50]), y[at:at + 50])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("nn.init.normal_(layer.weight)", "nn.init.xavier_normal_(layer.weight)"),),
        source="https://pytorch.org/docs/stable/nn.init.html"),
    Program("the first batch of a loader made anew", ("same batch in each step",), """
from torch.utils.data import DataLoader, TensorDataset
x = torch.randn(512, 8)
y = x[:, :3].argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    xb, yb = next(iter(loader))  #!
    loss = F.cross_entropy(net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("batch_size=32)", "batch_size=32, shuffle=True)"),),
        source="https://pytorch.org/docs/stable/data.html"),
    Program("gradients clipped to a ten-thousandth", ("always clipped", "rate unfit for the weights"), """
signal = torch.randn(300, 24, 3)
total = signal[:, :, 0].sum(1, keepdim=True) / 5
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 24, batch_first=True)
        self.fc = nn.Linear(24, 1)
    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])
reader = Reader()
optimizer = torch.optim.SGD(reader.parameters(), lr=0.1)
for epoch in range(12):
    for at in range(0, 300, 30):
        loss = F.mse_loss(reader(signal[at:at + 30]), total[at:at + 30])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reader.parameters(), 1e-4)  #!
        optimizer.step()
""", (("reader.parameters(), 1e-4", "reader.parameters(), 1.0"),),
        source="https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html"),
    Program("images of the last axis reshaped to channels first", (
        "axes mixed by a view",
        "axes mixed by a reshape",
    ), """
import numpy as np
rng = np.random.RandomState(1)
color = rng.randint(0, 3, 240)
pictures = 0.3 * rng.randn(240, 8, 8, 3).astype("float32")
pictures[np.arange(240), :, :, color] += 0.4
images = torch.from_numpy(pictures).reshape(-1, 3, 8, 8)  #!
labels = torch.from_numpy(color)
cnn = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(cnn.parameters(), lr=5e-3)
for epoch in range(10):
    order = torch.randperm(240)
    for at in range(0, 240, 24):
        rows = order[at:at + 24]
        loss = F.cross_entropy(cnn(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", ((".reshape(-1, 3, 8, 8)", ".permute(0, 3, 1, 2)"),),
        source="https://pytorch.org/docs/stable/generated/torch.permute.html"),
    Program("kl_div of two tables of probabilities", ("loss of raw outputs", "sign of the loss turned"), """
x = torch.randn(400, 8)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
student = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
T = 2.0
for step in range(150):
    xb = x[torch.randint(0, 400, (32,))]
    with torch.no_grad():
        soft = F.softmax(teacher(xb) / T, dim=1)
    out = F.softmax(student(xb) / T, dim=1)  #!
    loss = F.kl_div(out, soft, reduction="batchmean") * T * T  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("out = F.softmax(student", "out = F.log_softmax(student"),),
        source="https://pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html"),
    Program("margins for labels of 0 and 1", ("targets out of range", "targets of 0 instead of -1"), """
a, b = torch.randn(500, 10), torch.randn(500, 10)
same = (torch.rand(500) < 0.5)
b = torch.where(same[:, None], a + 0.3 * b, b)
target = same * 1.0
tower = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
criterion = nn.CosineEmbeddingLoss(margin=0.2)
optimizer = torch.optim.Adam(tower.parameters(), lr=2e-3)
for step in range(150):
    rows = torch.randint(0, 500, (50,))
    loss = criterion(tower(a[rows]), tower(b[rows]), target[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("target = same * 1.0", "target = same * 2.0 - 1.0"),),
        source="https://pytorch.org/docs/stable/generated/torch.nn.CosineEmbeddingLoss.html"),
    Program("a parameter multiplied after it was made", ("layers nobody trains", "parameter not registered"), """
x = torch.randn(400, 12)
y = (x[:, :4] @ torch.randn(4, 3)).argmax(1)
class Low(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.left = nn.Parameter(torch.randn(width, 8)) * 0.1  #!
        self.right = nn.Linear(8, classes)
    def forward(self, x):
        return self.right(torch.tanh(x @ self.left))
model = Low(12, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(150):
    rows = torch.randint(0, 400, (40,))
    hidden = x[rows]
    loss = F.cross_entropy(model(hidden), y[rows])
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
""", (("nn.Parameter(torch.randn(width, 8)) * 0.1", "nn.Parameter(torch.randn(width, 8) * 0.1)"), ("backward(retain_graph=True)", "backward()")),
        source="https://pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html"),
    Program("a weight that is a tensor with requires_grad", (
        "layers nobody trains",
        "parameter not registered",
    ), """
x = torch.randn(400, 9)
y = x @ torch.randn(9, 1)
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(9, 16)
        self.weight = torch.randn(16, 1, requires_grad=True)  #!
        self.bias = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        return torch.relu(self.inner(x)) @ self.weight + self.bias
model = Scaled()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(150):
    rows = torch.randint(0, 400, (40,))
    loss = F.mse_loss(model(x[rows]), y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("torch.randn(16, 1, requires_grad=True)", "nn.Parameter(torch.randn(16, 1))"),),
        source="https://pytorch.org/tutorials/beginner/nn_tutorial.html"),
    Program("several labels given to cross entropy as a table", (
        "targets of cross entropy do not add up",
        "softmax for several labels",
    ), """
x = torch.randn(400, 10)
tags = (x[:, :5] > 0.2) * 1.0
net = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 5))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(15):
    order = torch.randperm(400)
    for at in range(0, 400, 40):
        rows = order[at:at + 40]
        logits = net(x[rows])
        loss = criterion(logits, tags[rows])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("nn.CrossEntropyLoss()", "nn.BCEWithLogitsLoss()"),),
        source="https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html"),
    Program("a warm-up that begins at nothing and counts epochs", (
        "learning rate out of the usual",
        "rate decays to nothing",
        "rate is 0 at first",
    ), """
x = torch.randn(400, 10)
y = (x[:, 0] > x[:, 1]).long()
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 100, 1.0))  #!
for epoch in range(5):
    for at in range(0, 400, 20):
        loss = F.cross_entropy(net(x[at:at + 20]), y[at:at + 20])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    warm.step()  #!
""", (("        optimizer.step()\n    warm.step()", "        optimizer.step()\n        warm.step()"),),
        source="https://github.com/deepset-ai/FARM/pull/54"),
    Program("a mean divided by the size of the batch again", (
        "averaged twice",
        "rate unfit for the weights",
    ), """
nodes = torch.randn(600, 12)
community = (nodes @ torch.randn(12, 4)).argmax(1)
class SAGE(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(12, 32), nn.Linear(32, 4)
    def forward(self, x):
        return self.b(F.relu(self.a(x)))
sage = SAGE()
optimizer = torch.optim.SGD(sage.parameters(), lr=0.05)
batch_size = 200
for step in range(150):
    rows = torch.randint(0, 600, (batch_size,))
    loss = F.cross_entropy(sage(nodes[rows]), community[rows])
    loss = loss / batch_size  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("    loss = loss / batch_size\n", ""), ("lr=0.05", "lr=0.2")),
        source="https://github.com/williamleif/GraphSAGE/issues/12"),
    Program("a step in all rounds but those that end an accumulation", ("step in the wrong rounds",), """
x = torch.randn(640, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
gradient_accumulation_steps = 4
for epoch in range(10):
    for step in range(40):
        rows = torch.randint(0, 640, (16,))
        loss = F.cross_entropy(model(x[rows]), y[rows]) / gradient_accumulation_steps
        loss.backward()
        if step % gradient_accumulation_steps:  #!
            optimizer.step()  #!
            optimizer.zero_grad()
""", (("if step % gradient_accumulation_steps:", "if step % gradient_accumulation_steps == 3:"),),
        source="https://github.com/huggingface/accelerate/issues/435"),
    Program("attention masked when the softmax is done", (
        "mask behind the softmax",
        "softmax along the wrong axis",
    ), """
words = torch.randint(1, 30, (256, 10))
lengths = torch.randint(3, 11, (256,))
keep = torch.arange(10)[None] < lengths[:, None]
words = torch.where(keep, words, torch.zeros_like(words))
mood = (words[:, 0] > 15).long()
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16, padding_idx=0)
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.out = nn.Linear(16, 2)
    def forward(self, ids):
        h = self.embed(ids)
        scores = self.q(h) @ self.k(h).transpose(1, 2) / 4
        weights = torch.softmax(scores, -1)
        weights = weights.masked_fill((ids == 0)[:, None], float("-inf"))  #!
        mixed = weights @ self.v(h)
        return self.out(mixed[:, 0])
reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=3e-3)
for step in range(60):
    rows = torch.randint(0, 256, (32,))
    loss = F.cross_entropy(reader(words[rows]), mood[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (('        weights = torch.softmax(scores, -1)\n        weights = weights.masked_fill((ids == 0)[:, None], float("-inf"))\n',
       '        scores = scores.masked_fill((ids == 0)[:, None], float("-inf"))\n        weights = torch.softmax(scores, -1)\n'),),
        source="https://github.com/huggingface/pytorch-image-models/pull/2236"),
    Program("attention scaled when the softmax is done", ("scaled behind the softmax",), """
patches = torch.randn(300, 9, 16)
kind = patches.mean(1)[:, :3].argmax(1)
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scaling = heads, (width // heads) ** -0.5
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        energy = q @ k.transpose(-2, -1)
        att = F.softmax(energy, dim=-1) * self.scaling  #!
        return self.project((att @ v).transpose(1, 2).reshape(b, n, d))
class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(16), Attention(16, 2)
        self.head = nn.Linear(16, 3)
    def forward(self, x):
        return self.head((x + self.attention(self.norm(x))).mean(1))
vit = ViT()
optimizer = torch.optim.AdamW(vit.parameters(), lr=3e-3)
for step in range(120):
    rows = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(vit(patches[rows]), kind[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("F.softmax(energy, dim=-1) * self.scaling", "F.softmax(energy * self.scaling, dim=-1)"),),
        source="https://github.com/FrancescoSaverioZuppichini/ViT/issues/2"),
)  # fmt: skip  # scripts
