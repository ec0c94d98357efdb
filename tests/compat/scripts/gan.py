"""Two networks with two optimizers, detach, and BCE; an autoencoder with a reparametrised code."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2, inplace=True), nn.BatchNorm1d(16), nn.Linear(16, 2), nn.Tanh())
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(16, 1), nn.Sigmoid())
adversarial_loss = torch.nn.BCELoss()
optimizer_G = torch.optim.Adam(G.parameters(), lr=0.002, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(D.parameters(), lr=0.002, betas=(0.5, 0.999))
for _ in range(5):
    real = torch.randn(8, 2)
    valid = torch.ones(8, 1, requires_grad=False)
    fake = torch.zeros(8, 1)
    optimizer_G.zero_grad()
    z = torch.normal(0, 1, size=(8, 4))
    gen = G(z)
    g_loss = adversarial_loss(D(gen), valid)
    g_loss.backward()
    optimizer_G.step()
    optimizer_D.zero_grad()
    d_loss = (adversarial_loss(D(real), valid) + adversarial_loss(D(gen.detach()), fake)) / 2
    d_loss.backward()
    optimizer_D.step()
print(torch.isfinite(g_loss).item(), torch.isfinite(d_loss).item())


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 10)
        self.fc21, self.fc22 = nn.Linear(10, 2), nn.Linear(10, 2)
        self.fc3, self.fc4 = nn.Linear(2, 10), nn.Linear(10, 6)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 6))
        z = self.reparameterize(mu, logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.rand(32, 2, 3)
losses = []
for _ in range(60):
    optimizer.zero_grad()
    recon, mu, logvar = model(x)
    bce = F.binary_cross_entropy(recon, x.view(-1, 6), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    loss = bce + kld
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[-1] < losses[0], recon.shape)
