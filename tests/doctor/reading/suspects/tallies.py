"""Suspects about sums and counts."""

from __future__ import annotations

from tests.doctor.reading.case import Case

COUNTED = """
correct = 0
for x, y in test_loader:
    correct += (model(x).argmax(1) == y).sum().item()
print(correct / len(train_data))  #!
"""
CASES = (
    Case(
        "figure divided by another count",
        COUNTED,
        (("len(train_data)", "len(test_data)"),),
    ),
    Case(
        "division without a remainder",
        """
accuracy = correct // total  #!
""",
        (("//", "/"),),
    ),
    Case(
        "sum goes on over the epochs",
        """
total = 0.0
for epoch in range(9):
    for x, y in batches:
        total += F.cross_entropy(model(x), y).item()  #!
    print(total / len(batches))
""",
        (("epoch in range(9):", "epoch in range(9):\n    total = 0.0"),),
    ),
    Case(
        "figure of the last batch",
        """
for x, y in test_loader:
    accuracy = (model(x).argmax(1) == y).float().mean()  #!
print(accuracy)
""",
        (("    accuracy =", "    total +="), ("print(accuracy)", "print(total / len(test_loader))")),
    ),
    Case(
        "repeated indices counted once",
        """
found = model(x).argmax(1)
table[found] += 1  #!
""",
        (("table[found] += 1", "table += torch.bincount(found, minlength=9)"),),
    ),
    Case(
        "padding counts in the figure",
        """
loss = F.cross_entropy(out, y, ignore_index=0)
found = out.argmax(1)
accuracy = (found == y).float().mean()  #!
""",
        (("(found == y)", "(found == y)[mask]"),),
    ),
    Case(
        "best weights chosen by another set",
        """
if test_accuracy > best:  #!
    best = test_accuracy
""",
        (("test_accuracy", "val_accuracy"),),
    ),
    Case(
        "figure with another name",
        """
print(f"loss {loss:.3f} val accuracy {train_accuracy:.3f}")  #!
""",
        (("val accuracy", "train accuracy"),),
    ),
    Case(
        "offsets that are not added up",
        "begins = [0] + [len(one) for one in graphs[:-1]]  #!\n",
        (("[len(one) for one in graphs[:-1]]", "np.cumsum([len(one) for one in graphs])[:-1].tolist()"),),
    ),
    Case(
        "offsets that are not added up",
        """
sizes = [len(one) for one in graphs]
begins = [0] + sizes[:-1]  #!
""",
        (("[0] + sizes[:-1]", "[0] + np.cumsum(sizes)[:-1].tolist()"),),
    ),
    Case(
        "predictions in a drawn order",
        """
from torch.utils.data import DataLoader
def answers(model, batches):
    found = []
    for x, _ in batches:
        found.append(model(x).argmax(1))
    return torch.cat(found)
held = DataLoader(digits, batch_size=100, shuffle=True)  #!
guesses = answers(model, held)
right = (guesses == y_held).float().mean()
""",
        (("shuffle=True", "shuffle=False"),),
    ),
    Case(
        "predictions in a drawn order",
        """
from torch.utils.data import DataLoader
test_loader = DataLoader(digits, 100, True)  #!
found = []
for step, (x, label) in enumerate(test_loader):
    found.extend(model(x).argmax(1).tolist())
score = f1_score(test_labels, found)
""",
        (("found.extend(", "test_labels.extend(label.tolist())\n    found.extend("),),
    ),
)
