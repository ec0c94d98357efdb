"""Reported faults of modules: layers that are in no list of parameters, unused, shared, frozen, or all alike."""

from __future__ import annotations

from tests.doctor.world.program import Program

_POINTS = """
x = torch.randn(600, 6)
y = (x[:, 0] * x[:, 1] > 0) * 1 + (x[:, 2] > 0) * 1
"""
_WAVE = """
t = torch.rand(500, 1) * 6 - 3
wave = torch.sin(t) + 0.1 * torch.randn(500, 1)
"""
_TEXT = """
words = torch.randint(0, 40, (400, 12))
topic = (words < 8).sum(1).clamp(0, 2)
"""
_CLASSIFY = """
for epoch in range(6):
    order = torch.randperm(600)
    for at in range(0, 600, 30):
        part = order[at:at + 30]
        loss = F.cross_entropy(net(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_FIT = """
for step in range(200):
    part = torch.randint(0, 500, (50,))
    optimizer.zero_grad()
    loss = F.mse_loss(net(t[part]), wave[part])
    loss.backward()
    optimizer.step()
"""
_ADAM = """
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
"""
_UNTRAINED = ("layers nobody trains",)
_UNUSED = ("no gradient",)

PROGRAMS = (
    Program("pairs of layer and activation in nested lists", _UNTRAINED, _POINTS + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hids = []  #!
        width = 6
        for _ in range(2):
            self.hids.append([nn.Linear(width, 24), nn.Tanh()])  #!
            width = 24
        self.classifier = nn.Linear(24, 3)
    def forward(self, x):
        for linear, act in self.hids:
            x = act(linear(x))
        return self.classifier(x)
""" + _ADAM + _CLASSIFY, (
        ("self.hids = []", "self.hids = nn.ModuleList()"),
        ("self.hids.append([nn.Linear(width, 24), nn.Tanh()])",
         "self.hids.append(nn.ModuleList([nn.Linear(width, 24), nn.Tanh()]))"),
    ), source="https://github.com/pytorch/pytorch/issues/715"),
    Program("hidden layers of a feed-forward net in a list", _UNTRAINED, _POINTS + """
class FeedForward(nn.Module):
    def __init__(self, features, classes, hidden, width):
        super().__init__()
        layers = [nn.Linear(features if i == 0 else width, width) for i in range(hidden)]
        self.hidden_layers = layers  #!
        self.out = nn.Linear(width, classes)
    def forward(self, x):
        for layer in self.hidden_layers:
            x = F.relu(layer(x))
        return self.out(x)
net = FeedForward(6, 3, 3, 32)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
""" + _CLASSIFY, (("self.hidden_layers = layers", "self.hidden_layers = nn.ModuleList(layers)"),),
        source="https://github.com/meta-pytorch/torchfix/issues/31"),
    Program("convolutions of three widths in a list", _UNTRAINED, _TEXT + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.conv1d = [nn.Conv1d(16, 8, 2), nn.Conv1d(16, 8, 3), nn.Conv1d(16, 8, 4)]  #!
        self.out = nn.Linear(24, 3)
    def forward(self, words):
        e = self.embed(words).transpose(1, 2)
        return self.out(torch.cat([torch.amax(F.relu(conv(e)), 2) for conv in self.conv1d], 1))
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(100):
    part = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(net(words[part]), topic[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("[nn.Conv1d(16, 8, 2), nn.Conv1d(16, 8, 3), nn.Conv1d(16, 8, 4)]",
       "nn.ModuleList([nn.Conv1d(16, 8, 2), nn.Conv1d(16, 8, 3), nn.Conv1d(16, 8, 4)])"),),
        source="https://github.com/pytorch/pytorch/issues/1053"),
    Program("ten residual MLPs in a list", _UNTRAINED, _WAVE + """
class Res(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
    def forward(self, x):
        return x + self.b(F.gelu(self.a(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(1, 16)
        self.mlps = [Res(16) for _ in range(4)]  #!
        self.expansion = nn.Linear(16, 1)
    def forward(self, x):
        x = self.lift(x)
        for mlp in self.mlps:
            x = mlp(x)
        return self.expansion(x)
""" + _ADAM + _FIT, (("[Res(16) for _ in range(4)]", "nn.ModuleList([Res(16) for _ in range(4)])"),),
        source="https://github.com/LianpoWang/SLIIF/issues/13"),
    Program("layers appended to a list that began empty", _UNTRAINED, _WAVE + """
class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = []  #!
        for i in range(len(sizes) - 2):
            self.layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        self.last = nn.Linear(sizes[-2], sizes[-1])
    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.last(x)
net = Net([1, 32, 32, 1])
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
""" + _FIT, (("self.layers = []", "self.layers = nn.ModuleList()"),),
        source="https://github.com/pytorch/pytorch/issues/38639"),
    Program("a factored weight multiplied out once", _UNUSED, _POINTS + """
class Factored(nn.Module):
    def __init__(self, rows, columns, rank):
        super().__init__()
        self.a = nn.Parameter(torch.randn(rows, rank) / rank ** 0.5)
        self.b = nn.Parameter(torch.randn(rank, columns) / rows ** 0.5)
        self.weight = (self.a @ self.b).detach()  #!
    def forward(self, x):
        return x @ self.weight  #!
net = nn.Sequential(Factored(6, 32, 4), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
""" + _CLASSIFY, (
        ("        self.weight = (self.a @ self.b).detach()\n", ""),
        ("x @ self.weight", "x @ (self.a @ self.b)"),
    ), source="https://github.com/rballester/tntorch/issues/3"),
    Program("one MLP for all layers of the decoder", ("layers shared",), _WAVE + """
head = nn.Sequential(nn.Linear(24, 24), nn.ReLU())
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1, 24)
        self.heads = nn.ModuleList([head for _ in range(4)])  #!
        self.out = nn.Linear(24, 1)
    def forward(self, x):
        x = F.relu(self.first(x))
        for one in self.heads:
            x = one(x)
        return self.out(x)
net = Decoder()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
""" + _FIT, (("[head for _ in range(4)]", "[nn.Sequential(nn.Linear(24, 24), nn.ReLU()) for _ in range(4)]"),),
        source="https://github.com/IDEA-Research/DAB-DETR/pull/17"),
    Program("a block whose result is dropped without a residual", _UNUSED, _POINTS + """
class Block(nn.Module):
    def __init__(self, width, residual):
        super().__init__()
        self.layer, self.residual = nn.Linear(width, width), residual  #!
    def forward(self, x):
        y = x
        z = torch.tanh(self.layer(x))  #!
        if self.residual:
            y = y + z
        return y  #!
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), Block(24, False), Block(24, False), nn.Linear(24, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
""" + _CLASSIFY, (("        y = x\n", ""), ("z = torch", "y = torch"), ("y = y + z", "y = y + x")),
        source="https://github.com/state-spaces/s4/pull/30"),
    Program("the third convolution is made and not used", _UNUSED, """
pictures = torch.randn(256, 1, 8, 8)
kinds = (pictures[:, 0, :4].mean((1, 2)) > pictures[:, 0, 4:].mean((1, 2))) * 1
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 3), nn.Conv2d(6, 6, 3)
        self.conv3 = nn.Conv2d(6, 6, 3, padding=1)  #!
        self.out = nn.Linear(96, 2)
    def forward(self, x):
        a = F.relu(self.conv1(x))
        b = F.relu(self.conv2(a))
        c = F.relu(self.conv3(b))  #!
        return self.out(b.reshape(len(b), -1))  #!
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(6):
    for at in range(0, 256, 16):
        optimizer.zero_grad()
        F.cross_entropy(net(pictures[at:at + 16]), kinds[at:at + 16]).backward()
        optimizer.step()
""", (("self.out(b.reshape", "self.out(c.reshape"),),
        source="https://github.com/skaae/recurrent-spatial-transformer-code/issues/3"),
    Program("the forward branch goes into both", _UNUSED, """
frames = torch.randn(400, 2, 8)
faster = (frames[:, 1, :4].sum(1) > frames[:, 0, 4:].sum(1)) * 1
class Motion(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after, self.both = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 16)  #!
        self.out = nn.Linear(32, 2)
    def forward(self, frames):
        y_forward, y_backward = F.relu(self.before(frames[:, 0])), F.relu(self.after(frames[:, 1]))
        y_forward = F.relu(self.both(y_forward))
        y_backward = F.relu(self.both(y_forward))  #!
        return self.out(torch.cat([y_forward, y_backward], 1))
net = Motion()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(150):
    part = torch.randint(0, 400, (40,))
    loss = F.cross_entropy(net(frames[part]), faster[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("y_backward = F.relu(self.both(y_forward))", "y_backward = F.relu(self.both(y_backward))"),),
        source="https://github.com/MCG-NJU/TDN/issues/6"),
    Program("only the first of three losses is trained", _UNUSED, """
x = torch.randn(500, 8)
score, place, size = (x[:, :1] > 0) * 1.0, x[:, 1:3] + x[:, 3:5], x[:, 5:8]
body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = body
        self.score, self.place, self.size = nn.Linear(32, 1), nn.Linear(32, 2), nn.Linear(32, 3)  #!
    def forward(self, x):
        z = self.body(x)
        return self.score(z), self.place(z), self.size(z)
net = Detector()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(150):
    part = torch.randint(0, 500, (50,))
    s, p, d = net(x[part])
    losses = [F.binary_cross_entropy_with_logits(s, score[part]), F.mse_loss(p, place[part]), F.mse_loss(d, size[part])]
    total = losses[0]  #!
    optimizer.zero_grad()
    total.backward()  #!
    optimizer.step()
""", (("total = losses[0]", "total = losses[0] + losses[1] + losses[2]"),),
        source="https://github.com/tom-roddick/oft/issues/6"),
    Program("ReLU forgotten in an MLP of three layers", ("linear layers in a row",), _POINTS + """
class MLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        layers, width = [], 6
        for size in hidden:
            layers += [nn.Linear(width, size), nn.Dropout(0.1)]
            width = size
        self.seq = nn.Sequential(*layers, nn.Linear(width, 3))
    def forward(self, x):
        return self.seq(x)  #!
net = MLP([48, 48])
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(8):
    order = torch.randperm(600)
    for at in range(0, 600, 30):
        part = order[at:at + 30]
        loss = F.cross_entropy(net(x[part]), y[part])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("[nn.Linear(width, size), nn.Dropout(0.1)]", "[nn.Linear(width, size), nn.ReLU(), nn.Dropout(0.1)]"),),
        source="https://github.com/YujiaBao/ls/issues/1"),
    Program("no activation in the fully connected head", ("linear layers in a row",), """
features = torch.randn(512, 20)
label = (features[:, 0].abs() > 0.7) * 1
class FC(nn.Module):
    def __init__(self, width, hidden, classes, layers):
        super().__init__()
        sizes = [width] + [hidden] * layers
        self.blocks = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        self.classifier = nn.Linear(hidden, classes)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)  #!
        return self.classifier(x)  #!
head = FC(20, 40, 2, 2)
sgd = torch.optim.SGD(head.parameters(), lr=0.05, momentum=0.9)
for step in range(300):
    part = torch.randint(0, 512, (64,))
    loss = F.cross_entropy(head(features[part]), label[part])
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""", (("x = block(x)", "x = F.relu(block(x))"),),
        source="https://github.com/Nota-NetsPresso/netspresso-trainer/issues/320"),
    Program("convolutions of a U-shaped net without ReLU", ("linear layers in a row",), """
image = torch.randn(128, 1, 8, 8)
mask = (image.abs() > 0.8) * 1.0
class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.Conv2d(16, 8, 1)
        self.out = nn.Conv2d(16, 1, 1)
    def forward(self, x):
        a = self.down(x)
        b = self.up(self.deep(F.avg_pool2d(a, 2)))  #!
        b = torch.repeat_interleave(torch.repeat_interleave(b, 2, 2), 2, 3)
        return self.out(torch.cat([a, b], 1))
unet = Unet()
adam = torch.optim.Adam(unet.parameters(), lr=5e-3)
for step in range(60):
    part = torch.randint(0, 128, (16,))
    adam.zero_grad()
    loss = F.binary_cross_entropy_with_logits(unet(image[part]), mask[part])
    loss.backward()
    adam.step()
""", (
        ("a = self.down(x)", "a = F.relu(self.down(x))"),
        ("self.up(self.deep(F.avg_pool2d(a, 2)))", "self.up(F.relu(self.deep(F.avg_pool2d(a, 2))))"),
    ), source="https://github.com/divamgupta/image-segmentation-keras/issues/136"),
    Program("ReLU behind the offsets of anchors", ("rectifier at the output", "output without input"), """
boxes = torch.randn(600, 10)
offsets = boxes[:, :3] - 0.5 * boxes[:, 3:6]
class Proposals(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.regress = nn.Linear(32, 3)
    def forward(self, x):
        return F.relu(self.regress(self.body(x)))  #!
rpn = Proposals()
adam = torch.optim.Adam(rpn.parameters(), lr=3e-3)
for step in range(200):
    part = torch.randint(0, 600, (60,))
    loss = F.smooth_l1_loss(rpn(boxes[part]), offsets[part])
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("F.relu(self.regress(self.body(x)))", "self.regress(self.body(x))"),),
        source="https://github.com/tsinghua-rll/VoxelNet-tensorflow/issues/10"),
    Program("weights and biases of zero, as an exercise asks", ("weights all alike",), _POINTS + """
net = nn.Sequential(nn.Linear(6, 24), nn.Sigmoid(), nn.Linear(24, 3))
for layer in (net[0], net[2]):
    nn.init.constant_(layer.weight, 0.0)  #!
    nn.init.constant_(layer.bias, 0.0)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
""" + _CLASSIFY, (("nn.init.constant_(layer.weight, 0.0)", "nn.init.xavier_uniform_(layer.weight)"),
                  ("nn.Sigmoid()", "nn.Tanh()")),
        source="https://github.com/nndl/nndl-discussion/issues/14"),
    Program("a regression whose only weight is zero behind another", ("weights all alike",), _WAVE + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(1, 32), nn.Linear(32, 1)
        nn.init.zeros_(self.fc1.weight)  #!
        nn.init.zeros_(self.fc2.weight)  #!
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
""" + _FIT, (("nn.init.zeros_(self.fc1.weight)", "nn.init.kaiming_uniform_(self.fc1.weight)"),
             ("nn.init.zeros_(self.fc2.weight)", "nn.init.xavier_uniform_(self.fc2.weight)")),
        source="https://taourl.com/read-1959901.html"),
    Program("all layers filled with one number", ("weights all alike",), _POINTS + """
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))
with torch.no_grad():
    for parameter in net.parameters():
        parameter.fill_(0.1)  #!
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
""" + _CLASSIFY, (("parameter.fill_(0.1)", "parameter.uniform_(-0.3, 0.3)"),),
        source="https://github.com/HomericIntelligence/Mnemosyne/pull/1987"),
    Program("a body that is never thawed", ("nearly everything frozen", "frozen layers"), _POINTS + """
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
for parameter in net[:4].parameters():
    parameter.requires_grad = False  #!
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
def thaw():
    for parameter in net.parameters():
        if parameter.requires_grad:  #!
            parameter.requires_grad = True
for epoch in range(8):
    if epoch == 1:
        thaw()
    order = torch.randperm(600)
    for at in range(0, 600, 30):
        part = order[at:at + 30]
        loss = F.cross_entropy(net(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("        if parameter.requires_grad:\n            parameter.requires_grad = True",
       "        parameter.requires_grad = True"),),
        source="https://github.com/nttcslab/byol-a/issues/7"),
)  # fmt: skip  # scripts
