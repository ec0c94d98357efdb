"""A small U-Net: transposed convolutions, upsampling, skips, padding, dice loss, per-pixel cross entropy, nn.Module in dicts."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1),
            nn.GroupNorm(2, cout),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, classes=3, bilinear=False):
        super().__init__()
        self.inc = DoubleConv(1, 4)
        self.down = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        if bilinear:
            self.up = nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(8, 4, 1)
            )
        else:
            self.up = nn.ConvTranspose2d(8, 4, kernel_size=2, stride=2)
        self.conv = DoubleConv(8, 4)
        self.outc = nn.Conv2d(4, classes, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.up(self.down(x1))
        dy, dx = x1.size(2) - x2.size(2), x1.size(3) - x2.size(3)
        x2 = F.pad(x2, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.outc(self.conv(torch.cat([x1, x2], dim=1)))


def dice(logits, target, eps=1e-6):
    probs = F.softmax(logits, dim=1)
    onehot = F.one_hot(target, logits.shape[1]).permute(0, 3, 1, 2).float()
    inter = (probs * onehot).sum(dim=(2, 3))
    union = probs.sum(dim=(2, 3)) + onehot.sum(dim=(2, 3))
    return 1 - ((2 * inter + eps) / (union + eps)).mean()


x = torch.sin(torch.arange(2 * 9 * 10).float()).view(2, 1, 9, 10)
target = (torch.arange(2 * 9 * 10) % 3).view(2, 9, 10)
for bilinear in (False, True):
    net = UNet(bilinear=bilinear)
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            if p.dim() > 1:
                p.copy_(torch.cos(torch.arange(p.numel()).float() * (i + 1)).view_as(p) * 0.3)
            else:
                p.fill_(0.1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    for _ in range(5):
        out = net(x)
        loss = F.cross_entropy(out, target, weight=torch.tensor([1.0, 2.0, 0.5])) + dice(out, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"{loss.item():.3f}", out.shape, out.argmax(1).shape, int(net.inc[1].num_batches_tracked))
net.eval()
print(
    net(x)[0, 0, 0, 0].item().__round__(2),
    net.inc[1].running_mean.shape,
    F.interpolate(x, size=(4, 5), mode="nearest").shape,
)
print(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1).shape, F.unfold(x, kernel_size=3).shape, nn.Flatten()(x).shape)
