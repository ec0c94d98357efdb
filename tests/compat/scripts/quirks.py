"""Small things scripts rely on: printing, comparing, iterating, pickling of state, type checks, in-place chains."""

import copy
import pickle

import torch
import torch.nn as nn

t = torch.arange(6, dtype=torch.float32).view(2, 3)
print([row.tolist() for row in t], [v.item() for v in t[0]], 3.0 in t, list(map(int, t[1])))
print(isinstance(t, torch.Tensor), type(t).__name__, t.is_floating_point(), t.requires_grad, t.device.type, t.is_cuda)
print(
    (t == t.clone()).all(), torch.all(t >= 0).item(), t.ne(0).sum().item(), (t > 1).float().mean().item().__round__(3)
)
print(t.add(1).mul_(2).sub_(1).div_(2).tolist(), t.sqrt().pow(2).round().tolist(), (-t).abs().neg().tolist())
print(
    t.argmax().item(),
    t.argmax(dim=1).tolist(),
    t.topk(2, dim=1).values.tolist(),
    t.sort(descending=True).indices.tolist(),
)
print(
    t.mean(0).shape,
    t.mean((0, 1)).shape,
    t.sum(-1).tolist(),
    t.prod().item(),
    t.cumprod(1).tolist(),
    t.amax(1).tolist(),
)
print(
    t.numpy().shape,
    t.tolist() == t.numpy().tolist(),
    torch.tensor(t.numpy()).equal(t),
    copy.deepcopy(t).tolist() == t.tolist(),
)
print(torch.cat([torch.zeros(1), torch.ones(1)]).tolist(), torch.hstack([t, t]).shape, torch.vstack([t, t]).shape)
print(divmod(7, 3), t[0] @ t[1], torch.dot(t[0], t[1]).item(), torch.cross(t[0], t[1], dim=0).tolist())
a, b = t
print(a.tolist(), b.tolist(), torch.broadcast_to(a, (2, 3)).shape, torch.movedim(t, 0, 1).shape, t.swapaxes(0, 1).shape)
print(
    torch.stack(list(t.unbind(1))).shape,
    t.masked_select(t > 3).tolist(),
    t.fill_diagonal_(9).tolist(),
    t.index_fill(0, torch.tensor([0]), 0.0).tolist(),
)
m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
m.add_module("last", nn.Linear(2, 1))
print(m[0].weight.shape, m[-1], len(m), m.last is m[2], [type(l).__name__ for l in m])
print(m(torch.zeros(1, 2)).shape, m.training, m.eval().training, next(m.parameters()).dtype == torch.float32)
state = {k: v.clone() for k, v in m.state_dict().items()}
m[0].weight.data += 1
m.load_state_dict(state)
print(torch.equal(m[0].weight, state["0.weight"]), m.load_state_dict({}, strict=False).missing_keys[0])
print(repr(nn.Conv2d(1, 2, 3, padding=1)), nn.Dropout(0.2), nn.LSTM(2, 3, batch_first=True))
twin = pickle.loads(pickle.dumps(m))
print(
    torch.equal(twin[0].weight, m[0].weight),
    sorted(n for n, _ in twin.named_parameters()) == sorted(n for n, _ in m.named_parameters()),
)
x = torch.ones(2, 2, requires_grad=True)
y = x * 2
y.retain_grad()
y.sum().backward(retain_graph=True)
print(y.grad.tolist(), x.grad.tolist(), y.grad_fn is not None)
x.grad = None
torch.autograd.backward([y.sum()])
print(x.grad.tolist(), torch.is_grad_enabled())
try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError as error:
    print("RuntimeError", "2" in str(error))
try:
    m.load_state_dict({"x": torch.ones(1)})
except RuntimeError as error:
    print("RuntimeError", "0.weight" in str(error))
