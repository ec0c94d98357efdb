"""An LSTM that tags the words of sentences of different lengths, written for PyTorch in the usual way."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

WORDS, TAGS, PAD, IGNORED = 40, 5, 0, -100


def sentences(count, seed=0):
    """Random words; a word's tag depends on the word itself and on the previous word."""
    rng = np.random.default_rng(seed)
    data = []
    for _ in range(count):
        words = rng.integers(1, WORDS, rng.integers(2, 12))
        before = np.concatenate([[0], words[:-1]])
        data.append((torch.tensor(words), torch.tensor((words + before) % TAGS)))
    return data


class LSTMTagger(nn.Module):
    def __init__(self, embedding_dim=12, hidden_dim=16):
        super().__init__()
        self.word_embeddings = nn.Embedding(WORDS, embedding_dim, padding_idx=PAD)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, num_layers=2, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * hidden_dim)
        self.hidden2tag = nn.Linear(2 * hidden_dim, TAGS)
        self.init_weights()

    def init_weights(self):
        for name, param in self.lstm.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(param.data)
            elif "bias" in name:
                param.data.fill_(0)

    def forward(self, words, lengths):
        embeds = self.word_embeddings(words)
        packed = pack_padded_sequence(embeds, lengths, batch_first=True, enforce_sorted=False)
        out, (hidden, _) = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        summary = torch.cat([hidden[-2], hidden[-1]], dim=1).unsqueeze(1)
        return self.hidden2tag(torch.tanh(self.norm(out + summary)))


def collate(batch):
    words, tags = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    padded = pad_sequence(words, batch_first=True, padding_value=PAD)
    return padded, pad_sequence(tags, batch_first=True, padding_value=IGNORED), lengths


def build():
    torch.manual_seed(0)
    return LSTMTagger()


def train(model, steps=50):
    data = sentences(8 * 20)
    loss_function = nn.NLLLoss(ignore_index=IGNORED)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)
    losses = []
    for step in range(steps):
        at = step * 8 % len(data)
        words, tags, lengths = collate(data[at : at + 8])
        model.zero_grad()
        scores = torch.log_softmax(model(words, lengths), dim=-1)
        loss = loss_function(scores.view(-1, TAGS), tags.view(-1))
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def accuracy(model, count=50):
    model.eval()
    with torch.no_grad():
        words, tags, lengths = collate(sentences(count, seed=1))
        predicted = model(words, lengths).argmax(dim=-1)
        known = tags != IGNORED
        return (predicted[known] == tags[known]).float().mean().item()


def main():
    model = build()
    losses = train(model)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy {accuracy(model):.3f}")


if __name__ == "__main__":
    main()
