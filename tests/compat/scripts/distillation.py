"""Teacher and student, an exponential average by hand, KL divergence, cosine schedule, accumulation, ignore_index."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

teacher = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
with torch.no_grad():
    for i, p in enumerate(teacher.parameters()):
        p.copy_(torch.sin(torch.arange(p.numel()).float() + i).reshape(p.shape))
student = copy.deepcopy(teacher)
ema = copy.deepcopy(student).eval().requires_grad_(False)
for p in student.parameters():
    p.data.mul_(0.5)
teacher.eval()
optimizer = torch.optim.RMSprop(student.parameters(), lr=0.01, alpha=0.95, momentum=0.5, centered=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10, eta_min=1e-4)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda step: min(1.0, (step + 1) / 5))
x = torch.cos(torch.arange(60).float()).view(20, 3)
hard = torch.arange(20) % 4
hard[::5] = -100
accumulation_steps = 2
for step in range(10):
    optimizer.zero_grad()
    for xb, yb in zip(x.chunk(accumulation_steps), hard.chunk(accumulation_steps)):
        logits = student(xb)
        with torch.no_grad():
            soft = F.softmax(teacher(xb) / 2.0, dim=-1)
        loss = F.kl_div(F.log_softmax(logits / 2.0, dim=-1), soft, reduction="batchmean") * 4.0
        loss = loss + 0.1 * nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=0.1)(logits, yb)
        (loss / accumulation_steps).backward()
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        for e, p in zip(ema.parameters(), student.parameters()):
            e.mul_(0.9).add_(p, alpha=0.1)
print(f"{loss.item():.4f} {scheduler.get_last_lr()[0]:.6f} {next(ema.parameters())[0, 0].item():.4f}")
print(
    math.isclose(
        sum(p.sum().item() for p in ema.parameters()), sum(p.sum() for p in ema.parameters()).item(), rel_tol=1e-4
    )
)
print(F.cosine_similarity(student(x), teacher(x), dim=-1).mean().item().__round__(3))
