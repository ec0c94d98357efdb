"""Layers kept under the name of a method, of which the method goes on to be what the name means."""

import copy
import pickle

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.parameters = []
        self.stack = nn.Linear(2, 3)
        self.parameters.extend(self.stack.parameters())
        self.parameters = nn.ParameterList(self.parameters)
        self.forecast = nn.Linear(2, 1)
        self.forecast = nn.Linear(2, 4)

    def forecast(self, x):
        return x * 2

    def forward(self, x):
        return self.forecast(self.stack(x))


model = Forecaster()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.arange(p.numel()).reshape(p.shape) * 0.5)
print([name for name, _ in model.named_parameters()], [name for name, _ in model.named_children()])
print(list(model.state_dict()), len(list(model.parameters())), isinstance(model, Forecaster))
print([type(m).__name__ for m in model.modules()])
x = torch.ones(1, 2)
print(model(x).tolist(), model.forecast(x).tolist())
for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
    other.load_state_dict(model.state_dict())
    print(torch.equal(other(x), model(x)), sum(p.numel() for p in other.parameters()))
model(x).sum().backward()
print([None if p.grad is None else p.grad.tolist() for p in model.parameters()])
