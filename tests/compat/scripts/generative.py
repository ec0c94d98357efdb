"""A variational autoencoder with torch.distributions, a flow of affine couplings, a GAN with spectral norm."""

from torch.distributions import Independent, Normal, TransformedDistribution, kl_divergence
from torch.distributions.transforms import AffineTransform, SigmoidTransform
from torch.nn.utils import spectral_norm
import torch
import torch.nn as nn
import torch.nn.functional as F

from _shared import data, fill, fit


class VAE(nn.Module):
    def __init__(self, size=6, hidden=8, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ELU(), nn.Linear(hidden, size))

    def forward(self, x):
        mu, log_var = self.encoder(x).chunk(2, dim=-1)
        q = Normal(mu, (0.5 * log_var).exp())
        prior = Normal(torch.zeros_like(mu), torch.ones_like(mu))
        z = q.loc + q.scale * data(*mu.shape)  # noise that is the same everywhere
        p = Independent(torch.distributions.Bernoulli(logits=self.decoder(z)), 1)
        return p.log_prob((x > 0).double()) - kl_divergence(q, prior).sum(-1)


vae, x = fill(VAE()), data(5, 6)
fit(vae, lambda: -vae(x).mean())


class Coupling(nn.Module):
    def __init__(self, dim, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(dim // 2, 8), nn.ReLU(), nn.Linear(8, dim))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], dim=1), s.sum(dim=1)


class Flow(nn.Module):
    def __init__(self, dim=4, depth=3):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(dim, i % 2 == 1) for i in range(depth)])
        self.register_buffer("loc", torch.zeros(dim))
        self.register_buffer("scale", torch.ones(dim))

    def log_prob(self, x):
        total = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return Normal(self.loc, self.scale).log_prob(x).sum(1) + total


flow, x = fill(Flow()), data(6, 4)
fit(flow, lambda: -flow.log_prob(x).mean())
logistic = TransformedDistribution(
    torch.distributions.Uniform(torch.zeros(2, dtype=torch.double), torch.ones(2, dtype=torch.double)),
    [SigmoidTransform().inv, AffineTransform(loc=1.0, scale=2.0)],
)
print([round(v, 6) for v in logistic.log_prob(torch.tensor([0.5, 3.0], dtype=torch.double)).tolist()])


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1 and hasattr(m, "weight_orig"):
        nn.init.constant_(m.weight_orig.data, 0.1)


class Generator(nn.Module):
    def __init__(self, nz=4, ngf=4):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf=4):
        super().__init__()
        self.main = nn.Sequential(
            spectral_norm(nn.Conv2d(1, ndf, 4, 2, 1, bias=False)),
            nn.LeakyReLU(0.2, inplace=True),
            spectral_norm(nn.Conv2d(ndf, 1, 4, 1, 0, bias=False)),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


netG, netD = fill(Generator()), fill(Discriminator())
netD.apply(weights_init)
for name, buffer in netD.named_buffers():
    buffer.copy_(F.normalize(data(*buffer.shape, at=1.0), dim=0))
real, noise = data(3, 1, 8, 8), data(3, 4, 1, 1, at=2.0)
optG, optD = (torch.optim.Adam(net.parameters(), lr=0.01, betas=(0.5, 0.999)) for net in (netG, netD))
for _ in range(2):
    netD.zero_grad()
    errD = F.binary_cross_entropy(netD(real), torch.ones(3).double())
    errD.backward()
    fake = netG(noise)
    errF = F.binary_cross_entropy(netD(fake.detach()), torch.zeros(3).double())
    errF.backward()
    optD.step()
    netG.zero_grad()
    errG = F.binary_cross_entropy(netD(fake), torch.ones(3).double())
    errG.backward()
    optG.step()
print(round((errD + errF).item(), 6), round(errG.item(), 6), sorted(netD.state_dict())[:3])
