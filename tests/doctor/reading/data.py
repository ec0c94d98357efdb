"""Faults of loaders, splits and shuffles."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_IMPORT = "from torch.utils.data import DataLoader\n"

CASES = (
    Case(
        "pairs shuffled apart",
        """
def epoch(users, items, stars):
    order = torch.randperm(len(stars))
    items, stars = items[order], stars[order]  #!
    for at in range(0, len(stars), 32):
        loss = F.mse_loss(model(users[at : at + 32], items[at : at + 32]), stars[at : at + 32])
""",
        (("items, stars = items[order]", "users, items, stars = users[order], items[order]"),),
    ),
    Case(
        "pairs shuffled apart",
        """
def shuffled(rows):
    return rows[torch.randperm(len(rows))]
def mixed(x, y, share=0.3):
    other_x = shuffled(x)
    other_y = shuffled(y)  #!
    return x + share * other_x, y + share * other_y
for x, labels in batches:
    mixed(x, labels)
""",
        (
            ("    other_x = shuffled(x)\n", "    order = torch.randperm(len(x))\n    other_x = x[order]\n"),
            ("shuffled(y)", "y[order]"),
        ),
    ),
    Case(
        "pairs shuffled apart",
        """
model = nn.Linear(4, 3)
for step in range(9):
    rows, others = torch.randperm(len(x)), torch.randperm(len(y))
    scores = model(x[rows[:8]])
    loss = F.cross_entropy(scores, y[others[:8]])  #!
""",
        (("y[others[:8]]", "y[rows[:8]]"),),
    ),
    Case(
        "augmented before the split",
        "from torch.utils.data import random_split\nsounds = augment(sounds)  #!\n"
        "train_set, val_set = random_split(sounds, [800, 200])\n",
        (("sounds = augment(sounds)\n", ""), ("[800, 200])\n", "[800, 200])\ntrain_set = augment(train_set)\n")),
    ),
    Case(
        "augmented before the split",
        """
def windows(x):
    return x.unfold(0, 9, 1)
cut = windows(series)  #!
order = torch.randperm(len(cut))
train_x, test_x = cut[order[:80]], cut[order[80:]]
""",
        (
            ("cut = windows(series)", "train_x, test_x = windows(series[:90]), windows(series[90:])"),
            ("order = torch.randperm(len(cut))", "for i in torch.randperm(len(train_x)).split(8):"),
            ("train_x, test_x = cut[order[:80]], cut[order[80:]]", "    batch = train_x[i]"),
        ),
    ),
    Case(
        "data not shuffled",
        _IMPORT + "train_loader = DataLoader(train_set, batch_size=32)  #!\n",
        (("=32", "=32, shuffle=True"),),
    ),
    Case(
        "data not shuffled",
        _IMPORT + "loader = DataLoader(data.train, 32, shuffle=False)  #!\n",
        (("shuffle=False", "sampler=sampler"),),
    ),
    Case(
        "examples left out of validation",
        _IMPORT + "val_loader = DataLoader(val_set, 32, drop_last=True)  #!\n",
        (("drop_last=True", "drop_last=False"),),
    ),
    Case(
        "validation on the training data",
        _IMPORT + "val_loader = DataLoader(train_set, 32)  #!\n",
        (("train_set", "val_set"),),
    ),
    Case(
        "pairs shuffled apart",
        "import random\nrandom.shuffle(images)\nrandom.shuffle(labels)  #!\n",
        (("random.shuffle(images)\n", "pairs = list(zip(images, labels))\n"),),
    ),
    Case(
        "pairs shuffled apart",
        """
x = torch.randn(64, 4)
y = x.sum(1)
x = x[torch.randperm(64)]  #!
loss = F.cross_entropy(model(x[rows]), y[rows])
""",
        (("y = x.sum(1)\nx = x[torch.randperm(64)]", "x = x[torch.randperm(64)]\ny = x.sum(1)"),),
    ),
    Case(
        "pairs shuffled apart",
        _IMPORT
        + """
images = DataLoader(a, 32, shuffle=True)
labels = DataLoader(b, 32, shuffle=True)
for x, y in zip(images, labels):  #!
    pass
""",
        (("shuffle=True", "shuffle=False"),),
    ),
    Case(
        "workers draw the same numbers",
        _IMPORT
        + """
class Pictures(torch.utils.data.Dataset):
    def __init__(self):
        self.draw = np.random.default_rng(0)  #!
    def __getitem__(self, at):
        return self.draw.normal(size=4)
loader = DataLoader(Pictures(), 32, num_workers=4)
""",
        (("num_workers=4", "num_workers=4, worker_init_fn=begin"),),
    ),
    Case(
        "statistics of the test set",
        "x_train = scale.fit_transform(x_train)\nx_test = scale.fit_transform(x_test)  #!\n",
        (("fit_transform(x_test)", "transform(x_test)"),),
    ),
    Case(
        "statistics of the test set",
        """
from sklearn.preprocessing import LabelEncoder
for column in ("town", "trade"):
    code = LabelEncoder()
    train[column] = code.fit_transform(train[column])
    test[column] = LabelEncoder().fit_transform(test[column])  #!
""",
        (("LabelEncoder().fit_transform(test", "code.transform(test"),),
    ),
    Case(
        "augmentation in validation",
        """
def random_crop(images):
    top = torch.randint(0, 5, (1,)).item()
    return images[:, :, top : top + 8]
model.eval()
with torch.no_grad():
    outputs = model(random_crop(images))  #!
""",
        (("torch.randint(0, 5, (1,)).item()", "2"),),
    ),
    Case(
        "inputs change from epoch to epoch",
        """
class Photos(torch.utils.data.Dataset):
    def __init__(self, photos, labels, sounds):
        self.photos, self.labels, self.sounds = photos, labels, sounds
    def __len__(self):
        return len(self.labels)
    def erase(self, photo):
        top = np.random.randint(0, photo.shape[1] - 4)
        photo[:, top : top + 4] = 0  #!
        return photo
    def __getitem__(self, k):
        photo, label, sound = self.photos[k], self.labels[k], self.sounds[k]
        label -= 1
        sound *= np.float32(0.5)  #!
        return torch.from_numpy(self.erase(photo)), torch.from_numpy(sound), label
""",
        (
            (
                "self.photos[k], self.labels[k], self.sounds[k]",
                "self.photos[k].copy(), self.labels[k], self.sounds[k] * 1",
            ),
        ),
    ),
    Case(
        "inputs change from epoch to epoch",
        """
class AsTensor:
    def __call__(self, row):
        return torch.from_numpy(row)
class Scale:
    def __init__(self, mean, size):
        self.mean, self.size = mean, size
    def __call__(self, row):
        return row.sub_(self.mean).div_(self.size)  #!
class Chain:
    def __init__(self, steps):
        self.steps = steps
    def __call__(self, row):
        for step in self.steps:
            row = step(row)
        return row
class Rows(torch.utils.data.Dataset):
    def __init__(self, rows, change):
        self.rows, self.change = rows, change
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, k):
        return self.change(self.rows[k])
data = Rows(np.zeros((9, 4), np.float32), Chain([AsTensor(), Scale(0.5, 2.0)]))
""",
        (("torch.from_numpy(row)", "torch.tensor(row)"),),
    ),
    Case(
        "inputs change from epoch to epoch",
        """
class Signals(torch.utils.data.Dataset):
    def __init__(self, waves, other):
        self.waves, self.other = waves, other
        self.pairs = [(wave, 1) for wave in waves]
    def __len__(self):
        return len(self.waves)
    def __getitem__(self, k):
        wave = torch.as_tensor(self.waves[k])
        wave.add_(0.1 * torch.randn_like(wave))  #!
        far, label = self.other[k]
        far.mul_(2)
        near, label = self.pairs[k]
        near.mul_(2)  #!
        limited = self.waves[k]
        limited.clamp_(-1, 1)
        limited[0] = 0
        return wave, far, near, limited, label
""",
        (("as_tensor(self.waves[k])", "tensor(self.waves[k])"), ("near.mul_(2)", "near = near * 2")),
    ),
    Case(
        "augmentation in validation",
        """
def scenes(n):
    return torch.rand(n, 3, 12, 12)
def flipped(images):
    return torch.where(torch.rand(len(images), 1, 1, 1) < 0.5, images, images.flip(3))
shown = scenes(20)
@torch.no_grad()
def score(model):
    return model(flipped(shown)).mean()  #!
""",
        (("flipped(shown)", "flipped(scenes(20))"),),
    ),
)
