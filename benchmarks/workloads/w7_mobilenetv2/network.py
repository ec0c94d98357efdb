"""MobileNetV2 (Sandler et al. 2018) for small images: the stem and the first two stages keep their size."""

from __future__ import annotations

from benchmarks.workloads.w7_mobilenetv2 import problem as p


def network(library):
    """The model in `library`, PyTorch or ours."""
    nn = library.nn
    relu6 = nn.functional.relu6

    class Block(nn.Module):
        """Widen by 1x1, filter each channel by itself, narrow by 1x1; the input is added where the shapes agree."""

        def __init__(self, inputs, hidden, outputs, stride):
            super().__init__()
            self.widens, self.adds = hidden != inputs, stride == 1 and inputs == outputs
            if self.widens:
                self.widen = nn.Conv2d(inputs, hidden, 1, bias=False)
                self.norm1 = nn.BatchNorm2d(hidden)
            self.depthwise = nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False)
            self.norm2 = nn.BatchNorm2d(hidden)
            self.narrow = nn.Conv2d(hidden, outputs, 1, bias=False)
            self.norm3 = nn.BatchNorm2d(outputs)

        def forward(self, x):
            y = relu6(self.norm1(self.widen(x))) if self.widens else x
            y = self.norm3(self.narrow(relu6(self.norm2(self.depthwise(y)))))
            return x + y if self.adds else y

    class MobileNet(nn.Module):
        """Stem, blocks, a wide 1x1 convolution, the mean over places, and a linear layer."""

        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, p.STEM, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(p.STEM)
            self.blocks = nn.Sequential(*(Block(*sizes) for _, *sizes in p.blocks()))
            self.last = nn.Conv2d(p.STAGES[-1][1], p.LAST, 1, bias=False)
            self.last_norm = nn.BatchNorm2d(p.LAST)
            self.head = nn.Linear(p.LAST, p.CLASSES)

        def forward(self, x):
            x = self.blocks(relu6(self.norm(self.conv(x))))
            return self.head(relu6(self.last_norm(self.last(x))).mean((2, 3)))

    return MobileNet()
