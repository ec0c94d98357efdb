"""Rates, and what layers do in training and in evaluation."""

from __future__ import annotations

from tests.doctor.world.program import Program

_RATE = ("rate above the curvature", "rate unfit for the weights", "learning rate out of the usual")

PROGRAMS = (
    Program("tested, never put back to training", ("evaluation mode in training",), """
x = torch.randn(480, 20) * 3 + 1
y = (x[:, :10].sum(1) > x[:, 10:].sum(1)) * 1
model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
def train(rows):
    for batch in rows.split(32):
        loss = F.cross_entropy(model(x[batch]), y[batch])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
def test(rows):
    model.eval()  #!
    with torch.no_grad():
        return (model(x[rows]).argmax(1) == y[rows]).sum().item() / len(rows)
for epoch in range(8):
    train(torch.randperm(400))
    accuracy = test(torch.arange(400, 480))  #!
""", (("def train(rows):\n", "def train(rows):\n    model.train()\n"),),
            source="https://github.com/pytorch/tutorials/pull/1602"),
    Program("validated with half of the units away", ("training mode in evaluation",), """
digits = torch.randn(500, 30)
name = (digits @ torch.randn(30, 5)).argmax(1)
class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.drop = nn.Linear(30, 64), nn.Linear(64, 5), nn.Dropout(0.5)
    def forward(self, d):
        return self.fc2(self.drop(F.relu(self.fc1(d))))
mlp = MLP()
adam = torch.optim.Adam(mlp.parameters(), lr=3e-3)
lowest = float("inf")
for epoch in range(12):
    mlp.train()
    for part in torch.randperm(400).split(20):
        adam.zero_grad()
        F.cross_entropy(mlp(digits[part]), name[part]).backward()
        adam.step()
    with torch.no_grad():
        held = F.cross_entropy(mlp(digits[400:]), name[400:]).item()  #!
    lowest = min(lowest, held)
""", (("    with torch.no_grad():", "    mlp.eval()\n    with torch.no_grad():"),),
            source="https://github.com/udacity/deep-learning-v2-pytorch/issues/3"),
    Program("results that depend on how many are asked at once", ("training mode in evaluation",), """
pose = torch.randn(320, 1, 8, 8) + torch.randn(320, 1, 1, 1) * 2 + 3
target = pose.mean((1, 2, 3)) * 2
net = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
    nn.Flatten(), nn.Linear(288, 1),
)
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(150):
    rows = torch.randint(0, 256, (32,))
    opt.zero_grad()
    F.mse_loss(net(pose[rows]).squeeze(1), target[rows]).backward()
    opt.step()
    if step % 30 == 29:
        with torch.no_grad():
            held = sum(F.mse_loss(net(pose[i:i + 1]).squeeze(1), target[i:i + 1]).item()  #!
                       for i in range(256, 320)) / 64
        net.train()
""", (("        with torch.no_grad():", "        net.eval()\n        with torch.no_grad():"),),
            source="https://github.com/ly015/intrinsic_flow/issues/1"),
    Program("dropout of a function, on for ever", ("dropout in evaluation", "training mode in evaluation"), """
fields = torch.randn(400, 3, 8)
click = (fields[:, 0] * fields[:, 1]).sum(1, keepdim=True).gt(0) * 1.0
class Attentional(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.project, self.fc = nn.Linear(8, 16), nn.Linear(16, 1), nn.Linear(8, 1)
    def forward(self, v):
        pairs = torch.stack([v[:, i] * v[:, j] for i in range(3) for j in range(i)], 1)
        scores = torch.softmax(self.project(torch.relu(self.attention(pairs))), 1)
        scores = F.dropout(scores, p=0.3)  #!
        return self.fc((scores * pairs).sum(1))
model = Attentional()
adam = torch.optim.Adam(model.parameters(), lr=2e-2)
for epoch in range(8):
    model.train()
    for part in torch.randperm(320).split(32):
        loss = F.binary_cross_entropy_with_logits(model(fields[part]), click[part])
        adam.zero_grad()
        loss.backward()
        adam.step()
    model.eval()
    with torch.no_grad():
        held = F.binary_cross_entropy_with_logits(model(fields[320:]), click[320:]).item()  #!
""", (("F.dropout(scores, p=0.3)", "F.dropout(scores, p=0.3, training=self.training)"),), "ropout",
            source="https://github.com/rixwew/pytorch-fm/issues/21"),
    Program("half of the text hidden in use", ("dropout in evaluation", "training mode in evaluation"), """
text = torch.randn(360, 40)
topic = (text @ torch.randn(40, 3)).argmax(1)
class Surnames(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(40, 80), nn.Linear(80, 3)
    def forward(self, x_in):
        intermediate = F.relu(self.fc1(x_in))
        return self.fc2(F.dropout(intermediate, p=0.5))  #!
net = Surnames()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(10):
    net.train()
    for at in range(0, 300, 30):
        opt.zero_grad()
        F.cross_entropy(net(text[at:at + 30]), topic[at:at + 30]).backward()
        opt.step()
    net.eval()
    accuracy = (net(text[300:]).argmax(1) == topic[300:]).sum().item() / 60  #!
""", (("F.dropout(intermediate, p=0.5)", "F.dropout(intermediate, p=0.5, training=self.training)"),), "ropout",
            source="https://github.com/delip/PyTorchNLPBook/issues/28"),
    Program("dropout in front of batch normalisation", ("running statistics do not arrive",), """
frames = torch.randn(400, 12)
state = frames.pow(2).sum(1, keepdim=True) - 12
net = nn.Sequential(
    nn.Linear(12, 64), nn.ReLU(),
    nn.Dropout(0.5), nn.BatchNorm1d(64),  #!
    nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1),
)
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(15):
    net.train()
    for part in torch.randperm(320).split(32):
        loss = F.mse_loss(net(frames[part]), state[part])
        adam.zero_grad()
        loss.backward()
        adam.step()
    net.eval()
    with torch.no_grad():
        held = F.mse_loss(net(frames[320:]), state[320:]).item()  #!
""", (("nn.Dropout(0.5), nn.BatchNorm1d(64),", "nn.BatchNorm1d(64), nn.Dropout(0.5),"),), "ropout",
            source="https://github.com/luigibonati/mlcolvar/pull/205"),
    Program("batch normalisation of one picture", ("running statistics do not arrive",), """
pictures = torch.randn(300, 1, 6, 6) + torch.randn(300, 1, 1, 1)
bright = (pictures.mean((1, 2, 3)) > 0) * 1
net = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),  #!
    nn.Flatten(), nn.Linear(128, 2),
)
minibatch = 1  #!
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for epoch in range(2):
    net.train()
    for rows in torch.randperm(240).split(minibatch):
        opt.zero_grad()
        F.cross_entropy(net(pictures[rows]), bright[rows]).backward()  #!
        opt.step()
    net.eval()
    accuracy = (net(pictures[240:]).argmax(1) == bright[240:]).sum().item() / 60
""", (("minibatch = 1", "minibatch = 16"), ("range(2)", "range(20)")), "batch",
            source="https://github.com/microsoft/CNTK/issues/905"),
    Program("four fifths of the last layer dropped", ("dropout out of the usual", "underfitting"), """
images = torch.randn(300, 1, 8, 8)
grade = (images[:, 0, :4].mean((1, 2)) * 3).clamp(-1, 1).round().long() + 1
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2),
    nn.Conv2d(16, 16, 3, padding=1), nn.Dropout(0.25), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64, 32), nn.ReLU(),
    nn.Dropout(0.8),  #!
    nn.Linear(32, 3),
)
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(10):
    for part in torch.randperm(300).split(30):
        loss = F.cross_entropy(net(images[part]), grade[part])  #!
        adam.zero_grad()
        loss.backward()
        adam.step()
""", (
        (", nn.Dropout(0.2),\n", ",\n"),
        ("nn.Dropout(0.25), ", ""),
        ("nn.Dropout(0.8)", "nn.Dropout(0.2)"),
    ), "ropout", source="https://stackoverflow.com/questions/60566498"),
    Program("a rate that moves nothing", ("rate unfit for the weights", "learning rate out of the usual"), """
inputs = torch.randn(100, 10)
targets = inputs[:, :3].sum(1, keepdim=True)
class SimpleNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(10, 5), nn.Linear(5, 1)
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))
model = SimpleNN()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)  #!
for epoch in range(200):
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
""", (("lr=0.0001", "lr=0.1"),), source="https://taourl.com/read-2391810.html"),
    Program("a default rate for a slope of 50", ("rate unfit for the weights", "underfitting"), """
area = torch.rand(64, 1) * 2
price = area * 50 + 20
line = nn.Linear(1, 1)
rms = torch.optim.RMSprop(line.parameters(), lr=0.001)  #!
for epoch in range(300):
    rms.zero_grad()
    loss = F.mse_loss(line(area), price)
    loss.backward()
    rms.step()
""", (("lr=0.001", "lr=0.1"),), source="https://stackoverflow.com/questions/51181393"),
    Program("five epochs of small steps for two units", ("rate unfit for the weights", "underfitting"), """
low = torch.rand(200, 2) * 0.2 + 0.2
high = torch.rand(200, 2) * 0.2 + 0.5
x = torch.cat([low, high])
y = torch.arange(400) // 200
net = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 2))
adam = torch.optim.Adam(net.parameters(), lr=0.001)  #!
for epoch in range(5):  #!
    for part in torch.randperm(400).split(32):
        loss = F.cross_entropy(net(x[part]), y[part])
        adam.zero_grad()
        loss.backward()
        adam.step()
accuracy = (net(x).argmax(1) == y).sum().item() / 400
""", (("lr=0.001", "lr=0.05"), ("range(5)", "range(30)")), source="https://stackoverflow.com/questions/50306988"),
    Program("momentum on top of a large rate", _RATE, """
signs = torch.randn(256, 1, 8, 8)
kind = F.avg_pool2d(signs, 4).flatten(1).argmax(1)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 4),
)
sgd = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9, nesterov=True)  #!
for epoch in range(8):
    for rows in torch.randperm(256).split(32):
        loss = F.cross_entropy(net(signs[rows]), kind[rows])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""", (("lr=0.5", "lr=0.02"),), source="https://stackoverflow.com/questions/37624102"),
    Program("an autoencoder that blows up", (*_RATE, "exploding gradient"), """
visible = torch.randn(300, 4) @ torch.randn(4, 24)
encoder, decoder = nn.Linear(24, 8), nn.Linear(8, 24)
sgd = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=1.0)  #!
for epoch in range(4):
    for rows in torch.randperm(300).split(20):
        noisy = visible[rows] * (torch.rand(20, 24) > 0.1)
        loss = (decoder(torch.relu(encoder(noisy))) - visible[rows]).pow(2).sum(1).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""", (("lr=1.0", "lr=3e-3"),), source="https://github.com/gabrieleangeletti/Deep-Learning-TensorFlow/commit/b9bc441"),
)  # fmt: skip  # scripts
