"""The fifth part: a round of faults from issues of public repositories, each written before the doctor had seen it."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("masks whose width and height are exchanged", (
        "labels do not belong to the inputs",
        "learns less than a probe",
    ), """
images = torch.randn(300, 1, 12, 12)
masks = (F.avg_pool2d(images, 3, 1, 1) > 0) * 1.0
class Dataset:
    def __init__(self, images, masks):
        self.images, self.masks = images, masks
    def __getitem__(self, rows):
        return self.images[rows], self.masks[rows].transpose(2, 3)  #!
data = Dataset(images, masks)
net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1)
)
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(120):
    image, mask = data[torch.randint(0, 300, (16,))]
    loss = F.binary_cross_entropy_with_logits(net(image), mask)  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", ((".transpose(2, 3)", ""),), source="https://github.com/stelzner/monet/issues/1"),
    Program("a minus too much before the divergence of categories", (
        "sign of the loss turned",
    ), """
data = (torch.rand(400, 20) < torch.rand(1, 20)) * 1.0
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 6))
        self.decode = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 20))
    def forward(self, x):
        logits = self.encode(x)
        gumbel = -torch.log(-torch.log(torch.rand(logits.shape) * 0.98 + 0.01))
        return self.decode(F.softmax(logits + gumbel, dim=-1)), F.softmax(logits, dim=-1)
def loss_function(output, x, qy):
    bce = F.binary_cross_entropy_with_logits(output, x, reduction="sum") / len(x)
    kld = -torch.sum(qy * (torch.log(qy + 1e-20) + 1.79)) / len(x)  #!
    return bce + 8 * kld  #!
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=3e-3)
for step in range(150):
    x = data[torch.randint(0, 400, (50,))]
    output, qy = vae(x)
    loss = loss_function(output, x, qy)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("-torch.sum(qy * (", "torch.sum(qy * ("),),
        source="https://github.com/dev4488/VAE_gumble_softmax/issues/1"),
    Program("positions added along the batch", ("examples mixed",), """
tokens = torch.randint(0, 20, (400, 10))
label = (tokens[:, 0] > tokens[:, 9]).long()
class PositionalEncoding(nn.Module):
    def __init__(self, width, longest=64):
        super().__init__()
        place = torch.arange(longest).unsqueeze(1) * 1.0
        rate = torch.exp(torch.arange(0, width, 2) * (-9.2 / width))
        self.register_buffer("pe", torch.cat([torch.sin(place * rate), torch.cos(place * rate)], 1).unsqueeze(1))
    def forward(self, x):
        return x + self.pe[:x.size(0)]  #!
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 32)
        self.place = PositionalEncoding(32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(32, 2)
    def forward(self, tokens):
        return self.head(self.encoder(self.place(self.embed(tokens))).mean(1))
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(150):
    rows = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(model(tokens[rows]), label[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("self.pe[:x.size(0)]", "self.pe[:x.size(1)].transpose(0, 1)"),),
        source="https://github.com/zcao0420/MOFormer/issues/9"),
    Program("the target of the state that was left", ("mask never used",), """
states = torch.randn(500, 4)
actions = torch.randint(0, 2, (500,))
next_states = states + 0.3 * (actions * 2 - 1).unsqueeze(1)
rewards = -next_states.abs().sum(1) / 4
q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target_q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target_q.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=3e-3)
def sample(count):
    rows = torch.randint(0, 500, (count,))
    return states[rows], actions[rows], rewards[rows], next_states[rows]
for step in range(200):
    state, action, reward, next_state = sample(32)  #!
    with torch.no_grad():
        target = reward + 0.9 * target_q(state).max(1)[0]  #!
    value = q(state).gather(1, action.unsqueeze(1)).squeeze(1)
    loss = F.smooth_l1_loss(value, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        target_q.load_state_dict(q.state_dict())
""", (("target_q(state)", "target_q(next_state)"),), source="https://github.com/mengf1/PAL/issues/1"),
    Program("InfoNCE without its temperature", ("outputs bounded before cross entropy",), """
base = torch.randn(512, 16)
encoder = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 16))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
def info_nce(one, two):
    one, two = F.normalize(one, dim=1), F.normalize(two, dim=1)
    scores = one @ two.t()
    return F.cross_entropy(scores, torch.arange(len(one)))  #!
for step in range(150):
    rows = torch.randperm(512)[:64]
    view1 = base[rows] + 0.2 * torch.randn(64, 16)
    view2 = base[rows] + 0.2 * torch.randn(64, 16)
    loss = info_nce(encoder(view1), encoder(view2))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("one @ two.t()", "one @ two.t() / 0.1"),), source="https://github.com/ustcllm/RecStudio/issues/21"),
    Program("the layer that joins the branches has no group", ("parameters without an optimizer",), """
x = torch.randn(500, 3, 8)
y = x.abs().sum(2).argmax(1)
class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(8, 24)
        self.down = nn.Linear(72, 24)
        self.head = nn.Linear(24, 3)
    def forward(self, x):
        return self.head(F.relu(self.down(F.relu(self.backbone(x)).flatten(1))))
def build_optimizer(model, rate):
    params = [{"params": [p for p in model.backbone.parameters() if p.requires_grad], "lr": 0.5 * rate}]
    params += [{"params": model.head.parameters(), "lr": rate}]
    return torch.optim.Adam(params, lr=rate)  #!
model = Tracker()
optimizer = build_optimizer(model, 3e-3)  #!
for step in range(150):
    rows = torch.randint(0, 500, (32,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (('"lr": rate}]', '"lr": rate}, {"params": model.down.parameters(), "lr": rate}]'),),
        source="https://github.com/ohhhyeahhh/SiamCAR/issues/18"),
    Program("a cosine whose length counts epochs, stepped per batch", ("schedule stepped for each batch",), """
x = torch.randn(640, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
epochs = 12
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)  #!
for epoch in range(epochs):
    order = torch.randperm(640)
    for at in range(0, 640, 40):
        rows = order[at:at + 40]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        scheduler.step()  #!
""", (("T_max=epochs", "T_max=epochs * 16"),), source="https://github.com/ScrollPrize/villa/pull/1495"),
    Program("tokens that predict themselves", ("targets seen by the model",), """
text = torch.cumsum(torch.randint(1, 4, (300, 17)), 1) % 12
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(32, 12)
    def forward(self, tokens):
        mask = torch.triu(torch.full((tokens.shape[1], tokens.shape[1]), float("-inf")), 1)
        return self.out(self.body(self.embed(tokens), mask=mask))
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(120):
    latent = text[torch.randint(0, 300, (16,))]
    logits = model(latent)  #!
    loss = F.cross_entropy(logits.reshape(-1, 12), latent.reshape(-1))  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("logits.reshape(-1, 12), latent.reshape(-1)", "logits[:, :-1].reshape(-1, 12), latent[:, 1:].reshape(-1)"),),
        source="https://github.com/Project-MONAI/GenerativeModels/issues/314"),
    Program("a gradient penalty without a graph of its own", ("loss term detached", "loss detached"), """
real_data = torch.randn(400, 4) * 0.5 + 1
critic = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 4))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
def penalty(real, fake):
    share = torch.rand(len(real), 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_(True)
    scores = critic(mixed)
    slopes = torch.autograd.grad(scores.sum(), mixed)[0]  #!
    return ((slopes.norm(2, dim=1) - 1) ** 2).mean()  #!
for step in range(120):
    real = real_data[torch.randint(0, 400, (32,))]
    fake = generator(torch.randn(32, 4)).detach()
    loss_c = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)  #!
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    if step % 3 == 2:
        loss_g = -critic(generator(torch.randn(32, 4))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
""", (("scores.sum(), mixed)", "scores.sum(), mixed, create_graph=True)"),),
        source="https://github.com/ooples/AiDotNet/issues/1844"),
    Program("frames and channels of a spectrogram mixed by view", (
        "axes mixed by a reshape", "axes mixed by a view",
    ), """
spectra = torch.randn(240, 1, 14, 10)
target = spectra[:, 0, :, :5].abs().mean(2)
class Separator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU())
        self.lstm = nn.LSTM(60, 24, batch_first=True)
        self.out = nn.Linear(24, 1)
    def forward(self, x):
        maps = self.conv(x)
        frames = maps.view(x.size(0), 14, -1)  #!
        return self.out(self.lstm(frames)[0]).squeeze(2)
model = Separator()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(100):
    rows = torch.randint(0, 240, (24,))
    loss = F.mse_loss(model(spectra[rows]), target[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("maps.view(x.size(0), 14, -1)", "maps.permute(0, 2, 1, 3).reshape(x.size(0), 14, -1)"),),
        source="https://github.com/yuqinie98/PatchTST/issues/31"),
    Program("time-major outputs flattened for the last layer", (
        "axes mixed by a reshape", "axes mixed by a view", "examples mixed",
    ), """
lines = torch.randint(0, 15, (300, 8))
tags = (lines * 2 + 1) % 5
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(15, 24)
        self.rnn = nn.GRU(24, 32)
        self.fc = nn.Linear(32, 5)
    def forward(self, lines):
        steps = self.embed(lines).transpose(0, 1)
        hidden, _ = self.rnn(steps)
        return self.fc(hidden.reshape(-1, 32))  #!
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(120):
    rows = torch.randint(0, 300, (20,))
    loss = F.cross_entropy(model(lines[rows]), tags[rows].reshape(-1))  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("hidden.reshape(-1, 32)", "hidden.transpose(0, 1).reshape(-1, 32)"),),
        source="https://github.com/TobiasLee/Chinese-Hip-pop-Generation/pull/8"),
    Program("a moving average bound to a local name", ("copy never updated",), """
import copy
x = torch.randn(400, 6)
y = x[:, :1] * x[:, 1:2]
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
ema_model = copy.deepcopy(model)  #!
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
def update_ema(model, ema_model, alpha):
    for ema_param, param in zip(ema_model.parameters(), model.parameters()):
        ema_param = alpha * ema_param.detach() + (1 - alpha) * param.detach()  #!
for step in range(150):
    rows = torch.randint(0, 400, (32,))
    out = model(x[rows] + 0.05 * torch.randn(32, 6))
    with torch.no_grad():
        steady = ema_model(x[rows])  #!
    loss = F.mse_loss(out, y[rows]) + 0.1 * F.mse_loss(out, steady)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_ema(model, ema_model, 0.95)
""", (("ema_param = alpha * ema_param.detach() + (1 - alpha) * param.detach()",
       "ema_param.data.copy_(alpha * ema_param.detach() + (1 - alpha) * param.detach())"),),
        source="https://github.com/neuropoly/domainadaptation/issues/1"),
    Program("the logarithms of all actions instead of the one taken", ("advantage of all actions",), """
states = torch.randn(600, 4)
actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)
for step in range(200):
    state = states[torch.randint(0, 600, (64,))]
    log_probs = F.log_softmax(actor(state), dim=1)
    action = torch.multinomial(log_probs.detach().exp(), 1)
    reward = (action[:, 0] == state[:, :3].argmax(1)) * 1.0
    value = critic(state).squeeze(1)
    advantage = (reward - value).detach()
    actor_loss = -(log_probs * advantage.unsqueeze(1)).mean()  #!
    loss = actor_loss + F.mse_loss(value, reward)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("-(log_probs * advantage.unsqueeze(1)).mean()", "-(log_probs.gather(1, action).squeeze(1) * advantage).mean()"),),
        source="https://github.com/muupan/async-rl/issues/12"),
)  # fmt: skip  # scripts
