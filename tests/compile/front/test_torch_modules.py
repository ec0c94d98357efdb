"""The readable source of PyTorch modules: gradients are PyTorch's, and what has no counterpart is refused."""

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
            torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
            torch.nn.LayerNorm(48), torch.nn.GELU(), torch.nn.Linear(48, 5),
        )  # fmt: skip
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


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.LSTM(3, 4)

    def forward(self, x):
        return self.cell(x)[0].sum()


class Branching(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Exotic(torch.nn.Module):
    def forward(self, x):
        return torch.lobpcg(x)[0].sum()


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (Recurrent, "holds a layer LSTM at cell"),
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
