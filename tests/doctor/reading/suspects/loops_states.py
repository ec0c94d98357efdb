"""Suspects about loops: modes, frozen parts, checkpoints, averages, updates, hooks, transitions and their ends."""

from __future__ import annotations

from tests.doctor.reading.case import LOOP, Case

CASES = (
    Case(
        "probability of an action just drawn",
        """
def act(policy, state, kept):
    dist = policy(state)
    action = dist.sample()
    kept.append(dist.log_prob(dist.sample()))  #!
    return action.item()
""",
        (("log_prob(dist.sample())", "log_prob(action)"),),
    ),
    Case(
        "future valued behind the end",
        """
def advantages(rewards, values, dones, last, gamma=0.98, lam=0.95):
    found, total, after = [], 0.0, last
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * after - values[t]  #!
        total = delta + gamma * lam * total
        found.append(total)
        after = values[t]
    return found
""",
        (("gamma * after", "gamma * after * (1 - dones[t])"), ("lam * total", "lam * total * (1 - dones[t])")),
    ),
    Case(
        "future valued behind the end",
        """
import random
def learn(memory, gamma=0.9):
    s, a, r, s2, fell = zip(*random.sample(memory, 32))
    r, fell = torch.tensor(r), torch.tensor(fell)
    return r + gamma * target(torch.stack(s2)).max(1).values, s, a  #!
""",
        ((".values, s", ".values * (1 - fell), s"),),
    ),
    Case(
        "model stays in evaluation mode",
        """
model.train()
for epoch in range(10):
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    model.eval()  #!
""",
        (("model.eval()", "model.eval()\n    model.train()"),),
    ),
    Case(
        "evaluation without eval()",
        """
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
loss.backward()
with torch.no_grad():
    score = model(x)  #!
""",
        (("with torch", "model.eval()\nwith torch"),),
    ),
    Case(
        "evaluation without eval()",
        """
model = nn.TransformerEncoderLayer(8, 2, dropout=0.05)
loss.backward()
with torch.no_grad():
    score = model(x)  #!
""",
        (("dropout=0.05", "dropout=0.0"),),
    ),
    Case(
        "mode set as an attribute",
        "model.training = False  #!\n",
        (("model.training = False", "model.eval()"),),
    ),
    Case(
        "new head frozen with the rest",
        """
model.fc = nn.Linear(8, 2)
for p in model.parameters():  #!
    p.requires_grad = False
""",
        (("model.parameters()", "model.body.parameters()"),),
    ),
    Case(
        "names that freeze the wrong part",
        """
for name, p in model.named_parameters():
    if "fc" in name:  #!
        p.requires_grad = False
model.fc(x)
""",
        (('"fc" in', '"fc" not in'),),
    ),
    Case(
        "vectors that stay frozen",
        "embedding = nn.Embedding.from_pretrained(vectors)  #!\n",
        (("(vectors)", "(vectors, freeze=False)"),),
    ),
    Case(
        "attribute that no forward pass reads",
        "model.fc.out_features = 10  #!\n",
        (("model.fc.out_features = 10", "model.fc = nn.Linear(8, 10)"),),
    ),
    Case(
        "weights loaded loosely",
        "model.load_state_dict(state, strict=False)  #!\n",
        (("model.load", "print(model.load"), ("=False)", "=False))")),
    ),
    Case(
        "training resumed in part",
        """
optimizer = torch.optim.Adam(model.parameters())
model.load_state_dict(state["model"])  #!
begin = state["epoch"]  #!
""",
        (("begin =", 'optimizer.load_state_dict(state["optimizer"])\nbegin ='),),
    ),
    Case(
        "weights set again behind their loading",
        """
model.load_state_dict(state)
model.apply(init_weights)  #!
""",
        (
            ("model.load_state_dict(state)\n", ""),
            ("model.apply(init_weights)", "model.apply(init_weights)\nmodel.load_state_dict(state)"),
        ),
    ),
    Case(
        "best weights without a copy",
        """
if score > best:
    best_state = dict(model.state_dict())  #!
""",
        (("dict(model", "copy.deepcopy(model"),),
    ),
    Case(
        "best weights never used",
        """
best_state = copy.deepcopy(model.state_dict())  #!
""",
        (("model.state_dict())", "model.state_dict())\nmodel.load_state_dict(best_state)"),),
    ),
    Case(
        "best value never set",
        """
best_loss = math.inf
for epoch in range(10):
    if val_loss < best_loss:  #!
        torch.save(model.state_dict(), path)
""",
        (("path)", "path)\n        best_loss = val_loss"),),
    ),
    Case(
        "best by the training data",
        """
val_loss = evaluate(model)
if train_loss < best_loss:  #!
    best_loss = train_loss
    torch.save(model.state_dict(), path)
""",
        (("train_loss", "val_loss"),),
    ),
    Case(
        "average without the buffers",
        """
norm = nn.BatchNorm1d(4)
for mine, theirs in zip(average.parameters(), model.parameters()):  #!
    mine.data.mul_(0.99).add_(theirs.data, alpha=0.01)
""",
        (("    mine.data", "    average.buffers()\n    mine.data"),),
    ),
    Case(
        "average of a length out of the usual",
        "average = ModelEMA(model, decay=0.9999)  #!\n",
        (("0.9999", "0.99"),),
    ),
    Case(
        "statistics of averaged weights",
        """
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
average = torch.optim.swa_utils.AveragedModel(model)  #!
""",
        (("AveragedModel(model)", "AveragedModel(model)\ntorch.optim.swa_utils.update_bn(loader, average)"),),
    ),
    Case(
        "update that makes a new tensor",
        """
for p in model.parameters():
    p = p - 0.1 * p.grad  #!
""",
        (("p = p - 0.1 * p.grad", "p -= 0.1 * p.grad"),),
    ),
    Case(
        "update up the slope",
        "w.data += 0.1 * w.grad  #!\n",
        (("+=", "-="),),
    ),
    Case(
        "gradients changed before the step",
        """
for p in model.parameters():
    p.grad.clamp(-1, 1)  #!
""",
        (("clamp(", "clamp_("),),
    ),
    Case(
        "gradients of parameters never zeroed",
        """
for step in range(10):
    F.mse_loss(x * w, y).backward()
    w.data -= 0.1 * w.grad  #!
""",
        (("w.grad", "w.grad\n    w.grad.zero_()"),),
    ),
    Case(
        "hook in a loop",
        LOOP.rstrip() + "\n    layer.register_forward_hook(keep)  #!\n",
        (("    layer.register", "layer.register"),),
    ),
    Case(
        "mode against the name of its function",
        """
def evaluate(model, batches):
    model.train()  #!
    return sum(F.mse_loss(model(x), y) for x, y in batches)
""",
        (("model.train()", "model.eval()"),),
    ),
    Case(
        "weights of an average exchanged",
        "ema = decay * new + (1 - decay) * ema  #!\n",
        (("decay * new + (1 - decay) * ema", "decay * ema + (1 - decay) * new"),),
    ),
    Case(
        "mode that does not reach the layers",
        """
class Net(nn.Module):
    def train(self, mode=True):  #!
        self.mode = mode
        return self
""",
        (("        return self", "        return super().train(mode)"),),
    ),
    Case(
        "weights loaded in each round",
        """
for epoch in range(10):
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    model.load_state_dict(best_state)  #!
""",
        (("    model.load_state_dict(best_state)", "model.load_state_dict(best_state)"),),
    ),
    Case(
        "training behind the loop over batches",
        """
for epoch in range(10):
    for x, y in loader:
        x = x.float()
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()  #!
    optimizer.step()
""",
        (
            ("    optimizer.zero_grad()", "        optimizer.zero_grad()"),
            ("    F.mse", "        F.mse"),
            ("    optimizer.step()", "        optimizer.step()"),
        ),
    ),
    Case(
        "passes and steps that do not pair",
        """
for x, y in batches:
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.zero_grad()  #!
    F.l1_loss(model(x), y).backward()
    optimizer.step()
""",
        (("y).backward()\n    optimizer.zero_grad()", "y).backward()"),),
    ),
    Case(
        "loss changed behind its backward pass",
        """
for x, y in batches:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    loss = loss + penalty(model)  #!
    optimizer.step()
""",
        (("    loss = loss + penalty(model)\n", ""), ("model(x), y)", "model(x), y) + penalty(model)")),
    ),
    Case(
        "gradient switched on at the loss",
        """
loss = F.mse_loss(model(x), y)
loss.requires_grad = True  #!
""",
        (("loss.requires_grad = True", "loss.backward()"),),
    ),
    Case(
        "rounds passed over",
        """
for x, y in batches:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    if loss > 5:
        continue  #!
    loss.backward()
    optimizer.step()
""",
        (("        continue", "        print(loss)"),),
    ),
    Case(
        "stop at the first worse value",
        """
for epoch in range(10):
    if val_loss > best_loss:  #!
        break
""",
        (("val_loss > best_loss", "waited > patience"),),
    ),
    Case(
        "state never moves on",
        """
for step in range(1000):
    action = policy(state)
    next_state, reward, done, info = world.step(action)  #!
    memory.push(state, action, reward, next_state, done)
""",
        (("    action = policy", "    state = world.now.copy()\n    action = policy"),),
    ),
)
