"""A character LSTM with hidden state carried along, and a GRU sequence classifier."""

import torch
from torch import nn

text = "hello glass hello grad " * 6
chars = sorted(list(set(text)))
stoi = {c: i for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)


class CharLSTM(nn.Module):
    def __init__(self, vocab_size, hidden_size, n_layers=2, drop_prob=0.1):
        super().__init__()
        self.n_layers, self.hidden_size = n_layers, hidden_size
        self.embedding = nn.Embedding(vocab_size, 8)
        self.lstm = nn.LSTM(8, hidden_size, n_layers, dropout=drop_prob, batch_first=True)
        self.dropout = nn.Dropout(drop_prob)
        self.fc = nn.Linear(hidden_size, vocab_size)

    def forward(self, x, hidden):
        out, hidden = self.lstm(self.embedding(x), hidden)
        out = self.dropout(out)
        out = out.contiguous().view(-1, self.hidden_size)
        return self.fc(out), hidden

    def init_hidden(self, batch_size):
        weight = next(self.parameters()).data
        return (
            weight.new(self.n_layers, batch_size, self.hidden_size).zero_(),
            weight.new(self.n_layers, batch_size, self.hidden_size).zero_(),
        )


torch.manual_seed(1)
net = CharLSTM(len(chars), 24)
opt = torch.optim.Adam(net.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
first = last = None
for epoch in range(8):
    h = net.init_hidden(4)
    net.train()
    rows = data[: 4 * 33].view(4, 33)
    for n in range(0, 32, 8):
        x, y = rows[:, n : n + 8], rows[:, n + 1 : n + 9]
        h = tuple([each.data for each in h])
        net.zero_grad()
        output, h = net(x, h)
        loss = criterion(output, y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5)
        opt.step()
    first = loss.item() if first is None else first
    last = loss.item()
print(last < first * 0.7)
net.eval()
h = net.init_hidden(1)
out = []
with torch.no_grad():
    c = torch.tensor([[stoi["h"]]])
    for _ in range(5):
        p, h = net(c, h)
        c = p.softmax(dim=1).topk(1)[1]
        out.append(itos[c.item()])
print(len("".join(out)))


class GRUClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(input_size=3, hidden_size=5, num_layers=1, bidirectional=True)
        self.fc = nn.Linear(10, 2)

    def forward(self, x):
        _, h_n = self.gru(x)
        return self.fc(torch.cat((h_n[-2], h_n[-1]), dim=1))


print(GRUClassifier())
print(GRUClassifier()(torch.zeros(7, 2, 3)).shape)
