"""torch.compile on a model and on a function, autocast and GradScaler, inference_mode, checkpointing, functional gradients."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
use_amp = torch.cuda.is_available()
device_type = "cuda" if use_amp else "cpu"
compiled = torch.compile(model)
optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
scaler = torch.amp.GradScaler(enabled=use_amp)
x, y = torch.randn(16, 4), torch.randn(16, 1)
first = None
for _ in range(20):
    with torch.autocast(device_type=device_type, dtype=torch.float32, enabled=False):
        loss = nn.functional.mse_loss(compiled(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(compiled.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    first = loss.item() if first is None else first
print(loss.item() < first)


@torch.compile
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


print(torch.allclose(gelu(x), nn.functional.gelu(x, approximate="tanh"), atol=1e-5))
with torch.inference_mode():
    print(model(x).requires_grad)
h = checkpoint(model, x.requires_grad_(), use_reentrant=False)
h.sum().backward()
print(x.grad.shape)
g = torch.autograd.grad((x**2).sum(), x, create_graph=True)[0]
print(torch.allclose(g, 2 * x), torch.autograd.grad(g.sum(), x)[0].unique().tolist())
f = torch.func.grad(lambda v: (v**3).sum())
print(torch.allclose(f(x), 3 * x**2, atol=1e-5), torch.func.vmap(lambda v: v.sum())(x).shape)


class MySquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input**2

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return 2 * input * grad_output


z = torch.tensor([1.0, 2.0], requires_grad=True)
MySquare.apply(z).sum().backward()
print(
    z.grad.tolist(),
    torch.autograd.gradcheck(MySquare.apply, (torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True),)),
)
with torch.set_grad_enabled(False):
    print((z * 2).requires_grad, torch.is_grad_enabled())
