"""The readable source of PyTorch modules: gradients equal PyTorch's, and unknown layers are refused."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

torch = pytest.importorskip("torch", reason="PyTorch modules are the subject of this test")


class NamesNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(27, 4)
        self.hidden = torch.nn.Linear(12, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.out = torch.nn.Linear(8, 27)

    def forward(self, tokens, targets):
        joined = self.table(tokens).flatten(1)
        hidden = torch.tanh(self.norm(self.hidden(joined)))
        return torch.nn.functional.cross_entropy(self.out(hidden), targets)


class Images(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(1, 3, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.LayerNorm(48),
            torch.nn.GELU(),
            torch.nn.Linear(48, 5),
        )
        self.scale = torch.nn.Parameter(torch.tensor(0.7))
        self.loss = torch.nn.CrossEntropyLoss()

    def forward(self, x, y):
        logits = self.body(x) * self.scale + x.mean(dim=(1, 2, 3))[:, None]
        return self.loss(torch.nn.functional.relu(logits, inplace=False), y)


def inputs(name):
    generator = torch.Generator().manual_seed(3)
    if name == "names":
        return NamesNet(), (torch.randint(0, 27, (9, 3), generator=generator), torch.arange(9))
    return Images(), (torch.randn(4, 1, 8, 8, generator=generator), torch.arange(4))


@pytest.mark.parametrize("simplify", [False, True])
@pytest.mark.parametrize("name", ["names", "images"])
def test_gradients_are_those_of_pytorch(name, simplify):
    torch.manual_seed(0)
    module, args = inputs(name)
    source = gg.backward_source(module, simplify=simplify)(*args)
    loss, gradients = source.function()(*[source.data[one] for one in source.arguments])
    wanted = module(*args)
    wanted.backward()
    np.testing.assert_allclose(loss, wanted.item(), rtol=1e-5)
    by_name = {f"d{path.replace('.', '_')}": parameter.grad.numpy() for path, parameter in module.named_parameters()}
    assert gradients.keys() == by_name.keys()
    for path, gradient in by_name.items():
        np.testing.assert_allclose(gradients[path], gradient, atol=2e-6, err_msg=path)
    assert "torch" not in [line.split()[1] for line in source.splitlines() if line.startswith(("import", "from"))]


F = torch.nn.functional


class Classifier(torch.nn.Module):
    """Any network with a cross entropy behind it."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, y):
        return F.cross_entropy(self.net(x), y)


class Convolutional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn = torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4)
        self.pool = torch.nn.MaxPool2d(2)
        self.conv2, self.drop, self.fc = torch.nn.Conv2d(4, 6, 3), torch.nn.Dropout(0.0), torch.nn.Linear(24, 3)

    def forward(self, x, y):
        x = self.pool(F.relu(self.bn(self.conv1(x))))
        x = torch.flatten(F.relu(self.conv2(x)), 1)
        return F.cross_entropy(self.fc(self.drop(x)), y)


class Sequence(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell, self.out = getattr(torch.nn, kind)(3, 4, batch_first=True), torch.nn.Linear(4, 3)

    def forward(self, x, y):
        hidden, _ = self.cell(x)
        return F.cross_entropy(self.out(hidden[:, -1]), y)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, activation="gelu")
        self.out = torch.nn.Linear(8, 3)

    def forward(self, x, y):
        return F.cross_entropy(self.out(self.layer(x).mean(1)), y)


class Shapes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(8, 4)
        self.w = torch.nn.Parameter(torch.randn(4))

    def forward(self, x, y):
        h = torch.cat([x, self.a(x)], dim=1)
        h = x + self.b(h) * self.w
        z = h.view(h.shape[0], 2, 2).permute(0, 2, 1).reshape(h.shape[0], -1)
        z = z / z.norm(dim=1, keepdim=True)
        return ((z - F.one_hot(y, 4)) ** 2).mean()


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = torch.nn.Embedding(10, 4, padding_idx=0), torch.nn.Linear(4, 3)

    def forward(self, tokens, y):
        return F.cross_entropy(self.out(self.table(tokens).mean(dim=1)), y)


class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(5)])

    def forward(self, x, y):
        for block in self.blocks:
            x = x + F.gelu(block(x))
        return F.cross_entropy(x, y)


MODULES = {
    "sequential": (lambda: Classifier(torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.Hardtanh(-0.5, 0.5),
        torch.nn.Linear(8, 3),
    )), (4,)),
    "convolutions": (Convolutional, (1, 8, 8)), "convolutions in eval": (lambda: Convolutional().eval(), (1, 8, 8)),
    "LSTM": (lambda: Sequence("LSTM"), (5, 3)), "GRU": (lambda: Sequence("GRU"), (5, 3)),
    "RNN": (lambda: Sequence("RNN"), (5, 3)), "encoder": (Encoder, (5, 8)), "shapes": (Shapes, (4,)),
    "words": (Words, None), "dropout in eval": (lambda: Classifier(torch.nn.Dropout(0.5)).eval(), None),
    "blocks": (Blocks, (4,)),
}  # fmt: skip  # a table


@pytest.mark.parametrize("simplify", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_modules_of_many_kinds(name, simplify):
    torch.manual_seed(0)
    make, shape = MODULES[name]
    module, y = make(), torch.tensor([0, 1, 2, 1])
    x = torch.randint(0, 10, (4, 3)) if shape is None else torch.randn(4, *shape)
    if name == "dropout in eval":
        x = torch.randn(4, 3, requires_grad=True)
    source = gg.backward_source(module, simplify=simplify)(x, y)
    loss, gradients = source.function()(*[source.data[one] for one in source.arguments])
    wanted = module(x, y)
    wanted.backward()
    np.testing.assert_allclose(loss, wanted.item(), rtol=1e-5)
    if x.requires_grad:
        np.testing.assert_allclose(gradients["dx"], x.grad.numpy(), atol=1e-6)
    for path, parameter in module.named_parameters():
        found = gradients[f"d{path.replace('.', '_')}"]
        np.testing.assert_allclose(found, parameter.grad.numpy(), atol=2e-6, err_msg=path)
    if name == "blocks":
        assert "for i in reversed(range(" in source
        assert "blocks_weight[i]" in source


def test_two_modules_of_one_name_are_kept_apart():
    """What is known about the text of one must not be said about the other."""
    torch.manual_seed(0)
    x, y = torch.randn(4, 4), torch.tensor([0, 1, 2, 1])
    first = gg.backward_source(Classifier(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())))(x, y)
    second = gg.backward_source(Classifier(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Sigmoid())))(x, y)
    assert "net_1 = self.net_1(net_0)   [tanh" in first
    assert "sigmoid" in second
    assert "tanh" not in second


class Branching(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Responding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.response = torch.nn.CrossMapLRN2d(2)

    def forward(self, x):
        return self.response(x).sum()


class Exotic(torch.nn.Module):
    def forward(self, x):
        return torch.lobpcg(x)[0].sum()


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (Responding, "holds a layer CrossMapLRN2d at response"),
        (Branching, "holds code that torch.fx cannot read"),
        (Exotic, r"holds the function lobpcg\(\) at the node lobpcg"),
    ],
)
def test_what_has_no_counterpart_is_refused(module, what):
    with pytest.raises(errors.CompileError, match=what):
        gg.backward_source(module())


def test_a_module_without_a_loss_is_refused():
    with pytest.raises(errors.CompileError, match="needs a function that returns its loss"):
        gg.backward_source(torch.nn.Sequential(torch.nn.Linear(2, 3)))(torch.zeros(4, 2))
