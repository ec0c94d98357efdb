"""Suspects about the numbers in examples: scaling, dtypes, augmentation, the axes of pictures."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES = (
    Case(
        "each part scaled by its own statistics",
        """
def prepared(x):
    return (x - x.mean(0)) / x.std(0)  #!


x_train = prepared(train)
x_test = prepared(test)
""",
        (("x.mean(0)) / x.std(0)", "MEAN) / STD"),),
    ),
    Case(
        "scaled example by example",
        """
class Signals:
    def __getitem__(self, i):
        x = self.x[i]
        return (x - x.mean()) / x.std(), self.y[i]  #!
""",
        (("x.mean()) / x.std()", "self.mean) / self.std"),),
    ),
    Case(
        "training data scaled alone",
        """
mean, std = x_train.mean(0), x_train.std(0)
x_train = (x_train - mean) / std  #!
print(model(x_test))
""",
        (("print", "x_test = (x_test - mean) / std\nprint"),),
    ),
    Case(
        "mean and deviation exchanged",
        """
x = (x - std) / mean  #!
""",
        (("(x - std) / mean", "(x - mean) / std"),),
    ),
    Case(
        "statistics of another variable",
        """
prices = predictions * x_std + x_mean  #!
""",
        (("x_std + x_mean", "y_std + y_mean"),),
    ),
    Case(
        "scaler fitted anew",
        """
from sklearn.preprocessing import StandardScaler
scaler = StandardScaler()
x = scaler.fit_transform(x)
y = scaler.fit_transform(y)  #!
""",
        (("y = scaler", "y = StandardScaler()"),),
    ),
    Case(
        "divided by 255 twice",
        """
images = pictures / 255
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x / 255), y)  #!
    loss.backward()
    optimizer.step()
""",
        (("model(x / 255)", "model(x)"),),
    ),
    Case(
        "mask keeps its grey values",
        """
def prepared(image, mask):
    image = image.astype(np.float32) / 255
    mask = mask.astype(np.float32)  #!
    return image, mask
""",
        (("mask.astype(np.float32)", "mask.astype(np.float32) / 255"),),
    ),
    Case(
        "numbers cut to integers",
        """
def tensor_of(picture):
    return torch.from_numpy(picture).float() / 255
def example(picture, classes):
    return tensor_of(picture), tensor_of(classes).squeeze(0).long()  #!
""",
        (("tensor_of(classes).squeeze(0)", "torch.from_numpy(classes)"),),
    ),
    Case(
        "numbers cut to integers",
        """
x = torch.tensor(features, dtype=torch.long)  #!
""",
        (("torch.long", "torch.float32"),),
    ),
    Case(
        "array of integers takes fractions",
        """
shares = np.zeros(9, dtype=int)  #!
for i in range(9):
    shares[i] = counts[i] / total
""",
        ((", dtype=int", ""),),
    ),
    Case(
        "arithmetic in 8 bits",
        """
image = np.asarray(picture, dtype=np.uint8)
difference = image - background  #!
""",
        (("np.uint8", "np.float32"),),
    ),
    Case(
        "random choice made once",
        """
import random


class Pictures:
    def __init__(self, x):
        self.x = x
        self.flip = random.random() < 0.5  #!

    def __getitem__(self, i):
        return self.x[i].flip(-1) if self.flip else self.x[i]
""",
        (("        self.flip = random.random() < 0.5\n", ""), ("if self.flip", "if random.random() < 0.5")),
    ),
    Case(
        "mirrored signs",
        """
def changed(digit):
    return np.fliplr(digit)  #!
""",
        (("digit", "leaf"),),
    ),
    Case(
        "height and width exchanged",
        """
w, h = image.shape[:2]  #!
""",
        (("w, h", "h, w"),),
    ),
    Case(
        "channels moved by a reshape",
        """
image = pixels.reshape(3, 32, 32)  #!
""",
        (("pixels.reshape(3, 32, 32)", "pixels.transpose(2, 0, 1)"),),
    ),
    Case(
        "input at hand not scaled",
        """
x = (x - x.mean(0)) / x.std(0)
model = nn.Linear(2, 1)
print(model(torch.tensor([[50.0, 3.0]])))  #!
""",
        (("(x - x.mean(0)) / x.std(0)", "x"),),
    ),
    Case(
        "logarithm of what may be 0",
        """
features = np.log(counts)  #!
""",
        (("np.log(", "np.log1p("),),
    ),
    Case(
        "missing values become 0",
        """
x = np.nan_to_num(x)  #!
""",
        (("np.nan_to_num", "filled"),),
    ),
    Case(
        "sine of another unit",
        """
x = np.sin(hour / 24)  #!
""",
        (("hour / 24", "2 * np.pi * hour / 24"),),
    ),
    Case(
        "pixels changed before they are floats",
        """
pictures = np.zeros((4, 8, 8), np.uint8)
def prepared(images, factor):
    images = images * factor  #!
    return images.astype(np.float32) / 255
""",
        (("images = images * factor", "images = images.astype(np.float32) * factor"),),
    ),
    Case(
        "division by a deviation that may be 0",
        """
def scaled(x, mean, std):
    return (x - mean) / std  #!
""",
        (("/ std", "/ (std + 1e-8)"),),
    ),
    Case(
        "held-out data that number or scale for themselves",
        """
class Texts(torch.utils.data.Dataset):
    def __init__(self, lines, vocab=None):
        if vocab is None:
            vocab = {word: at for at, word in enumerate(sorted({w for line in lines for w in line.split()}))}
        self.vocab, self.lines = vocab, lines
train_set = Texts(train_lines)
val_set = Texts(val_lines)  #!
""",
        (("Texts(val_lines)", "Texts(val_lines, train_set.vocab)"),),
    ),
    Case(
        "held-out data that number or scale for themselves",
        """
def prepared(x, stats=None):
    stats = stats if stats is not None else (x.mean(0), x.std(0))
    return (x - stats[0]) / stats[1], stats
x_train, stats = prepared(raw[:800])
x_test, _ = prepared(raw[800:])  #!
""",
        (("prepared(raw[800:])", "prepared(raw[800:], stats=stats)"),),
    ),
    Case(
        "arithmetic in 8 bits",
        """
def brighter(image, factor):
    return (image * factor + 8).astype(np.uint8)  #!
""",
        (("(image * factor + 8)", "np.clip(image.astype(float) * factor + 8, 0, 255)"),),
    ),
    Case(
        "input at hand not scaled",
        """
class Forecaster:
    def fit(self, x, y):
        self.mean, self.std = x.mean(0), x.std(0)
        self.net = nn.Linear(4, 1)
        train(self.net, (x - self.mean) / self.std, y)

    def predict(self, x):
        return self.net(x)  #!
""",
        (("return self.net(x)", "return self.net((x - self.mean) / self.std)"),),
    ),
    Case(
        "generator with another range than the data",
        """
pictures = torch.rand(100, 64)
middle, spread = pictures.mean(), pictures.std()  #!
pictures = (pictures - middle) / spread
G = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh())
D = nn.Sequential(nn.Linear(64, 1))
""",
        (("middle, spread = pictures.mean(), pictures.std()", "middle, spread = 0.5, 0.5"),),
    ),
    Case(
        "generator with another range than the data",
        """
ready = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])  #!
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(8, 784))
    def forward(self, z):
        return torch.tanh(self.main(z))
generator = Generator()
""",
        (("(0.1307,), (0.3081,)", "(0.5,), (0.5,)"),),
    ),
)
