"""Suspects about pairs that come apart."""

from __future__ import annotations

from tests.doctor.reading.case import Case

MIXED = """
order = torch.randperm(len(x))
mixed = lam * x + (1 - lam) * x[order]  #!
loss = criterion(model(mixed), y)
"""
CASES = (
    Case(
        "two orders side by side",
        """
from torch.utils.data import DataLoader
first = DataLoader(images, batch_size=8, shuffle=True)
second = DataLoader(images, batch_size=8, shuffle=True)
for a, b in zip(first, second):  #!
    print(a, b)
""",
        (("second = DataLoader(images, batch_size=8, shuffle=True)", "second = DataLoader(images, batch_size=8)"),),
    ),
    Case(
        "inputs and labels drawn apart",
        """
rng = np.random.default_rng(0)
rng.shuffle(x)
rng.shuffle(y)  #!
""",
        (("rng.shuffle(x)\nrng.shuffle(y)", "order = rng.permutation(len(x))\nx, y = x[order], y[order]"),),
    ),
    Case(
        "one of a pair changed alone",
        """
order = lengths.argsort()
x = x[order]  #!
loss = criterion(x, y)
""",
        (("x = x[order]", "x = x[order]\ny = y[order]"),),
    ),
    Case(
        "random change for each of a pair",
        """
class Scans:
    def __getitem__(self, i):
        image, mask = self.image[i], self.mask[i]
        image = self.transform(image)
        mask = self.transform(mask)  #!
        return image, mask
""",
        (("        mask = self.transform(mask)\n", ""),),
    ),
    Case(
        "image moved without its label",
        """
def changed(image, boxes):
    if np.random.random() < 0.5:
        image = np.fliplr(image)  #!
    return image, boxes
""",
        (("np.fliplr(image)", "np.fliplr(image)\n        boxes = mirrored(boxes)"),),
    ),
    Case(
        "mixed inputs with single labels",
        MIXED,
        (("criterion(model(mixed), y)", "both(model(mixed), y, y[order])"),),
    ),
    Case(
        "weights of a mixture exchanged",
        """
x = lam * x + (1 - lam) * x[order]
out = model(x)
loss = lam * criterion(out, y[order]) + (1 - lam) * criterion(out, y)  #!
""",
        (("y[order]) + (1 - lam) * criterion(out, y)", "y) + (1 - lam) * criterion(out, y[order])"),),
    ),
    Case(
        "pair taken at two indices",
        """
loss = F.cross_entropy(model(x[rows]), y[i : i + 32])  #!
""",
        (("y[i : i + 32]", "y[rows]"),),
    ),
    Case(
        "pair taken at two indices",
        """
for epoch in range(3):
    order = torch.randperm(len(states))
    for begin in range(0, len(states), 64):
        rows = order[begin : begin + 64]
        loss = (policy(states[rows]) * gains[begin : begin + 64]).mean()  #!
        loss.backward()
""",
        (("gains[begin : begin + 64]", "gains[rows]"),),
    ),
    Case(
        "place written at x, y",
        """
layer = nn.Conv2d(1, 8, 3)
picture[:, y0 : y0 + h, x0 : x0 + w] = 1.0
cell_x, cell_y = int(x0 * 8), int(y0 * 8)
heat[cell_x, cell_y] = 1.0  #!
""",
        (("heat[cell_x, cell_y]", "heat[cell_y, cell_x]"),),
    ),
    Case(
        "place written at x, y",
        """
layer = nn.Conv2d(1, 8, 3)
for k in range(9):
    i, j = int(cx / 4), int(cy / 4)
    target[k, i, j, 0] = 1.0  #!
    picture[k, row, column] = 1.0
""",
        (("int(cx / 4), int(cy / 4)", "int(cy / 4), int(cx / 4)"),),
    ),
    Case(
        "teacher compared with itself",
        """
with torch.no_grad():
    soft = teacher(x)
out = student(x)
aim = F.softmax(soft / 4, 1)
loss = -(aim * F.log_softmax(soft / 4, 1)).sum(1).mean()  #!
""",
        (("F.log_softmax(soft", "F.log_softmax(out"),),
    ),
    Case(
        "teacher compared with itself",
        """
large.requires_grad_(False)
known, out = large(x), small(x)
loss = F.kl_div(F.log_softmax(known, 1), F.softmax(known, 1), reduction="batchmean")  #!
""",
        (("F.log_softmax(known", "F.log_softmax(out"),),
    ),
    Case(
        "paired by two listings",
        """
import os
images = os.listdir("images")  #!
masks = os.listdir("masks")  #!
""",
        (("os.listdir", "sorted(os.listdir"), ('s")', 's"))')),
    ),
    Case(
        "labels in the order of another list",
        """
x = np.concatenate([good, bad])
y = np.concatenate([np.zeros(len(bad)), np.ones(len(good))])  #!
""",
        (("np.zeros(len(bad)), np.ones(len(good))", "np.ones(len(good)), np.zeros(len(bad))"),),
    ),
    Case(
        "numbered files in the order of their letters",
        """
import os
for number in range(20):
    np.save(os.path.join(folder, f"{number}.npy"), features[number])
names = sorted(os.listdir(folder))  #!
""",
        (("sorted(os.listdir(folder))", "sorted(os.listdir(folder), key=lambda name: int(name[:-4]))"),),
    ),
    Case(
        "image transformed without its mask",
        """
change = Compose([HorizontalFlip(), RandomBrightness()])
class Scans:
    def __getitem__(self, i):
        image, mask = self.images[i], self.masks[i]
        image = change(image=image)["image"]  #!
        return image, mask
""",
        (
            ('image = change(image=image)["image"]', "moved = change(image=image, mask=mask)"),
            ("return image, mask", 'return moved["image"], moved["mask"]'),
        ),
    ),
    Case(
        "points mirrored without an exchange",
        """
def flipped(image, landmarks):
    landmarks[:, 0] = image.shape[1] - 1 - landmarks[:, 0]  #!
    return image[:, ::-1], landmarks
""",
        (("    return image[:, ::-1]", "    landmarks = landmarks[PARTNER]\n    return image[:, ::-1]"),),
    ),
)
