"""Losses, last activations and shapes: faults that people reported, each with the answer they got."""

from __future__ import annotations

from tests.doctor.world.program import Program

_RATE = ("rate above the curvature", "rate unfit for the weights", "learning rate out of the usual")

PROGRAMS = (
    Program("softmax over the single number of a regression", ("softmax of one number", "output without input"), """
x = torch.rand(600, 3) * 2 - 1
y = x @ torch.tensor([[2.0], [1.0], [0.5]]) + 2.2
net = nn.Sequential(
    nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 1),
    nn.Softmax(dim=1),  #!
)
sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(200):
    part = torch.randint(0, 600, (40,))
    guess = net(x[part])  #!
    error = F.mse_loss(guess, y[part])
    sgd.zero_grad()
    error.backward()
    sgd.step()
""", (("    nn.Softmax(dim=1),\n", ""),), "oftmax", source="https://stackoverflow.com/questions/33969059"),
    Program("softmax over one unit before a binary loss", ("softmax of one number", "output without input"), """
waves = torch.randn(256, 1, 40)
kinds = (waves.mean((1, 2)) > 0) * 1.0
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 4, padding=2)
        self.a, self.b = nn.Linear(8 * 20, 24), nn.Linear(24, 1)
    def forward(self, w):
        w = F.max_pool1d(F.relu(self.conv(w)), 2).flatten(1)
        return torch.softmax(self.b(F.relu(self.a(w))), dim=1)  #!
net = Net()
opt = torch.optim.NAdam(net.parameters(), lr=2e-3)
for epoch in range(10):
    for at in range(0, 256, 16):
        p = net(waves[at:at + 16]).squeeze(1)
        loss = F.binary_cross_entropy(p, kinds[at:at + 16])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (
        ("torch.softmax(self.b(F.relu(self.a(w))), dim=1)",
         "torch.sigmoid(self.b(F.relu(self.a(w))))"),
    ), "oftmax", source="https://stackoverflow.com/questions/51749207"),
    Program("sigmoid at the end of a straight line", ("output cannot reach the targets", "saturated"), """
inputs = torch.linspace(-5, 5, 200).unsqueeze(1)
targets = 3 * inputs + 4
net = nn.Sequential(nn.Linear(1, 5), nn.Sigmoid(), nn.Linear(5, 1), nn.Sigmoid())  #!
mse = nn.MSELoss()
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(400):
    sgd.zero_grad()
    predicted = net(inputs)  #!
    loss = mse(predicted, targets)
    loss.backward()
    sgd.step()
""", (("nn.Linear(5, 1), nn.Sigmoid())", "nn.Linear(5, 1))"),), "igmoid",
            source="https://stackoverflow.com/questions/48221692"),
    Program("three kinds taught to one sigmoid", ("targets out of range", "labels out of range"), """
points = torch.randn(300, 6)
kinds = points[:, :3].argmax(1)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))  #!
bce = nn.BCEWithLogitsLoss()
rms = torch.optim.RMSprop(net.parameters(), lr=2e-3)
for epoch in range(15):
    for at in range(0, 300, 20):
        rms.zero_grad()
        loss = bce(net(points[at:at + 20]).squeeze(1), kinds[at:at + 20] * 1.0)  #!
        loss.backward()
        rms.step()
""", (
        ("nn.Linear(32, 1))", "nn.Linear(32, 3))"),
        ("nn.BCEWithLogitsLoss()", "nn.CrossEntropyLoss()"),
        ("bce(net(points[at:at + 20]).squeeze(1), kinds[at:at + 20] * 1.0)",
         "bce(net(points[at:at + 20]), kinds[at:at + 20])"),
    ), source="https://stackoverflow.com/questions/50079585"),
    Program("sigmoid for one of three flowers", ("softmax twice", "activation before its loss"), """
flowers = torch.rand(150, 4) * 2 - 1
species = (flowers @ torch.randn(4, 3)).argmax(1)
def baseline():
    return nn.Sequential(
        nn.Linear(4, 8), nn.ReLU(),
        nn.Linear(8, 3), nn.Sigmoid(),  #!
    )
model = baseline()
criterion = nn.CrossEntropyLoss()
adam = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(20):
    for rows in torch.randperm(150).split(10):
        out = model(flowers[rows])  #!
        loss = criterion(out, species[rows])  #!
        adam.zero_grad()
        loss.backward()
        adam.step()
""", ((", nn.Sigmoid(),", ","),), source="https://stackoverflow.com/questions/59278771"),
    Program("no activation anywhere, and a step of 3", ("linear layers in a row", *_RATE), """
digits = torch.rand(600, 64) * (torch.rand(600, 64) > 0.8)
kind = (digits[:, :32].sum(1) > digits[:, 32:].sum(1)) * 1
wanted = F.one_hot(kind, 2) * 1.0
first, second = nn.Linear(64, 30), nn.Linear(30, 2)
for layer in (first, second):
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
net = nn.Sequential(first, second)  #!
sgd = torch.optim.SGD(net.parameters(), lr=3.0)  #!
for epoch in range(8):
    for at in range(0, 600, 10):
        loss = F.mse_loss(net(digits[at:at + 10]), wanted[at:at + 10])  #!
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""", (
        ("nn.Sequential(first, second)", "nn.Sequential(first, nn.Sigmoid(), second)"),
        ("F.mse_loss(net(digits[at:at + 10]), wanted[at:at + 10])",
         "F.cross_entropy(net(digits[at:at + 10]), kind[at:at + 10])"),
    ), source="https://stackoverflow.com/questions/48385830"),
    Program("logistic loss for prices", ("targets out of range", "labels out of range", "targets unnormalised"), """
houses = torch.rand(300, 4) * 100
price = houses @ torch.tensor([1.0, 0.5, 0.2, 0.3]) + 20
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(200):
    some = torch.randint(0, 300, (30,))
    guess = net(houses[some]).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(guess, price[some])  #!
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""", (
        ("F.binary_cross_entropy_with_logits(guess, price[some])", "F.mse_loss(guess, price[some])"),
        ("[1.0, 0.5, 0.2, 0.3]) + 20\n",
         ("[1.0, 0.5, 0.2, 0.3]) + 20\n"
         "houses, price = (houses - houses.mean(0)) / houses.std(0), (price - price.mean()) / price.std()\n")),
    ), source="https://stackoverflow.com/questions/46642627"),
    Program("rectifiers that never fire again", (*_RATE, "dead units", "output without input"), """
x = torch.randn(512, 20)
y = (x @ torch.randn(20, 10)).argmax(1)
net = nn.Sequential(
    nn.Linear(20, 64), nn.ReLU(),
    nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.Adam(net.parameters(), lr=0.5)  #!
loss_fn = nn.CrossEntropyLoss()
for epoch in range(8):
    for batch in torch.randperm(512).split(32):
        optimizer.zero_grad()
        loss = loss_fn(net(x[batch]), y[batch])  #!
        loss.backward()
        optimizer.step()
""", (("lr=0.5", "lr=1e-3"),),
            source="https://discuss.pytorch.org/t/cross-entropy-loss-is-not-decreasing/43814/16"),
    Program("scores squeezed, labels in a column", ("broadcast in the loss",), """
texts = torch.randn(480, 12)
marks = (texts[:, :1] * 3 + texts[:, 1:2] + 8).clamp(0, 16)
class RegressionHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(12, 32), nn.Linear(32, 1)
    def forward(self, h):
        return self.out(torch.relu(self.body(h))).squeeze(-1)
head = RegressionHead()
mse = nn.MSELoss()
opt = torch.optim.AdamW(head.parameters(), lr=1e-2)
for step in range(250):
    ids = torch.randint(0, 480, (32,))
    loss = mse(head(texts[ids]), marks[ids])  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("mse(head(texts[ids]), marks[ids])", "mse(head(texts[ids]), marks[ids].squeeze(-1))"),),
            source="https://github.com/deepset-ai/FARM/issues/229"),
    Program("the loss of the last head only", ("loss overwritten", "no gradient",), """
faces = torch.randn(400, 10)
age = faces[:, :3].sum(1, keepdim=True)
smile = (faces[:, 3:] @ torch.randn(7, 2)).argmax(1)
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(10, 32)
        self.age, self.smile = nn.Linear(32, 1), nn.Linear(32, 2)
    def forward(self, x):
        h = torch.relu(self.trunk(x))
        return {"age": self.age(h), "smile": self.smile(h)}
two = Two()
criteria = {"age": nn.MSELoss(), "smile": nn.CrossEntropyLoss()}
opt = torch.optim.Adam(two.parameters(), lr=5e-3)
for step in range(200):
    ids = torch.randint(0, 400, (32,))
    out, wanted = two(faces[ids]), {"age": age[ids], "smile": smile[ids]}
    loss = 0.0
    for task, criterion in criteria.items():
        loss = criterion(out[task], wanted[task])  #!
    opt.zero_grad()
    loss.backward()  #!
    opt.step()
error = F.mse_loss(two(faces)["age"], age).item()
""", (("loss = criterion(out", "loss = loss + criterion(out"),), "last",
            source="https://github.com/vlfeat/matconvnet/pull/258"),
    Program("the entropy of the chosen action", (), """
states = torch.randn(400, 6)
best = states[:, :4].argmax(1)
actor = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
adam = torch.optim.Adam(actor.parameters(), lr=5e-3)
for step in range(300):
    s = torch.randint(0, 400, (64,))
    logp = F.log_softmax(actor(states[s]), 1)
    action = torch.multinomial(logp.detach().exp(), 1).squeeze(1)
    reward = (action == best[s]) * 1.0 - 0.25
    chosen = logp[torch.arange(64), action]
    entropy = -(chosen.exp() * chosen).sum()  #!
    loss = -(chosen * reward).mean() - 0.05 * entropy
    adam.zero_grad()
    loss.backward()
    adam.step()
accuracy = (actor(states).argmax(1) == best).sum().item() / 400
""", (("-(chosen.exp() * chosen).sum()", "-(logp.exp() * logp).sum(1).mean()"),),
            source="https://github.com/noahfarr/rlx/pull/3"),
)  # fmt: skip  # scripts
