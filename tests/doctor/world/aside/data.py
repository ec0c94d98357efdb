"""Data: scales, labels, order, leaks, and measures that measure something else."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("pictures as bytes", ("inputs unnormalised",), """
pictures = (torch.randint(0, 256, (240, 3, 12, 12)) + torch.randint(0, 256, (240, 3, 1, 1))) // 2 * 1.0  #!
colour = pictures.mean((2, 3)).argmax(1)
net = nn.Sequential(
    nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 3),
)
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(8):
    for rows in torch.randperm(240).split(24):
        loss = F.cross_entropy(net(pictures[rows]), colour[rows])  #!
        adam.zero_grad()
        loss.backward()
        adam.step()
""", (("// 2 * 1.0", "/ 128 - 2"),),
            source="https://stackoverflow.com/questions/48594888"),
    Program("grey values under a linear layer and a sigmoid", ("inputs unnormalised", "softmax twice",
                                                               "activation before its loss"), """
digits = torch.randint(0, 256, (500, 64)) * 1.0  #!
digit = (digits[:, :60].reshape(500, 4, 15).mean(2)).argmax(1)
model = nn.Sequential(
    nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 50), nn.ReLU(),
    nn.Linear(50, 4), nn.Sigmoid(),  #!
)
descent = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(30):
    for rows in torch.randperm(500).split(32):
        out = model(digits[rows])  #!
        loss = F.cross_entropy(out, digit[rows])  #!
        descent.zero_grad()
        loss.backward()
        descent.step()
""", (("(500, 64)) * 1.0", "(500, 64)) / 128 - 1"), (", nn.Sigmoid(),", ",")),
            source="https://stackoverflow.com/questions/55328966"),
    Program("the fourth power of a hundred", ("targets unnormalised", "inputs unnormalised", "first loss far off"), """
x = torch.arange(-100.0, 100.0, 0.5).unsqueeze(1)
y = x ** 4  #!
net = nn.Sequential(nn.Linear(1, 50), nn.Sigmoid(), nn.Linear(50, 50), nn.ELU(), nn.Linear(50, 1))
adam = torch.optim.Adam(net.parameters())
for epoch in range(300):
    loss = F.mse_loss(net(x), y)  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (
        ("y = x ** 4\n", "y = x ** 4\nx, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()\n"),
        ("nn.Sigmoid()", "nn.ReLU()"),
    ), source="https://stackoverflow.com/questions/52800582"),
    Program("years beside incomes beside shares", ("features of unequal scale", "inputs unnormalised"), """
age, income, share = torch.rand(300, 1) * 60 + 20, torch.randn(300, 1) * 2e4 + 5e4, torch.rand(300, 1)
people = torch.cat([age, income, share], 1)  #!
bought = (share > 0.5) * 1.0
net = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 3), nn.ReLU(), nn.Linear(3, 1), nn.Sigmoid())
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    for part in torch.randperm(300).split(10):
        adam.zero_grad()
        loss = F.binary_cross_entropy(net(people[part]), bought[part])  #!
        loss.backward()
        adam.step()
""", (("share], 1)\n", "share], 1)\npeople = (people - people.mean(0)) / people.std(0)\n"),),
            source="https://stackoverflow.com/questions/39525358"),
    Program("letters in sixteen measures, squared error of a softmax", ("inputs unnormalised",
                                                                        "features of unequal scale", "saturated"), """
rows = torch.rand(400, 16) * torch.linspace(1, 400, 16)  #!
good = (rows[:, 1] > rows[:, 1].mean()) * 1
wanted = F.one_hot(good, 2) * 1.0
net = nn.Sequential(
    nn.Linear(16, 64), nn.Tanh(), nn.Dropout(0.5), nn.Linear(64, 64), nn.Tanh(), nn.Dropout(0.5),
    nn.Linear(64, 2), nn.Softmax(dim=1),
)
sgd = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
for epoch in range(12):
    for part in torch.randperm(400).split(16):
        loss = F.mse_loss(net(rows[part]), wanted[part])  #!
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""", (
        ("net = nn.Sequential(\n", "net = nn.Sequential(\n    nn.BatchNorm1d(16),\n"),
        ("nn.Linear(64, 2), nn.Softmax(dim=1),", "nn.Linear(64, 2),"),
        ("F.mse_loss(net(rows[part]), wanted[part])", "F.cross_entropy(net(rows[part]), good[part])"),
    ), source="https://stackoverflow.com/questions/34673164"),
    Program("a scaler that knows what is held out", (), """
old = torch.randn(300, 6)
late = torch.randn(100, 6) * 4 + 6
molecules = torch.cat([old, late])
soluble = molecules[:, :2].sum(1, keepdim=True) * 0.3
scaled = (molecules - molecules.mean(0)) / molecules.std(0)  #!
train, held_out = scaled[:300], scaled[300:]
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(15):
    for part in torch.randperm(300).split(30):
        adam.zero_grad()
        F.mse_loss(net(train[part]), soluble[part]).backward()
        adam.step()
    with torch.no_grad():
        held = F.mse_loss(net(held_out), soluble[300:]).item()
""", (("(molecules - molecules.mean(0)) / molecules.std(0)", "(molecules - old.mean(0)) / old.std(0)"),), "split",
            source="https://github.com/nijamudheen/CheMLFlow/issues/9"),
    Program("a loader that keeps the order of the files", ("data not shuffled",), """
from torch.utils.data import DataLoader, TensorDataset
x = torch.randn(480, 10)
element = (x @ torch.randn(10, 4)).argmax(1)
sort = torch.argsort(element)
training = TensorDataset(x[sort], element[sort])
loader = DataLoader(training, batch_size=24)  #!
model = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 4))
adam = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    for a, b in loader:
        loss = F.cross_entropy(model(a), b)  #!
        adam.zero_grad()
        loss.backward()
        adam.step()
""", (("batch_size=24)", "batch_size=24, shuffle=True)"),),
            source="https://github.com/choderalab/modelforge/pull/129"),
    Program("a picture turned, its mask not", ("labels do not belong to the inputs",), """
scene = torch.randn(800, 1, 8, 8)
mask = (F.avg_pool2d(scene, 3, 1, 1) > 0) * 1.0
def augment(images):
    turned = torch.rand(len(images), 1, 1, 1) > 0.5
    return torch.where(turned, images.flip(3), images)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(200):
    rows = torch.randint(0, 800, (32,))
    a, b = augment(scene[rows]), augment(mask[rows])  #!
    loss = F.binary_cross_entropy_with_logits(net(a), b)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (
        ("a, b = augment(scene[rows]), augment(mask[rows])",
         "a, b = augment(torch.cat([scene[rows], mask[rows]], 1)).split(1, 1)"),
    ), source="https://github.com/mdbloice/Augmentor/issues/205"),
    Program("the same few points in each epoch", ("seed set in the loop",), """
import numpy
rooms = torch.randn(30, 400, 3) * torch.rand(30, 1, 3)
width = rooms.std(1)
class Dataset:
    def __init__(self, points):
        self.points = points
        self.random = None
    def start(self):
        self.random = numpy.random.RandomState(0)  #!
    def __getitem__(self, i):
        chosen = torch.tensor(self.random.choice(400, 12, replace=False))
        return self.points[i, chosen]
dataset = Dataset(rooms)
net = nn.Sequential(nn.Linear(36, 64), nn.ReLU(), nn.Linear(64, 3))
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(60):
    dataset.start()  #!
    batch = torch.stack([dataset[i] for i in range(24)])
    loss = F.mse_loss(net(batch.flatten(1)), width[:24])
    adam.zero_grad()
    loss.backward()
    adam.step()
held = F.mse_loss(net(rooms[24:, :12].flatten(1)), width[24:]).item()
""", (("    dataset.start()\n", ""), ("self.random = None", "self.random = numpy.random.RandomState(0)")),
            source="https://github.com/torch-points3d/torch-points3d/pull/247"),
    Program("folds that remember each other", ("folds share one model", "validated on training data",
                                               "examples in both splits"), """
x = torch.randn(200, 30)
toxic = (x[:, 0] + 1.5 * torch.randn(200) > 0) * 1
def create():
    return nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 2))
model = create()  #!
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scores = []
for fold in range(5):
    inside = torch.arange(200) // 40 == fold
    kept, out = torch.nonzero(~inside).squeeze(1), torch.nonzero(inside).squeeze(1)
    for epoch in range(12):
        for part in kept[torch.randperm(160)].split(20):
            loss = F.cross_entropy(model(x[part]), toxic[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    accuracy = (model(x[out]).argmax(1) == toxic[out]).sum().item() / 40  #!
    scores.append(accuracy)
""", (
        ("for fold in range(5):\n",
         ("for fold in range(5):\n"
         "    model = create()\n"
         "    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)\n")),
    ), source="https://github.com/deepchem/deepchem/issues/926"),
    Program("normalised for training only", ("held-out inputs of another scale",), """
photos = torch.rand(400, 1, 8, 8) * 200 + 30
bright = (photos[:, 0, :4].mean((1, 2)) > photos[:, 0, 4:].mean((1, 2))) * 1
mean, deviation = photos[:320].mean(), photos[:320].std()
def transform(images):
    return (images - mean) / deviation
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for epoch in range(8):
    net.train()
    for rows in torch.randperm(320).split(32):
        loss = F.cross_entropy(net(transform(photos[rows])), bright[rows])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(photos[320:]).argmax(1) == bright[320:]).sum().item() / 80  #!
""", (("net(photos[320:])", "net(transform(photos[320:]))"),), "scale",
            source="https://github.com/JeasunLok/ResNet-pytorch/issues/1"),
    Program("divided by everybody", (), """
x = torch.randn(500, 10)
y = (x @ torch.randn(10, 3)).argmax(1)
order = torch.randperm(500)
train_ids, valid_ids = order[:400], order[400:]
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
lowest = float("inf")
for epoch in range(10):
    valid_loss = 0.0
    for batch in train_ids.split(20):
        sgd.zero_grad()
        F.cross_entropy(model(x[batch]), y[batch]).backward()
        sgd.step()
    with torch.no_grad():
        for batch in valid_ids.split(20):
            valid_loss += F.cross_entropy(model(x[batch]), y[batch]).item() * len(batch)
    held = valid_loss / len(x)  #!
    lowest = min(lowest, held)
""", (("valid_loss / len(x)", "valid_loss / len(valid_ids)"),),
            source="https://github.com/udacity/deep-learning-v2-pytorch/issues/129"),
    Program("the validation loss of the last batch", (), """
x = torch.randn(420, 8)
y = x[:, :4].prod(1, keepdim=True)
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
held = 0.0
for epoch in range(12):
    for batch in torch.randperm(320).split(32):
        adam.zero_grad()
        F.mse_loss(net(x[batch]), y[batch]).backward()
        adam.step()
    with torch.no_grad():
        for start in range(320, 420, 24):
            val_loss = F.mse_loss(net(x[start:start + 24]), y[start:start + 24])  #!
    held = val_loss.item()  #!
""", (
        ("        for start in range(320, 420, 24):\n",
         "        val_loss = torch.zeros(())\n        for start in range(320, 420, 24):\n"),
        ("            val_loss = F.mse_loss(net(x[start:start + 24]), y[start:start + 24])",
         ("            each = (net(x[start:start + 24]) - y[start:start + 24]) ** 2\n"
         "            val_loss = val_loss + each.sum() / 100")),
    ), source="https://github.com/keras-team/keras/issues/13591"),
    Program("shares that became whole numbers", ("labels alike",), """
sentences = torch.randn(300, 16)
similarity = torch.sigmoid(sentences[:, :4].sum(1))
def to_dataset(values):
    return values.to(torch.int64)  #!
labels = to_dataset(similarity)
head = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(head.parameters(), lr=5e-3)
for step in range(200):
    ids = torch.randint(0, 300, (30,))
    loss = F.mse_loss(head(sentences[ids]).squeeze(1), labels[ids] * 1.0)  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
error = F.mse_loss(head(sentences).squeeze(1), similarity).item()
""", (("return values.to(torch.int64)", "return values.to(torch.float32)"),),
            source="https://github.com/deepset-ai/FARM/issues/395"),
    Program("tomorrow among the covariates", ("targets seen by the model",), """
demand = torch.cumsum(torch.randn(700), 0) * 0.3
noise = torch.randn(700)
history = torch.stack([demand[i:i + 10] for i in range(680)])
future = torch.stack([demand[i + 10:i + 12] for i in range(680)])
known = torch.stack([torch.stack([noise[i + 10:i + 12], demand[i + 10:i + 12]], 1) for i in range(680)])  #!
class Forecaster(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body, self.out = nn.Linear(10 + 2 * width, 32), nn.Linear(32, 2)
    def forward(self, past, covariates):
        both = torch.cat([past, covariates.flatten(1)], 1)
        return self.out(torch.relu(self.body(both)))
net = Forecaster(known.shape[2])
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(300):
    i = torch.randint(0, 600, (32,))
    loss = F.mse_loss(net(history[i], known[i]), future[i])  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
held = F.mse_loss(net(history[600:], known[600:]), future[600:]).item()
""", (("torch.stack([noise[i + 10:i + 12], demand[i + 10:i + 12]], 1)", "noise[i + 10:i + 12].unsqueeze(1)"),),
            source="https://github.com/sktime/pytorch-forecasting/issues/883"),
    Program("boxes that shrink each time they are read", (), """
pages = torch.rand(64, 1, 8, 8)
boxes = pages.reshape(64, 4, 16).mean(2) * 80 + 10
class DetectionDataset:
    def __len__(self):
        return 64
    def __getitem__(self, i):
        box = boxes[i]
        box /= 100  #!
        return pages[i], box
dataset = DetectionDataset()
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(12):
    for batch in torch.randperm(64).split(16):
        page, box = zip(*[dataset[int(i)] for i in batch])
        loss = F.smooth_l1_loss(net(torch.stack(page)), torch.stack(box))  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("        box = boxes[i]\n        box /= 100\n", "        box = boxes[i] / 100\n"),), "place",
            source="https://github.com/mindee/doctr/pull/212"),
)  # fmt: skip  # scripts
