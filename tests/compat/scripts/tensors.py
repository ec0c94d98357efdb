"""Common small operations on tensors."""

import numpy as np
import torch

a = torch.tensor([[1, 2], [3, 4]])
b = torch.tensor([[1.5, 2.5], [3.5, 4.5]], dtype=torch.float64)
print(a.dtype == torch.int64, b.dtype == torch.double, torch.zeros(2).dtype == torch.float)
print(a.shape, a.size(), a.size(0), a.dim(), a.ndim, len(a), a.numel(), a.nelement())
print(a.view(-1).tolist(), a.t().tolist(), a.T.contiguous().view(4).tolist())
print(a.float().mean().item(), a.sum(dim=1, keepdim=True).tolist(), a.max().item(), a.min(dim=0).values.tolist())
print(torch.cat([a, a], dim=0).shape, torch.stack((a, a)).shape, torch.chunk(torch.arange(7), 3)[-1].tolist())
print(
    torch.arange(0, 1, 0.25).tolist(),
    torch.linspace(0, 1, 5).tolist(),
    torch.eye(2).tolist(),
    torch.full((2,), 7).tolist(),
)
print(
    torch.where(a > 2, a, torch.zeros_like(a)).tolist(),
    (a > 2).any().item(),
    (a > 0).all().item(),
    torch.nonzero(a > 2).tolist(),
)
print(
    a.unsqueeze(0).shape,
    a.unsqueeze(0).squeeze().shape,
    a[None, :, :, None].shape,
    a.expand(3, 2, 2).shape,
    a.repeat(2, 1).shape,
)
print(
    torch.matmul(b, b).tolist(), torch.mm(b, b).sum().item(), torch.bmm(b[None], b[None]).shape, (b @ b).trace().item()
)
print(
    a.flatten().float().std().item().__round__(4),
    a.float().var(unbiased=False).item(),
    torch.norm(a.float()).item().__round__(4),
)
c = b.clone().detach().requires_grad_(True)
(c**2).sum().backward()
print(c.grad.tolist(), c.is_leaf, c.grad_fn is None)
c.grad.zero_()
print(c.grad.abs().sum().item(), c.detach().numpy().dtype, c.data.mul(2)[0, 0].item())
n = np.ones((2, 3), dtype=np.float32)
t = torch.from_numpy(n)
t += 1
print(
    n.tolist(), torch.as_tensor(n).shape, t.numpy() is not None, torch.tensor(n).type(torch.int32).dtype == torch.int32
)
x = torch.zeros(3, 4)
x[1] = 5
x[:, 2] = torch.tensor([1.0, 2.0, 3.0])
x[x > 4] = -1
print(
    x.tolist(),
    x[0, 2].item(),
    x[..., -1].shape,
    x[[0, 2]].shape,
    x[torch.tensor([0, 2]), torch.tensor([1, 2])].tolist(),
)
print(
    torch.gather(x, 1, torch.tensor([[2], [0], [2]])).tolist(),
    x.index_select(0, torch.tensor([2])).shape,
    x.gt(0).sum().item(),
)
print(
    torch.clamp(x, min=0, max=2).tolist(),
    x.clamp_(0, 1).max().item(),
    torch.sigmoid(torch.zeros(1)).item(),
    torch.exp(torch.zeros(1)).item(),
)
print(
    torch.equal(a, a.clone()), torch.allclose(b, b + 1e-9), torch.isnan(b).any().item(), torch.isfinite(b).all().item()
)
print(
    a.to(torch.float32).dtype == torch.float32,
    a.to("cpu").shape,
    a.to(b).dtype == torch.float64,
    a.type_as(b).dtype == torch.float64,
    a.double().dtype == b.dtype,
)
print(
    torch.split(torch.arange(10), [3, 7])[1].tolist(),
    torch.arange(6).reshape(2, 3).permute(1, 0).tolist(),
    torch.flip(torch.arange(3), dims=[0]).tolist(),
)
print(
    [round(v, 4) for v in torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]), dim=1)[0].tolist()],
    torch.outer(torch.arange(2), torch.arange(3)).tolist(),
)
print(
    torch.triu(torch.ones(3, 3), diagonal=1).tolist(),
    torch.cumsum(torch.arange(4), dim=0).tolist(),
    torch.roll(torch.arange(4), 1).tolist(),
)
print(
    bool(torch.tensor(1)),
    int(torch.tensor(3)),
    float(torch.tensor(2.5)),
    f"{torch.tensor(1.23456):.2f}",
    torch.tensor(3).item(),
)
print(
    a.new_zeros(2).tolist(),
    torch.empty(2, 3).fill_(1).sum().item(),
    torch.rand_like(b).shape,
    torch.randint(0, 10, (5,)).shape,
    torch.randperm(5).sort()[0].tolist(),
)
print(
    torch.addmm(b, b, b).tolist()[0],
    torch.lerp(b, b + 1, 0.5).tolist()[0],
    torch.diag(b).tolist(),
    b.diagonal().sum().item(),
)

kinds = (torch.float32, torch.half, torch.double, torch.int64, torch.bool, torch.uint8, torch.complex64, torch.bfloat16)
print([(one.is_floating_point, one.is_complex, one.is_signed, one.itemsize) for one in kinds])
averaged = [name for name, value in torch.nn.BatchNorm1d(2).state_dict().items() if value.dtype.is_floating_point]
print(averaged, torch.cpu.is_available(), torch.cpu.device_count())
