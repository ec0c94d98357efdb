"""DenseNet of 40 layers and growth 12 (Huang et al. 2017, section 4): three stages of twelve layers, no bottlenecks."""

from __future__ import annotations

from benchmarks.workloads.w9_densenet40 import problem as p


def network(library):
    """The model in `library`, PyTorch or ours."""
    nn = library.nn
    pool = nn.functional.avg_pool2d

    class Layer(nn.Module):
        """Norm, ReLU, 3x3 convolution; its channels are put behind those that it read."""

        def __init__(self, inputs, outputs):
            super().__init__()
            self.norm = nn.BatchNorm2d(inputs)
            self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)

        def forward(self, x):
            return library.cat([x, self.conv(self.norm(x).relu())], 1)

    class Transition(nn.Module):
        """Norm, ReLU, 1x1 convolution, and the mean of 2x2 places."""

        def __init__(self, inputs, outputs):
            super().__init__()
            self.norm = nn.BatchNorm2d(inputs)
            self.conv = nn.Conv2d(inputs, outputs, 1, bias=False)

        def forward(self, x):
            return pool(self.conv(self.norm(x).relu()), 2)

    class DenseNet(nn.Module):
        """Stem, layers, norm, the mean over places, and a linear layer."""

        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, p.STEM, 3, padding=1, bias=False)
            kinds = [(Transition if one == two else Layer)(one, two) for _, one, two in p.layers()]
            self.layers = nn.Sequential(*kinds)
            self.norm = nn.BatchNorm2d(p.WIDTH)
            self.head = nn.Linear(p.WIDTH, p.CLASSES)

        def forward(self, x):
            return self.head(self.norm(self.layers(self.conv(x))).relu().mean((2, 3)))

    return DenseNet()
