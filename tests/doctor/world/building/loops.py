"""Reported faults of loops: zeroing, steps, clipping, modes, cut gradients, rates, decay, dropout, statistics."""

from __future__ import annotations

from tests.doctor.world.program import Program

_TABLE = """
table = torch.randn(512, 10)
group = (table[:, :4] @ torch.randn(4, 3)).argmax(1)
held, held_group = table[384:], group[384:]
"""
_NET = """
net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 3))
"""
_DROP = """
net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Dropout(0.3), nn.Linear(40, 3))
"""
_ADAM = """
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
"""
_CURVE = """
angle = torch.rand(400, 1) * 6 - 3
height = torch.sin(angle)
"""
_EPOCHS = """
for epoch in range(8):
    for at in range(0, 384, 24):
        loss = F.cross_entropy(net(table[at:at + 24]), group[at:at + 24])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_HIGH = (
    "rate above the curvature",
    "rate unfit for the weights",
    "learning rate out of the usual",
    "exploding gradient",
    "loss rises",
)

PROGRAMS = (
    Program("a trainer without zero_grad", ("zero_grad is missing",), _CURVE + """
class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
    def train_step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()  #!
        self.optimizer.step()
        return loss.item()
model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.05))
for step in range(200):
    part = torch.randint(0, 400, (40,))
    trainer.train_step(angle[part], height[part])
""", (("        loss.backward()", "        self.optimizer.zero_grad()\n        loss.backward()"),),
        source="https://github.com/meta-pytorch/torchforge/pull/71"),
    Program("zero_grad once, before the loop", ("zero_grad is missing",), _TABLE + _NET + _ADAM + """
optimizer.zero_grad()
for epoch in range(6):
    for at in range(0, 384, 24):
        output = net(table[at:at + 24])
        loss = F.cross_entropy(output, group[at:at + 24])
        loss.backward()  #!
        optimizer.step()
""", (("        optimizer.step()", "        optimizer.step()\n        optimizer.zero_grad()"),),
        source="https://github.com/yastrebksv/TennisCourtDetector/issues/7"),
    Program("zeroed right before the step", ("no gradients in a step",), _TABLE + _NET + _ADAM + """
for step in range(120):
    part = torch.randint(0, 384, (32,))
    loss = F.cross_entropy(net(table[part]), group[part])
    loss.backward()
    optimizer.zero_grad()  #!
    optimizer.step()  #!
""", (("    loss.backward()\n    optimizer.zero_grad()\n", "    optimizer.zero_grad()\n    loss.backward()\n"),),
        source="https://github.com/lucidrains/byol-pytorch/issues/93"),
    Program("zeroed in each part of a batch", ("gradients never used",), _TABLE + _NET + """
optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
accumulate = 4
for epoch in range(8):
    for at in range(0, 384, 12):
        optimizer.zero_grad()  #!
        loss = F.cross_entropy(net(table[at:at + 12]), group[at:at + 12]) / accumulate
        loss.backward()
        if at // 12 % accumulate == accumulate - 1:
            optimizer.step()  #!
""", (
        ("        optimizer.zero_grad()\n", ""),
        ("            optimizer.step()", "            optimizer.step()\n            optimizer.zero_grad()"),
    ), source="https://github.com/gaozhihan/PreDiff/issues/32"),
    Program("gradients of each microbatch cleared", ("gradients never used",), _CURVE + """
net = nn.Sequential(nn.Linear(1, 32), nn.GELU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for step in range(60):
    part = torch.randint(0, 400, (48,))
    for micro in range(3):
        rows = part[micro * 16:micro * 16 + 16]
        loss = F.mse_loss(net(angle[rows]), height[rows]) / 3
        optimizer.zero_grad()  #!
        loss.backward()
    optimizer.step()  #!
""", (("        optimizer.zero_grad()\n", ""),
     ("    optimizer.step()", "    optimizer.step()\n    optimizer.zero_grad()")),
        source="https://github.com/bytetriper/RAE/issues/67"),
    Program("losses of eight batches summed and not divided", ("accumulated without division",), _TABLE + _NET + """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(8):
    for at in range(0, 384, 12):
        loss = F.cross_entropy(net(table[at:at + 12]), group[at:at + 12])  #!
        loss.backward()  #!
        if at // 12 % 8 == 7:
            optimizer.step()
            optimizer.zero_grad()
""", (("        loss.backward()", "        (loss / 8).backward()"),),
        source="https://github.com/agokrani/distillKitPlus/issues/5"),
    Program("clipped when the step is done", ("clipping before backward", "clipping after the step"), _CURVE + """
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    loss = F.mse_loss(net(angle[part]), height[part])
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)  #!
    optimizer.zero_grad()
""", (("    optimizer.step()\n    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
       "    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    optimizer.step()\n"),),
        source="https://github.com/taesunwhang/UMS-ResSel/issues/3"),
    Program("clipped within the computation of the loss", ("clipping before backward",), _CURVE + """
world = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(world.parameters(), lr=0.05, momentum=0.9)
def training_step(part):
    loss = F.mse_loss(world(angle[part]), height[part])
    torch.nn.utils.clip_grad_norm_(world.parameters(), 0.5)  #!
    return loss
for step in range(150):
    loss = training_step(torch.randint(0, 400, (40,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (
        ("    torch.nn.utils.clip_grad_norm_(world.parameters(), 0.5)\n    return", "    return"),
        ("    optimizer.step()", "    torch.nn.utils.clip_grad_norm_(world.parameters(), 0.5)\n    optimizer.step()"),
    ), source="https://github.com/simchowitzlabpublic/nano-world-model/pull/22"),
    Program("left in evaluation mode by a validation", ("evaluation mode in training",), _TABLE + _DROP + _ADAM + """
net.train()
for epoch in range(30):
    for at in range(0, 384, 64):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(table[at:at + 64]), group[at:at + 64])  #!
        loss.backward()
        optimizer.step()
    net.eval()  #!
    with torch.no_grad():
        right = (net(held).argmax(1) == held_group).sum()
""", (("    for at in range(0, 384, 64):", "    net.train()\n    for at in range(0, 384, 64):"),),
        source="https://github.com/optuna/optuna/pull/1725"),
    Program("evaluated every few iterations, never back in training", ("evaluation mode in training",), _TABLE + """
net = nn.Sequential(nn.Linear(10, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
def validate():
    net.eval()  #!
    with torch.no_grad():
        return float(F.cross_entropy(net(held), held_group))
net.train()
for iteration in range(200):
    part = torch.randint(0, 384, (32,))
    loss = F.cross_entropy(net(table[part]), group[part])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 10 == 0:
        validate()
""", (("        validate()", "        validate()\n        net.train()"),),
        source="https://github.com/wkentaro/pytorch-fcn/issues/57"),
    Program("eval_epoch in the middle of fine-tuning", ("evaluation mode in training",), """
words = torch.randint(0, 30, (300, 10))
label = (words < 10).sum(1).clamp(2, 4) - 2
bert = nn.Sequential(nn.Embedding(30, 16), nn.Dropout(0.1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(160, 3))
optimizer = torch.optim.AdamW(bert.parameters(), lr=3e-3)
def eval_epoch():
    bert.eval()  #!
    with torch.no_grad():
        return (bert(words[240:]).argmax(1) == label[240:]).sum()
def train_epoch():
    for at in range(0, 240, 24):
        loss = F.cross_entropy(bert(words[at:at + 24]), label[at:at + 24])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if at == 48:
            eval_epoch()
bert.train()
for epoch in range(12):
    train_epoch()
""", (("            eval_epoch()", "            eval_epoch()\n            bert.train()"),),
        source="https://github.com/asyml/texar-pytorch/issues/310"),
    Program("no eval() in the whole program", ("training mode in evaluation",), _TABLE + _DROP + _ADAM + """
for step in range(200):
    part = torch.randint(0, 384, (32,))
    loss = F.cross_entropy(net(table[part]), group[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        with torch.inference_mode():
            estimate = F.cross_entropy(net(held), held_group).item()  #!
""", (("        with torch.inference_mode():", "        net.eval()\n        with torch.inference_mode():"),
     ("held_group).item()", "held_group).item()\n        net.train()")),
        source="https://github.com/ipolharvard/ethos-ares/issues/20"),
    Program("validation and test with dropout", ("training mode in evaluation",), _TABLE + _DROP + _ADAM + """
best = 9.0
for epoch in range(6):
    for at in range(0, 384, 24):
        optimizer.zero_grad()
        F.cross_entropy(net(table[at:at + 24]), group[at:at + 24]).backward()
        optimizer.step()
    with torch.no_grad():
        best = min(best, float(F.cross_entropy(net(held), held_group)))  #!
""", (("    with torch.no_grad():", "    net.eval()\n    with torch.no_grad():"),
     ("held_group)))", "held_group)))\n    net.train()")),
        source="https://github.com/udacity/deep-learning-v2-pytorch/issues/399"),
    Program("batch statistics in a validation", ("training mode in evaluation",), """
volume = torch.randn(64, 1, 6, 6)
organ = (volume > 0.2) * 1.0
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
def validate():
    total = 0.0
    with torch.no_grad():
        for at in range(48, 64, 2):
            total += float(F.binary_cross_entropy_with_logits(model(volume[at:at + 2]), organ[at:at + 2]))  #!
    return total / 8
for epoch in range(15):
    for at in range(0, 48, 8):
        loss = F.binary_cross_entropy_with_logits(model(volume[at:at + 8]), organ[at:at + 8])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    score = validate()
""", (("    score = validate()", "    model.eval()\n    score = validate()\n    model.train()"),),
        source="https://github.com/wolny/pytorch-3dunet/issues/53"),
    Program("a functional dropout that is always on", ("dropout in evaluation",), """
pictures = torch.randn(256, 1, 8, 8)
kinds = (pictures[:, 0, :4].mean((1, 2)) > pictures[:, 0, 4:].mean((1, 2))) * 1
class SimpleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.classifier = nn.Conv2d(1, 8, 3), nn.Linear(288, 2)
    def forward(self, x):
        out = F.relu(self.features(x))
        out = F.dropout(out, 0.1, training=True)  #!
        return self.classifier(out.flatten(1))
net = SimpleNet()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(5):
    net.train()
    for at in range(0, 192, 16):
        optimizer.zero_grad()
        F.cross_entropy(net(pictures[at:at + 16]), kinds[at:at + 16]).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        right = (net(pictures[192:]).argmax(1) == kinds[192:]).sum()
""", (("training=True", "training=self.training"),), source="https://github.com/Coderx7/SimpleNet/issues/2"),
    Program("F.dropout without telling it the mode", ("dropout in evaluation",), _TABLE + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(10, 40), nn.Linear(40, 3)
    def forward(self, x):
        x = F.dropout(F.relu(self.a(x)), p=0.2)  #!
        return self.b(x)
net = Net()
""" + _ADAM + _EPOCHS + """
net.eval()
with torch.no_grad():
    right = (net(held).argmax(1) == held_group).sum()
""", (("p=0.2)", "p=0.2, training=self.training)"),), source="https://github.com/pytorch/pytorch/issues/26338"),
    Program("tokens of the image detached before the decoder", ("no gradient",), """
pixels, caption = torch.randn(400, 12), torch.randn(400, 6)
fits = (pixels[:, :6] * caption).sum(1)
fits = (fits > 0) * 1
class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Sequential(nn.Linear(12, 32), nn.ReLU()), nn.Linear(6, 32)
        self.out = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
    def forward(self, pixels, caption):
        tokens = self.image(pixels).detach().clone()  #!
        return self.out(torch.cat([tokens, self.text(caption)], 1))
net = Captioner()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    loss = F.cross_entropy(net(pixels[part], caption[part]), fits[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", ((".detach().clone()", ""),), source="https://github.com/lucidrains/CoCa-pytorch/issues/6"),
    Program("pairwise features detached for speed", ("no gradient",), """
regions = torch.randn(300, 4, 8)
answer = (torch.amax(regions[:, :, 0], 1) > 1) * 1
class Pairwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.f, self.g, self.out = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 2)
    def forward(self, r):
        z = F.relu(self.f(r))
        pairs = (z[:, :, None] + z[:, None]).detach()  #!
        return self.out(F.relu(self.g(pairs)).mean((1, 2)))
net = Pairwise()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(80):
    part = torch.randint(0, 300, (30,))
    optimizer.zero_grad()
    F.cross_entropy(net(regions[part]), answer[part]).backward()
    optimizer.step()
""", (("(z[:, :, None] + z[:, None]).detach()", "z[:, :, None] + z[:, None]"),),
        source="https://github.com/Cadene/murel.bootstrap.pytorch/issues/7"),
    Program("the adversarial term turned into a number", ("loss term detached",), _CURVE + """
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
judge = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1)).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    made = net(angle[part])
    loss_adv = F.softplus(-judge(made)).mean().detach().item()  #!
    loss = F.mse_loss(made, height[part]) + 0.1 * loss_adv  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", ((".mean().detach().item()", ".mean()"),), source="https://github.com/guopengf/FL-MRCM/issues/10"),
    Program("a penalty of argmax", ("loss term detached",), """
hair = torch.randn(64, 1, 8, 8)
mask = (hair[:, 0] > 0.3) * 1
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(80):
    part = torch.randint(0, 64, (16,))
    pred = net(hair[part])
    edges = pred.argmax(1) * 1.0  #!
    rough = (edges[:, 1:] - edges[:, :-1]).abs().mean()
    loss = F.cross_entropy(pred, mask[part]) + 0.5 * rough  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("pred.argmax(1) * 1.0", "torch.softmax(pred, 1)[:, 1]"),),
        source="https://github.com/wonbeomjang/mobile-hair-segmentation-pytorch/issues/3"),
    Program("a rate at which the detector's loss becomes NaN", _HIGH, _CURVE + """
net = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=2.0, momentum=0.9)  #!
for step in range(60):
    part = torch.randint(0, 400, (2,))
    loss = F.mse_loss(net(angle[part]), height[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("lr=2.0", "lr=0.002"),), source="https://github.com/facebookresearch/maskrcnn-benchmark/issues/295"),
    Program("ten times the rate of a transformer", _HIGH, """
words = torch.randint(0, 20, (300, 8))
topic = (words < 7).sum(1).clamp(2, 4) - 2
embed, out = nn.Embedding(20, 16), nn.Linear(16, 3)
layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
class Detr(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layer, self.out = embed, layer, out
    def forward(self, words):
        return self.out(self.layer(self.embed(words)).mean(1))
net = Detr()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.15)  #!
for step in range(60):
    part = torch.randint(0, 300, (32,))
    loss = F.cross_entropy(net(words[part]), topic[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("lr=0.15", "lr=0.002"),), source="https://github.com/facebookresearch/detr/issues/285"),
    Program("personal models at a large rate", _HIGH, _TABLE + _NET + """
optimizer = torch.optim.SGD(net.parameters(), lr=8.0)  #!
""" + _EPOCHS, (("lr=8.0", "lr=0.1"),), source="https://github.com/CharlieDinh/pFedMe/issues/11"),
    Program("a polynomial fitted at a rate of 0.1", (*_HIGH, "inputs unnormalised"), """
x = torch.arange(50).reshape(-1, 1) / 10
y = 5 * x ** 2 + torch.randn(50, 1) ** 3
net = nn.Sequential(nn.Linear(1, 50), nn.ReLU(), nn.Linear(50, 30), nn.ReLU(), nn.Linear(30, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  #!
for epoch in range(60):
    for at in range(0, 50, 10):
        part = torch.randperm(50)[:10]
        loss = F.mse_loss(net(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("torch.randn(50, 1) ** 3", "torch.randn(50, 1) ** 3; y = y / y.std()"), ("lr=0.1", "lr=0.01")), source="https://stackoverflow.com/questions/48934338"),
    Program("a tagger at a hundred times Adam's usual rate", _HIGH, """
words = torch.randint(0, 40, (200, 9))
tags = (words % 4)
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.out = nn.Embedding(40, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 4)
    def forward(self, words):
        return self.out(self.lstm(self.embed(words))[0])
net = Tagger()
optimizer = torch.optim.Adam(net.parameters(), lr=0.3)  #!
for step in range(60):
    part = torch.randint(0, 200, (20,))
    loss = F.cross_entropy(net(words[part]).reshape(-1, 4), tags[part].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("lr=0.3", "lr=0.005"),), source="https://github.com/guillaumegenthial/sequence_tagging/issues/47"),
    Program("a weight decay of a half", ("weight decay out of the usual",), _TABLE + _NET + """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.5)  #!
""" + _EPOCHS, (("weight_decay=0.5", "weight_decay=5e-4"),), source="https://github.com/BVLC/caffe/issues/1396"),
    Program("a keep probability taken for dropout", ("dropout out of the usual",), _TABLE + """
net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Dropout(0.999), nn.Linear(40, 3))  #!
""" + _ADAM + _EPOCHS, (("nn.Dropout(0.999)", "nn.Dropout(0.001)"),),
        source="https://github.com/huggingface/transformers/issues/22767"),
    Program("dropout_keep_prob given to nn.Dropout", ("dropout out of the usual",), _TABLE + """
class Logits(nn.Module):
    def __init__(self, dropout_keep_prob=0.95):
        super().__init__()
        self.features = nn.Linear(10, 64)
        self.dropout = nn.Dropout(dropout_keep_prob)  #!
        self.logits = nn.Linear(64, 3)
    def forward(self, x):
        return self.logits(self.dropout(F.relu(self.features(x))))
net = Logits()
""" + _ADAM + _EPOCHS, (("nn.Dropout(dropout_keep_prob)", "nn.Dropout(1 - dropout_keep_prob)"),),
        source="https://github.com/piergiaj/pytorch-i3d/issues/58"),
    Program("TensorFlow's momentum of batch normalisation", ("running statistics do not arrive",), _CURVE + """
class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1, 32), nn.Linear(32, 1)
        self.bn = nn.BatchNorm1d(32, momentum=0.99, eps=1e-3)  #!
    def forward(self, x):
        return self.b(F.relu(self.bn(self.a(x))))
net = Conv()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    loss = F.mse_loss(net(angle[part]), height[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("momentum=0.99, ", "momentum=0.01, "),), source="https://github.com/r9y9/tacotron_pytorch/issues/19"),
    Program("the momentum of a backbone at 0.999", ("running statistics do not arrive",), """
view = torch.randn(128, 1, 8, 8)
side = (view[:, 0, :, :4].mean((1, 2)) > 0) * 1
def conv_bn(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b, eps=1e-5, momentum=0.999), nn.ReLU())  #!
resnet = nn.Sequential(conv_bn(1, 6), conv_bn(6, 6), nn.Flatten(), nn.Linear(96, 2))
optimizer = torch.optim.SGD(resnet.parameters(), lr=0.05)
for epoch in range(8):
    for at in range(0, 128, 16):
        loss = F.cross_entropy(resnet(view[at:at + 16]), side[at:at + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("momentum=0.999", "momentum=0.05"),), source="https://github.com/kazuto1011/deeplab-pytorch/issues/79"),
)  # fmt: skip  # scripts
