"""Reported faults of data: order, pairs that came apart, scales, splits, augmentation, seeds, numbers not finite."""

from __future__ import annotations

from tests.doctor.world.program import Program

_SORTED = """
x = torch.randn(480, 8)
y = (x @ torch.randn(8, 4)).argmax(1)
order = torch.argsort(y)
x, y = x[order], y[order]
"""
_NET = """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
_PIXELS = """
pixels = torch.randint(0, 256, (400, 1, 6, 6)) * 1.0
bright = (pixels[:, 0, :3].mean((1, 2)) > pixels[:, 0, 3:].mean((1, 2))) * 1
"""
_CNN = """
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
"""
_STEP = """
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_UNSHUFFLED, _SCALE = ("data not shuffled",), ("inputs unnormalised",)

PROGRAMS = (
    Program("a loader that runs through the classes", _UNSHUFFLED, _SORTED + """
class Loader:
    def __init__(self, batch, shuffle=False):
        self.batch, self.shuffle = batch, shuffle
    def __iter__(self):
        order = torch.randperm(len(x)) if self.shuffle else torch.arange(len(x))
        for at in range(0, len(x), self.batch):
            yield x[order[at:at + self.batch]], y[order[at:at + self.batch]]
""" + _NET + """
train_loader = Loader(40)  #!
for epoch in range(10):
    for a, b in train_loader:
        loss = F.cross_entropy(net(a), b)  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("Loader(40)", "Loader(40, shuffle=True)"),), source="https://github.com/Deci-AI/super-gradients/issues/416"),
    Program("trajectories in the order of their kind", _UNSHUFFLED, _SORTED + """
class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 48), nn.Linear(48, 4)
    def forward(self, x):
        return self.b(F.silu(self.a(x)))
net = Unet()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
indices = torch.arange(480)  #!
for epoch in range(10):
    for at in range(0, 480, 32):
        rows = indices[at:at + 32]
        optimizer.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()  #!
        optimizer.step()
""", (("indices = torch.arange(480)", "indices = torch.randperm(480)"),),
        source="https://github.com/joaoamcarvalho/mpd-public/issues/6"),
    Program("pictures of aircraft grouped by variant", _UNSHUFFLED, """
plane = torch.randn(400, 1, 6, 6)
variant = (plane[:, 0].mean(2) @ torch.randn(6, 5)).argmax(1)
by_variant = torch.argsort(variant)
plane, variant = plane[by_variant], variant[by_variant]  #!
model = nn.Sequential(nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(192, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(8):
    for at in range(0, 400, 25):
        loss = F.cross_entropy(model(plane[at:at + 25]), variant[at:at + 25])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("torch.argsort(variant)", "torch.randperm(400)"),), source="https://github.com/pytorch/vision/issues/7818"),
    Program("a shuffle whose result nobody takes", _UNSHUFFLED, _SORTED + """
def shuffled(*arrays):
    places = torch.randperm(len(arrays[0]))
    return [array[places] for array in arrays]
""" + _NET + """
for epoch in range(10):
    shuffled(x, y)  #!
    for at in range(0, 480, 48):
        loss = F.cross_entropy(net(x[at:at + 48]), y[at:at + 48])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("    shuffled(x, y)", "    x, y = shuffled(x, y)"),), source="https://github.com/tensorflow/models/issues/4215"),
    Program("features and labels shuffled apart", ("labels do not belong to the inputs",), """
features = torch.randn(1200, 6)
labels = (features[:, 0] + features[:, 1] > 0) * 1
features, labels = features[torch.randperm(1200)], labels[torch.randperm(1200)]  #!
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(8):
    for at in range(0, 1200, 40):
        loss = F.cross_entropy(net(features[at:at + 40]), labels[at:at + 40])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("features, labels = features[torch.randperm(1200)], labels[torch.randperm(1200)]",
       "order = torch.randperm(1200); features, labels = features[order], labels[order]"),),
        source="https://github.com/udacity/sdc-issue-reports/issues/1326"),
    Program("a loader that shuffles the targets of a regression", ("labels do not belong to the inputs",), """
size = torch.randn(1000, 5)
price = size @ torch.randn(5, 1)
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
def batches():
    order, other = torch.randperm(1000), torch.randperm(1000)
    for at in range(0, 1000, 40):
        yield size[order[at:at + 40]], price[other[at:at + 40]]  #!
for epoch in range(8):
    for a, b in batches():
        loss = F.mse_loss(net(a), b)  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("price[other[at:at + 40]]", "price[order[at:at + 40]]"),),
        source="https://datarekha.com/interview/deep-learning/debugging-model-not-learning/"),
    Program("pictures flipped, their masks not", ("labels do not belong to the inputs",), """
scene = torch.randn(200, 1, 6, 6)
mask = (scene > 0.4) * 1.0
net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
def augmented(a, b):
    kind = int(torch.randint(0, 4, (1,)))
    a = torch.rot90(a, kind, (2, 3))  #!
    return a, b  #!
for step in range(200):
    part = torch.randint(0, 200, (25,))
    a, b = augmented(scene[part], mask[part])
    loss = F.binary_cross_entropy_with_logits(net(a), b)  #!
""" + _STEP, (("    return a, b", "    return a, torch.rot90(b, kind, (2, 3))"),),
        source="https://github.com/fastai/fastai/issues/245"),
    Program("crops of image and weighting drawn apart", ("labels do not belong to the inputs",), """
photo = torch.randn(200, 1, 9, 9)
weight = (photo.abs() > 1) * 1.0
net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
def crop(picture):
    top, left = (int(n) for n in torch.randint(0, 4, (2,)))
    return picture[:, :, top:top + 6, left:left + 6]
for step in range(200):
    part = torch.randint(0, 200, (25,))
    a, b = crop(photo[part]), crop(weight[part])  #!
    loss = F.binary_cross_entropy_with_logits(net(a), b)  #!
""" + _STEP, (("    a, b = crop(photo[part]), crop(weight[part])",
              "    both = crop(torch.cat([photo[part], weight[part]], 1))\n    a, b = both[:, :1], both[:, 1:]"),),
        source="https://github.com/thuanz123/realfill/issues/4"),
    Program("pixels of -128 to 128 into a pretrained layout", _SCALE, _PIXELS + """
pixels = pixels - 128  #!
""" + _CNN + """
for step in range(100):
    part = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(net(pixels[part]), bright[part])  #!
""" + _STEP, (("pixels = pixels - 128", "pixels = (pixels - 128) / 74"),),
        source="https://github.com/facebookresearch/Detectron/issues/868"),
    Program("only the mean taken from the pictures", _SCALE, _PIXELS + _CNN + """
mean = pixels.mean()
def load(part):
    return pixels[part] - mean  #!
for epoch in range(5):
    for at in range(0, 400, 25):
        part = torch.arange(at, at + 25)
        loss = F.cross_entropy(net(load(part)), bright[part])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("return pixels[part] - mean", "return (pixels[part] - mean) / pixels.std()"),),
        source="https://github.com/kratzert/finetune_alexnet_with_tensorflow/issues/79"),
    Program("inputs of thousands beside fractions", _SCALE, """
sensors = torch.rand(300, 3) * torch.tensor([4000.0, 20.0, 1.0])
alarm = (sensors[:, 2] > 0.5) * 1.0
net = nn.Sequential(nn.Linear(3, 16), nn.Sigmoid(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
for step in range(150):
    part = torch.randint(0, 300, (30,))
    out = net(sensors[part])  #!
    loss = F.binary_cross_entropy_with_logits(out[:, 0], alarm[part])  #!
""" + _STEP, (("sensors[part])", "sensors[part] / torch.tensor([2000.0, 10.0, 0.5]) - 1)"),),
        source="https://github.com/BrainJS/brain.js/issues/278"),
    Program("divided by 255 twice", _SCALE, _PIXELS + """
pixels = pixels / 255
""" + _CNN + """
def encode(batch):
    batch = batch / 255  #!
    return net(batch)  #!
for step in range(120):
    part = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(encode(pixels[part]), bright[part])  #!
""" + _STEP, (("    batch = batch / 255\n", ""),), source="https://github.com/pkmital/pycadl/pull/5"),
    Program("windows of one series in both parts", ("validated on training data",), """
series = torch.cumsum(torch.randn(240), 0) / 8
windows = torch.stack([series[at:at + 9] for at in range(0, 230)])
order = torch.randint(0, 230, (230,))
train, valid = windows[order], windows[torch.randint(0, 230, (60,))]  #!
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(15):
    for at in range(0, 230, 23):
        part = train[at:at + 23]
        loss = F.mse_loss(net(part[:, :8]), part[:, 8:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = F.mse_loss(net(valid[:, :8]), valid[:, 8:])  #!
""", (("train, valid = windows[order], windows[torch.randint(0, 230, (60,))]",
       "train, valid = windows[order % 170], windows[180:]"),),
        source="https://github.com/PENGZhaoqing/TimeSeriesPrediction/issues/8"),
    Program("instances of one sample in training and validation", ("validated on training data",), """
cells = torch.randn(300, 10)
disease = (cells[:, :3].sum(1) > 0) * 1
train = torch.arange(300)
valid = torch.arange(200, 300)  #!
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(10):
    train = train[torch.randperm(len(train))]
    for at in range(0, len(train), 20):
        part = train[at:at + 20]
        loss = F.cross_entropy(net(cells[part]), disease[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        score = F.cross_entropy(net(cells[valid]), disease[valid])  #!
""", (("train = torch.arange(300)", "train = torch.arange(200)"),),
        source="https://github.com/theislab/multimil/issues/75"),
    Program("a focal loss that takes the logarithm of 0", ("logarithm of what can reach 0",), """
far = torch.randn(300, 6) * 3
kind = (far[:, 0] > 0) * 1
net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=2.0)
rows = torch.arange(30)
for step in range(80):
    part = torch.randint(0, 300, (30,))
    p_t = torch.softmax(40 * net(far[part]), 1)[rows, kind[part]]
    loss = (-((1 - p_t) ** 2) * torch.log(p_t)).mean()  #!
""" + _STEP, (("40 * net", "net"), ("lr=2.0", "lr=0.05"), ("torch.log(p_t)", "torch.log(p_t + 1e-7)")),
        source="https://github.com/mathiaszinnen/focal_loss_torch/issues/3"),
    Program("logarithms of a heatmap that a ReLU made", ("logarithm of what can reach 0",), """
image = torch.randn(80, 1, 6, 6)
heat = (image > 1) * 1.0
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(60):
    part = torch.randint(0, 80, (16,))
    p = net(image[part]).clamp(0.0, 1.0)
    loss = -(heat[part] * torch.log(p) + (1 - heat[part]) * torch.log(1 - p)).mean()  #!
""" + _STEP, (
        (".clamp(0.0, 1.0)", ".sigmoid()"),
        ("torch.log(p) + (1 - heat[part]) * torch.log(1 - p)",
         "torch.log(p.clamp(1e-6, 1.0)) + (1 - heat[part]) * torch.log((1 - p).clamp(1e-6, 1.0))"),
    ), source="https://github.com/maudzung/RTM3D/issues/13"),
    Program("the root of a clipped difference", ("root of 0",), """
wave = torch.randn(200, 16)
clean = wave * (wave.abs() > 0.5)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(80):
    part = torch.randint(0, 200, (20,))
    energy = net(wave[part]) ** 2
    loudness = torch.sqrt(energy)  #!
    loss = F.mse_loss(loudness, clean[part].abs())
""" + _STEP, (("torch.sqrt(energy)", "torch.sqrt(energy + 1e-6)"),
             ("nn.Linear(32, 16), nn.ReLU())", "nn.Linear(32, 16))")),
        source="https://github.com/mpariente/pytorch_stoi/issues/7"),
    Program("the sine of an angle whose cosine is 1", ("root of 0",), """
face = torch.randn(200, 8)
person = (face @ torch.randn(8, 4)).argmax(1)
embed = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
centres = nn.Parameter(torch.randn(4, 8))
class Arc(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.centres = embed, centres
    def forward(self, face):
        return F.normalize(self.embed(face), dim=1) @ F.normalize(self.centres, dim=1).t()
net = Arc()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(80):
    part = torch.randint(0, 200, (25,))
    cosine = net(face[part]).clamp(-0.2, 0.2) * 5
    sine = torch.sqrt((1.0 - cosine ** 2).clamp(0, 1))  #!
    margin = cosine * 0.9 - sine * 0.4
    hot = F.one_hot(person[part], 4)
    loss = F.cross_entropy(8 * (hot * margin + (1 - hot) * cosine), person[part])
""" + _STEP, ((".clamp(-0.2, 0.2) * 5", ""), (".clamp(0, 1))", ".clamp(1e-6, 1))")),
        source="https://github.com/ronghuaiyang/arcface-pytorch/issues/91"),
    Program("a power between 0 and 1 of a certain probability", ("power of 0",), """
x = torch.randn(300, 5)
y = (x[:, :1] > 0) * 1.0
net = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(60):
    part = torch.randint(0, 300, (30,))
    p = torch.sigmoid(net(x[part]) * 300)
    easy = torch.pow(1 - p, 0.5)  #!
    hard = torch.pow(p, 0.5)  #!
    loss = -(easy * y[part] * torch.log(p + 1e-8) + hard * (1 - y[part]) * torch.log(1 - p + 1e-8)).mean()
""" + _STEP, ((" * 300)", ")"), ("torch.pow(1 - p, 0.5)", "torch.pow(1 - p + 1e-6, 0.5)"),
             ("torch.pow(p, 0.5)", "torch.pow(p + 1e-6, 0.5)")),
        source="https://github.com/kornia/kornia/issues/918"),
    Program("the logarithm of a rate that may be 0", ("logarithm of what can reach 0",), """
days = torch.rand(300, 3)
count = torch.poisson(torch.exp(days.sum(1, keepdim=True)))
net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-2)
for step in range(80):
    part = torch.randint(0, 300, (30,))
    rate = net(days[part])
    loss = (rate - count[part] * torch.log(rate)).mean()  #!
""" + _STEP, (("nn.Linear(16, 1), nn.ReLU())", "nn.Linear(16, 1), nn.Softplus())"),
             ("torch.log(rate)", "torch.log(rate + 1e-8)")),
        source="https://github.com/pytorch/pytorch/pull/3336"),
    Program("advantages normalised over a last batch of one", ("NaN in the targets",), """
states, gains = torch.randn(97, 4), torch.randn(97)
policy = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
acts = (gains > 0) * 1
for epoch in range(12):
    for at in range(0, 97, 32):
        gain = gains[at:at + 32]
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)  #!
        score = F.log_softmax(policy(states[at:at + 32]), 1)
        loss = -(score[torch.arange(len(gain)), acts[at:at + 32]] * gain).mean()  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("range(0, 97, 32)", "range(0, 96, 32)"),), source="https://github.com/DLR-RM/stable-baselines3/issues/325"),
    Program("a minibatch of one job and its deviation", ("NaN in the targets",), """
jobs = torch.randn(64, 5)
reward = jobs[:, 0] + 0.1 * torch.randn(64)
critic = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)
size = 3
for epoch in range(6):
    for at in range(0, 64, size):
        goal = reward[at:at + size]
        goal = (goal - goal.mean()) / (goal.std() + 1e-5)  #!
        loss = F.mse_loss(critic(jobs[at:at + size])[:, 0], goal)  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("size = 3", "size = 8"),), source="https://github.com/jolibrain/wheatley/pull/93"),
)  # fmt: skip  # scripts
