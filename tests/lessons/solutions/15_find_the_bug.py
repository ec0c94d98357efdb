def loop_1(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_2(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    losses = []
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_3(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            truth = F.one_hot(y, 3).float()
            loss = F.binary_cross_entropy_with_logits(model(x), truth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_4(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = -model(x).log_softmax(1)[np.arange(len(y)), y].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_5(watch=watched):
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_6(watch=watched):
    model = classifier()
    nn.init.zeros_(model[0].bias)
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_7(watch=watched):
    pixels = X * 40 + 128  # as a camera gives them
    pixels = (pixels - pixels.mean(0)) / pixels.std(0)
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for step in range(20):
            rows = slice(12 * step, 12 * step + 12)
            loss = F.cross_entropy(model(pixels[rows]), LABELS[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with gg.no_grad():
        return F.cross_entropy(model(pixels), LABELS).item()


def loop_8(watch=watched):
    gg.manual_seed(1)
    layers = [nn.Linear(8, 32), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Linear(32, 32), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(32, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_9(watch=watched):
    gg.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    model.eval()
    start = ended(model)
    model.train()
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return min(start, ended(model))


def loop_10(watch=watched):
    class Features(nn.Module):
        def __init__(self):
            super().__init__()
            gg.manual_seed(1)
            self.first, self.last = nn.Linear(8, 32), nn.Linear(32, 3)
            self.kept = None

        def forward(self, x):
            hidden = self.first(x).relu()
            self.kept = hidden.detach()
            return self.last(hidden)

    model = Features()
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_11(watch=watched):
    gg.manual_seed(1)
    middle = [part for _ in range(3) for part in (nn.Linear(32, 32), nn.Tanh())]
    layers = [nn.Linear(8, 32), nn.Tanh(), *middle, nn.Linear(32, 3)]
    model = nn.Sequential(*layers)
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return ended(model)


def loop_12(watch=watched):
    gg.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    with watch(model, optimizer):
        for x, y in batches():
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.eval()
            reached = ended(model)
            model.train()
    return reached
