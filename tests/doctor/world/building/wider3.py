"""The third part of the faults of many kinds that were reported or that a manual warns of, gathered in rounds."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("a generator without the part that is only adversarial", (
        "no gradient",
        "no gradients in a step",
        "loss detached",
        "never updated",
    ), """
before, after = torch.randn(256, 10), torch.randn(256, 10)
change = (before - after).abs()
net_g = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))
net_d = nn.Sequential(nn.Linear(10, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())
optimizer_g = torch.optim.Adam(net_g.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(net_d.parameters(), lr=2e-3, betas=(0.5, 0.999))
bce = nn.BCELoss()
for step in range(100):
    rows = torch.randint(0, 256, (32,))
    fake = net_g(torch.cat([before[rows], after[rows]], 1))
    optimizer_d.zero_grad()
    err_d = bce(net_d(change[rows]), torch.ones(32, 1)) + bce(net_d(fake.detach()), torch.zeros(32, 1))
    err_d.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    pred_fake = net_d(fake.detach())  #!
    err_g = bce(pred_fake, torch.ones(32, 1))
    err_g.backward()  #!
    optimizer_g.step()  #!
""", (("pred_fake = net_d(fake.detach())", "pred_fake = net_d(fake)"),),
        source="https://github.com/wangle53/CSA-CDGAN/issues/5"),
    Program("zeros for real and ones for both kinds of fakes", (
        "generator helps its judge",
        "discriminator has won",
    ), """
ring = F.normalize(torch.randn(512, 2), dim=1) * 2
def adv_loss(x, is_real):
    target = torch.zeros_like(x) if is_real else torch.ones_like(x)  #!
    return F.binary_cross_entropy_with_logits(x, target)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3)
for step in range(200):
    real, fake = ring[torch.randint(0, 512, (32,))], generator(torch.randn(32, 4))
    g_loss = adv_loss(discriminator(fake), False)  #!
    optimizer_g.zero_grad()
    g_loss.backward()
    optimizer_g.step()
    d_loss = 0.5 * (adv_loss(discriminator(real), True) + adv_loss(discriminator(fake.detach()), False))
    optimizer_d.zero_grad()
    d_loss.backward()
    optimizer_d.step()
""", (("torch.zeros_like(x) if is_real else torch.ones_like(x)", "torch.ones_like(x) if is_real else torch.zeros_like(x)"), ("discriminator(fake), False)", "discriminator(fake), True)")),
        source="https://github.com/https-deeplearning-ai/GANs-Public/issues/1"),
    Program("parameter groups built and not appended", ("parameters without an optimizer",), """
text, tag = torch.randint(0, 40, (300, 8)), torch.randint(0, 5, (300, 8))
tag = text % 5
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(40, 16), nn.GRU(16, 24, batch_first=True)
        self.fc = nn.Linear(24, 5)
    def forward(self, x):
        return self.fc(self.rnn(self.embed(x))[0])
model = Tagger()
parameters = []
params = {"lr": 3e-3, "weight_decay": 1e-2}
params["params"] = [p for name, p in model.named_parameters() if "embed" in name or "rnn" in name]
parameters.append(params)
params = {"lr": 5e-2}
params["params"] = [p for name, p in model.named_parameters() if "fc" in name]
optimizer = torch.optim.AdamW(parameters)  #!
for step in range(120):
    rows = torch.randint(0, 300, (25,))
    loss = F.cross_entropy(model(text[rows]).reshape(-1, 5), tag[rows].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("optimizer = torch.optim.AdamW(parameters)", "parameters.append({**params, 'lr': 3e-3})\noptimizer = torch.optim.AdamW(parameters)"),),
        source="https://github.com/zjunlp/HVPNeT/issues/5"),
    Program("the optimizer of an autoencoder has its encoder", (
        "parameters without an optimizer",
        "layers nobody trains",
    ), """
data = torch.randn(400, 4) @ torch.randn(4, 16)
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16))  #!
optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)  #!
for step in range(150):
    x = data[torch.randint(0, 400, (40,))]
    loss = F.mse_loss(decoder(encoder(x)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("torch.optim.Adam(encoder.parameters(), lr=3e-3)", "torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)"),),
        source="https://github.com/cabralpinto/modular-diffusion/issues/17"),
    Program("the loss of all nodes, of the test too", ("mask never used", "test examples in the loss"), """
n = 200
features = torch.randn(n, 12)
links = (torch.rand(n, n) < 0.03).float()
links = ((links + links.T + torch.eye(n)) > 0).float()
adjacency = links / links.sum(1, keepdim=True)
labels = (adjacency @ features)[:, :3].argmax(1)
train_mask, test_mask = torch.arange(n) < 120, torch.arange(n) >= 120
class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(12, 32), nn.Linear(32, 3)
    def forward(self, x, a):
        return self.two(a @ F.relu(self.one(a @ x)))
gcn = GCN()
optimizer = torch.optim.Adam(gcn.parameters(), lr=1e-2)
for epoch in range(120):
    logits = gcn(features, adjacency)
    loss = F.cross_entropy(logits, labels)  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    accuracy = (logits[test_mask].argmax(1) == labels[test_mask]).float().mean()
""", (("F.cross_entropy(logits, labels)", "F.cross_entropy(logits[train_mask], labels[train_mask])"),),
        source="https://github.com/awslabs/realtime-fraud-detection-with-gnn-on-dgl/pull/728"),
    Program("sequences of one step for an LSTM", ("sequence of one step",), """
load = torch.randn(400, 12)
following = load[:, :3].mean(1, keepdim=True) - load[:, -1:]
class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 32, batch_first=True)  #!
        self.fc = nn.Linear(32, 1)
    def forward(self, x):
        out, _ = self.lstm(x.unsqueeze(1))  #!
        return self.fc(out[:, -1])
model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for at in range(0, 400, 40):
        loss = F.mse_loss(model(load[at:at + 40]), following[at:at + 40])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("nn.LSTM(12, 32, batch_first=True)", "nn.LSTM(1, 32, batch_first=True)"), ("x.unsqueeze(1)", "x.unsqueeze(2)")),
        source="https://github.com/dafrie/lstm-load-forecasting/issues/3"),
    Program("errors summed over a large batch", (
        "rate unfit for the weights",
        "exploding gradient",
        "rate above the curvature",
        "loss rises",
    ), """
x = torch.randn(1024, 8)
y = x @ torch.randn(8, 1) + 0.3 * torch.sin(3 * x[:, :1])
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)  #!
for epoch in range(8):
    for at in range(0, 1024, 128):
        prediction = net(x[at:at + 128])
        loss = ((prediction - y[at:at + 128]) ** 2).sum()  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", ((".sum()", ".mean()"),), source="https://github.com/jax-ml/jax/pull/3113"),
    Program("thawed after the backward pass and frozen again", (
        "no gradients in a step",
        "no gradient",
        "nearly everything frozen",
        "frozen layers",
        "never updated",
    ), """
places = torch.randn(300, 14)
area = places[:, :4].argmax(1)
backbone = nn.Sequential(nn.Linear(14, 32), nn.ReLU())
encoder = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
head = nn.Linear(32, 4)
model = nn.Sequential(backbone, encoder, head)
optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=1e-3)
optim_encoder = torch.optim.Adam(encoder.parameters(), lr=1e-3)  #!
for p in encoder.parameters():
    p.requires_grad_(False)  #!
for step in range(100):
    rows = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(model(places[rows]), area[rows])
    optimizer.zero_grad()
    optim_encoder.zero_grad()
    loss.backward()
    optimizer.step()
    for p in encoder.parameters():
        p.requires_grad_(True)
    optim_encoder.step()  #!
    for p in encoder.parameters():
        p.requires_grad_(False)  #!
""", (("    p.requires_grad_(False)\nfor step", "    p.requires_grad_(True)\nfor step"), ("        p.requires_grad_(False)\n", "        p.requires_grad_(True)\n")),
        source="https://github.com/Lu-Feng/SuperVLAD/issues/1"),
    Program("the boundary's error computed and left out", ("loss term never used", "result never used"), """
inner = torch.rand(200, 1) * 2 - 1
edge = torch.tensor([[-1.0], [1.0]])
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
step_size = 0.05
for step in range(150):
    x = inner[torch.randint(0, 200, (50,))]
    second = (net(x + step_size) - 2 * net(x) + net(x - step_size)) / step_size ** 2
    loss_pde = F.mse_loss(second, -torch.sin(3 * x))
    loss_bc = F.mse_loss(net(edge), torch.ones(2, 1))  #!
    loss = loss_pde  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("loss = loss_pde\n", "loss = loss_pde + loss_bc\n"),), source="https://github.com/zenoxml/SciREX/issues/62"),
    Program("a latent without a bound for raw sizes", ("inputs unnormalised",), """
import numpy as np
rng = np.random.RandomState(0)
table = np.stack([rng.normal(40, 12, 400), rng.lognormal(10, 1, 400), rng.randint(0, 3, 400), rng.normal(0, 900, 400)], 1)
rows = torch.from_numpy(table.astype("float32"))
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.ReLU())
        self.mean, self.log_var = nn.Linear(32, 2), nn.Linear(32, 2)
        self.decode = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 4))
    def forward(self, x):
        h = self.body(x)
        mean, log_var = self.mean(h), self.log_var(h)
        return self.decode(mean + torch.randn(len(x), 2) * (0.5 * log_var).exp()), mean, log_var
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
for step in range(60):
    x = rows[torch.randint(0, 400, (32,))]
    out, mean, log_var = vae(x)  #!
    kl = -0.5 * (1 + log_var - mean ** 2 - log_var.exp()).sum(1).mean()
    loss = F.mse_loss(out, x) + kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("rows = torch.from_numpy(table.astype(\"float32\"))", "table = (table - table.mean(0)) / table.std(0)\nrows = torch.from_numpy(table.astype(\"float32\"))"),),
        source="https://github.com/vanderschaarlab/synthcity/issues/331"),
    Program("anchors without a positive", ("division by 0", "loss not finite"), """
vectors = torch.randn(200, 16)
label = torch.randint(0, 40, (200,))
tower = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(tower.parameters(), lr=1e-3)
for step in range(60):
    rows = torch.randint(0, 200, (24,))
    z = F.normalize(tower(vectors[rows]), dim=1)
    logits = z @ z.T / 0.2
    itself = torch.eye(24)
    same = (label[rows][:, None] == label[rows][None]).float() * (1 - itself)
    log_prob = logits - torch.log((torch.exp(logits) * (1 - itself)).sum(1, keepdim=True))
    mean_log_prob = (same * log_prob).sum(1) / same.sum(1)  #!
    loss = -mean_log_prob.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("/ same.sum(1)", "/ torch.clamp(same.sum(1), min=1.0)"),),
        source="https://github.com/HobbitLong/SupContrast/pull/142"),
    Program("cosines into cross entropy without a temperature", ("outputs bounded before cross entropy",), """
base = torch.randn(400, 12)
tower = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 16))
optimizer = torch.optim.Adam(tower.parameters(), lr=2e-3)
for step in range(200):
    x = base[torch.randperm(400)[:64]]
    one = F.normalize(tower(x + 0.05 * torch.randn(64, 12)), dim=1)
    two = F.normalize(tower(x + 0.05 * torch.randn(64, 12)), dim=1)
    similarity = one @ two.T  #!
    loss = F.cross_entropy(similarity, torch.arange(64))  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("one @ two.T", "one @ two.T / 0.1"),), source="https://github.com/huiserwang/ContrastMask/issues/4"),
    Program("weights that favour the class there is most of", ("class weights favour the frequent",), """
x = torch.randn(800, 10)
y = (x[:, 0] + x[:, 1] > 1.9).long()
counts = torch.tensor([float((y == k).sum()) for k in range(2)])
weights = counts / counts.sum()  #!
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss(weight=weights)  #!
for step in range(150):
    rows = torch.randint(0, 800, (40,))
    loss = criterion(net(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("weights = counts / counts.sum()", "weights = counts.sum() / counts / 2"),),
        source="https://pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html"),
    Program("embeddings normalised along the batch", ("examples mixed",), """
faces = torch.randn(400, 20)
person = (faces @ torch.randn(20, 6)).argmax(1)
class FaceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 12))
        self.head = nn.Linear(12, 6)
    def forward(self, x):
        z = self.body(x)
        z = z / z.norm(dim=0, keepdim=True)  #!
        return self.head(z * 4)
net = FaceNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(12):
    order = torch.randperm(400)
    for at in range(0, 400, 40):
        rows = order[at:at + 40]
        loss = F.cross_entropy(net(faces[rows]), person[rows])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("z.norm(dim=0, keepdim=True)", "z.norm(dim=1, keepdim=True)"),),
        source="https://pytorch.org/docs/stable/generated/torch.nn.functional.normalize.html"),
    Program("a padding mask that hides the words", (
        "mask inverted",
        "learns less than a probe",
        "labels do not belong to the inputs",
    ), """
ids = torch.randint(1, 25, (300, 9))
length = torch.randint(4, 10, (300,))
real = torch.arange(9)[None] < length[:, None]
ids = torch.where(real, ids, torch.zeros_like(ids))
label = (ids[:, 0] + ids[:, 1] > 25).long()
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(25, 16, padding_idx=0), nn.Parameter(0.1 * torch.randn(9, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder, self.out = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(16, 2)
    def forward(self, x):
        h = self.encoder(self.embed(x) + self.place, src_key_padding_mask=(x != 0))  #!
        return self.out(h[:, 0])
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(120):
    rows = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(model(ids[rows]), label[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("src_key_padding_mask=(x != 0)", "src_key_padding_mask=(x == 0)"),),
        source="https://pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html"),
    Program("a copy of the model goes on, the optimizer stays", (
        "optimizer of another model",
        "parameters without an optimizer",
        "no gradients in a step",
    ), """
import copy
x = torch.randn(300, 8)
y = x[:, :3].argmax(1)
pretrained = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(pretrained.parameters(), lr=3e-3)
model = copy.deepcopy(pretrained)  #!
for step in range(100):
    rows = torch.randint(0, 300, (30,))
    loss = F.cross_entropy(model(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #!
""", (("model = copy.deepcopy(pretrained)", "model = pretrained"),),
        source="https://pytorch.org/docs/stable/optim.html"),
    Program("the momentum given where the rate belongs", (
        "learning rate out of the usual",
        "rate unfit for the weights",
    ), """
x = torch.randn(400, 10)
y = (x[:, :2].sum(1) > 0).long()
net = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 2))
optimizer = torch.optim.RMSprop(net.parameters(), 0.9)  #!
for step in range(120):
    rows = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("net.parameters(), 0.9", "net.parameters(), 0.001"),),
        source="https://pytorch.org/docs/stable/generated/torch.optim.RMSprop.html"),
    Program("what is to be predicted stands among the columns", ("target among the inputs",), """
import numpy as np
rng = np.random.RandomState(0)
frame = rng.randn(600, 7).astype("float32")
frame[:, 6] = frame[:, 0] * 2 - frame[:, 1] + 0.5 * rng.randn(600)
features = torch.from_numpy(frame)  #!
price = torch.from_numpy(frame[:, 6:7].copy())
model = nn.Sequential(nn.Linear(features.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    for at in range(0, 480, 40):
        loss = F.mse_loss(model(features[at:at + 40]), price[at:at + 40])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        held = F.mse_loss(model(features[480:]), price[480:])
""", (("torch.from_numpy(frame)", "torch.from_numpy(frame[:, :6].copy())"),),
        source="https://github.com/Nixtla/neuralforecast/issues/1442"),
    Program("a forecast of the last value that went in", ("target among the inputs",), """
series = torch.cumsum(torch.randn(700) * 0.3, 0)
series = (series - series.mean()) / series.std()
window = 8
inputs = torch.stack([series[at:at + window] for at in range(600)])
targets = torch.stack([series[at + window - 1] for at in range(600)])[:, None]  #!
net = nn.Sequential(nn.Linear(window, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(150):
    rows = torch.randint(0, 500, (40,))
    loss = F.mse_loss(net(inputs[rows]), targets[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("series[at + window - 1]", "series[at + window]"),),
        source="https://github.com/sktime/pytorch-forecasting/issues/182"),
    Program("a plateau of the accuracy in the mode of losses", (
        "plateau in the wrong mode",
        "rate decays to nothing",
    ), """
x = torch.randn(500, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1)  #!
for epoch in range(24):
    for at in range(0, 400, 40):
        loss = F.cross_entropy(net(x[at:at + 40]), y[at:at + 40])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_acc = (net(x[400:]).argmax(1) == y[400:]).float().mean().item()
    scheduler.step(val_acc)  #!
""", (("optimizer, factor=0.1, patience=1)", "optimizer, 'max', factor=0.1, patience=8)"),),
        source="https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html"),
)  # fmt: skip  # scripts
