"""Networks that play against each other, act, or draw samples: GANs, reinforcement, VAEs, diffusion."""

from __future__ import annotations

from tests.doctor.world.program import Program

_GAN = """
data = torch.randn(512, 2) * 0.5 + 1
G = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
D = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(64, 1), torch.zeros(64, 1)
"""
_GAP = """
gap = (G(torch.randn(500, 4)).mean(0) - 1).abs().mean().item()
"""
_WALK = """
goal = torch.tensor([1.0, -1.0])
def step_of(place, action):
    moved = place + torch.tensor([[0.3, 0.0], [-0.3, 0.0], [0.0, 0.3], [0.0, -0.3]])[action]
    return moved, -(moved - goal).pow(2).sum(-1)
"""

PROGRAMS = (
    Program("a judge whose gradients are never zeroed", ("zero_grad is missing",), _GAN + """
g_opt = torch.optim.Adam(G.parameters(), lr=5e-3, betas=(0.5, 0.9))
d_opt = torch.optim.Adam(D.parameters(), lr=5e-3, betas=(0.5, 0.9))
def step(real):
    fake = G(torch.randn(64, 4))
    err_d = bce(D(real), one) + bce(D(fake.detach()), zero)
    err_d.backward()  #!
    d_opt.step()  #!
    G.zero_grad()
    err_g = bce(D(fake), one)
    err_g.backward()
    g_opt.step()
    return err_d, err_g
for it in range(200):
    step(data[torch.randint(0, 512, (64,))])
""" + _GAP, (("    err_d.backward()", "    D.zero_grad()\n    err_d.backward()"),),
            source="https://github.com/Adversarial-Deep-Learning/code-soup/issues/69"),
    Program("a generator cut off from its judge", ("loss term detached", "no gradient", "loss detached"), """
sound = torch.randn(300, 6) + 1
image = sound @ torch.randn(6, 5)
G = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 6))
D = nn.Sequential(nn.Linear(6, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
refine = nn.Linear(6, 6)
g_opt = torch.optim.Adam([*G.parameters(), *refine.parameters()], lr=1e-3, betas=(0.5, 0.9))
d_opt = torch.optim.Adam(D.parameters(), lr=3e-3, betas=(0.5, 0.9))
for it in range(200):
    i = torch.randint(0, 300, (32,))
    fake = G(image[i])
    d_opt.zero_grad()
    (F.mse_loss(D(sound[i]), torch.ones(32, 1)) + F.mse_loss(D(fake.detach()), torch.zeros(32, 1))).backward()
    d_opt.step()
    g_opt.zero_grad()
    judged = D(fake.detach())  #!
    adversarial = F.mse_loss(judged, torch.ones(32, 1))
    size = F.l1_loss(refine(fake).pow(2).mean(1), sound[i].pow(2).mean(1))
    (adversarial + 0.1 * size).backward()
    g_opt.step()
gap = (G(image).mean(0) - sound.mean(0)).abs().mean().item()
""", (("judged = D(fake.detach())", "judged = D(fake)"),),
            source="https://github.com/nikhilsinghmus/image2reverb/issues/37"),
    Program("the generator's gradients left in the judge", ("zero_grad is missing",), _GAN + """
g_opt = torch.optim.Adam(G.parameters(), lr=5e-3, betas=(0.5, 0.9))
d_opt = torch.optim.Adam(D.parameters(), lr=5e-3, betas=(0.5, 0.9))
for it in range(200):
    real, z = data[torch.randint(0, 512, (64,))], torch.randn(64, 4)
    for optimizer_i, optimizer in enumerate((g_opt, d_opt)):
        if optimizer_i == 0:
            loss = bce(D(G(z)), one)  #!
        else:
            loss = (bce(D(real), one) + bce(D(G(z).detach()), zero)) / 2
        loss.backward()  #!
        optimizer.step()
        optimizer.zero_grad()  #!
""" + _GAP, (("        loss.backward()", "        optimizer.zero_grad()\n        loss.backward()"),),
            source="https://github.com/Lightning-AI/pytorch-lightning/issues/557"),
    Program("the judge's gradients left in the generator", ("zero_grad is missing",), _GAN + """
g_opt = torch.optim.Adam(G.parameters(), lr=5e-3, betas=(0.5, 0.9))
d_opt = torch.optim.Adam(D.parameters(), lr=5e-3, betas=(0.5, 0.9))
for it in range(200):
    g_opt.zero_grad()
    d_opt.zero_grad()
    real, fake = data[torch.randint(0, 512, (64,))], G(torch.randn(64, 4))
    d_loss = F.relu(1 - D(real)).mean() + F.relu(1 + D(fake)).mean()  #!
    d_loss.backward()
    d_opt.step()
    g_loss = -D(G(torch.randn(64, 4))).mean()
    g_loss.backward()  #!
    g_opt.step()
""" + _GAP, (("F.relu(1 + D(fake)).mean()", "F.relu(1 + D(fake.detach())).mean()"),),
            source="https://github.com/heykeetae/Self-Attention-GAN/issues/48"),
    Program("a generator that works for the critic", ("sign of the loss turned", "loss rises"), _GAN + """
g_opt = torch.optim.RMSprop(G.parameters(), lr=2e-3)
d_opt = torch.optim.RMSprop(D.parameters(), lr=2e-3)
for it in range(250):
    real = data[torch.randint(0, 512, (64,))]
    d_opt.zero_grad()
    d_loss = D(G(torch.randn(64, 4)).detach()).mean() - D(real).mean()
    d_loss.backward()
    d_opt.step()
    with torch.no_grad():
        for p in D.parameters():
            p.clamp_(-0.1, 0.1)
    if it % 2:
        g_opt.zero_grad()
        g_loss = D(G(torch.randn(64, 4))).mean()  #!
        g_loss.backward()  #!
        g_opt.step()
""" + _GAP, (("g_loss = D(G", "g_loss = -D(G"),),
            source="https://github.com/Zeleni9/pytorch-wgan/pull/53"),
    Program("the logarithm of a critic", ("logarithm of what can reach 0", "NaN in the forward pass"), _GAN + """
g_opt = torch.optim.RMSprop(G.parameters(), lr=2e-3)
d_opt = torch.optim.RMSprop(D.parameters(), lr=1e-3)
for it in range(200):
    d_opt.zero_grad()
    real = data[torch.randint(0, 512, (64,))]
    loss = D(G(torch.randn(64, 4)).detach()).mean() - D(real).mean()
    loss.backward()
    d_opt.step()
    with torch.no_grad():
        for p in D.parameters():
            p.clamp_(-0.1, 0.1)
    g_opt.zero_grad()
    critic_output_fake = D(G(torch.randn(64, 4)))
    fake_loss = torch.mean(-torch.log(critic_output_fake))  #!
    fake_loss.backward()
    g_opt.step()
""" + _GAP, (("torch.mean(-torch.log(critic_output_fake))", "-torch.mean(critic_output_fake)"),),
            source="https://github.com/marian42/shapegan/issues/2"),
    Program("a future after the end of the game", (), """
state, action = torch.rand(600, 4), torch.randint(0, 2, (600,))
done = (state[:, 0] > 0.4) * 1.0
reward = (action == (state[:, 1] > 0.5) * 1) * 1.0
after = torch.rand(600, 4)
class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 32), nn.Linear(32, 2)
    def forward(self, s):
        return self.b(torch.relu(self.a(s)))
online, target = QNet(), QNet()
adam = torch.optim.Adam(online.parameters(), lr=3e-3)
for step in range(400):
    if step % 40 == 0:
        target.load_state_dict(online.state_dict())
    i = torch.randint(0, 600, (64,))
    q = online(state[i]).gather(1, action[i].unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        expected = reward[i] + 0.99 * target(after[i]).max(1).values  #!
    loss = F.smooth_l1_loss(q, expected)
    adam.zero_grad()
    loss.backward()
    adam.step()
ended = done > 0
error = (online(state)[torch.arange(600), action] - reward)[ended].abs().mean().item()
""", (("+ 0.99 * target", "+ 0.99 * (1 - done[i]) * target"),), "done",
            source="https://github.com/cyoon1729/deep-Q-networks/pull/5"),
    Program("each return against each value", ("broadcast in the loss",), """
states = torch.randn(512, 4)
better = (states[:, 0] > 0) * 1
class A2C(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.policy, self.value = nn.Linear(4, 32), nn.Linear(32, 2), nn.Linear(32, 1)
    def forward(self, s):
        h = torch.tanh(self.body(s))
        return self.policy(h), self.value(h)
net = A2C()
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(200):
    i = torch.randint(0, 512, (64,))
    logits, value_v = net(states[i])
    act = torch.multinomial(torch.softmax(logits.detach(), 1), 1).squeeze(1)
    vals_ref_v = states[i, 1] * 3 + (act == better[i]) * 1.0
    adv_v = vals_ref_v - value_v.detach()  #!
    log_prob = F.log_softmax(logits, 1)[torch.arange(64), act]
    loss = F.mse_loss(value_v.squeeze(-1), vals_ref_v) - (adv_v * log_prob).mean()  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
accuracy = (net(states)[0].argmax(1) == better).sum().item() / 512
""", (("value_v.detach()", "value_v.squeeze(-1).detach()"),),
            source="https://github.com/PacktPublishing/Deep-Reinforcement-Learning-Hands-On/issues/74"),
    Program("a critic that pulls its own target", ("target moves with the model",), """
path = torch.randn(300, 1, 3) * 0.8 ** torch.arange(6).reshape(1, 6, 1) + 0.1 * torch.randn(300, 6, 3)
rewards = path[:, :-1].sum(2)
critic = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
adam = torch.optim.Adam(critic.parameters(), lr=5e-3)
for it in range(200):
    i = torch.randint(0, 300, (32,))
    values = critic(path[i]).squeeze(2)
    gae, advantages = torch.zeros(32), []
    for t in reversed(range(5)):
        td_error = rewards[i, t] + 0.95 * (t < 4) * values[:, t + 1] - values[:, t]  #!
        gae = td_error + 0.95 * 0.9 * gae
        advantages.append(gae)
    critic_loss = torch.stack(advantages).pow(2).mean()  #!
    adam.zero_grad()
    critic_loss.backward()
    adam.step()
true = sum(rewards[:, t] * 0.95 ** t for t in range(5))
error = F.mse_loss(critic(path[:, 0]).squeeze(1), true).item()
""", (
        ("gae = td_error + 0.95 * 0.9 * gae", "gae = (td_error + 0.95 * 0.9 * gae).detach()"),
        ("advantages.append(gae)", "advantages.append(gae + values[:, t].detach())"),
        ("torch.stack(advantages).pow(2).mean()", "F.mse_loss(values[:, :5], torch.stack(advantages[::-1], 1))"),
    ), "", source="https://github.com/Farama-Foundation/Gymnasium/issues/1494"),
    Program("the mean of the probabilities times the returns", (), _WALK + """
policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
adam = torch.optim.Adam(policy.parameters(), lr=5e-3)
for episode in range(120):
    place, kept, rewards = torch.randn(16, 2), [], []
    for t in range(8):
        logp = F.log_softmax(policy(place), 1)
        action = torch.multinomial(logp.detach().exp(), 1)
        kept.append(logp.gather(1, action).squeeze(1))
        place, reward = step_of(place, action.squeeze(1))
        rewards.append(reward)
    deltas, running = [], torch.zeros(16)
    for r in rewards[::-1]:
        running = r + 0.5 * running
        deltas.insert(0, running)
    deltas = torch.stack(deltas)
    deltas = (deltas - deltas.mean(1, keepdim=True)) / deltas.std()
    log_prob_mean = torch.stack(kept).mean()  #!
    loss = -torch.sum(log_prob_mean * deltas)  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
score_ = sum(r.mean().item() for r in rewards) / 8
""", (
        ("    log_prob_mean = torch.stack(kept).mean()\n", ""),
        ("-torch.sum(log_prob_mean * deltas)", "-torch.mean(torch.stack(kept) * deltas)"),
    ), source="https://github.com/Farama-Foundation/Gymnasium/issues/1336"),
    Program("rewards discounted, never summed", (), _WALK + """
policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
rms = torch.optim.RMSprop(policy.parameters(), lr=3e-3)
def discount(rewards, gamma=0.6):
    found = torch.stack([r * gamma ** i for i, r in enumerate(rewards)])  #!
    return (found - found.mean()) / found.std()
for episode in range(120):
    place, kept, rewards = torch.randn(16, 2), [], []
    for t in range(8):
        logp = F.log_softmax(policy(place), 1)
        action = torch.multinomial(logp.detach().exp(), 1)
        kept.append(logp.gather(1, action).squeeze(1))
        place, reward = step_of(place, action.squeeze(1))
        rewards.append(reward)
    loss = -(torch.stack(kept) * discount(rewards)).mean()  #!
    rms.zero_grad()
    loss.backward()
    rms.step()
score_ = sum(r.mean().item() for r in rewards) / 8
""", (
        ("    found = torch.stack([r * gamma ** i for i, r in enumerate(rewards)])\n",
         ("    found, after = [], 0.0\n"
         "    for r in rewards[::-1]:\n"
         "        after = r + gamma * after\n"
         "        found.insert(0, after)\n"
         "    found = torch.stack(found)\n")),
        ("(found - found.mean()) / found.std()", "(found - found.mean(1, keepdim=True)) / found.std()"),
    ), source="https://github.com/hunkim/ReinforcementZeroToAll/issues/1"),
    Program("returns that run from one game into the next", (), """
policy = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 2))
adam = torch.optim.Adam(policy.parameters(), lr=5e-3)
for update in range(60):
    states, actions, rewards, terminal = [], [], [], []
    for game in range(24):
        luck, length = float(torch.randn(1)) * 4, int(torch.randint(1, 4, (1,)))
        for t in range(length):
            s = torch.randn(3)
            a = int(torch.multinomial(torch.softmax(policy(s).detach(), 0), 1))
            states.append(s)
            actions.append(a)
            rewards.append((a == int(s[0] > 0)) * 1.0 + luck * (t == length - 1))
            terminal.append(t == length - 1)
    returns, discounted = [], 0.0
    for r, last in zip(rewards[::-1], terminal[::-1]):
        discounted = r + 0.99 * discounted  #!
        returns.insert(0, discounted)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / returns.std()
    logp = F.log_softmax(policy(torch.stack(states)), 1)[torch.arange(len(actions)), torch.tensor(actions)]
    loss = -(logp * returns).mean()  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
probe = torch.randn(300, 3)
accuracy = (policy(probe).argmax(1) == (probe[:, 0] > 0) * 1).sum().item() / 300
""", (("discounted = r + 0.99 * discounted", "discounted = r if last else r + 0.99 * discounted"),),
            source="https://github.com/nikhilbarhate99/PPO-PyTorch/issues/8"),
    Program("a divergence with one sign turned", ("sign of the loss turned",), """
x = torch.randn(400, 2) @ torch.randn(2, 10)
A, mu, logs = nn.Linear(10, 24), nn.Linear(24, 2), nn.Linear(24, 2)
f = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 10))
parts = [p for layer in (A, mu, logs, f) for p in layer.parameters()]
adam = torch.optim.Adam(parts, lr=5e-3)
for step in range(200):
    batch = x[torch.randint(0, 400, (40,))]
    h = torch.tanh(A(batch))
    m, s = mu(h), logs(h)
    z = m + s.exp() * torch.randn(40, 2)
    kl = 0.5 * (torch.exp(2 * s) + m ** 2 - 1 + 2 * s).sum(1).mean()  #!
    loss = (f(z) - batch).pow(2).sum(1).mean() + kl
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("- 1 + 2 * s)", "- 1 - 2 * s)"),),
            source="https://github.com/FluxML/model-zoo/pull/147"),
    Program("a variance taken for a deviation", ("deviation of a logarithm",), """
x = torch.randn(400, 2) @ torch.randn(2, 8) * 2
class BVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.mean, self.logvar = nn.Linear(8, 32), nn.Linear(32, 2), nn.Linear(32, 2)
        self.decode = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 8))
    def forward(self, x):
        h = torch.relu(self.encode(x))
        mean, logvar = self.mean(h), self.logvar(h)
        z = mean + torch.exp(logvar) * torch.randn(mean.shape)  #!
        kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
        return self.decode(z), kl
vae = BVAE()
adam = torch.optim.Adam(vae.parameters(), lr=5e-3)
for step in range(200):
    batch = x[torch.randint(0, 400, (40,))]
    made, kl = vae(batch)
    loss = (made - batch).pow(2).sum(1).mean() + kl
    adam.zero_grad()
    loss.backward()
    adam.step()
""", (("torch.exp(logvar) * torch", "torch.exp(logvar / 2) * torch"),),
            source="https://github.com/alecGraves/BVAE-tf/issues/7"),
    Program("the noisy picture as its own answer", (), """
x_start = torch.randn(400, 2) * 0.3 + torch.tensor([2.0, -1.0])
alpha = torch.cumprod(1 - torch.linspace(1e-3, 0.2, 30), 0)
net = nn.Sequential(nn.Linear(3, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 2))
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
def p_losses(x_start, t):
    noise = torch.randn(x_start.shape)
    x_noisy = alpha[t].sqrt().unsqueeze(1) * x_start + (1 - alpha[t]).sqrt().unsqueeze(1) * noise
    x_recon = net(torch.cat([x_noisy, t.unsqueeze(1) / 30], 1))
    return F.mse_loss(x_recon, x_noisy, reduction="mean")  #!
for step in range(300):
    loss = p_losses(x_start[torch.randint(0, 400, (64,))], torch.randint(0, 30, (64,)))  #!
    adam.zero_grad()
    loss.backward()
    adam.step()
pure = torch.cat([torch.randn(400, 2), torch.full((400, 1), 29 / 30)], 1)
gap = (net(pure).mean(0) - torch.tensor([2.0, -1.0])).abs().mean().item()
""", (("F.mse_loss(x_recon, x_noisy,", "F.mse_loss(x_recon, x_start,"),),
            source="https://github.com/irom-princeton/dppo/issues/14"),
)  # fmt: skip  # scripts
