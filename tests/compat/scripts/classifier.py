"""A classifier with accuracy, confusion matrix, early stopping, saving of the best weights and loading them."""

import copy
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
grid = torch.linspace(-1, 1, 20)
xx, yy = torch.meshgrid(grid, grid, indexing="ij")
points = torch.stack([xx.flatten(), yy.flatten()], dim=1)
labels = (points.pow(2).sum(dim=1) < 0.5).long() + 2 * (points[:, 0] > 0.8).long()
labels = labels.clamp(max=2)
dataset = TensorDataset(points, labels)
n_val = int(0.2 * len(dataset))
train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(42))
assert len(train_set) == 320 and len(val_set) == 80
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=len(val_set))


class Net(nn.Module):
    def __init__(self, num_classes):
        super(Net, self).__init__()
        self.features = nn.Sequential(
            nn.Linear(2, 32), nn.ReLU(inplace=True), nn.Dropout(p=0.0), nn.Linear(32, 32), nn.ReLU()
        )
        self.classifier = nn.Linear(32, num_classes)
        self.apply(self.init)

    @staticmethod
    def init(m):
        if type(m) == nn.Linear:
            nn.init.kaiming_uniform_(m.weight, nonlinearity="relu")
            m.bias.data.fill_(0.01)

    def forward(self, x):
        return self.classifier(self.features(x))


model = Net(3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-4, betas=(0.9, 0.99))
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=3)
best, best_state, patience = float("inf"), None, 0
for epoch in range(15):
    model.train()
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    correct, total, val_loss = 0, 0, 0.0
    with torch.no_grad():
        for x, y in val_loader:
            logits = model(x)
            val_loss += F.cross_entropy(logits, y, reduction="sum").item()
            pred = torch.max(logits.data, 1)[1]
            total += y.size(0)
            correct += (pred == y).sum().item()
    scheduler.step(val_loss / total)
    if val_loss < best:
        best, best_state, patience = val_loss, copy.deepcopy(model.state_dict()), 0
    else:
        patience += 1
        if patience > 10:
            break

path = os.path.join(tempfile.mkdtemp(), "best.pt")
torch.save(
    {"epoch": epoch, "model_state_dict": best_state, "optimizer_state_dict": optimizer.state_dict(), "loss": best}, path
)
checkpoint = torch.load(path, map_location="cpu")
again = Net(3)
print(again.load_state_dict(checkpoint["model_state_dict"]))
optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
again.eval()
logits = again(points)
probs = torch.softmax(logits, dim=-1)
assert torch.allclose(probs.sum(-1), torch.ones(400))
pred = logits.argmax(-1)
confusion = torch.zeros(3, 3, dtype=torch.int64)
for t, p in zip(labels.view(-1), pred.view(-1)):
    confusion[t.long(), p.long()] += 1
assert confusion.sum() == 400
print("accuracy above 0.9:", confusion.diag().sum().item() / confusion.sum().item() > 0.9)
print("parameters:", sum(p.numel() for p in again.parameters() if p.requires_grad))
