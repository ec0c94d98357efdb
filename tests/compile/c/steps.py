"""Training steps of each kind, small, with batches."""

from __future__ import annotations

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

BATCHES = 23


def _rows(shape, classes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [
        (gg.tensor(rng.standard_normal(shape).astype(dtype)), gg.tensor(rng.integers(0, classes, shape[0])))
        for _ in range(BATCHES)
    ]


def training(model, optimizer, loss_fn=F.cross_entropy):
    @gg.compile(strict=True)
    def step(x, y):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def names_mlp():
    model = nn.Sequential(nn.Linear(6, 20), nn.BatchNorm1d(20), nn.Tanh(), nn.Linear(20, 7))
    return training(model, optim.SGD(model.parameters(), lr=0.1)), _rows((16, 6), 7)


def embedding():
    model = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 9))
    step = training(model, optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3))
    rng = np.random.default_rng(0)
    return step, [tuple(gg.tensor(rng.integers(0, 9, shape)) for shape in ((8, 3), (8,))) for _ in range(BATCHES)]


def dropout():
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 5))
    return training(model, optim.Adam(model.parameters(), lr=0.01)), _rows((16, 12), 5)


def double():
    model = nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.3), nn.Linear(32, 5)).double()
    return training(model, optim.AdamW(model.parameters(), lr=0.01)), _rows((16, 12), 5, np.float64)


def images():
    model = nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1, bias=False),  # before batch norm a bias has only noise for a gradient
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3, stride=2, groups=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32, 4),
    )
    return training(model, optim.Adam(model.parameters(), lr=0.01)), _rows((8, 2, 11, 11), 4)


def wide():
    """Rows and columns enough for threads to share products, their strips, loops, and sums of columns."""
    model = nn.Sequential(nn.Linear(64, 130), nn.GELU(), nn.LayerNorm(130), nn.Linear(130, 9))
    step = training(model, optim.Adam(model.parameters(), lr=0.01))
    return step, _rows((520, 64), 9)


def tiles(dtype=np.float32):
    """3x3 windows between a dozen channels are computed by tiles; these sizes and borders cut the last tiles."""
    model = nn.Sequential(
        nn.Conv2d(2, 12, 3),
        nn.Tanh(),
        nn.Conv2d(12, 13, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(13, 12, 3, padding=(0, 2)),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(660, 4),
    )
    model = model.double() if dtype == np.float64 else model
    return training(model, optim.SGD(model.parameters(), lr=0.01)), _rows((8, 2, 9, 11), 4, dtype)


def double_tiles():
    return tiles(np.float64)


def attention():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(96, 4))
    return training(model, optim.AdamW(model.parameters(), lr=0.01)), _rows((4, 6, 16), 4)


def _recurrent(kind):
    net, head = getattr(nn, kind)(6, 10, 2, batch_first=True), nn.Linear(10, 4)
    optimizer = optim.Adam([*net.parameters(), *head.parameters()], lr=0.01)
    return training(lambda x: head(net(x)[0][:, -1]), optimizer), _rows((5, 7, 6), 4)


def lstm():
    return _recurrent("LSTM")


def gru():
    return _recurrent("GRU")


def rnn():
    return _recurrent("RNN")


def autoencoder():
    down, code, start = nn.Conv2d(1, 6, 4, 2, 1), nn.Linear(216, 8), nn.Linear(4, 216)
    up = nn.ConvTranspose2d(6, 1, 4, 2, 1)
    optimizer = optim.Adam([one for part in (down, code, start, up) for one in part.parameters()], lr=0.01)

    @gg.compile(strict=True)
    def step(x):
        both = code(down(x).relu().flatten(1))
        mean, log_variance = both[:, :4], both[:, 4:]
        z = mean + (0.5 * log_variance).exp() * gg.randn_like(mean)
        logits = up(start(z).relu().view(-1, 6, 6, 6))
        pixels = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        loss = (pixels - 0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()) / len(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(1)
    return step, [(gg.tensor(rng.random((8, 1, 12, 12)).astype(np.float32)),) for _ in range(BATCHES)]


KINDS = (
    names_mlp,
    embedding,
    dropout,
    double,
    images,
    tiles,
    double_tiles,
    wide,
    attention,
    lstm,
    gru,
    rnn,
    autoencoder,
)
STEPS = {one.__name__: one for one in KINDS}
