"""Faults of loaders, splits and shuffles."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_IMPORT = "from torch.utils.data import DataLoader\n"

CASES = (
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
