"""Reported faults of programs with two models or two optimizers, of variational losses and of value targets."""

from __future__ import annotations

from tests.doctor.world.program import Program

_RING = """
ring = torch.randn(512, 2)
ring = F.normalize(ring, dim=1) * 2 + 0.05 * torch.randn(512, 2)
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(32, 1), torch.zeros(32, 1)
"""
_MODELS = """
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
"""
_ROUND = """
for step in range(120):
    real, made = ring[torch.randint(0, 512, (32,))], generator(torch.randn(32, 4))
    optimizer_d.zero_grad()
    loss_d = bce(discriminator(real), one) + bce(discriminator(made.detach()), zero)
    loss_d.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    loss_g = bce(discriminator(made), one)
    loss_g.backward()
    optimizer_g.step()
"""
_MARKED = (
    _ROUND.replace("range(120)", "range(200)")
    .replace("made), one)", "made), one)  #!")
    .replace("), zero)", "), zero)  #!")
)
_OTHERS = (
    "optimizer of another model",
    "layers nobody trains",
    "no gradients in a step",
    "gradients never used",
    "no step",
)
_WON = ("discriminator has won",)

PROGRAMS = (
    Program("the discriminator's optimizer has the generator", _OTHERS, _RING + _MODELS + """
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))  #!
""" + _ROUND, (("optimizer_d = torch.optim.Adam(generator", "optimizer_d = torch.optim.Adam(discriminator"),),
        source="https://github.com/bohaohuang/mrs/issues/68"),
    Program("both optimizers made from one network", _OTHERS, _RING + _MODELS + """
options = {"lr": 2e-3}
optimizer_d = torch.optim.RMSprop(discriminator.parameters(), **options)
optimizer_g = torch.optim.RMSprop(discriminator.parameters(), **options)  #!
""" + _ROUND, (("optimizer_g = torch.optim.RMSprop(discriminator", "optimizer_g = torch.optim.RMSprop(generator"),),
        source="https://github.com/zhaoyuzhi/deepfillv2/pull/3"),
    Program("the discriminator never steps", ("no step", "gradients never used"), _RING + _MODELS + """
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3)  #!
for step in range(120):
    real, made = ring[torch.randint(0, 512, (32,))], generator(torch.randn(32, 4))
    optimizer_d.zero_grad()
    loss_d = bce(discriminator(real), one) + bce(discriminator(made.detach()), zero)
    loss_d.backward()  #!
    optimizer_g.zero_grad()
    loss_g = bce(discriminator(made), one)
    loss_g.backward()
    optimizer_g.step()
""", (("    loss_d.backward()", "    loss_d.backward()\n    optimizer_d.step()"),),
        source="https://github.com/zhaoyuzhi/deepfillv2/issues/6"),
    Program("encoder and decoder under each other's names", _OTHERS, """
x = torch.randn(400, 6)
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
trainer_g = torch.optim.Adam(encoder.parameters(), lr=5e-3)  #!
trainer_e = torch.optim.Adam(decoder.parameters(), lr=5e-3)  #!
for step in range(120):
    part = x[torch.randint(0, 400, (40,))]
    code = encoder(part)
    trainer_g.zero_grad()
    F.mse_loss(decoder(code.detach()), part).backward()
    trainer_g.step()  #!
    trainer_e.zero_grad()
    F.mse_loss(decoder(code), part).backward()
    trainer_e.step()  #!
""", (("trainer_g = torch.optim.Adam(encoder", "trainer_g = torch.optim.Adam(decoder"),
     ("trainer_e = torch.optim.Adam(decoder", "trainer_e = torch.optim.Adam(encoder")),
        source="https://github.com/wiseodd/controlled-text-generation/issues/15"),
    Program("a discriminator far too strong", _WON, _RING + """
generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
discriminator = nn.Sequential(nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer_g = torch.optim.SGD(generator.parameters(), lr=1e-5)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-2)  #!
""" + _MARKED, (
        ("nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)", "nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 2)"),
        ("nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)",
         "nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1)"),
        ("torch.optim.SGD(generator.parameters(), lr=1e-5)", "torch.optim.Adam(generator.parameters(), lr=3e-3)"),
        ("lr=1e-2)", "lr=1e-3)"),
    ), source="https://github.com/soumith/ganhacks/issues/2"),
    Program("three steps of the discriminator and a tiny generator", _WON, _RING + """
generator = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
discriminator = nn.Sequential(nn.Linear(2, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-5)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=5e-3)  #!
for step in range(120):
    for inner in range(3):
        real, made = ring[torch.randint(0, 512, (32,))], generator(torch.randn(32, 4))
        loss_d = bce(discriminator(real), one) + bce(discriminator(made.detach()), zero)  #!
        optimizer_d.zero_grad()
        loss_d.backward()
        optimizer_d.step()
    made = generator(torch.randn(32, 4))
    loss_g = bce(discriminator(made), one)  #!
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
""", (
        ("range(3)", "range(1)"),
        ("nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)", "nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 2)"),
        ("nn.Linear(2, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1)",
         "nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1)"),
        ("lr=1e-5", "lr=3e-3"), ("lr=5e-3", "lr=1e-3"),
    ), source="https://github.com/junyanz/pytorch-CycleGAN-and-pix2pix/issues/626"),
    Program("the divergence of the whole batch for each example", ("loss terms of unequal size",), """
x = torch.randn(400, 8)
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(8, 8), nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
    def forward(self, x):
        mean, log_var = self.encode(x).chunk(2, 1)
        z = mean + torch.exp(0.5 * log_var) * torch.randn(len(x), 4)
        return self.decode(z), mean, log_var
net = Vae()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(150):
    part = x[torch.randint(0, 400, (64,))]
    made, mean, log_var = net(part)
    kl = -0.5 * torch.sum(1 + log_var - mean ** 2 - torch.exp(log_var)) * torch.ones(64)  #!
    loss = (((made - part) ** 2).sum(1) + kl).mean()  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("torch.exp(log_var)) * torch.ones(64)", "torch.exp(log_var), dim=1) * torch.ones(64)"),),
        source="https://github.com/EDAPINENUT/GNTPP/issues/4"),
    Program("the target network is the network itself", ("target moves with the model",), """
states, nexts = torch.randn(400, 4), torch.randn(400, 4)
actions = torch.randint(0, 2, (400,))
rewards = torch.where(actions == 0, states[:, 0], -states[:, 0])
moving = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam(moving.parameters(), lr=1e-3)
for step in range(200):
    if step % 40 == 0:
        target.load_state_dict(moving.state_dict())
        target = moving  #!
    part = torch.randint(0, 400, (32,))
    with torch.no_grad():
        goal = rewards[part] + 0.9 * torch.amax(target(nexts[part]), 1)  #!
    value = moving(states[part])[torch.arange(32), actions[part]]
    loss = F.mse_loss(value, goal)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("        target = moving\n", ""),), source="https://github.com/andri27-ts/Reinforcement-Learning/issues/14"),
)  # fmt: skip  # scripts
