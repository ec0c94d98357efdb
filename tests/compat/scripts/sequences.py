"""Sequence models: temporal convolution, WaveNet, translation with attention, a CRF, a hidden Markov model, word vectors, memory."""

from torch.nn.utils import weight_norm
import torch
import torch.nn as nn
import torch.nn.functional as F

from _shared import data, fill, fit


class Chomp(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x[:, :, : -self.size].contiguous()


class TCN(nn.Module):
    def __init__(self, cin=2, channels=(4, 4)):
        super().__init__()
        layers = []
        for i, c in enumerate(channels):
            pad = 2**i
            conv = weight_norm(nn.Conv1d(cin if i == 0 else channels[i - 1], c, 2, padding=pad, dilation=2**i))
            conv.weight.data.normal_(0, 0.01)
            layers += [conv, Chomp(pad), nn.ReLU()]
        self.network, self.linear = nn.Sequential(*layers), nn.Linear(channels[-1], 1)

    def forward(self, x):
        return self.linear(self.network(x)[:, :, -1])


tcn, x = fill(TCN()), data(3, 2, 6)
fit(tcn, lambda: tcn(x).square().mean())
print(sorted(tcn.state_dict())[:4])


class WaveNet(nn.Module):
    def __init__(self, channels=4, dilations=(1, 2)):
        super().__init__()
        self.start = nn.Conv1d(1, channels, 1)
        self.gates = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 2, dilation=d) for d in dilations)
        self.residual = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in dilations)
        self.skip = nn.ModuleList(nn.Conv1d(channels, 3, 1) for _ in dilations)

    def forward(self, x):
        x, total = self.start(x), 0
        for gate, residual, skip in zip(self.gates, self.residual, self.skip):
            a, b = gate(F.pad(x, (gate.dilation[0], 0))).split(x.size(1), 1)
            z = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(z)
            x = x + residual(z)
        return F.relu(total)


wave, audio = fill(WaveNet()), data(2, 1, 7)
fit(wave, lambda: F.cross_entropy(wave(audio), (torch.arange(14) % 3).view(2, 7)))


class Seq2Seq(nn.Module):
    def __init__(self, words=7, hidden=5):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden, padding_idx=0)
        self.encoder, self.decoder = (
            nn.GRU(hidden, hidden, batch_first=True, bidirectional=True),
            nn.GRUCell(hidden * 3, hidden),
        )
        self.bridge, self.attn, self.out = (
            nn.Linear(2 * hidden, hidden),
            nn.Linear(3 * hidden, 1),
            nn.Linear(hidden, words),
        )

    def forward(self, src, lengths, tgt):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(src), lengths, batch_first=True)
        outputs, h = self.encoder(packed)
        outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
        hidden = torch.tanh(self.bridge(torch.cat((h[-2], h[-1]), dim=1)))
        result = []
        for t in range(tgt.size(1)):
            wide = hidden.unsqueeze(1).repeat(1, outputs.size(1), 1)
            energy = self.attn(torch.cat([wide, outputs], 2)).squeeze(2).masked_fill(src == 0, -1e10)
            context = torch.bmm(energy.softmax(1).unsqueeze(1), outputs).squeeze(1)
            hidden = self.decoder(torch.cat([self.embedding(tgt[:, t]), context], 1), hidden)
            result.append(self.out(hidden))
        return torch.stack(result, 1)


src, tgt = torch.tensor([[1, 2, 3, 4], [5, 6, 1, 0]]), torch.tensor([[2, 3, 4], [6, 5, 1]])
model = fill(Seq2Seq())
fit(model, lambda: F.cross_entropy(model(src, [4, 3], tgt).view(-1, 7), tgt.view(-1), ignore_index=0))


class CRF(nn.Module):
    def __init__(self, tags=3):
        super().__init__()
        self.start, self.end = nn.Parameter(torch.empty(tags)), nn.Parameter(torch.empty(tags))
        self.transitions, self.emit = nn.Parameter(torch.empty(tags, tags)), nn.Linear(4, tags)

    def forward(self, x, tags):
        emissions = self.emit(x)
        steps = torch.arange(x.shape[0])
        score = (
            self.start[tags[0]]
            + emissions[steps, tags].sum()
            + self.transitions[tags[:-1], tags[1:]].sum()
            + self.end[tags[-1]]
        )
        alpha = self.start + emissions[0]
        for emission in emissions[1:]:
            alpha = torch.logsumexp(alpha.unsqueeze(1) + self.transitions + emission, dim=0)
        return torch.logsumexp(alpha + self.end, dim=0) - score


crf, observed = fill(CRF()), data(5, 4)
fit(crf, lambda: crf(observed, torch.tensor([0, 1, 2, 1, 0])))


class HMM(nn.Module):
    def __init__(self, states=3, symbols=4):
        super().__init__()
        self.prior, self.transition, self.emission = (
            nn.Parameter(torch.randn(*s)) for s in ((states,), (states, states), (states, symbols))
        )

    def forward(self, x):
        emission, transition = self.emission.log_softmax(1), F.log_softmax(self.transition, 0)
        alpha = emission[:, x[0]] + self.prior.log_softmax(0)
        for symbol in x[1:].tolist():
            alpha = emission[:, symbol] + (transition + alpha.unsqueeze(0)).logsumexp(1)
        return -alpha.logsumexp(0)


hmm = fill(HMM())
fit(hmm, lambda: hmm(torch.tensor([0, 3, 1, 1, 2])))


class SkipGram(nn.Module):
    def __init__(self, words=9, dim=4):
        super().__init__()
        self.u, self.v = nn.Embedding(words, dim), nn.Embedding(words, dim)

    def forward(self, center, context, negative):
        score = (self.u(center) * self.v(context)).sum(1)
        others = torch.bmm(self.v(negative), self.u(center).unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(score) + F.logsigmoid(-others).sum(1)).mean()


gram = fill(SkipGram())
fit(gram, lambda: gram(torch.tensor([0, 1, 2]), torch.tensor([1, 2, 3]), torch.arange(6).view(3, 2) + 3))


class Memory(nn.Module):
    def __init__(self, words=8, dim=5, hops=2):
        super().__init__()
        for hop in range(hops + 1):
            C = nn.Embedding(words, dim)
            C.weight.data.normal_(0, 0.1)
            self.add_module("C_{}".format(hop), C)
        self.hops = hops

    def forward(self, story, query):
        u = self.__getattr__("C_0")(query).sum(1)
        for hop in range(self.hops):
            A, C = self.__getattr__("C_{}".format(hop)), self.__getattr__("C_{}".format(hop + 1))
            m, c = A(story.view(story.size(0), -1)).view(*story.size(), -1).sum(2), C(story).sum(2)
            p = F.softmax((m * u.unsqueeze(1)).sum(2), dim=1)
            u = u + (c * p.unsqueeze(2)).sum(1)
        return u @ self.__getattr__("C_{}".format(self.hops)).weight.t()


memory = fill(Memory())
story, query = (torch.arange(24) % 8).view(2, 4, 3), torch.tensor([[1, 2], [3, 4]])
fit(memory, lambda: F.cross_entropy(memory(story, query), torch.tensor([5, 6])))
