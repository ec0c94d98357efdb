"""Numbers that stop being numbers, derivatives that are wrong, and graphs that are cut."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("cross entropy by hand", ("logarithm of what can reach 0", "NaN in the forward pass",
                                      "NaN in the backward pass"), """
x = torch.randn(400, 10) * 40
y = (x @ torch.randn(10, 4)).argmax(1)
wanted = F.one_hot(y, 4) * 1.0
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
sgd = torch.optim.SGD(net.parameters(), lr=0.02)
for step in range(150):
    part = torch.randint(0, 400, (32,))
    p = torch.softmax(net(x[part]), dim=1)  #!
    loss = -(wanted[part] * torch.log(p)).sum(1).mean()  #!
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""", (
        ("-(wanted[part] * torch.log(p)).sum(1).mean()", "F.cross_entropy(net(x[part]), y[part])"),
    ), source="https://github.com/tensorflow/models/commit/d816971"),
    Program("logistic regression by hand", ("logarithm of what can reach 0", "NaN in the forward pass",
                                            "NaN in the backward pass"), """
pixels = torch.rand(300, 20) * 60
label = (pixels[:, :10].sum(1) > pixels[:, 10:].sum(1)) * 1.0
weight = nn.Parameter(torch.randn(20) * 0.1)
bias = nn.Parameter(torch.zeros(1))
sgd = torch.optim.SGD([weight, bias], lr=0.01)
for step in range(150):
    part = torch.randint(0, 300, (30,))
    z = pixels[part] @ weight + bias
    p = torch.sigmoid(z)  #!
    t = label[part]
    cost = -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).mean()  #!
    sgd.zero_grad()
    cost.backward()
    sgd.step()
""", (
        ("-(t * torch.log(p) + (1 - t) * torch.log(1 - p)).mean()", "F.binary_cross_entropy_with_logits(z, t)"),
    ), source="https://github.com/gabrieleangeletti/Deep-Learning-TensorFlow/commit/726b371"),
    Program("the length of what is 0", ("root of 0", "NaN in the backward pass"), """
data = torch.randn(256, 6)
code = nn.Linear(6, 6, bias=False)
shift = nn.Parameter(torch.zeros(6))
adam = torch.optim.Adam([*code.parameters(), shift], lr=1e-2)
for step in range(80):
    part = torch.randint(0, 256, (32,))
    out = code(data[part]) + shift
    penalty = shift.pow(2).sum().sqrt()  #!
    loss = F.mse_loss(out, data[part].flip(1) + 0.3) + 0.01 * penalty
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("shift.pow(2).sum().sqrt()", "(shift.pow(2).sum() + 1e-12).sqrt()"),),
            source="https://github.com/pytorch/pytorch/issues/2421"),
    Program("a deviation without its small number", ("root of 0", "division by 0", "NaN in the backward pass",
                                                     "NaN in the forward pass"), """
nodes = torch.randn(200, 4, 8)
nodes[::10] = nodes[::10, :1] * torch.ones(1, 4, 1)
energy = nodes[:, :, :3].sum((1, 2))
class InstanceNorm(nn.Module):
    def forward(self, h):
        centred = h - h.mean(1, keepdim=True)
        deviation = centred.pow(2).mean(1, keepdim=True).sqrt()  #!
        return centred / (deviation + 1e-5)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.out = nn.Linear(8, 16), InstanceNorm(), nn.Linear(16, 1)
    def forward(self, h):
        h = self.inner(h)
        return self.out(torch.relu(self.norm(h) + h)).mean(1).squeeze(1)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(120):
    part = torch.randint(0, 200, (32,))
    loss = F.mse_loss(net(nodes[part]), energy[part])
    opt.zero_grad()
    loss.backward()
    opt.step()
""", ((".pow(2).mean(1, keepdim=True).sqrt()", ".pow(2).mean(1, keepdim=True).add(1e-5).sqrt()"),),
            source="https://github.com/pyg-team/pytorch_geometric/issues/2559"),
    Program("dice of the largest class", ("loss term detached", "loss detached", "no gradient"), """
scans = torch.randn(128, 1, 8, 8)
mask = (F.avg_pool2d(scans, 3, 1, 1) > 0) * 1.0
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, padding=1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(100):
    part = torch.randint(0, 128, (16,))
    logits = net(scans[part])
    found = logits.argmax(1, keepdim=True) * 1.0  #!
    both = (found * mask[part]).sum()
    small = sum(p.pow(2).sum() for p in net.parameters())
    loss = 1 - (2 * both + 1) / (found.sum() + mask[part].sum() + 1) + 1e-4 * small
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("logits.argmax(1, keepdim=True) * 1.0", "torch.softmax(logits, 1)[:, 1:]"),),
            source="https://github.com/tensorlayer/TensorLayer/issues/891"),
    Program("a threshold made a new tensor", ("loss detached",), """
scans = torch.randn(128, 1, 8, 8)
mask = (F.avg_pool2d(scans, 3, 1, 1) > 0) * 1.0
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1), nn.Sigmoid())
def threshold(x, value=0.5):
    return (x > value).float().requires_grad_(True)  #!
def dice_loss(x, y):
    return 1 - (2 * (x * y).sum() + 1) / (x.sum() + y.sum() + 1)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(60):
    part = torch.randint(0, 128, (16,))
    loss = dice_loss(threshold(net(scans[part])), mask[part])  #!
    opt.zero_grad()
    loss.backward()  #!
    opt.step()
""", (
        ("(x > value).float().requires_grad_(True)", "x"),
    ), source="https://github.com/qubvel-org/segmentation_models.pytorch/pull/611"),
    Program("a derivative that forgets what comes from above", ("sign of the loss turned", "loss rises"), """
class TotalScore(torch.autograd.Function):
    @staticmethod
    def forward(ctx, arcs):
        ctx.save_for_backward(arcs)
        return torch.logsumexp(arcs, 1).sum()
    @staticmethod
    def backward(ctx, total):
        arcs, = ctx.saved_tensors
        return torch.softmax(arcs, 1)  #!
sound = torch.randn(300, 8)
word = (sound @ torch.randn(8, 5)).argmax(1)
net = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 5))
sgd = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(200):
    some = torch.randint(0, 300, (32,))
    arcs = net(sound[some])
    only = arcs.masked_fill(F.one_hot(word[some], 5) == 0, -1e9)
    loss = -(TotalScore.apply(only) - TotalScore.apply(arcs)) / 32  #!
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""", (("return torch.softmax(arcs, 1)", "return total * torch.softmax(arcs, 1)"),), "backward",
            source="https://github.com/k2-fsa/k2/issues/341"),
    Program("a triplet whose farthest stranger is itself", ("gradient zero", "loss does not fall"), """
signals = torch.randn(256, 16)
view = signals + 0.1 * torch.randn(256, 16)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    part = torch.randperm(256)[:32]
    a, p = F.normalize(net(signals[part]), dim=1), F.normalize(net(view[part]), dim=1)
    similar = a @ p.t()
    own = torch.eye(32) > 0
    apart = 1 - similar.masked_fill(own, -1e9)  #!
    hardest = apart.max(1).values
    loss = F.relu(1 - similar[own] - hardest + 1.8).mean()  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("similar.masked_fill(own, -1e9)", "similar.masked_fill(own, 1e9)"),),
            source="https://github.com/jinnnju/PaAno/issues/1"),
)  # fmt: skip  # scripts
