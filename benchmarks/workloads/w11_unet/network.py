"""A U-Net (Ronneberger, Fischer and Brox 2015) with the group norms and SiLU of diffusion models (Ho et al. 2020)."""

from __future__ import annotations

from benchmarks.workloads.w11_unet import problem as p


def network(library):
    """The model in `library`, PyTorch or ours."""
    nn, functional = library.nn, library.nn.functional

    class Block(nn.Module):
        """Two convolutions, each with its norm and SiLU."""

        def __init__(self, inputs, outputs):
            super().__init__()
            self.conv0 = nn.Conv2d(inputs, outputs, 3, padding=1)
            self.norm0 = nn.GroupNorm(p.GROUPS, outputs)
            self.conv1 = nn.Conv2d(outputs, outputs, 3, padding=1)
            self.norm1 = nn.GroupNorm(p.GROUPS, outputs)

        def forward(self, x):
            x = functional.silu(self.norm0(self.conv0(x)))
            return functional.silu(self.norm1(self.conv1(x)))

    class UNet(nn.Module):
        """Down to a quarter of the side and back; what was seen at a size on the way down joins it on the way up."""

        def __init__(self):
            super().__init__()
            made = {name: Block(inputs, outputs) for name, inputs, outputs in p.blocks()}
            levels = range(len(p.CHANNELS))
            self.down = nn.ModuleList([made[f"down.{level}"] for level in levels])
            self.up = nn.ModuleList([made[f"up.{level}"] for level in levels[:-1]])
            self.shrink = nn.ModuleList([nn.Conv2d(each, each, 3, stride=2, padding=1) for each in p.CHANNELS[:-1]])
            self.head = nn.Conv2d(p.CHANNELS[0], 1, 1)

        def forward(self, x):
            seen = []
            for block, shrink in zip(self.down[:-1], self.shrink, strict=True):
                seen.append(block(x))
                x = shrink(seen[-1])
            x = self.down[-1](x)
            for level in reversed(range(len(seen))):
                wide = functional.interpolate(x, scale_factor=2, mode="nearest")
                x = self.up[level](library.cat([seen[level], wide], 1))
            return self.head(x)

    return UNet()


def loss_fn(library):
    """The mean squared error of the noise."""
    return library.nn.functional.mse_loss
