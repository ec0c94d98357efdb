"""Suspects about figures: accuracy, precision, recall, overlaps, errors, perplexity."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES = (
    Case(
        "best taken from the wrong end",
        """
best = plans[scores_of(plans).argmin()]  #!
""",
        (("scores_of(plans)", "costs_of(plans)"),),
    ),
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
)
