"""A small residual network for images, written for PyTorch in the usual way."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Noisy images of three patterns: rows, columns and a checkerboard."""

    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 3, count)
        row, column = np.indices((12, 12)) // 3 % 2
        patterns = np.stack([row, column, row ^ column]).astype(np.float32)
        noise = rng.normal(size=(count, 3, 12, 12)).astype(np.float32)
        self.images = patterns[self.labels][:, None] + 0.8 * noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]), int(self.labels[index])


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * planes),
            )

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, num_blocks, num_classes=3):
        super().__init__()
        self.in_planes = 8
        self.stem = nn.Conv2d(3, 8, kernel_size=3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.layer1 = self._make_layer(block, 8, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(block, 16, num_blocks[1], stride=2)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=0.0)
        self.fc = nn.Linear(16 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, num_blocks, stride):
        layers = []
        for s in [stride] + [1] * (num_blocks - 1):
            layers.append(block(self.in_planes, planes, s))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        out = F.relu(self.bn(self.stem(x)))
        out = F.max_pool2d(out, kernel_size=3, stride=1, padding=1)
        out = self.layer2(self.layer1(out))
        out = torch.flatten(self.pool(out), 1)
        return self.fc(self.dropout(out))


def build():
    torch.manual_seed(0)
    return ResNet(BasicBlock, [1, 2])


def train(model, steps=50):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device)
    loader = DataLoader(Shapes(16 * 25), batch_size=16, shuffle=False, num_workers=0, drop_last=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=steps + 1)
    losses = []
    model.train()
    while len(losses) < steps:
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    return losses


@torch.no_grad()
def accuracy(model, count=200):
    model.eval()
    correct = total = 0
    for inputs, labels in DataLoader(Shapes(count, seed=1), batch_size=50):
        _, predicted = model(inputs).max(1)
        total += labels.size(0)
        correct += predicted.eq(labels).sum().item()
    return correct / total


def main():
    model = build()
    losses = train(model)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy {accuracy(model):.3f}")


if __name__ == "__main__":
    main()
