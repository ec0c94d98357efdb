"""A variational autoencoder (Kingma and Welling 2014) of strided and transposed convolutions."""

from __future__ import annotations

import itertools

from benchmarks.workloads.w8_conv_vae import problem as p


def network(library):
    """The model in `library`, PyTorch or ours: (images, noise) to (logits of the pixels, mean, log variance)."""
    nn = library.nn
    options = p.KERNEL, p.STRIDE, p.PADDING
    pairs = list(itertools.pairwise(p.CHANNELS))

    class Autoencoder(nn.Module):
        """Convolutions to a code of a few numbers and back; noise is an argument, the same for all peers."""

        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([nn.Conv2d(near, far, *options) for near, far in pairs])
            self.code = nn.Linear(p.FLAT, 2 * p.LATENT)
            self.start = nn.Linear(p.LATENT, p.FLAT)
            self.up = nn.ModuleList([nn.ConvTranspose2d(far, near, *options) for near, far in reversed(pairs)])

        def forward(self, x, noise):
            for layer in self.down:
                x = layer(x).relu()
            code = self.code(x.flatten(1))
            mean, log_variance = code[:, : p.LATENT], code[:, p.LATENT :]
            x = self.start(mean + (0.5 * log_variance).exp() * noise).relu()
            x = x.view(-1, p.CHANNELS[-1], p.SMALL, p.SMALL)
            for layer in self.up[:-1]:
                x = layer(x).relu()
            return self.up[-1](x), mean, log_variance

    return Autoencoder()


def loss_fn(library):
    """Cross entropy of the pixels and the divergence of the code from a normal one, each a sum for one image."""
    cross_entropy = library.nn.functional.binary_cross_entropy_with_logits

    def loss(outputs, images):
        logits, mean, log_variance = outputs
        pixels = cross_entropy(logits, images, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        return (pixels + divergence) / len(images)

    return loss
