"""Suspects about loaders, batches, splits and samplers."""

from __future__ import annotations

from tests.doctor.reading.case import Case

SLICES = """
for epoch in range(9):
    for i in range(0, len(x), 32):
        loss = F.cross_entropy(model(x[i : i + 32]), y[i : i + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
CASES = (
    Case(
        "order drawn and never used",
        """
for epoch in range(9):
    order = torch.randperm(len(x))
    for i in range(0, len(x), 32):
        rows = order[i : i + 32]  #!
        loss = F.cross_entropy(model(x[i : i + 32]), y[i : i + 32])
        loss.backward()
""",
        (("x[i : i + 32]), y[i : i + 32]", "x[rows]), y[rows]"),),
    ),
    Case(
        "batches in a fixed order",
        SLICES.replace("32):", "32):  #!"),
        (("for epoch in range(9):", "for epoch in range(9):\n    x, y = shuffled(x, y, torch.randperm(len(x)))"),),
    ),
    Case(
        "classes in a row",
        """
from torch.utils.data import DataLoader
rows, labels = [], []
for label in range(5):
    for picture in pictures(label):
        rows.append(picture)
        labels.append(label)
loader = DataLoader(list(zip(rows, labels)), batch_size=8)  #!
""",
        (("batch_size=8", "batch_size=8, shuffle=True"),),
    ),
    Case(
        "rows of a batch miscounted",
        """
for i in range(len(x) // batch_size):
    xb = x[i : i + batch_size]  #!
    loss = F.cross_entropy(model(xb), y[: len(xb)])
    loss.backward()
""",
        (("range(len(x) // batch_size)", "range(0, len(x), batch_size)"),),
    ),
    Case(
        "same rows in every step",
        """
for step in range(100):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x[:batch_size]), labels)  #!
    loss.backward()
    optimizer.step()
""",
        (("x[:batch_size]", "x[torch.randperm(len(x))[:batch_size]]"),),
    ),
    Case(
        "both parts hold the same rows",
        """
x_train = data[:800]
x_test = data[700:]  #!
""",
        (("data[700:]", "data[800:]"),),
    ),
    Case(
        "cut without a shuffle",
        """
x_train, x_test = x[:800], x[800:]  #!
""",
        (("x_train,", "order = torch.randperm(1000)\nx = x[order]\nx_train,"),),
    ),
    Case(
        "related examples split at random",
        """
from sklearn.model_selection import train_test_split
pieces = [signal[i : i + width] for i in range(0, len(signal), 8)]
train, test = train_test_split(pieces, test_size=0.2)  #!
""",
        (("train_test_split(pieces, test_size=0.2)", "pieces[:800], pieces[900:]"),),
    ),
    Case(
        "both parts share the augmentation",
        """
from torch.utils.data import random_split
whole = Pictures("data", transform=train_transform)
train_set, val_set = random_split(whole, [800, 200])
val_set.dataset.transform = plain  #!
""",
        (
            ("val_set.dataset.transform = plain", 'val_set = Subset(Pictures("data"), val_set.indices)'),
            ("train_set, val_set = random_split(whole, [800, 200])", "val_set = Subset(whole, range(9))"),
        ),
    ),
    Case(
        "both parts share the augmentation",
        """
from torch.utils.data import random_split
whole = Pictures("data", augment=True)
train_set, val_set = random_split(whole, [800, 200])  #!
""",
        (("augment=True", "augment=False"),),
    ),
    Case(
        "held-out data made like training data",
        """
train_set = Pictures("train", augment=True)
val_set = Pictures("val", augment=True)  #!
""",
        (('"val", augment=True', '"val", augment=False'),),
    ),
    Case(
        "two loaders of one data set",
        """
from torch.utils.data import DataLoader
loader = DataLoader(pictures, batch_size=8, shuffle=True)
val_loader = DataLoader(pictures, batch_size=8)  #!
""",
        (("val_loader = DataLoader(pictures", "val_loader = DataLoader(others"),),
    ),
    Case(
        "same seed for both parts",
        """
def make(count, seed=0):
    return np.random.default_rng(seed).normal(0, 1, (count, 4))


x_train = make(1000, seed=3)
x_test = make(200, seed=3)  #!
""",
        (("200, seed=3", "200, seed=4"),),
    ),
    Case(
        "another rule behind each part",
        """
def make(count):
    w_true = torch.randn(5)  #!
    x = torch.randn(count, 5)
    return x, x @ w_true


train = make(1000)
test = make(200)
""",
        (("w_true = torch.randn(5)", "w_true = KNOWN"),),
    ),
    Case(
        "sampler with a weight for each class",
        """
from torch.utils.data import WeightedRandomSampler
class_weights = 1.0 / torch.bincount(labels)
sampler = WeightedRandomSampler(class_weights, num_samples=len(labels))  #!
""",
        (("Sampler(class_weights,", "Sampler(class_weights[labels],"),),
    ),
    Case(
        "classes balanced twice",
        """
from torch.utils.data import WeightedRandomSampler
sampler = WeightedRandomSampler(weights[labels], num_samples=len(labels))
criterion = nn.CrossEntropyLoss(weight=weights)  #!
""",
        (("weight=weights", ""),),
    ),
    Case(
        "both parts drawn on their own",
        """
rng = np.random.default_rng(0)
train_rows = rng.choice(len(x), 800, replace=False)
test_rows = rng.choice(len(x), 200, replace=False)  #!
""",
        (("rng.choice(len(x), 200, replace=False)", "others(train_rows)"),),
    ),
    Case(
        "copies made before the split",
        """
x = torch.cat([x, x[rare]])  #!
x_train, x_test = x[:800], x[800:]
""",
        (("x = torch.cat([x, x[rare]])\n", ""),),
    ),
)
