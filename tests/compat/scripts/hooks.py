"""Hooks, frozen layers, parameter groups, weight decay by name, gradient clipping by hand, requires_grad_."""

import torch
import torch.nn as nn

backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8))
head = nn.Linear(8, 2)
for p in backbone.parameters():
    p.requires_grad = False
features = {}


def get_features(name):
    def hook(model, input, output):
        features[name] = output.detach()

    return hook


handle = backbone[2].register_forward_hook(get_features("feats"))
grads = []
head.register_full_backward_hook(lambda m, gi, go: grads.append(go[0].shape))
x = torch.ones(3, 4)
out = head(backbone(x))
out.sum().backward()
handle.remove()
print(features["feats"].shape, grads, backbone[0].weight.grad is None, head.weight.grad.shape)

model = nn.ModuleDict({"body": backbone, "head": head})
decay, no_decay = [], []
for name, param in model.named_parameters():
    if not param.requires_grad:
        continue
    (no_decay if param.ndim == 1 or name.endswith(".bias") else decay).append(param)
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-3
)
print([len(g["params"]) for g in optimizer.param_groups], [g["weight_decay"] for g in optimizer.param_groups])
total = torch.norm(torch.stack([p.grad.detach().norm(2) for p in head.parameters()]), 2)
for p in head.parameters():
    p.grad.data.mul_(0.5)
for g in optimizer.param_groups:
    g["lr"] *= 0.1
optimizer.add_param_group({"params": backbone[0].parameters(), "lr": 1e-5})
print(len(optimizer.param_groups), total.item() > 0, [round(g["lr"], 6) for g in optimizer.param_groups])
w = torch.ones(2, requires_grad=True)
w.register_hook(lambda g: g * 2)
(w * 3).sum().backward()
print(w.grad.tolist())
print([n for n, _ in model.named_modules()], sum(1 for _ in model.children()))
head.weight.data.normal_(mean=0.0, std=0.02)
nn.init.xavier_uniform_(head.weight, gain=nn.init.calculate_gain("relu"))
print(
    head.weight.abs().max().item() <= (6 / 10) ** 0.5 * 2**0.5,
    isinstance(head, nn.Module),
    head.in_features,
    head.training,
)
