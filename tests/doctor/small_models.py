"""Small models for trainings that test the doctor, with names that both libraries have."""

from __future__ import annotations

from typing import Any

LETTERS, CLASSES, CONTEXT = 27, 10, 3


def names_mlp(lib: Any, width: int = 64, depth: int = 1, activation: str = "Tanh") -> Any:
    nn = lib.nn
    layers = [nn.Embedding(LETTERS, 10), nn.Flatten(), nn.Linear(10 * CONTEXT, width), getattr(nn, activation)()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), getattr(nn, activation)()]
    return nn.Sequential(*layers, nn.Linear(width, LETTERS))


def digits_mlp(
    lib: Any, width: int = 64, depth: int = 2, activation: str = "ReLU", dropout: float = 0.0, features: int = 64
) -> Any:
    nn = lib.nn
    layers: list[Any] = [nn.Flatten(), nn.Linear(features, width), getattr(nn, activation)()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), getattr(nn, activation)()]
    if dropout:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(width, CLASSES))


def digits_cnn(lib: Any, channels: int = 8, norm: bool = True) -> Any:
    nn = lib.nn
    first = [nn.Conv2d(1, channels, 3, padding=1), *([nn.BatchNorm2d(channels)] if norm else []), nn.ReLU()]
    second = [nn.MaxPool2d(2), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(channels * 16, CLASSES))


def names_lstm(lib: Any, width: int = 32) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = lib.nn.Embedding(LETTERS, 16)
            self.lstm = lib.nn.LSTM(16, width, batch_first=True)
            self.head = lib.nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.table(x))[0])

    return Net()


def names_gpt(lib: Any, width: int = 32, layers: int = 2) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = lib.nn.Embedding(LETTERS, width)
            self.places = lib.nn.Embedding(8, width)
            block = lambda: lib.nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True, norm_first=True)
            self.blocks = lib.nn.ModuleList([block() for _ in range(layers)])
            self.norm = lib.nn.LayerNorm(width)
            self.head = lib.nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            length = x.shape[1]
            mask = lib.triu(lib.full((length, length), float("-inf")), 1)
            h = self.table(x) + self.places(lib.arange(length))
            for block in self.blocks:
                h = block(h, mask)
            return self.head(self.norm(h))

    return Net()


def normalised_names_mlp(lib: Any, width: int = 100, depth: int = 2, activation: str = "Tanh") -> Any:
    nn = lib.nn
    layers = [nn.Embedding(LETTERS, 10), nn.Flatten()]
    before = 10 * CONTEXT
    for _ in range(depth):
        layers += [nn.Linear(before, width, bias=False), nn.BatchNorm1d(width), getattr(nn, activation)()]
        before = width
    return nn.Sequential(*layers, nn.Linear(width, LETTERS))


def mnist_cnn(lib: Any, channels: int = 6, norm: bool = False) -> Any:
    """A LeNet: larger windows, functions instead of modules, two layers behind the convolutions."""
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, channels, 5, stride=2), nn.Conv2d(channels, 2 * channels, 5, stride=2)
            self.norm = nn.BatchNorm2d(channels) if norm else nn.Identity()
            self.drop = nn.Dropout(0.1)
            self.fc1, self.fc2 = nn.Linear(2 * channels * 16, 64), nn.Linear(64, CLASSES)

        def forward(self, x: Any) -> Any:
            x = F.relu(self.norm(self.conv1(x)))
            x = F.relu(self.conv2(x)).flatten(1)
            return self.fc2(self.drop(F.relu(self.fc1(x))))

    return Net()


def deep_lstm(lib: Any, width: int = 40) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = lib.nn.Embedding(LETTERS, 24)
            self.lstm = lib.nn.LSTM(24, width, num_layers=2, batch_first=True)
            self.norm = lib.nn.LayerNorm(width)
            self.head = lib.nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.lstm(self.table(x))[0]))

    return Net()


def char_gpt(lib: Any, width: int = 48, layers: int = 3) -> Any:
    """A decoder as it is written out: causal attention from one matrix, GELU, norms first, weights drawn small."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            heads = self.qkv(self.norm1(x)).reshape(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.places = nn.Embedding(LETTERS, width), nn.Embedding(24, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, LETTERS, bias=False)
            for parameter in self.parameters():
                if len(parameter.shape) > 1:
                    nn.init.normal_(parameter, 0.0, 0.02)

        def forward(self, x: Any) -> Any:
            hidden = self.table(x) + self.places(lib.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(hidden)))

    return Net()


def layered_names_mlp(lib: Any, width: int = 96, activation: str = "GELU") -> Any:
    nn = lib.nn
    layers = [nn.Embedding(LETTERS, 16), nn.Flatten(), nn.Linear(16 * CONTEXT, width), nn.LayerNorm(width)]
    return nn.Sequential(
        *layers, getattr(nn, activation)(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, LETTERS)
    )


def residual_cnn(lib: Any, channels: int = 8, blocks: int = 1) -> Any:
    """Convolutions with a way around them, norms, and the mean over all places in front of the classes."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

        def forward(self, x: Any) -> Any:
            return x + F.relu(self.norm(self.conv(x)))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter = nn.Conv2d(1, channels, 4, stride=4)
            self.blocks = nn.Sequential(*[Block() for _ in range(blocks)])
            self.leave = nn.Linear(channels, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.leave(self.blocks(F.relu(self.enter(x))).mean((2, 3)))

    return Net()


def dropped_lstm(lib: Any, width: int = 48) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.drop = lib.nn.Embedding(LETTERS, 12), lib.nn.Dropout(0.2)
            self.lstm = lib.nn.LSTM(12, width, batch_first=True)
            self.head = lib.nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            return self.head(self.drop(self.lstm(self.table(x))[0]))

    return Net()


def deep_waves(lib: Any, width: int = 40) -> Any:
    nn = lib.nn
    hidden = [layer for _ in range(2) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(3, width), nn.ReLU(), *hidden, nn.Linear(width, 1))


def residual_names_mlp(lib: Any, width: int = 72, blocks: int = 2, activation: str = "SiLU") -> Any:
    """Letters in front, then layers with a way around them, norms first."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.layer = nn.LayerNorm(width), nn.Linear(width, width)
            self.bend = getattr(nn, activation)()

        def forward(self, x: Any) -> Any:
            return x + self.bend(self.layer(self.norm(x)))

    front = [nn.Embedding(LETTERS, 12), nn.Flatten(), nn.Linear(12 * CONTEXT, width)]
    return nn.Sequential(*front, *[Block() for _ in range(blocks)], nn.Linear(width, LETTERS))


def grouped_cnn(lib: Any, channels: int = 8, hidden: int = 0) -> Any:
    """Convolutions with strides, norms over groups of channels, and means of windows."""
    nn = lib.nn
    first = [nn.Conv2d(1, channels, 5, stride=2, padding=2), nn.GroupNorm(2, channels), nn.ReLU()]
    second = [nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1), nn.GroupNorm(4, 2 * channels), nn.ReLU()]
    behind: list[Any] = [nn.AvgPool2d(2), nn.Flatten(), nn.Dropout(0.1)]
    before = 2 * channels * 9
    if hidden:
        behind += [nn.Linear(before, hidden), nn.Tanh()]
    return nn.Sequential(*first, *second, *behind, nn.Linear(hidden or before, CLASSES))


def names_gru(lib: Any, width: int = 44, layers: int = 1) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = lib.nn.Embedding(LETTERS, 20)
            self.gru = lib.nn.GRU(20, width, num_layers=layers, batch_first=True)
            self.between, self.head = lib.nn.Linear(width, 32), lib.nn.Linear(32, LETTERS)

        def forward(self, x: Any) -> Any:
            return self.head(lib.nn.functional.elu(self.between(self.gru(self.table(x))[0])))

    return Net()


def gated_gpt(lib: Any, width: int = 40, layers: int = 2, heads: int = 2) -> Any:
    """A decoder with a gate in its second half, and matrices of their own for queries, keys and values."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
            self.out, self.down = nn.Linear(width, width), nn.Linear(2 * width, width)
            self.gate, self.up = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            h = self.norm1(x)
            q, k, v = (
                layer(h).reshape(batch, length, heads, width // heads).transpose(1, 2)
                for layer in (self.q, self.k, self.v)
            )
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            h = self.norm2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.places = nn.Embedding(LETTERS, width), nn.Embedding(16, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            hidden = 0.1 * (self.table(x) + self.places(lib.arange(x.shape[1])))
            return self.head(self.norm(self.blocks(hidden)))

    return Net()


def glu_names_mlp(lib: Any, width: int = 80, activation: str = "Sigmoid") -> Any:
    """Letters in front, a hidden layer whose one half opens and shuts the other, and a normed layer behind it."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(LETTERS, 14)
            self.value, self.gate = nn.Linear(14 * CONTEXT, width), nn.Linear(14 * CONTEXT, width)
            self.open = getattr(nn, activation)()
            self.middle, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
            self.head = nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            h = self.table(x).flatten(1)
            h = self.value(h) * self.open(self.gate(h))
            return self.head(self.norm(self.middle(h)).relu())

    return Net()


def separable_cnn(lib: Any, channels: int = 12, activation: str = "ReLU") -> Any:
    """Convolutions of each channel by itself, then across channels, as in MobileNets."""
    nn = lib.nn

    def pair(before: int, after: int) -> list[Any]:
        own = nn.Conv2d(before, before, 3, stride=2, padding=1, groups=before, bias=False)
        return [own, nn.Conv2d(before, after, 1), nn.BatchNorm2d(after), getattr(nn, activation)()]

    first = [nn.Conv2d(1, channels, 3, stride=2, padding=1), nn.BatchNorm2d(channels), getattr(nn, activation)()]
    inner = [*pair(channels, 2 * channels), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.15)]
    return nn.Sequential(*first, *inner, nn.Linear(2 * channels * 9, CLASSES))


def stacked_lstm(lib: Any, width: int = 36, layers: int = 2) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = lib.nn.Embedding(LETTERS, 18)
            self.lstm = lib.nn.LSTM(18, width, num_layers=layers, batch_first=True)
            self.between, self.head = lib.nn.Linear(width, 40), lib.nn.Linear(40, LETTERS)

        def forward(self, x: Any) -> Any:
            return self.head(lib.tanh(self.between(self.lstm(self.table(x))[0])))

    return Net()


def parallel_gpt(lib: Any, width: int = 48, layers: int = 2, heads: int = 3) -> Any:
    """A decoder whose attention and hidden layer stand side by side, with root-mean-square norms and squared ReLUs."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.qkv = nn.RMSNorm(width), nn.Linear(width, 3 * width)
            self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 144), nn.Linear(144, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            h = self.norm(x)
            parts = self.qkv(h).reshape(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            mixed = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + mixed + self.down(F.relu(self.up(h)) ** 2)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.places = nn.Embedding(LETTERS, width), nn.Embedding(12, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            hidden = self.table(x) + self.places(lib.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(hidden)))

    return Net()


def rings_mlp(lib: Any, width: int = 44) -> Any:
    nn = lib.nn
    inner = [nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()]
    return nn.Sequential(*inner, nn.Linear(width, 1))


def bumps_mlp(lib: Any, width: int = 36) -> Any:
    nn = lib.nn
    return nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))


def waves(lib: Any, width: int = 48) -> Any:
    nn = lib.nn
    return nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


def regression(lib: Any, width: int = 32) -> Any:
    nn = lib.nn
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))
