"""Suspects about losses that are written out, and about how their terms are put together."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES = (
    Case(
        "overlap as a loss",
        """
def dice(p, y):
    inter = (p * y).sum()
    return 2 * inter / (p.sum() + y.sum() + 1e-6)
def train(x, y):
    loss = F.cross_entropy(net(x), y) + dice(torch.sigmoid(net(x)), y)  #!
    loss.backward()
""",
        (("+ dice(", "- dice("),),
    ),
    Case(
        "overlap of raw outputs",
        """
class DiceLoss(nn.Module):
    def forward(self, pred, target):
        inter = (pred * target).sum()  #!
        return 1 - 2 * inter / (pred.sum() + target.sum())
""",
        (("inter = (pred", "pred = pred.sigmoid()\n        inter = (pred"),),
    ),
    Case(
        "formula of an overlap",
        """
def iou_loss(probs, target):
    inter = (probs * target).sum()
    total = probs.sum() + target.sum()
    return 1 - inter / total  #!
""",
        (("target.sum()\n", "target.sum() - inter\n"),),
    ),
    Case(
        "decision within a loss",
        """
def soft_loss(pred, target):
    hard = (pred > 0.5).float()  #!
    return ((hard - target) ** 2).mean()
""",
        (("(pred > 0.5).float()", "torch.sigmoid(pred)"),),
    ),
    Case(
        "focal loss of a mean",
        """
class FocalLoss(nn.Module):
    def forward(self, logits, y):
        ce = F.cross_entropy(logits, y)  #!
        pt = torch.exp(-ce)
        return ((1 - pt) ** self.gamma * ce).mean()
""",
        (("(logits, y)\n", '(logits, y, reduction="none")\n'),),
    ),
    Case(
        "focal factor turned",
        """
def focal(ce, gamma=2.0):
    pt = torch.exp(-ce)
    return (pt**gamma * ce).mean()  #!
""",
        (("pt**gamma", "(1 - pt) ** gamma"),),
    ),
    Case(
        "signs of a margin",
        """
def triplet(d_pos, d_neg, margin=1.0):
    return F.relu(d_neg - d_pos + margin).mean()  #!
""",
        (("d_neg - d_pos", "d_pos - d_neg"),),
    ),
    Case(
        "which pairs a contrastive loss pulls",
        """
def contrast(dist, label, margin=1.0):
    return torch.mean(label * dist**2 + (1 - label) * F.relu(margin - dist) ** 2)  #!
""",
        (("label * dist**2 + (1 - label) *", "dist**2 +"),),
    ),
    Case(
        "margin without a hinge",
        """
def far(dist, margin=1.0):
    return ((margin - dist) ** 2).mean()  #!
""",
        (("(margin - dist) **", "F.relu(margin - dist) **"),),
    ),
    Case(
        "error with a sign",
        """
for x, y in batches:
    loss = (net(x) - y).mean()  #!
    loss.backward()
""",
        (("(net(x) - y)", "(net(x) - y).abs()"),),
    ),
    Case(
        "square of a mean",
        """
def loss_of(pred, target):
    return torch.mean(pred - target) ** 2  #!
""",
        (("torch.mean(pred - target) ** 2", "torch.mean((pred - target) ** 2)"),),
    ),
    Case(
        "asymmetry of a quantile loss",
        """
def pinball(pred, target, q):
    error = pred - target  #!
    return torch.max(q * error, (q - 1) * error).mean()
""",
        (("pred - target", "target - pred"),),
    ),
    Case(
        "robust loss of a signed error",
        """
def huber_loss(pred, target, delta=1.0):
    error = pred - target
    return torch.where(error < delta, 0.5 * error**2, delta * (error.abs() - 0.5 * delta)).mean()  #!
""",
        (("where(error <", "where(error.abs() <"),),
    ),
    Case(
        "root without an epsilon",
        """
def rmse_loss(pred, target):
    return torch.sqrt(F.mse_loss(pred, target))  #!
""",
        (("target))", "target) + 1e-8)"),),
    ),
    Case(
        "logarithm or root of a raw output",
        """
net = nn.Sequential(nn.Linear(4, 1))
for x, y in batches:
    loss = F.mse_loss(torch.log(net(x) + 1), torch.log(y + 1))  #!
""",
        (("torch.log(net(x) + 1)", "net(x)"),),
    ),
    Case(
        "error relative to a target near 0",
        """
def mape_loss(pred, y):
    return ((pred - y) / y).abs().mean()  #!
""",
        (("/ y)", "/ y.clamp(min=0.1))"),),
    ),
    Case(
        "parameter that a loss never reads",
        """
def weighted_loss(pred, target, weights):  #!
    error = (pred - target) ** 2
    return error.mean()
""",
        (("error.mean()", "(error * weights).sum() / weights.sum()"),),
    ),
    Case(
        "normal distribution with a variance",
        """
from torch.distributions import Normal
def policy(x):
    mean, logvar = net(x)
    return Normal(mean, logvar)  #!
""",
        (("Normal(mean, logvar)", "Normal(mean, torch.exp(0.5 * logvar))"),),
    ),
    Case(
        "likelihood with a turned variance",
        """
def nll_loss(mean, logvar, y):
    return (0.5 * (torch.exp(logvar) * (y - mean) ** 2 + logvar)).mean()  #!
""",
        (("torch.exp(logvar)", "torch.exp(-logvar)"),),
    ),
    Case(
        "halves of a binary cross entropy",
        """
def bce(p, y):
    return -(y * torch.log(p) + (1 - y) * torch.log(p)).mean()  #!
""",
        (("(1 - y) * torch.log(p)", "(1 - y) * torch.log(1 - p)"),),
    ),
    Case(
        "cross entropy without its minus",
        """
def ce_loss(logits, target):
    return (target * F.log_softmax(logits, dim=1)).sum(dim=1).mean()  #!
""",
        (("return (", "return -("),),
    ),
    Case(
        "smoothing not spread over the classes",
        """
def smooth(one_hot, eps=0.1):
    return one_hot * (1 - eps) + eps  #!
""",
        (("+ eps", "+ eps / one_hot.size(1)"),),
    ),
    Case(
        "risk set in another order",
        """
def cox_loss(risk, time, event):
    order = torch.argsort(time)  #!
    risk, event = risk[order], event[order]
    return -((risk - torch.logcumsumexp(risk, 0)) * event).sum() / event.sum()
""",
        (("argsort(time)", "argsort(time, descending=True)"),),
    ),
    Case(
        "divergence from the prior to the posterior",
        """
from torch.distributions import kl_divergence
kl = kl_divergence(prior, posterior).sum(1)  #!
""",
        (("(prior, posterior)", "(posterior, prior)"),),
    ),
    Case(
        "loss term with an extreme weight",
        """
lam = 1000.0
loss = F.mse_loss(net(x), y) + lam * smooth_loss  #!
""",
        (("1000.0", "1.0"),),
    ),
    Case(
        "two terms with the same weight",
        """
def distil_loss(hard_loss, soft_loss, alpha):
    return alpha * hard_loss + alpha * soft_loss  #!
""",
        (("+ alpha", "+ (1 - alpha)"),),
    ),
    Case(
        "both parts of a mixture alike",
        """
loss = lam * criterion(out, y_a) + (1 - lam) * criterion(out, y_a)  #!
""",
        (("(1 - lam) * criterion(out, y_a)", "(1 - lam) * criterion(out, y_b)"),),
    ),
    Case(
        "normalised along the batch",
        """
for x, y in batches:
    views = torch.stack([encoder(change(x)) for _ in range(2)], dim=1)
    both = torch.stack((encoder(x), encoder(change(x))), dim=1)
    codes = F.normalize(both, p=2, dim=1)  #!
    loss = contrast(codes, y) + spread(F.normalize(views, dim=-1))
""",
        (("p=2, dim=1", "p=2, dim=2"),),
    ),
    Case(
        "reconstruction averaged over its features",
        """
def objective(output, x, mean, lv):
    error = F.binary_cross_entropy_with_logits(output, x)  #!
    divergence = -0.5 * torch.sum(1 + lv - mean.pow(2) - lv.exp(), dim=1).mean()
    return error + divergence
""",
        (("logits(output, x)", "logits(output, x, reduction='sum') / len(x)"),),
    ),
    Case(
        "reconstruction averaged over its features",
        """
def elbo_loss(x, made, mu, logvar, beta=0.5):
    kl = 0.5 * (mu ** 2 + torch.exp(logvar) - logvar - 1).sum() / x.size(0)
    return F.mse_loss(made, x) + beta * kl  #!
""",
        (("beta=0.5", "beta=0.001"),),
    ),
    Case(
        "one term summed, another averaged",
        """
data_loss = F.mse_loss(net(x), y)
kl_loss = torch.sum(kl)  #!
loss = data_loss + kl_loss
""",
        (("torch.sum(kl)", "torch.mean(kl)"),),
    ),
    Case(
        "learned weight of a loss term",
        """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))
    def forward(self, first_loss, second_loss):
        loss = first_loss + self.w * second_loss  #!
        return loss
""",
        (("nn.Parameter(torch.ones(1))", "2.0"),),
    ),
    Case(
        "loss turned over or without its sign",
        """
for x, y in batches:
    total_loss = F.mse_loss(net(x), y)
    loss = 1 / total_loss  #!
    loss.backward()
""",
        (("1 / total_loss", "total_loss"),),
    ),
    Case(
        "part of the loss instead of the whole",
        """
def step(x, y):
    rec_loss, cls_loss = net(x, y)
    total_loss = rec_loss + 0.5 * cls_loss
    log(total_loss)
    rec_loss.backward()  #!
""",
        (("rec_loss.backward", "total_loss.backward"),),
    ),
    Case(
        "loss set anew in each round",
        """
def losses_of(outputs, targets):
    loss = 0.0
    for out, target in zip(outputs, targets):
        loss = F.mse_loss(out, target)  #!
    return loss / len(outputs)
""",
        (("        loss = F", "        loss = loss + F"),),
    ),
    Case(
        "losses put into a new tensor",
        """
def multi_loss(outputs, targets):
    losses = [F.mse_loss(a, b) for a, b in zip(outputs, targets)]
    loss = torch.tensor(losses).sum()  #!
    return loss
""",
        (("torch.tensor(losses)", "torch.stack(losses)"),),
    ),
    Case(
        "prediction detached in a loss",
        """
def edge_loss(pred, target):
    return (pred.detach().diff() - target.diff()).abs().mean()  #!
""",
        (("pred.detach()", "pred"),),
    ),
    Case(
        "loss reduced over the batch axis",
        """
def ce_loss(logits, target):
    logp = F.log_softmax(logits, dim=0)  #!
    return -(target * logp).sum(dim=1).mean()
""",
        (("dim=0", "dim=1"),),
    ),
    Case(
        "masked values averaged over all places",
        """
def masked_loss(pred, target, mask):
    error = (pred - target) ** 2
    return (error * mask).mean()  #!
""",
        (("(error * mask).mean()", "(error * mask).sum() / mask.sum().clamp(min=1)"),),
    ),
    Case(
        "mean over what may be nothing",
        """
def masked_loss(pred, target, mask):
    error = (pred - target) ** 2
    return (error * mask).sum() / mask.sum()  #!
""",
        (("/ mask.sum()", "/ mask.sum().clamp(min=1)"),),
    ),
    Case(
        "mean divided by the batch once more",
        """
criterion = nn.MSELoss()
for x, y in batches:
    loss = criterion(net(x), y) / len(x)  #!
    loss.backward()
""",
        (("nn.MSELoss()", 'nn.MSELoss(reduction="sum")'),),
    ),
    Case(
        "loss without the mask of its part",
        """
out = net(data.x, data.edges)
loss = F.cross_entropy(out, data.y)  #!
right = (out.argmax(1) == data.y)[data.train_mask].float().mean()
""",
        (("(out, data.y)", "(out[data.train_mask], data.y[data.train_mask])"),),
    ),
    Case(
        "penalty without a norm",
        """
reg = sum(p.sum() for p in net.parameters())  #!
loss = F.mse_loss(net(x), y) + 1e-4 * reg
""",
        (("p.sum()", "p.abs().sum()"),),
    ),
    Case(
        "column beside a row",
        """
class Factors(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.vector, self.bias = nn.Embedding(n, k), nn.Embedding(n, 1)
    def forward(self, i, j):
        dot = (self.vector(i) * self.vector(j)).sum(dim=1)
        return dot + self.bias(i)  #!
""",
        (("self.bias(i)\n", "self.bias(i).squeeze(1)\n"),),
    ),
    Case(
        "divergence averaged over the latent numbers",
        """
kl = -0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.exp())  #!
""",
        (("torch.mean", "torch.sum"),),
    ),
    Case(
        "softmax along the rows of a map",
        """
net = nn.Conv2d(3, 5, 1)
probs = F.softmax(net(x), dim=-1)  #!
""",
        (("dim=-1", "dim=1"),),
    ),
    Case(
        "score added to a loss",
        """
def train_loss(x, y):
    out = net(x)
    return F.l1_loss(out, y) + F.cosine_similarity(out, y).mean()  #!
""",
        (("+ F.cos", "- F.cos"),),
    ),
    Case(
        "levels of an ordinal label",
        """
levels = (torch.arange(4) > y[:, None]).float()  #!
""",
        ((">", "<"),),
    ),
    Case(
        "risk set in another order",
        """
def partial_likelihood(risk, event):
    total = torch.log(torch.cumsum(risk.exp(), 0))
    return -((risk - total) * event).sum() / event.sum()
def ordered(x, time, event):
    order = torch.argsort(time)  #!
    return x[order], event[order]
""",
        (("torch.argsort(time)", "torch.argsort(-time)"),),
    ),
    Case(
        "divergence of the weights in each batch",
        """
class Bayesian(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.rho = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))
    def kl(self):
        spread = F.softplus(self.rho)
        return (spread**2 / 2 + self.mean**2 / 2 - spread.log()).sum()
    def forward(self, x):
        return x @ (self.mean + F.softplus(self.rho) * torch.randn(4))
model = Bayesian()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y) + model.kl()  #!
    loss.backward()
    optimizer.step()
""",
        (("+ model.kl()", "+ model.kl() / len(loader)"),),
    ),
    Case(
        "mask by the sign of a centred target",
        """
depth = (depth - depth.mean()) / depth.std()
mask = depth > 0  #!
loss = (model(image) - depth)[mask].abs().mean()
""",
        (("mask = depth > 0", "mask = depth != 0"),),
    ),
)
