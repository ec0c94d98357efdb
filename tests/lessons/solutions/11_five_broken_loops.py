def loop_1():
    gg.manual_seed(1)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        loss = ((model(X).squeeze(1) - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    return model


def loop_2():
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    for _ in range(300):
        optimizer.zero_grad()
        scores = model(X)
        loss = nn.functional.cross_entropy(scores, LABELS)
        loss.backward()
        optimizer.step()
    return model


def loop_3():
    gg.manual_seed(1)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        predicted = model(X).squeeze(1)
        loss = ((predicted - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    return model


def loop_4():
    model = classifier()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(50):
        loss = nn.functional.cross_entropy(model(X), LABELS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def loop_5():
    gg.manual_seed(1)
    weight = gg.full((2,), 0.5, requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        loss = ((X @ weight - NUMBERS) ** 2).mean()
        loss.backward()
        optimizer.step()
    return weight
