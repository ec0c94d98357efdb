"""Suspects about training loops: the order of an iteration, and its batches."""

from __future__ import annotations

from tests.doctor.reading.case import LOOP, Case

CASES = (
    Case(
        "gradients that nothing clears",
        """
for x, y in batches:
    loss = F.cross_entropy(model(x), y)
    loss.backward()  #!
    optimizer.step()  #!
""",
        (("    optimizer.step()", "    optimizer.step()\n    optimizer.zero_grad()"),),
    ),
    Case(
        "gradients cleared in some rounds",
        """
for i, (x, y) in enumerate(batches):
    if i % 10 == 0:
        optimizer.zero_grad()  #!
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
""",
        (("    if i % 10 == 0:\n        optimizer", "    optimizer"),),
    ),
    Case(
        "step behind the loop of its gradients",
        """
for epoch in range(10):
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
    optimizer.step()  #!
""",
        (("    optimizer.step()", "        optimizer.step()"),),
    ),
    Case(
        "gradients cleared before the step of their sum",
        """
for i, (x, y) in enumerate(batches):
    optimizer.zero_grad()  #!
    loss = F.cross_entropy(model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
""",
        (
            ("    optimizer.zero_grad()\n", ""),
            ("        optimizer.step()", "        optimizer.step()\n        optimizer.zero_grad()"),
        ),
    ),
    Case(
        "step under another condition",
        """
for i, (x, y) in enumerate(batches):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    if i % log_every == 0:
        print(i)
        optimizer.step()  #!
""",
        (("        optimizer.step()", "    optimizer.step()"),),
    ),
    Case(
        "rounds of an accumulation",
        """
for i, (x, y) in enumerate(batches):
    loss = F.cross_entropy(model(x), y) / 4
    loss.backward()
    if i % 4 == 0:  #!
        optimizer.step()
        optimizer.zero_grad()
""",
        (("i % 4", "(i + 1) % 4"),),
    ),
    Case(
        "loss divided by the size of the batch",
        """
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y) / batch_size  #!
    loss.backward()
    optimizer.step()
""",
        ((" / batch_size", ""),),
    ),
    Case(
        "backward on a running sum",
        """
total = 0
for x, y in batches:
    optimizer.zero_grad()
    total += F.cross_entropy(model(x), y)  #!
    total.backward(retain_graph=True)  #!
    optimizer.step()
""",
        (("total += ", "total = "),),
    ),
    Case(
        "graph kept in a training",
        LOOP.replace("backward()", "backward(retain_graph=True)  #!"),
        (("retain_graph=True", ""),),
    ),
    Case(
        "bound of clipped gradients",
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.001)  #!\n",
        (("0.001", "1.0"),),
    ),
    Case(
        "other gradients are clipped",
        """
optimizer = torch.optim.Adam(model.parameters())
torch.nn.utils.clip_grad_norm_(model.encoder.parameters(), 1.0)  #!
""",
        ((".encoder", ""),),
    ),
    Case(
        "scaler used in part",
        """
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    optimizer.step()  #!
    scaler.update()
""",
        (("optimizer.step()", "scaler.step(optimizer)"),),
    ),
    Case(
        "part of the model without gradients",
        """
class Net(nn.Module):
    def forward(self, x):
        with torch.no_grad():  #!
            h = self.encoder(x)
        return self.head(h)
""",
        (("        with torch.no_grad():\n            h =", "        h ="),),
    ),
    Case(
        "gradients switched off for good",
        "torch.set_grad_enabled(False)  #!\n" + LOOP,
        (("torch.set_grad_enabled(False)\n", ""),),
    ),
    Case(
        "iterator that ends with the first epoch",
        """
rounds = zip(inputs, labels)  #!
for epoch in range(10):
    for x, y in rounds:  #!
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
""",
        (("zip(inputs, labels)", "list(zip(inputs, labels))"),),
    ),
    Case(
        "one batch for the whole training",
        """
x, y = next(iter(loader))  #!
for step in range(100):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
""",
        (("    optimizer.zero_grad()", "    x, y = batches[step]\n    optimizer.zero_grad()"),),
    ),
    Case(
        "slice that does not move on",
        """
for i in range(len(x) // batch_size):
    rows = x[i : i + batch_size]  #!
""",
        (("x[i : i + batch_size]", "x[i * batch_size : (i + 1) * batch_size]"),),
    ),
    Case(
        "permutation without a use",
        """
order = torch.randperm(len(x))  #!
rows = x[:32]
""",
        (("x[:32]", "x[order[:32]]"),),
    ),
    Case(
        "random numbers begun again in a loop",
        """
for step in range(100):
    generator = np.random.default_rng(seed)  #!
    optimizer.step()
""",
        (("default_rng(seed)", "default_rng(seed + step)"),),
    ),
    Case(
        "loop left early",
        """
for epoch in range(10):
    for i, (x, y) in enumerate(batches):
        optimizer.step()
        if i == 10:  #!
            break
""",
        (("            break", "            print(i)"),),
    ),
    Case(
        "one variable for two loops",
        """
for i in range(10):
    for i, (x, y) in enumerate(batches):  #!
        optimizer.step()
    print("epoch", i)
""",
        (("for i in range", "for epoch in range"), ('epoch", i', 'epoch", epoch')),
    ),
    Case(
        "errors swallowed around the step",
        """
for x, y in batches:
    try:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    except Exception:
        continue  #!
""",
        (("continue", "raise"),),
    ),
    Case(
        "closure of an optimizer",
        """
optimizer = torch.optim.LBFGS(model.parameters())

def closure():
    loss = F.mse_loss(model(x), y)
    loss.backward()  #!
    return loss

for step in range(10):
    optimizer.step(closure)
""",
        (("    loss = F", "    optimizer.zero_grad()\n    loss = F"),),
    ),
    Case(
        "steps of one process",
        """
for p in model.parameters():
    dist.all_reduce(p.grad)  #!
optimizer.step()
""",
        (("(p.grad)", "(p.grad)\n    p.grad /= world_size"),),
    ),
    Case(
        "backward pass in some rounds",
        """
for i, (x, y) in enumerate(batches):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    if i % 2:
        loss.backward()  #!
    optimizer.step()
""",
        (("    if i % 2:\n        loss.back", "    loss.back"),),
    ),
    Case(
        "step that waits for a count",
        """
for x, y in batches:
    F.mse_loss(model(x), y).backward()
    seen += len(x)
    if seen >= size:  #!
        optimizer.step()  #!
        optimizer.zero_grad()
""",
        (("    if seen >= size:\n        optimizer.step()\n        opt", "    optimizer.step()\n    opt"),),
    ),
    Case(
        "begun anew in each round",
        """
for epoch in range(10):
    best_loss = math.inf  #!
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
""",
        (("for epoch in range(10):\n    best_loss = math.inf", "best_loss = math.inf\nfor epoch in range(10):"),),
    ),
    Case(
        "patience counted on success",
        """
if loss < best:
    best = loss
    patience += 1  #!
""",
        (("patience += 1", "patience = 0"),),
    ),
    Case(
        "best file written in each round",
        """
for epoch in range(10):
    torch.save(model.state_dict(), "best.pt")  #!
""",
        (("    torch.save", "    if better: torch.save"),),
        only="torch",
    ),
    Case(
        "training of a copy",
        """
def fit(model, x, y):
    model = copy.deepcopy(model)  #!
    optimizer = torch.optim.Adam(model.parameters())
    F.mse_loss(model(x), y).backward()
    optimizer.step()
""",
        (("    optimizer.step()", "    optimizer.step()\n    return model"),),
    ),
    Case(
        "states of one model collected",
        """
class Client:
    def train(self, model, start):
        model.load_state_dict(start)
        fit(model, self.data)
        return model.state_dict()  #!
class Server:
    def round(self):
        states = []
        for client in self.clients:
            state = client.train(self.model, self.start)
            states.append((len(client.data), state))
        self.start = mean(states)
""",
        (("return model.state_dict()", "return copy.deepcopy(model.state_dict())"),),
    ),
    Case(
        "states of one model collected",
        """
model = nn.Linear(4, 2)
snapshots = []
for epoch in range(10):
    fit(model, loader)
    snapshots.append(model.state_dict())  #!
""",
        (("model.state_dict()", "copy.deepcopy(model.state_dict())"),),
    ),
)
