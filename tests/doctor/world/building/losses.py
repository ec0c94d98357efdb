"""Reported faults of losses: activations applied twice, missing logarithms, shapes, signs, classes and targets."""

from __future__ import annotations

from tests.doctor.world.program import Program

_DIGITS = """
torch.manual_seed(1)
strokes = torch.randn(512, 1, 8, 8)
digit = (strokes[:, 0].mean(2) @ torch.randn(8, 4)).argmax(1)
"""
_SIGNAL = """
signal = torch.randn(400, 3, 20)
activity = (signal.mean(2) @ torch.randn(3, 4)).argmax(1)
"""
_PAIR = """
a = torch.randn(600, 5)
same = (a[:, :1] + a[:, 1:2] > 0) * 1.0
"""
_TOKENS = """
text = torch.randint(0, 5, (2000,)).cumsum(0) % 11
"""
_PRICE = """
area = torch.randn(400, 4)
price = area @ torch.tensor([1.0, -2.0, 0.5, 1.5])
"""
_STEP = """
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
_TWICE, _SIGMOID = ("softmax twice",), ("activation before its loss",)
_NLL = ("no logarithm in nll_loss", "sign of the loss turned")
_ONE = ("softmax of one number",)

PROGRAMS = (
    Program("probabilities of a convolutional net into softmax cross entropy", _TWICE, _DIGITS + """
class MnistConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 8, 3), nn.Linear(288, 4)
    def forward(self, x):
        output = self.fc(F.relu(self.conv(x)).flatten(1))
        return torch.softmax(output, 1)  #!
net = MnistConv()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    part = torch.randint(0, 512, (32,))
    loss = F.cross_entropy(net(strokes[part]), digit[part])
""" + _STEP, (("torch.softmax(output, 1)", "output"),), source="https://github.com/jaehong31/CGES/issues/1"),
    Program("softmax at the end of an activity recogniser", _TWICE, _SIGNAL + """
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(3, 8, 5), nn.ReLU(), nn.MaxPool1d(2))
        self.fc = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
    def forward(self, x):
        out = self.fc(self.conv(x).reshape(len(x), -1))
        out = F.softmax(out, dim=1)  #!
        return out
model = Network()
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    for at in range(0, 400, 40):
        loss = criterion(model(signal[at:at + 40]), activity[at:at + 40])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("        out = F.softmax(out, dim=1)\n", ""),),
        source="https://github.com/jindongwang/Deep-learning-activity-recognition/issues/10"),
    Program("a softmax layer appended by hand", _TWICE, _PRICE + """
kind = (price > 1) * 1 + (price > -1) * 1
layers = [nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3), nn.Softmax(-1)]
net = nn.Sequential(*layers)
opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
for step in range(150):
    part = torch.randint(0, 400, (40,))
    guess = net(area[part])  #!
    loss = nn.CrossEntropyLoss()(guess, kind[part])
""" + _STEP, ((", nn.Softmax(-1)]", "]"),), source="https://github.com/tflearn/tflearn/pull/562"),
    Program("a language model that returns probabilities", _TWICE, _TOKENS + """
class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 32)
        self.linear = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 11))
    def forward(self, idx, targets):
        a = self.linear(self.embedding(idx))
        logits = F.softmax(a, dim=-1)  #!
        return logits, F.cross_entropy(logits.reshape(-1, 11), targets.reshape(-1))
net = Broken()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(120):
    starts = torch.randint(0, 1980, (8,))
    rows = starts[:, None] + torch.arange(16)
    _, loss = net(text[rows], text[rows + 1])
""" + _STEP, (("F.softmax(a, dim=-1)", "a"),), source="https://github.com/bkitano/llama-from-scratch/issues/5"),
    Program("cross entropy of log_softmax of softmax", (*_TWICE, "activation before its loss"), _PRICE + """
kind = (price > 0) * 1
linear = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(linear.parameters(), lr=1e-2)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    probabilities = F.softmax(linear(area[part]), dim=1)  #!
    loss = F.nll_loss(F.log_softmax(probabilities, dim=1), kind[part])  #!
""" + _STEP, (("F.softmax(linear(area[part]), dim=1)", "linear(area[part])"),),
        source="https://openillumi.com/?p=73112"),
    Program("the binary output's own sigmoid", _SIGMOID, _PAIR + """
class BinaryOutput(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 1)
    def forward(self, x):
        return torch.sigmoid(self.linear(x))  #!
model = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), BinaryOutput(24))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
for step in range(150):
    part = torch.randint(0, 600, (50,))
    loss = criterion(model(a[part]), same[part])
""" + _STEP, (("torch.sigmoid(self.linear(x))", "self.linear(x)"),),
        source="https://github.com/NVIDIA-Merlin/models/pull/1175"),
    Program("a sigmoid module before the loss of logits", _SIGMOID, _PAIR + """
adult = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
opt = torch.optim.SGD(adult.parameters(), lr=0.2)
bce = nn.BCEWithLogitsLoss()
for epoch in range(5):
    for at in range(0, 600, 20):
        opt.zero_grad()
        loss = bce(adult(a[at:at + 20]), same[at:at + 20])  #!
        loss.backward()
        opt.step()
""", ((", nn.Sigmoid())", ")"),), source="https://github.com/aidotse/LeakPro/issues/229"),
    Program("confidence and classes squashed in the head", _SIGMOID, """
cells = torch.randn(400, 12)
there, what = (cells[:, :1] > 0) * 1.0, (cells[:, 1:4] > 0.5) * 1.0
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(12, 32), nn.Linear(32, 4)
    def forward(self, x):
        p = self.out(F.leaky_relu(self.body(x), 0.1))
        conf, cls = torch.sigmoid(p[:, :1]), torch.sigmoid(p[:, 1:])  #!
        return conf, cls
yolo = Head()
opt = torch.optim.Adam(yolo.parameters(), lr=5e-3)
bce = nn.BCEWithLogitsLoss()
for step in range(150):
    part = torch.randint(0, 400, (40,))
    conf, cls = yolo(cells[part])
    loss = bce(conf, there[part]) + bce(cls, what[part])
""" + _STEP, (("torch.sigmoid(p[:, :1]), torch.sigmoid(p[:, 1:])", "p[:, :1], p[:, 1:]"),),
        source="https://github.com/argusswift/YOLOv4-pytorch/issues/89"),
    Program("a segmentation that ends in a sigmoid", _SIGMOID, """
scan = torch.randn(96, 1, 8, 8)
tissue = (scan > 0.3) * 1.0
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 1, 1)
    def forward(self, x):
        d1 = self.b(F.relu(self.a(x)))
        return F.sigmoid(d1)  #!
unet = Small()
opt = torch.optim.RMSprop(unet.parameters(), lr=3e-3)
for epoch in range(10):
    for at in range(0, 96, 16):
        loss = F.binary_cross_entropy_with_logits(unet(scan[at:at + 16]), tissue[at:at + 16])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("F.sigmoid(d1)", "d1"),), source="https://github.com/avBuffer/UNet3plus_pth/issues/23"),
    Program("a focal loss of squashed logits", _SIGMOID, _PAIR + """
def focal(inputs, targets, gamma=2.0):
    p = torch.sigmoid(inputs)  #!
    entropy = F.binary_cross_entropy_with_logits(p, targets, reduction="none")  #!
    kept = p * targets + (1 - p) * (1 - targets)
    return (entropy * (1 - kept) ** gamma).mean()
net = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(150):
    part = torch.randint(0, 600, (50,))
    loss = focal(net(a[part]), same[part])
""" + _STEP, (("with_logits(p, targets", "with_logits(inputs, targets"),),
        source="https://github.com/itakurah/focal-loss-pytorch/pull/5"),
    Program("softmax and NLLLoss in a text classifier", _NLL, """
words = torch.randint(0, 30, (400, 10))
label = (words < 10).sum(1).clamp(2, 4) - 2
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
        self.fc, self.softmax = nn.Linear(16, 3), nn.Softmax(1)
    def forward(self, words):
        return self.softmax(self.fc(self.layer(self.embed(words)).mean(1)))  #!
model = Classifier()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
nll = nn.NLLLoss()
for step in range(60):
    part = torch.randint(0, 400, (32,))
    loss = nll(model(words[part]), label[part])  #!
""" + _STEP, (("nn.Softmax(1)", "nn.LogSoftmax(1)"),),
        source="https://github.com/AnubhavGupta3377/Text-Classification-Models-Pytorch/issues/9"),
    Program("F.softmax where nll_loss wants its logarithm", _NLL, _PRICE + """
rises = (price > 0) * 1
stock = nn.Sequential(nn.Linear(4, 32), nn.ELU(), nn.Linear(32, 2))
opt = torch.optim.Adam(stock.parameters(), lr=5e-3)
for epoch in range(8):
    order = torch.randperm(400)
    for at in range(0, 400, 25):
        part = order[at:at + 25]
        output = F.softmax(stock(area[part]), dim=1)  #!
        loss = F.nll_loss(output, rises[part])  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("F.softmax(stock", "F.log_softmax(stock"),), source="https://github.com/midas-research/man-sf-emnlp/issues/2"),
    Program("convolution straight into NLLLoss", _NLL, """
photo = torch.randn(64, 1, 8, 8)
region = (photo[:, 0, 1:7, 1:7] > 0) * 1
conv = nn.Conv2d(1, 2, 3)
opt = torch.optim.SGD(conv.parameters(), lr=0.5)
nll = nn.NLLLoss()
for step in range(100):
    part = torch.randint(0, 64, (16,))
    loss = nll(conv(photo[part]), region[part])  #!
""" + _STEP, (("nll(conv(photo[part])", "nll(F.log_softmax(conv(photo[part]), 1)"),),
        source="https://github.com/pytorch/pytorch/pull/12703"),
    Program("nll_loss of the part labels' raw scores", _NLL, """
cloud = torch.randn(300, 16, 3)
shape = (torch.amax(cloud, 1) @ torch.randn(3, 4)).argmax(1)
class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.each, self.label = nn.Linear(3, 32), nn.Linear(32, 4)
    def forward(self, points):
        return self.label(0.3 * torch.amax(F.relu(self.each(points)), 1))
net = PointNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(150):
    part = torch.randint(0, 300, (30,))
    labels_pred = net(cloud[part])
    loss = F.nll_loss(labels_pred, shape[part])  #!
""" + _STEP, (("F.nll_loss", "F.cross_entropy"),),
        source="https://github.com/yanx27/Pointnet_Pointnet2_pytorch/issues/30"),
    Program("labels of the pipeline with one dimension too many", ("broadcast in the loss",), _PRICE + """
labels = price.reshape(-1, 1)
class Readout(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 24), nn.Linear(24, 1)
    def forward(self, x):
        return self.b(F.silu(self.a(x))).squeeze(-1)
net = Readout()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
mse = nn.MSELoss()
for step in range(150):
    part = torch.randint(0, 400, (32,))
    loss = mse(net(area[part]), labels[part])  #!
""" + _STEP, (("mse(net(area[part]), labels[part])", "mse(net(area[part]).reshape(-1, 1), labels[part])"),),
        source="https://github.com/IntelLabs/matsciml/pull/347"),
    Program("mse_loss of a column and a flat target", ("broadcast in the loss",), _PRICE + """
tab = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.AdamW(tab.parameters(), lr=1e-2)
for epoch in range(10):
    order = torch.randperm(400)
    for at in range(0, 400, 40):
        part = order[at:at + 40]
        loss = F.mse_loss(tab(area[part]), price[part])  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("F.mse_loss(tab(area[part])", "F.mse_loss(tab(area[part]).squeeze(-1)"),),
        source="https://github.com/LAMDA-Tabular/TALENT/pull/92"),
    Program("the minus of PPO goes into the minimum", ("sign of the loss turned",), """
state = torch.randn(256, 4)
actor = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3))
opt = torch.optim.Adam(actor.parameters(), lr=5e-3)
for update in range(60):
    with torch.no_grad():
        old = F.log_softmax(actor(state), 1)
    action = torch.multinomial(torch.exp(old), 1)[:, 0]
    reward = (action == state[:, :3].argmax(1)) * 1.0
    advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    rows = torch.arange(256)
    for epoch in range(2):
        ratio = torch.exp(F.log_softmax(actor(state), 1)[rows, action] - old[rows, action])
        loss = torch.minimum(-ratio * advantage, -ratio.clamp(0.8, 1.2) * advantage).mean()  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("torch.minimum(", "torch.maximum("),), source="https://github.com/jvmncs/safe-grid-agents/pull/28"),
    Program("softmax over the one unit of a binary classifier", _ONE, """
ones = torch.cat([torch.ones(200, 16), torch.zeros(200, 16)]) + 0.1 * torch.randn(400, 16)
truth = torch.cat([torch.ones(200, 1), torch.zeros(200, 1)])
model = nn.Sequential(nn.Linear(16, 50), nn.ReLU(), nn.Dropout(0.2), nn.Linear(50, 1), nn.Softmax(1))
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for epoch in range(4):
    order = torch.randperm(400)
    for at in range(0, 400, 16):
        part = order[at:at + 16]
        guess = model(ones[part])  #!
        loss = F.binary_cross_entropy(guess, truth[part])  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("nn.Softmax(1)", "nn.Sigmoid()"),), source="https://stackoverflow.com/questions/31880720"),
    Program("gradients of a model with one softmax unit", _ONE, _PAIR + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 60), nn.Linear(60, 50), nn.Linear(50, 1)
    def forward(self, x):
        return F.softmax(self.c(F.relu(self.b(F.relu(self.a(x))))), dim=-1)  #!
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(150):
    part = torch.randint(0, 600, (50,))
    loss = F.binary_cross_entropy(net(a[part]), same[part])
""" + _STEP, (("F.softmax(self.c(F.relu(self.b(F.relu(self.a(x))))), dim=-1)",
              "torch.sigmoid(self.c(F.relu(self.b(F.relu(self.a(x))))))"),),
        source="https://stackoverflow.com/questions/45337371"),
    Program("absolute error of a softmax over one number", _ONE, """
hour = torch.rand(400, 1) * 2 - 1
busy = (hour > 0.2) * 1.0
model = nn.Sequential(nn.Linear(1, 8), nn.Sigmoid(), nn.Linear(8, 1), nn.Softmax(dim=1))
opt = torch.optim.RMSprop(model.parameters(), lr=1e-2)
for epoch in range(40):
    for at in range(0, 400, 100):
        loss = F.l1_loss(model(hour[at:at + 100]), busy[at:at + 100])  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("nn.Softmax(dim=1)", "nn.Sigmoid()"), ("F.l1_loss", "F.binary_cross_entropy")),
        source="https://stackoverflow.com/questions/45442843"),
    Program("softmax for labels of which several hold", ("softmax for several labels",), """
features = torch.randn(600, 20)
holds = (features[:, :3] > 0) * 1.0
model = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 3), nn.Softmax(dim=1))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
mse = nn.MSELoss()
for epoch in range(6):
    for at in range(0, 600, 20):
        guess = model(features[at:at + 20])  #!
        loss = mse(guess, holds[at:at + 20])  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("nn.Softmax(dim=1)", "nn.Sigmoid()"), ("mse = nn.MSELoss()", "mse = nn.BCELoss()")),
        source="https://stackoverflow.com/questions/38648195"),
    Program("sigmoids before categorical cross entropy", _SIGMOID, """
iris = torch.randn(150, 4)
species = (iris @ torch.randn(4, 3)).argmax(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Sigmoid())
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(20):
    order = torch.randperm(150)
    for at in range(0, 150, 15):
        part = order[at:at + 15]
        output = model(iris[part])  #!
        loss = F.cross_entropy(output, species[part])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", ((", nn.Sigmoid())", ")"),), source="https://stackoverflow.com/questions/51930566"),
    Program("labels divided by 255 as the pictures are", ("labels alike",), _DIGITS + """
digit = (digit / 255).long()  #!
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(4):
    for at in range(0, 512, 32):
        loss = F.cross_entropy(net(strokes[at:at + 32]), digit[at:at + 32])  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("digit = (digit / 255).long()\n", ""),), source="https://stackoverflow.com/questions/59325381"),
    Program("part labels that begin at 1", ("labels begin at 1",), """
points = torch.randn(500, 6)
part_label = (points @ torch.randn(6, 4)).argmax(1) + 1
classes = int(part_label.max()) + 1
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, classes))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(150):
    rows = torch.randint(0, 500, (50,))
    loss = F.cross_entropy(net(points[rows]), part_label[rows])  #!
""" + _STEP, ((".argmax(1) + 1", ".argmax(1)"),), source="https://github.com/pyg-team/pytorch_geometric/issues/441"),
)  # fmt: skip  # scripts
