"""A training script in typical style, checked by tests/types/test_checkers.py."""

from __future__ import annotations

import glassgrad as gg
from glassgrad import Tensor, nn
from glassgrad.nn import functional as F
from glassgrad.optim import AdamW
from glassgrad.optim.lr_scheduler import CosineAnnealingLR
from glassgrad.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """Two layers, and a skip over the second."""

    def __init__(self, width: int, classes: int = 2) -> None:
        super().__init__()
        self.first = nn.Linear(2, width)
        self.norm = nn.LayerNorm(width)
        self.body = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1))
        self.scale = nn.Parameter(gg.ones(width))
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor, temperature: float = 1.0) -> Tensor:
        h = F.relu(self.first(x))
        h = h + self.body(self.norm(h)) * self.scale
        logits = self.head(h) / temperature
        return logits - logits.mean(dim=-1, keepdim=True)


def accuracy(model: Net, loader: DataLoader) -> float:
    model.eval()
    right, seen = 0, 0
    with gg.no_grad():
        for points, labels in loader:
            right += int((model(points).argmax(dim=1) == labels).sum())
            seen += points.shape[0]
    model.train()
    return right / seen


def train(steps: int = 20) -> float:
    gg.manual_seed(0)
    points = gg.randn(64, 2)
    labels = (points[:, 0] * points[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(points, labels), batch_size=16, shuffle=True)
    model = Net(16)
    optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    scheduler = CosineAnnealingLR(optimizer, T_max=steps)

    @gg.compile
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, temperature=0.5), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        return loss

    for epoch in range(steps // 4):
        losses = [step(x, y).item() for x, y in loader]
        scheduler.step()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, accuracy {accuracy(model, loader):.2f}")

    def energy(x: Tensor) -> Tensor:
        return (x**2).sum() + x.sin().sum(axis=0)

    slope: Tensor = gg.func.grad(energy)(gg.tensor([0.5, 1.0]))
    values, places = slope.max(dim=0)
    best = gg.stack([values, slope[places]]).max()
    return float(best + gg.exp(slope).sum())


if __name__ == "__main__":
    print(train())
