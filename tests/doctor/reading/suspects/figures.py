"""Suspects about figures: accuracy, precision, recall, overlaps, errors, perplexity."""

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
        "largest value taken for its class",
        """
pred, _ = torch.max(model(x), 1)
correct = (pred == y).sum()  #!
""",
        (("pred, _", "_, pred"),),
    ),
    Case(
        "threshold of logits on probabilities",
        """
found = torch.sigmoid(scores) > 0  #!
""",
        (("> 0", "> 0.5"),),
    ),
    Case(
        "class of a single output",
        """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
found = model(x).argmax(1)  #!
""",
        (("32, 1)", "32, 2)"),),
    ),
    Case(
        "compared in another shape",
        """
out = model(x)
loss = F.cross_entropy(out, y.squeeze(1))
accuracy = (out.argmax(1) == y).float().mean()  #!
""",
        (("== y)", "== y.squeeze(1))"),),
    ),
    Case(
        "best taken from the wrong end",
        """
found = similarity.argsort()[:10]  #!
""",
        (("argsort()", "argsort(descending=True)"),),
    ),
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
        "precision and recall exchanged",
        """
precision = tp / (tp + fn)  #!
""",
        (("fn", "fp"),),
    ),
    Case(
        "overlap without its factor",
        """
iou = common / (a.sum() + b.sum())  #!
""",
        (("b.sum()", "b.sum() - common"),),
    ),
    Case(
        "labels and predictions exchanged",
        """
from sklearn.metrics import precision_score
print(precision_score(predictions, labels))  #!
""",
        (("predictions, labels", "labels, predictions"),),
    ),
    Case(
        "ranking of decisions",
        """
from sklearn.metrics import roc_auc_score
found = model(x).argmax(1)
print(roc_auc_score(y, found))  #!
""",
        (("model(x).argmax(1)", "model(x)[:, 1]"),),
    ),
    Case(
        "mean of roots",
        """
for x, y in batches:
    total += torch.sqrt(F.mse_loss(model(x), y)).item()  #!
""",
        (("torch.sqrt(F.mse_loss(model(x), y))", "F.mse_loss(model(x), y)"),),
    ),
    Case(
        "share of variance turned round",
        """
r2 = 1 - ss_tot / ss_res  #!
""",
        (("ss_tot / ss_res", "ss_res / ss_tot"),),
    ),
    Case(
        "perplexity of the wrong number",
        """
perplexity = 2**loss  #!
""",
        (("2**loss", "torch.exp(loss)"),),
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
)
