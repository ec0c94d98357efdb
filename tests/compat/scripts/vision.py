"""Small convolutional models: U-Net, a dense block, squeeze and excitation, an inverted residual, capsules."""

from collections import OrderedDict
import torch
import torch.nn as nn
import torch.nn.functional as F

from _shared import data, fill, fit


def block(cin, cout):
    return nn.Sequential(
        OrderedDict(
            [
                ("conv", nn.Conv2d(cin, cout, 3, padding=1, bias=False)),
                ("norm", nn.BatchNorm2d(cout)),
                ("relu", nn.ReLU(inplace=True)),
            ]
        )
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2, self.middle = block(1, 3), block(3, 6), block(6, 6)
        self.pool = nn.MaxPool2d(2, 2)
        self.up = nn.ConvTranspose2d(6, 3, 2, stride=2)
        self.dec = block(6, 3)
        self.head = nn.Conv2d(3, 2, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        m = self.middle(self.enc2(self.pool(e1)))
        up = self.up(m)
        dy, dx = e1.size(2) - up.size(2), e1.size(3) - up.size(3)
        up = F.pad(up, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.head(self.dec(torch.cat((up, e1), dim=1)))


x, mask = data(2, 1, 7, 8), (data(2, 7, 8, at=1.0) > 0).long()
unet = fill(UNet())
fit(unet, lambda: F.cross_entropy(unet(x), mask))


class DenseLayer(nn.Sequential):
    def __init__(self, cin, growth):
        super().__init__()
        self.add_module("norm", nn.BatchNorm2d(cin))
        self.add_module("relu", nn.ReLU(inplace=True))
        self.add_module("conv", nn.Conv2d(cin, growth, 3, 1, 1, bias=False))

    def forward(self, x):
        return torch.cat([x, super().forward(x)], 1)


class SELayer(nn.Module):
    def __init__(self, channel, reduction=2):
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(channel, channel // reduction, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(channel // reduction, channel, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x):
        b, c, _, _ = x.size()
        return x * self.fc(self.avg_pool(x).view(b, c)).view(b, c, 1, 1).expand_as(x)


class InvertedResidual(nn.Module):
    def __init__(self, inp, oup, stride, expand):
        super().__init__()
        hidden = int(round(inp * expand))
        self.identity = stride == 1 and inp == oup
        self.conv = nn.Sequential(
            nn.Conv2d(inp, hidden, 1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.Hardswish(),
            nn.Conv2d(hidden, oup, 1, bias=False),
            nn.BatchNorm2d(oup),
        )

    def forward(self, x):
        return x + self.conv(x) if self.identity else self.conv(x)


class Mobile(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            DenseLayer(1, 3), SELayer(4), InvertedResidual(4, 4, 1, 2), InvertedResidual(4, 6, 2, 2)
        )
        self.classifier = nn.Linear(6, 3)
        for m in self.modules():
            if isinstance(m, nn.modules.batchnorm._BatchNorm):
                m.momentum = 0.2

    def forward(self, x):
        return self.classifier(self.features(x).mean([2, 3]))


mobile = fill(Mobile())
fit(mobile, lambda: F.cross_entropy(mobile(x), torch.tensor([0, 2]), label_smoothing=0.1))
print(round(mobile.eval()(x).sum().item(), 6))


def squash(s, dim=-1):
    norm2 = torch.sum(s**2, dim=dim, keepdim=True)
    return norm2 / (1 + norm2) * s / (torch.sqrt(norm2) + 1e-8)


class Capsules(nn.Module):
    def __init__(self, caps_in=6, dim_in=4, caps=3, dim=5, routing=3):
        super().__init__()
        self.routing = routing
        self.W = nn.Parameter(0.01 * torch.randn(1, caps, caps_in, dim, dim_in))

    def forward(self, x):
        u = torch.matmul(self.W, x.unsqueeze(1).unsqueeze(4)).squeeze(-1)
        detached = u.detach()
        b = torch.zeros(*u.shape[:3], 1, dtype=x.dtype)
        for _ in range(self.routing - 1):
            v = squash((F.softmax(b, dim=1) * detached).sum(dim=2))
            b += torch.matmul(detached, v.unsqueeze(-1))
        return squash((F.softmax(b, dim=1) * u).sum(dim=2)).norm(dim=-1)


capsules, u = fill(Capsules()), data(2, 6, 4)
target = torch.eye(3).double().index_select(0, torch.tensor([1, 2]))


def margin():
    lengths = capsules(u)
    left, right = F.relu(0.9 - lengths) ** 2, F.relu(lengths - 0.1) ** 2
    return (target * left + 0.5 * (1 - target) * right).sum(1).mean()


fit(capsules, margin)
