"""Suspects about generative models, pairs and teachers."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES = (
    Case(
        "positives of another layout",
        """
def contrast(z1, z2):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    scores = z @ z.T / 0.2 - 1e9 * torch.eye(len(z))
    partners = torch.arange(len(z)) ^ 1  #!
    return F.cross_entropy(scores, partners)
""",
        (("torch.cat([z1, z2])", "torch.stack([z1, z2], dim=1).flatten(0, 1)"),),
    ),
    Case(
        "positives of another layout",
        """
def contrast(z1, z2, n):
    z = F.normalize(torch.stack([z1, z2], dim=1).view(2 * n, -1), dim=1)
    partners = (torch.arange(2 * n) + n) % (2 * n)  #!
    return F.cross_entropy(z @ z.T / 0.2 - 1e9 * torch.eye(2 * n), partners)
""",
        (("torch.stack([z1, z2], dim=1).view(2 * n, -1)", "torch.cat([z1, z2])"),),
    ),
    Case(
        "predicted noise instead of new noise",
        """
def step(model, x, t):
    guess = model(x, t)
    mean = (x - betas[t] / (1 - kept[t]).sqrt() * guess) / (1 - betas[t]).sqrt()
    return mean + betas[t].sqrt() * guess  #!
""",
        (("betas[t].sqrt() * guess", "betas[t].sqrt() * torch.randn_like(x)"),),
    ),
    Case(
        "fakes cut off from their generator",
        """
for real in batches:
    fake = G(torch.randn(8, 4))
    g_loss = criterion(D(fake.detach()), ones)  #!
""",
        (("fake.detach()", "fake"),),
    ),
    Case(
        "fakes cut off from their generator",
        """
for given, real in batches:
    made = G(given)
    judged = D(given, made.detach())
    d_loss = judged.mean() - D(given, real).mean()
    again = D(given, made.detach())  #!
    cheat = F.mse_loss(again, ones)
    g_loss = cheat + F.l1_loss(made, real)
""",
        (("again = D(given, made.detach())", "again = D(given.detach(), made)"),),
    ),
    Case(
        "fakes not cut off from their generator",
        """
for real in batches:
    opt_g.zero_grad()
    opt_d.zero_grad()
    fake = G(torch.randn(8, 4))
    d_loss = criterion(D(real), ones) + criterion(D(fake), zeros)  #!
    d_loss.backward()
    opt_d.step()
    g_loss = criterion(D(G(torch.randn(8, 4))), ones)
    g_loss.backward()
    opt_g.step()
""",
        (("criterion(D(fake)", "criterion(D(fake.detach())"),),
    ),
    Case(
        "label of the other side",
        """
def losses_of(real_out, fake_out):
    loss_d_real = criterion(real_out, torch.ones_like(real_out))
    loss_d_fake = criterion(fake_out, torch.ones_like(fake_out))  #!
    loss_g = criterion(fake_out, torch.zeros_like(fake_out))  #!
    return loss_d_real + loss_d_fake, loss_g
""",
        (
            ("criterion(fake_out, torch.ones_like(fake_out))", "criterion(fake_out, 0 * real_out)"),
            ("criterion(fake_out, torch.zeros_like(fake_out))", "criterion(fake_out, torch.ones_like(fake_out))"),
        ),
    ),
    Case(
        "sign of the critic",
        """
def judge(critic, real, fake):
    d_loss = critic(real).mean() - critic(fake).mean()  #!
    return d_loss
def hinge(real_out, fake_out):
    d_loss = F.relu(1 + real_out).mean() + F.relu(1 - fake_out).mean()  #!
    return d_loss
""",
        (
            ("critic(real).mean() - critic(fake)", "critic(fake).mean() - critic(real)"),
            ("1 + real_out", "1 - real_out"),
            ("1 - fake_out", "1 + fake_out"),
        ),
    ),
    Case(
        "sign of the critic",
        """
critic, G = nn.Linear(2, 1), nn.Linear(4, 2)
for real in batches:
    fake = G(torch.randn(8, 4))
    g_loss = critic(fake).mean()  #!
""",
        (("= critic(fake)", "= -critic(fake)"),),
    ),
    Case(
        "penalty of the wrong norm",
        """
def gradient_penalty(critic, x):
    grads = torch.autograd.grad(critic(x).sum(), x, create_graph=True)[0]
    return (grads.norm(2) - 1) ** 2  #!
def loss_of(fake_out, real_out, gp):
    d_loss = fake_out.mean() - real_out.mean() - 10 * gp  #!
    return d_loss
""",
        (("grads.norm(2)", "grads.norm(2, dim=1)"), ("- 10 * gp", "+ 10 * gp")),
    ),
    Case(
        "step of the other player",
        """
opt_g = torch.optim.Adam(D.parameters())  #!
opt_d = torch.optim.Adam(D.parameters())
for real in batches:
    fake = G(torch.randn(8, 4))
    g_loss = criterion(D(fake), ones)
    g_loss.backward()
    opt_d.step()  #!
""",
        (("opt_g = torch.optim.Adam(D", "opt_g = torch.optim.Adam(G"), ("opt_d.step", "opt_g.step")),
    ),
    Case(
        "noise drawn once",
        """
z = torch.randn(8, 4)
for real in batches:
    fake = G(z)  #!
    g_loss = criterion(D(fake), ones)
    g_loss.backward()
""",
        (("    fake", "    z = torch.randn(8, 4)\n    fake"),),
    ),
    Case(
        "cycle compared with the other domain",
        """
def cycle_loss(rec_a, real_a, real_b):
    return F.l1_loss(rec_a, real_b)  #!
""",
        (("rec_a, real_b)\n", "rec_a, real_a)\n"),),
    ),
    Case(
        "latent code of the wrong noise",
        """
def sample(mu, logvar):
    eps = torch.rand_like(mu)  #!
    return mu + eps * torch.exp(0.5 * logvar)
def other(mu, logvar):
    return mu + torch.randn_like(mu) * logvar  #!
""",
        (("torch.rand_like", "torch.randn_like"), ("randn_like(mu) * logvar", "randn_like(mu) * (0.5 * logvar).exp()")),
    ),
    Case(
        "divergence of another formula",
        """
def kl(mu, logvar):
    return -0.5 * torch.sum(1 + logvar - mu - logvar.exp())  #!
def other(mu, logvar):
    return -0.5 * torch.sum(1 + logvar - mu.pow(2) + logvar.exp())  #!
""",
        (("logvar - mu - logvar", "logvar - mu ** 2 - logvar"), ("mu.pow(2) + logvar", "mu.pow(2) - logvar")),
    ),
    Case(
        "one layer for mean and deviation",
        """
class Encoder(nn.Module):
    def forward(self, x):
        h = self.body(x)
        mu = self.fc1(h)
        logvar = self.fc1(h)  #!
        return self.reparametrize(mu, logvar)
""",
        (("logvar = self.fc1", "logvar = self.fc2"),),
    ),
    Case(
        "straight-through estimate",
        """
def quantize(z, codebook):
    q = codebook[torch.cdist(z, codebook).argmin(1)]
    loss = F.mse_loss(q, z.detach())
    commit = F.mse_loss(z.detach(), q)  #!
    return q + (z - q).detach(), loss + 0.25 * commit  #!
""",
        (("F.mse_loss(z.detach(), q)", "F.mse_loss(z, q.detach())"), ("q + (z - q)", "z + (q - z)")),
    ),
    Case(
        "farthest instead of nearest",
        """
def nearest(z, codes):
    distances = torch.cdist(z, codes)
    return distances.argmax(1)  #!
""",
        (("argmax", "argmin"),),
    ),
    Case(
        "noise that nobody added",
        """
def loss_of(model, x, t, alpha_bar):
    noise = torch.randn_like(x)
    x_t = alpha_bar[t].sqrt() * x + (1 - alpha_bar[t]).sqrt() * noise
    return F.mse_loss(model(x_t, t), torch.randn_like(x))  #!
""",
        (("t), torch.randn_like(x))", "t), noise)"),),
    ),
    Case(
        "schedule of the noise",
        """
betas = torch.linspace(1e-4, 0.02, 100)
alpha_bar = torch.cumprod(betas, 0)  #!
def sample(model, x):
    for t in range(100):  #!
        x = (x - betas[t] * model(x, t)) / (1 - betas[t]).sqrt() + betas[t].sqrt() * torch.randn_like(x)
    return x
""",
        (("cumprod(betas", "cumprod(1 - betas"), ("range(100)", "reversed(range(100))")),
    ),
    Case(
        "level before is one less",
        """
stride = 1000 // 50
def step(x, eps, t):
    prev_t = t - 1  #!
    return alpha[prev_t] * clean(x, eps, t) + sigma[prev_t] * eps
""",
        (("t - 1", "t - stride"),),
    ),
    Case(
        "velocity turned round",
        """
def loss_of(model, noise, data, t):
    x = (1 - t) * noise + t * data
    return F.mse_loss(model(x, t), noise - data)  #!
""",
        (("noise - data", "data - noise"),),
    ),
    Case(
        "guidance that falls short",
        """
def guided(cond, uncond, scale):
    return uncond + scale * (uncond - cond)  #!
""",
        (("(uncond - cond)", "(cond - uncond)"),),
    ),
    Case(
        "energies with exchanged signs",
        """
def train(energy, real, samples):
    loss = energy(samples).mean() - energy(real).mean()  #!
    loss.backward()
""",
        (("energy(samples).mean() - energy(real).mean()", "energy(real).mean() - energy(samples).mean()"),),
    ),
    Case(
        "positive and negative exchanged",
        """
def ranked(pos_score, neg_score):
    return -F.logsigmoid(neg_score - pos_score).mean()  #!
def triplets(anchor, positive, negative):
    return F.triplet_margin_loss(anchor, negative, positive)  #!
def distant(d_pos, d_neg, margin):
    return F.relu(d_neg - d_pos + margin).mean()  #!
""",
        (
            ("neg_score - pos_score", "pos_score - neg_score"),
            ("anchor, negative, positive", "anchor, positive, negative"),
            ("d_neg - d_pos", "d_pos - d_neg"),
        ),
    ),
    Case(
        "similarity of vectors of any length",
        """
def logits_of(z1, z2, temperature=0.1):
    return z1 @ z2.T / temperature  #!
""",
        (("    return", "    z1, z2 = F.normalize(z1, dim=1), F.normalize(z2, dim=1)\n    return"),),
    ),
    Case(
        "each one compared with itself",
        """
def nt_xent(z, labels, temperature=0.5):
    z = F.normalize(z, dim=1)
    sim = z @ z.T / temperature  #!
    return F.cross_entropy(sim, labels)
""",
        (("    return", "    sim.fill_diagonal_(-1e9)\n    return"),),
    ),
    Case(
        "same input twice",
        """
for x1, x2 in batches:
    z1 = encoder(x1)
    z2 = encoder(x1)  #!
    loss = contrast(z1, z2)
""",
        (("z2 = encoder(x1)", "z2 = encoder(x2)"),),
    ),
    Case(
        "prediction compared with its own view",
        """
def loss_of(p1, p2, z1, z2):
    loss = negative_cosine(p1, z1) + negative_cosine(p2, z2)  #!
    return loss
""",
        (("(p1, z1) + negative_cosine(p2, z2)", "(p1, z2) + negative_cosine(p2, z1)"),),
    ),
    Case(
        "users and items exchanged",
        """
class Model(nn.Module):
    def __init__(self, num_users, num_items):
        super().__init__()
        self.user_emb = nn.Embedding(num_items, 8)  #!
        self.item_emb = nn.Embedding(num_items, 8)
    def forward(self, user, item):
        return (self.user_emb(user) * self.item_emb(user)).sum(1)  #!
""",
        (
            ("user_emb = nn.Embedding(num_items", "user_emb = nn.Embedding(num_users"),
            ("item_emb(user)", "item_emb(item)"),
        ),
    ),
    Case(
        "negatives taken for likely",
        """
def loss_of(pos_score, neg_score):
    return -(F.logsigmoid(pos_score) + F.logsigmoid(neg_score)).mean()  #!
""",
        (("logsigmoid(neg_score)", "logsigmoid(-neg_score)"),),
    ),
    Case(
        "teacher and student exchanged",
        """
def loss_of(student, teacher, T):
    first = F.kl_div(F.log_softmax(teacher / T, 1), F.softmax(student / T, 1))  #!
    second = F.kl_div(F.log_softmax(student / T, 1), F.softmax(teacher, 1))  #!
    return first + second
""",
        (
            (
                "F.log_softmax(teacher / T, 1), F.softmax(student / T",
                "F.log_softmax(student / T, 1), F.softmax(teacher / T",
            ),
            ("F.softmax(teacher, 1)", "F.softmax(teacher / T, 1)"),
        ),
    ),
    Case(
        "temperature not made good",
        """
def loss_of(student, teacher, T):
    return F.kl_div(F.log_softmax(student / T, 1), F.softmax(teacher / T, 1), reduction="batchmean")  #!
""",
        (('"batchmean")', '"batchmean") * T ** 2'),),
    ),
    Case(
        "teacher in training mode",
        """
for x, y in batches:
    with torch.no_grad():
        wanted = teacher(x)  #!
    loss = F.mse_loss(student(x), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("for x, y", "teacher.eval()\nfor x, y"),),
    ),
    Case(
        "temperature for some of the scores",
        """
def loss_of(pos, neg, labels, temperature):
    logits = torch.cat([pos, neg / temperature], 1)  #!
    return F.cross_entropy(logits, labels)
""",
        (("[pos, neg", "[pos / temperature, neg"),),
    ),
    Case(
        "two terms with one weight",
        """
def loss_of(soft, hard, alpha):
    loss = alpha * soft + alpha * hard  #!
    return loss
""",
        (("alpha * hard", "(1 - alpha) * hard"),),
    ),
    Case(
        "step uphill",
        """
def attack(model, x, y, eps):
    loss = F.cross_entropy(model(x), y)
    grad = torch.autograd.grad(loss, x)[0]
    return x - eps * grad.sign()  #!
def adapt(weights, grads, lr):
    return [w + lr * g for w, g in zip(weights, grads)]  #!
""",
        (("x - eps", "x + eps"), ("w + lr", "w - lr")),
    ),
    Case(
        "gradients of an attack kept",
        """
def fgsm(model, x, y):
    x = x.clone().requires_grad_()
    F.cross_entropy(model(x), y).backward()
    return (x + 0.1 * x.grad.sign()).detach()
for x, y in batches:
    optimizer.zero_grad()
    near = fgsm(model, x, y)  #!
    loss = F.cross_entropy(model(near), y)
    loss.backward()
    optimizer.step()
""",
        (("    loss = F", "    optimizer.zero_grad()\n    loss = F"),),
    ),
    Case(
        "reversal that reverses nothing",
        """
class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None  #!
def loss_of(class_loss, domain_loss):
    loss = class_loss - domain_loss  #!
    return loss
""",
        (("return grad * ctx", "return -grad * ctx"), ("class_loss - domain", "class_loss + domain")),
    ),
    Case(
        "average into one of its parts",
        """
import copy
def average(states):
    avg = states[0]  #!
    for key in avg:
        for state in states[1:]:
            avg[key] += state[key]
        avg[key] = avg[key] / len(states)
    return avg
""",
        (("avg = states[0]", "avg = copy.deepcopy(states[0])"),),
    ),
    Case(
        "parts taken in another order",
        """
def encode(x):
    recon, mu, logvar = net(x)
    return recon, mu, logvar
def loss_of(recon, mu, logvar):
    return (recon + mu + logvar).sum()
recon, logvar, mu = encode(x)  #!
loss = loss_of(mu, recon, logvar)  #!
""",
        (("recon, logvar, mu = encode", "recon, mu, logvar = encode"), ("loss_of(mu, recon", "loss_of(recon, mu")),
    ),
    Case(
        "mean or variance of a code behind an activation",
        """
class Encoder(nn.Module):
    def forward(self, h):
        return F.relu(self.to_mu(h))  #!
""",
        (("F.relu(self.to_mu(h))", "self.to_mu(h)"),),
    ),
    Case(
        "generator with another range than the data",
        """
pictures = pictures / 255 * 2 - 1
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(8, 64), nn.Sigmoid())  #!
    def forward(self, z):
        return self.main(z)
""",
        (("nn.Sigmoid()", "nn.Tanh()"),),
    ),
)
