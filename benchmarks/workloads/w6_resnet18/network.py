"""ResNet-18 for small images (He et al. 2016, section 4.2): no pooling before the blocks, a stem of 3x3."""

from __future__ import annotations

from benchmarks.workloads.w6_resnet18 import problem as p


def network(library):
    """The model in `library`, PyTorch or ours."""
    nn = library.nn

    class Block(nn.Module):
        """Two convolutions and the input, which a 1x1 convolution brings to their shape where it differs."""

        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(outputs)
            self.short = nn.Identity()
            if stride > 1:
                narrow = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
                self.short = nn.Sequential(narrow, nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
            return (y + self.short(x)).relu()

    class ResNet(nn.Module):
        """Stem, blocks, the mean over places, and a linear layer."""

        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, p.WIDTHS[0], 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(p.WIDTHS[0])
            self.blocks = nn.Sequential(*(Block(*sizes) for _, *sizes in p.blocks()))
            self.head = nn.Linear(p.WIDTHS[-1], p.CLASSES)

        def forward(self, x):
            return self.head(self.blocks(self.norm(self.conv(x)).relu()).mean((2, 3)))

    return ResNet()
