"""Sampling from logits: temperature, top-k, top-p, multinomial, one-hot."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
logits = torch.tensor([[2.0, 1.0, 0.5, -1.0, 3.0], [0.0, 0.1, 0.2, 0.3, 0.4]])


def top_k(logits, k):
    v, _ = torch.topk(logits, min(k, logits.size(-1)))
    out = logits.clone()
    out[out < v[:, [-1]]] = -float("Inf")
    return out


def top_p(logits, p):
    sorted_logits, sorted_indices = torch.sort(logits, descending=True)
    cumulative = torch.cumsum(F.softmax(sorted_logits, dim=-1), dim=-1)
    remove = cumulative > p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = 0
    mask = remove.scatter(1, sorted_indices, remove)
    return logits.masked_fill(mask, float("-inf"))


print(top_k(logits, 2).tolist())
print(F.softmax(top_p(logits, 0.7) / 0.8, dim=-1).numpy().round(4).tolist())
probs = F.softmax(top_k(logits, 2), dim=-1)
idx = torch.multinomial(probs, num_samples=1)
print(idx.shape, idx.dtype == torch.long, idx[0].item() in (0, 4), idx[1].item() in (3, 4))
many = torch.multinomial(probs[0], 1000, replacement=True)
print(sorted(set(many.tolist())), abs((many == 4).float().mean().item() - probs[0, 4].item()) < 0.05)
print(F.one_hot(torch.tensor([0, 2, 1]), num_classes=4).tolist())
print(torch.bincount(torch.tensor([0, 2, 2, 1])).tolist(), torch.unique(torch.tensor([3, 1, 3])).tolist())
values, indices = torch.tensor([1.0, 5.0, 2.0]).max(dim=0)
print(values.item(), indices.item(), torch.argsort(torch.tensor([3, 1, 2])).tolist())
