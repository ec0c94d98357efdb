"""The fourth part of the faults of many kinds that were reported or that a manual warns of, gathered in rounds."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("the feature loss of the discriminator's own pass", (
        "no gradient",
        "loss term detached",
        "loss detached",
        "no gradients in a step",
    ), """
clean = torch.randn(256, 12)
noisy = clean + 0.3 * torch.randn(256, 12)
G = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 12))
first, last = nn.Sequential(nn.Linear(12, 24), nn.LeakyReLU(0.2)), nn.Linear(24, 1)
optim_g = torch.optim.Adam(G.parameters(), lr=1e-3)
optim_d = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=1e-3)
for step in range(120):
    rows = torch.randint(0, 256, (32,))
    fake, real = G(noisy[rows]), clean[rows]
    disc_real, disc_fake = first(real), first(fake.detach())
    loss_d = (last(disc_real) - 1).pow(2).mean() + last(disc_fake).pow(2).mean()
    optim_d.zero_grad()
    loss_d.backward()
    optim_d.step()
    disc_fake_g = first(fake)
    adversarial = (last(disc_fake_g) - 1).pow(2).mean()
    feature = F.l1_loss(disc_fake.detach(), first(real).detach())  #!
    loss_g = adversarial + 10 * feature  #!
    optim_g.zero_grad()
    loss_g.backward()
    optim_g.step()
""", (("F.l1_loss(disc_fake.detach(), first(real).detach())", "F.l1_loss(disc_fake_g, first(real).detach())"),),
        source="https://github.com/rishikksh20/TFGAN/issues/7"),
    Program("totals of losses that keep every graph", ("graph grows",), """
x = torch.randn(400, 10)
y = x[:, :4].argmax(1)
class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-3)
        self.criterion = nn.CrossEntropyLoss()
    def epoch(self):
        running_loss = 0.0
        for at in range(0, 400, 40):
            self.optimizer.zero_grad()
            outputs = self.net(x[at:at + 40])
            loss = self.criterion(outputs, y[at:at + 40])
            loss.backward()
            self.optimizer.step()
            running_loss = running_loss + loss * 40  #!
        return running_loss / 400
trainer = Trainer()
history = [trainer.epoch() for _ in range(10)]
""", (("loss * 40", "loss.item() * 40"),), source="https://pytorch.org/docs/stable/notes/faq.html"),
    Program("the rate of fine-tuning for a net from scratch", ("rate unfit for the weights",), """
x = torch.randn(600, 12)
y = (x[:, 0] * x[:, 1] > 0).long()
class LitModel:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    def training_step(self, batch):
        xb, yb = batch
        return F.cross_entropy(self.net(xb), yb)
    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters(), lr=1e-7)  #!
lit = LitModel()
optimizer = lit.configure_optimizers()  #!
for epoch in range(12):
    for at in range(0, 600, 40):
        optimizer.zero_grad()
        loss = lit.training_step((x[at:at + 40], y[at:at + 40]))
        loss.backward()
        optimizer.step()
""", (("lr=1e-7", "lr=1e-3"),), source="https://karpathy.github.io/2019/04/25/recipe/"),
    Program("nearly all of the last step kept as momentum", (
        "rate above the curvature",
        "rate unfit for the weights",
        "loss rises",
        "exploding gradient",
        "loss spikes",
    ), """
x = torch.randn(400, 8)
y = torch.sin(x[:, :1] * 2) + x[:, 1:2]
net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.999)  #!
for step in range(150):
    rows = torch.randint(0, 400, (32,))
    loss = F.mse_loss(net(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("momentum=0.999", "momentum=0.5"),), source="https://pytorch.org/docs/stable/generated/torch.optim.SGD.html"),
    Program("batch normalisation of the predictions", ("normalisation at the output",), """
x = torch.randn(500, 8)
y = 5 + 3 * x[:, :1] + x[:, 1:2] * x[:, 2:3]
net = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1), nn.BatchNorm1d(1, affine=False))  #!
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(250):
    rows = torch.randint(0, 500, (40,))
    loss = F.mse_loss(net(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", ((", nn.BatchNorm1d(1, affine=False)", ""),), source="https://pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html"),
    Program("a sigmoid decoder for standardised pixels", ("output cannot reach the targets",), """
pixels = torch.tanh(torch.randn(400, 4) @ torch.randn(4, 30))
class Auto(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 4))
        self.dec = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 30), nn.Sigmoid())
    def forward(self, x):
        return self.dec(self.enc(x))  #!
auto = Auto()
optimizer = torch.optim.Adam(auto.parameters(), lr=3e-3)
criterion = nn.MSELoss()
for step in range(150):
    x = pixels[torch.randint(0, 400, (40,))]
    loss = criterion(auto(x), x)  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("nn.Sigmoid()", "nn.Tanh()"),), source="https://pytorch.org/docs/stable/generated/torch.nn.Sigmoid.html"),
    Program("four fifths dropped behind each of four layers", ("dropout out of the usual",), """
x = torch.randn(600, 20)
y = (x[:, :3].sum(1) > 0).long()
layers = []
for size in (20, 64, 64, 64):
    layers += [nn.Linear(size, 64), nn.ReLU(), nn.Dropout(0.8)]  #!
net = nn.Sequential(*layers, nn.Linear(64, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(8):
    net.train()
    for at in range(0, 600, 40):
        loss = F.cross_entropy(net(x[at:at + 40]), y[at:at + 40])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("nn.Dropout(0.8)", "nn.Dropout(0.2)"),), source="https://pytorch.org/docs/stable/generated/torch.nn.Dropout.html"),
    Program("the encoder called in a block without gradients", ("no gradient", "gradient cut in forward"), """
x = torch.randn(400, 16)
y = (x[:, :4] ** 2).sum(1).gt(3.5).long()
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(16, 2))
    def forward(self, x):
        with torch.no_grad():  #!
            z = self.encoder(x)
        return self.head(z)
model = Two()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(120):
    rows = torch.randint(0, 400, (40,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("        with torch.no_grad():\n            z = ", "        z = "),), source="https://pytorch.org/docs/stable/generated/torch.no_grad.html"),
    Program("a rate divided by ten in each epoch", ("rate decays to nothing",), """
x = torch.randn(500, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.1)  #!
for epoch in range(20):
    for at in range(0, 500, 50):
        loss = F.cross_entropy(net(x[at:at + 50]), y[at:at + 50])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()  #!
""", (("gamma=0.1", "gamma=0.95"),), source="https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ExponentialLR.html"),
    Program("a map of classes whose softmax runs along its rows", ("softmax along the wrong axis",), """
images = torch.randn(120, 1, 8, 8)
smooth = F.avg_pool2d(images, 3, stride=1, padding=1)[:, 0]
classes = (smooth > -0.1).long() + (smooth > 0.1).long()
class Segment(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 1))
    def forward(self, x):
        return F.log_softmax(self.net(x), dim=-1)  #!
net = Segment()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(100):
    rows = torch.randint(0, 120, (12,))
    loss = F.nll_loss(net(images[rows]), classes[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("dim=-1", "dim=1"),), source="https://pytorch.org/docs/stable/generated/torch.nn.LogSoftmax.html"),
    Program("the logarithm of a variance that is not positive", ("logarithm of what can reach 0",), """
x = torch.randn(400, 5)
y = x[:, :1] + 0.3 * torch.randn(400, 1) * x[:, 1:2]
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
def gaussian_nll(mean, var, target):
    return (0.5 * torch.log(var) + 0.5 * (target - mean) ** 2 / var).mean()  #!
for step in range(60):
    rows = torch.randint(0, 400, (40,))
    out = net(x[rows])
    loss = gaussian_nll(out[:, :1], out[:, 1:], y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("out[:, 1:], y", "F.softplus(out[:, 1:]) + 1e-3, y"),), source="https://pytorch.org/docs/stable/generated/torch.nn.GaussianNLLLoss.html"),
    Program("vectors of words loaded and frozen without saying", (
        "frozen layers",
        "nearly everything frozen",
    ), """
ids = torch.randint(0, 50, (300, 6))
topic = (ids[:, 0] % 3)
vectors = torch.randn(50, 24)
class Topic(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(vectors)  #!
        self.out = nn.Linear(24, 3)
    def forward(self, x):
        return self.out(self.embed(x).mean(1))
model = Topic()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(120):
    rows = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(model(ids[rows]), topic[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("from_pretrained(vectors)", "from_pretrained(vectors, freeze=False)"),), source="https://pytorch.org/docs/stable/generated/torch.nn.Embedding.html"),
)  # fmt: skip  # scripts
