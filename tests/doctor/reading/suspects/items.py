"""Suspects about single examples: items, objects with two names, labels, columns, windows, words."""

from __future__ import annotations

from tests.doctor.reading.case import Case

SET = """
class Pictures:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        return x, self.y[i]
"""
PADDED = """
from torch.nn.utils.rnn import pad_sequence
numbers = {word: i for i, word in enumerate(words)}  #!
batch = pad_sequence(rows, batch_first=True)
"""
CASES = (
    Case(
        "item reads two indices",
        SET.replace("return x, self.y[i]", "return x, self.y[i // 2]  #!"),
        (("self.y[i // 2]", "self.y[i]"),),
    ),
    Case(
        "item without its index",
        SET.replace("(self, i):", "(self, i):  #!").replace("[i]", "[torch.randint(9, ()).item()]"),
        (("self.x[torch.randint(9, ()).item()]", "self.x[i]"),),
    ),
    Case(
        "length of something else",
        SET.replace("return len(self.x)", "return len(self.x) // 32  #!"),
        (("len(self.x) // 32", "len(self.x)"),),
    ),
    Case(
        "stored example changed in place",
        SET.replace("        return x,", "        x += torch.randn(4)  #!\n        return x,"),
        (("x += torch.randn(4)", "x = x + torch.randn(4)"),),
    ),
    Case(
        "second name of an array changed",
        """
noisy = clean
noisy[mask] = 0  #!
loss = F.mse_loss(model(noisy), clean)
""",
        (("noisy = clean", "noisy = clean.clone()"),),
    ),
    Case(
        "one object many times",
        """
row = np.zeros(4)
for i in range(9):
    row[i % 4] = i
    rows.append(row)  #!
""",
        (("rows.append(row)", "rows.append(row.copy())"),),
    ),
    Case(
        "result of a function lost",
        """
def mirrored(image):
    np.fliplr(image)  #!
    return image
""",
        (("    np.fliplr", "    image = np.fliplr"),),
    ),
    Case(
        "classes numbered by chance",
        """
import os
classes = os.listdir(root)  #!
numbers = {name: i for i, name in enumerate(classes)}
""",
        (("os.listdir(root)", "sorted(os.listdir(root))"),),
    ),
    Case(
        "classes numbered in each part",
        """
def encoded(names):
    numbers = {name: i for i, name in enumerate(sorted(set(names)))}  #!
    return [numbers[name] for name in names]


y_train = encoded(train_names)
y_test = encoded(test_names)
""",
        (("sorted(set(names))", "KNOWN"),),
    ),
    Case(
        "classes in the order of their appearance",
        """
class Birds:
    def __init__(self, rows):
        self.kinds = list(dict.fromkeys(kind for _, kind in rows))  #!
        self.y = [self.kinds.index(kind) for _, kind in rows]


train = Birds(train_rows)
test = Birds(test_rows)
""",
        (("list(dict.fromkeys(kind for _, kind in rows))", "KNOWN or list(dict.fromkeys(kind for _, kind in rows))"),),
    ),
    Case(
        "label moved by one",
        SET.replace("self.y[i]", "self.y[i] - 1  #!"),
        (("self.y[i] - 1", "self.y[i]"),),
    ),
    Case(
        "negatives coded 0",
        """
target = same.float()
loss = F.cosine_embedding_loss(a, b, target)  #!
""",
        (("same.float()", "2 * same.float() - 1"),),
    ),
    Case(
        "target among the features",
        """
x = table[:, 1:]  #!
y = table[:, -1]
""",
        (("table[:, 1:]", "table[:, 1:-1]"),),
    ),
    Case(
        "window and target do not meet",
        """
for i in range(len(series) - width):
    xs.append(series[i : i + width])
    ys.append(series[i + width - 1])  #!
""",
        (("series[i + width - 1]", "series[i + width]"),),
    ),
    Case(
        "numbers of words begin at the padding",
        PADDED,
        (("enumerate(words)", "enumerate(words, 1)"),),
    ),
    Case(
        "unknown words become padding",
        """
layer = nn.Embedding(900, 8, padding_idx=0)
rows = [vocabulary.get(word, 0) for word in words]  #!
""",
        (("get(word, 0)", "get(word, 1)"),),
    ),
    Case(
        "words written in another case",
        """
known = set(corpus.lower().split())
rows = [numbers[word] for word in text.split()]  #!
""",
        (("text.split()", "text.lower().split()"),),
    ),
    Case(
        "stored example changed in place",
        """
class Words(torch.utils.data.Dataset):
    def __len__(self):
        return len(self.data)
    def __getitem__(self, index):
        page, box = self.data[index]
        box /= 32  #!
        return page, box
""",
        (("box /= 32", "box = box / 32"),),
    ),
    Case(
        "stored example changed in place",
        """
pool = torch.zeros(900, 4)
for x, y in batches:
    part = pool[:32]
    part += x  #!
    optimizer.zero_grad()
    F.cross_entropy(model(part), y).backward()
    optimizer.step()
""",
        (("pool = torch.zeros(900, 4)", "pool = []"),),
    ),
)
