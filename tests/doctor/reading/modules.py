"""Faults of classes of modules."""

from __future__ import annotations

from tests.doctor.reading.case import Case


def net(init: str, forward: str = "        return self.a(x)\n") -> str:
    begin = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    return f"{begin}{init}    def forward(self, x):\n{forward}"


CASES = (
    Case(
        "layers nobody trains",
        net("        self.a = [nn.Linear(4, 4) for _ in range(3)]  #!\n"),
        (("[nn.Linear(4, 4) for _ in range(3)]", "nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])"),),
    ),
    Case(
        "layers nobody trains",
        net('        self.a = {"low": nn.Linear(4, 4), "high": nn.Conv2d(1, 2, 3)}  #!\n'),
        (('{"low"', 'nn.ModuleDict({"low"'), ("2, 3)}", "2, 3)})")),
    ),
    Case(
        "layers nobody trains",
        net(
            "        layers = []\n        for _ in range(3):\n            layers.append(nn.Linear(4, 4))\n"
            "        self.layers = layers  #!\n"
        ),
        (("self.layers = layers", "self.layers = nn.Sequential(*layers)"),),
    ),
    Case(
        "layers nobody trains",
        net("        self.a = (nn.Linear(4, 4), nn.Linear(4, 2))  #!\n"),
        ((" = (nn.Linear(4, 4), nn.Linear(4, 2))", " = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])"),),
    ),
    Case(
        "layers nobody trains",
        net("        self.a = [nn.Linear(4, 4), nn.Linear(4, 2)]  #!\n"),
        (
            (
                "    def forward",
                "        for at, one in enumerate(self.a):\n            self.add_module(str(at), one)\n    def forward",
            ),
        ),
    ),
    Case(
        "super init is missing",
        """
class Net(nn.Module):
    def __init__(self, width):  #!
        self.width = width
    def forward(self, x):
        return x * self.width
""",
        (("        self.width = width", "        super().__init__()\n        self.width = width"),),
    ),
    Case(
        "super init is missing",
        """
class Net(nn.Module):
    def __init__(self):
        self.a = nn.Linear(2, 2)  #!
        super().__init__()
""",
        (
            (
                "        self.a = nn.Linear(2, 2)\n        super().__init__()",
                "        super().__init__()\n        self.a = nn.Linear(2, 2)",
            ),
        ),
    ),
    Case(
        "layers made in forward",
        net("        self.b = nn.Linear(4, 4)\n", "        return nn.Linear(4, 2)(self.b(x).relu())  #!\n"),
        (("nn.Linear(4, 2)(", "self.c("),),
    ),
    Case(
        "layers made in forward",
        net("        self.b = nn.Linear(4, 4)\n", "        return nn.Dropout(0.5)(self.b(x))  #!\n"),
        (("nn.Dropout(0.5)", "nn.ReLU()"),),
    ),
    Case(
        "layers shared",
        "model = nn.Sequential(*[nn.Linear(4, 4), nn.ReLU()] * 3)  #!\n",
        (("[nn.Linear(4, 4), nn.ReLU()] * 3", "[nn.ReLU()] * 3"),),
    ),
    Case(
        "layers shared",
        "one = nn.Linear(4, 4)\nmodel = nn.ModuleList([one for _ in range(3)])  #!\n",
        (("[one for", "[nn.Linear(4, 4) for"),),
    ),
    Case(
        "linear layers in a row",
        "model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))  #!\n",
        (("8), nn", "8), nn.Tanh(), nn"),),
    ),
    Case(
        "linear layers in a row",
        "model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3))  #!\n",
        (("nn.Conv2d(8, 8, 3)", "nn.Conv2d(8, 8, 1)"),),
    ),
    Case(
        "linear layers in a row",
        net("        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)\n", "        return self.b(self.a(x))  #!\n"),
        (("self.a(x))", "self.a(x).relu())"),),
    ),
    Case(
        "linear layers in a row",
        net(
            "        self.a = nn.Linear(4, 8)\n        self.b = nn.Linear(8, 2)\n",
            "        x = self.a(x)\n        x = self.b(x)  #!\n        return x\n",
        ),
        (("8)\n        self.b = nn.Linear(8, 2)", "2)\n        self.b = nn.Linear(2, 4)"),),
    ),
    Case(
        "linear layers in a row",
        net(
            "        self.a = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 8)])\n",
            "        for one in self.a:\n            x = one(x)  #!\n        return x\n",
        ),
        (("x = one(x)", "x = one(x).relu()"),),
    ),
    Case(
        "requires_grad of a module",
        "model = nn.Sequential(nn.Linear(4, 4))\nmodel.requires_grad = False  #!\n",
        (("model.requires_grad = False", "model.requires_grad_(False)"),),
    ),
    Case(
        "requires_grad of a module",
        "def freeze(model):\n    for part in model.children():\n        part.requires_grad = False  #!\n",
        (("children", "parameters"),),
    ),
    Case(
        "requires_grad misspelt",
        "for p in model.parameters():\n    p.require_grad = False  #!\n",
        (("require_grad", "requires_grad"),),
    ),
    Case("running statistics do not arrive", "norm = nn.BatchNorm2d(8, momentum=0.99)  #!\n", (("0.99", "0.01"),)),
    Case(
        "weights all alike",
        """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for p in model.parameters():
    nn.init.zeros_(p)  #!
""",
        (("    nn.init.zeros_(p)", "    if p.ndim == 1:\n        nn.init.zeros_(p)"),),
    ),
    Case(
        "weights all alike",
        """
def init(module):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.1)  #!
model.apply(init)
""",
        (("nn.Linear)", "nn.LayerNorm)"),),
    ),
    Case(
        "parameter not registered",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3)) * 0.1  #!
    def forward(self, x):
        return x @ self.weight
""",
        (("nn.Parameter(torch.randn(4, 3)) * 0.1", "nn.Parameter(torch.randn(4, 3) * 0.1)"),),
    ),
    Case(
        "parameter not registered",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.randn(4, 3, requires_grad=True)  #!
    def forward(self, x):
        return x @ self.weight
""",
        (("torch.randn(4, 3, requires_grad=True)", "nn.Parameter(torch.randn(4, 3))"),),
    ),
)
