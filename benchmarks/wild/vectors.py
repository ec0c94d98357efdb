"""Families of programs on vectors and images."""

from __future__ import annotations

from benchmarks.wild.draw import Draw, Program, dense, joined


def classifier(d: Draw) -> Program:
    """Linear layers with a norm, an activation and dropout."""
    inputs, classes, depth = d.among(13, 30, 54, 100, 784), d.among(2, 3, 10, 40), d.among(1, 2, 3, 4)
    sizes = [inputs, *(d.width(512) for _ in range(depth)), classes]
    activation, norm, drop = d.activation(), d.among("", "BatchNorm1d", "LayerNorm"), d.among(0.0, 0.0, 0.1, 0.5)
    smoothing = d.among(0.0, 0.0, 0.1)
    return Program(
        f"MLP {'-'.join(map(str, sizes))}, {activation}, {norm or 'no norm'}, dropout {drop}",
        lambda T, dropout: dense(T, sizes, activation, norm, drop * dropout),
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x), y, label_smoothing=smoothing),
        d.batches(lambda n: (d.normal(n, inputs), d.below(classes, n))),
    )


def regression(d: Draw) -> Program:
    """A residual MLP; the loss holds the weights down."""
    inputs, width, depth, activation = d.among(4, 8, 20, 90), d.width(), d.among(1, 2, 4), d.activation()
    loss, norm = d.among("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"), d.among("LayerNorm", "BatchNorm1d")

    def model(T, dropout):
        nn = T.nn
        blocks = [
            nn.Sequential(getattr(nn, norm)(width), nn.Linear(width, width), getattr(nn, activation)())
            for _ in range(depth)
        ]

        def forward(self, x):
            x = self.start(x)
            for block in self.blocks:
                x = x + block(x)
            return self.head(x).squeeze(1)

        parts = {"start": nn.Linear(inputs, width), "blocks": nn.ModuleList(blocks), "head": nn.Linear(width, 1)}
        return joined(T, forward, **parts)

    def total(T, m, x, y):
        return getattr(T.nn.functional, loss)(m(x), y) + 1e-4 * sum((w**2).sum() for w in m.parameters())

    text = f"residual MLP, {depth} blocks of {width}, {norm}, {activation}, {loss} and a penalty"
    return Program(text, model, total, d.batches(lambda n: (d.normal(n, inputs), d.normal(n))))


def convolutions(d: Draw) -> Program:
    """Convolutions with norms and poolings on images."""
    inputs, side, kernel = d.among(1, 3), d.among(16, 28, 32), d.among(3, 5)
    widths = [d.width(64) for _ in range(d.among(2, 3))]
    activation, bias = d.activation(), d.among(True, False)
    norm, pool = d.among("", "BatchNorm2d", "GroupNorm", "InstanceNorm2d"), d.among("MaxPool2d", "AvgPool2d", "stride")

    def model(T, dropout):
        nn, layers, near = T.nn, [], inputs
        for far in widths:
            layers.append(nn.Conv2d(near, far, kernel, 2 if pool == "stride" else 1, kernel // 2, bias=bias))
            if norm:
                layers.append(nn.GroupNorm(4, far) if norm == "GroupNorm" else getattr(nn, norm)(far))
            layers.append(getattr(nn, activation)())
            layers += [getattr(nn, pool)(2)] if pool != "stride" else []
            near = far
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(near, 10))

    return Program(
        f"conv {kernel}x{kernel} {'-'.join(map(str, widths))} on {inputs}x{side}x{side}, {norm or 'no norm'}, {pool}",
        model,
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x), y),
        d.batches(lambda n: (d.normal(n, inputs, side, side), d.below(10, n)), 64),
    )


def residuals(d: Draw) -> Program:
    """Residual blocks, plain or depthwise, some with squeeze and excitation (Hu et al. 2018)."""
    width, side, blocks = d.among(16, 24, 32, 48), d.among(14, 16, 20), d.among(1, 2, 3)
    depthwise, squeeze, activation = d.among(True, False), d.among(True, False), d.among("ReLU", "SiLU", "Hardswish")

    def block(T):
        nn = T.nn
        groups = width if depthwise else 1
        convolve = nn.Conv2d(width, width, 3, padding=1, groups=groups, bias=False)
        parts = {
            "main": nn.Sequential(
                convolve, nn.BatchNorm2d(width), getattr(nn, activation)(), nn.Conv2d(width, width, 1)
            ),
            "gate": dense(T, (width, width // 4, width)) if squeeze else nn.Identity(),
        }

        def forward(self, x):
            y = self.main(x)
            return x + (y * T.sigmoid(self.gate(y.mean((2, 3))))[:, :, None, None] if squeeze else y)

        return joined(T, forward, **parts)

    return Program(
        f"{blocks} residual blocks of {width}, {side}x{side}, {'depthwise' if depthwise else 'full'}"
        f"{', squeeze' if squeeze else ''}, {activation}",
        lambda T, dropout: T.nn.Sequential(
            T.nn.Conv2d(3, width, 3, padding=1),
            *(block(T) for _ in range(blocks)),
            T.nn.AdaptiveAvgPool2d(1),
            T.nn.Flatten(),
            T.nn.Linear(width, 10),
        ),
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x), y),
        d.batches(lambda n: (d.normal(n, 3, side, side), d.below(10, n)), 32),
    )


def signals(d: Draw) -> Program:
    """Dilated convolutions over time."""
    inputs, length, width, depth = d.among(1, 2, 9, 12), d.among(64, 128, 187, 500), d.width(96), d.among(2, 3, 4)
    kernel, activation, norm = d.among(3, 5, 7), d.activation(), d.among(True, False)

    def model(T, dropout):
        nn, layers, near = T.nn, [], inputs
        for level in range(depth):
            layers.append(nn.Conv1d(near, width, kernel, padding="same", dilation=2**level))
            layers += [nn.BatchNorm1d(width)] if norm else []
            layers += [getattr(nn, activation)(), nn.MaxPool1d(2)]
            near = width
        return nn.Sequential(*layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(width, 5))

    return Program(
        f"1-d conv, {depth} layers of {width}, kernel {kernel}, {inputs} x {length}, {activation}",
        model,
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x), y),
        d.batches(lambda n: (d.normal(n, inputs, length), d.below(5, n)), 64),
    )


def segmentation(d: Draw) -> Program:
    """An encoder and a decoder with a shortcut, as in U-Net; a class for each pixel."""
    width, side, classes = d.among(8, 16, 24, 32), d.among(16, 24, 32), d.among(2, 5)
    grow = d.among("transpose", "nearest", "bilinear")

    def model(T, dropout):
        nn = T.nn

        def twice(near, far):
            return nn.Sequential(nn.Conv2d(near, far, 3, padding=1), nn.BatchNorm2d(far), nn.ReLU())

        wider = nn.ConvTranspose2d(2 * width, 2 * width, 2, 2) if grow == "transpose" else nn.Upsample(None, 2, grow)
        parts = {"down": twice(3, width), "low": twice(width, 2 * width), "wider": wider}
        parts |= {"up": twice(3 * width, width), "head": nn.Conv2d(width, classes, 1)}

        def forward(self, x):
            seen = self.down(x)
            low = self.low(T.nn.functional.max_pool2d(seen, 2))
            return self.head(self.up(T.cat([seen, self.wider(low)], 1)))

        return joined(T, forward, **parts)

    return Program(
        f"segmentation by a U-Net of {width}, {side}x{side}, {grow}",
        model,
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x), y),
        d.batches(lambda n: (d.normal(n, 3, side, side), d.below(classes, n, side, side)), 16),
    )


def autoencoder(d: Draw) -> Program:
    """A code of a few numbers, held sparse."""
    inputs, width, code, activation = d.among(64, 200, 784), d.width(512), d.among(2, 8, 32), d.activation()

    def loss(T, m, x):
        code = m.encode(x)
        return T.nn.functional.mse_loss(m.decode(code), x) + 1e-3 * code.abs().mean()

    return Program(
        f"autoencoder {inputs}-{width}-{code}, {activation}",
        lambda T, dropout: joined(
            T, encode=dense(T, (inputs, width, code), activation), decode=dense(T, (code, width, inputs), activation)
        ),
        loss,
        d.batches(lambda n: (d.uniform(n, inputs),)),
    )


def variational(d: Draw) -> Program:
    """A variational autoencoder (Kingma and Welling 2014); the noise is part of the batch."""
    inputs, width, code, beta = d.among(64, 196, 784), d.width(512), d.among(2, 10, 20), d.among(0.5, 1.0, 4.0)
    activation = d.activation()

    def loss(T, m, x, noise):
        mean, log_variance = m.encode(x).chunk(2, dim=1)
        sample = mean + T.exp(0.5 * log_variance) * noise
        pixels = T.nn.functional.binary_cross_entropy_with_logits(m.decode(sample), x, reduction="sum")
        return (pixels - 0.5 * beta * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()) / len(x)

    return Program(
        f"VAE {inputs}-{width}-{code}, {activation}",
        lambda T, dropout: joined(
            T,
            encode=dense(T, (inputs, width, 2 * code), activation),
            decode=dense(T, (code, width, inputs), activation),
        ),
        loss,
        d.batches(lambda n: (d.uniform(n, inputs), d.normal(n, code))),
    )


def flow(d: Draw) -> Program:
    """Affine couplings (Dinh, Sohl-Dickstein and Bengio 2017), by the likelihood of the data."""
    half, width, layers = d.among(1, 2, 4, 8, 32), d.width(128), d.among(2, 4, 6, 8)

    def model(T, dropout):
        return joined(T, nets=T.nn.ModuleList([dense(T, (half, width, width, 2 * half)) for _ in range(layers)]))

    def loss(T, m, x):
        kept, moved = x.chunk(2, dim=1)
        volume = 0.0
        for net in m.nets:
            scale, shift = net(kept).chunk(2, dim=1)
            scale = T.tanh(scale)
            kept, moved = moved * T.exp(scale) + shift, kept
            volume = volume + scale.sum(1)
        z = T.cat([kept, moved], 1)
        return (0.5 * (z**2).sum(1) - volume).mean() / (2 * half)  # for each number, or large ones diverge

    text = f"flow of {layers} affine couplings in {2 * half} dimensions, width {width}"
    return Program(text, model, loss, d.batches(lambda n: (d.normal(n, 2 * half),)))


def mixture(d: Draw) -> Program:
    """A mixture of normal densities whose parameters a network gives (Bishop 1994)."""
    inputs, width, parts, activation = d.among(1, 4, 10), d.width(), d.among(3, 5, 10), d.activation()

    def loss(T, m, x, y):
        weight, mean, log_scale = m(x).chunk(3, dim=1)
        density = -0.5 * ((y[:, None] - mean) * T.exp(-log_scale)) ** 2 - log_scale
        return -T.logsumexp(T.log_softmax(weight, dim=1) + density, dim=1).mean()

    return Program(
        f"mixture density network of {parts}, width {width}, {activation}",
        lambda T, dropout: dense(T, (inputs, width, width, 3 * parts), activation),
        loss,
        d.batches(lambda n: (d.normal(n, inputs), d.normal(n))),
    )


def contrast(d: Draw) -> Program:
    """Two views of an example beside those of the others (van den Oord, Li and Vinyals 2018)."""
    inputs, width, code, temperature = d.among(32, 128, 512), d.width(512), d.among(16, 64, 128), d.among(0.1, 0.5)

    def loss(T, m, x, noise):
        F = T.nn.functional
        first, second = F.normalize(m(x), dim=1), F.normalize(m(x + 0.1 * noise), dim=1)
        logits, same = first @ second.T / temperature, T.arange(len(x))
        return 0.5 * (F.cross_entropy(logits, same) + F.cross_entropy(logits.T, same))

    norm = d.among("", "BatchNorm1d", "LayerNorm")
    return Program(
        f"contrastive loss of two views, {inputs}-{width}-{code}, {norm or 'no norm'}",
        lambda T, dropout: dense(T, (inputs, width, code), norm=norm),
        loss,
        d.batches(lambda n: (d.normal(n, inputs), d.normal(n, inputs))),
    )


def triplets(d: Draw) -> Program:
    """Like and unlike images, three at a time, through one network."""
    side, width, margin = d.among(12, 16, 28), d.among(8, 16, 32), d.among(0.2, 1.0)

    def model(T, dropout):
        nn = T.nn
        near = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        return nn.Sequential(
            near,
            nn.Conv2d(width, 2 * width, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2 * width * (side // 2 - 2) ** 2, 32),
        )

    return Program(
        f"triplet loss of images {side}x{side}, width {width}",
        model,
        lambda T, m, a, b, c: T.nn.functional.triplet_margin_loss(m(a), m(b), m(c), margin=margin),
        d.batches(lambda n: tuple(d.normal(n, 1, side, side) for _ in range(3)), 32),
    )
