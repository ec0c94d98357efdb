"""The eighth part: faults reported to repositories, written before the doctor had seen them."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("zero grad in one branch", ("zero_grad is missing",), """
import argparse
from torch.utils.data import DataLoader, TensorDataset, random_split
def make_data(n=2048):
    '''Next state of a damped pendulum from its state and an action.'''
    angle = (torch.rand(n) - 0.5) * 5
    speed = torch.randn(n)
    push = torch.randn(n) * 0.5
    new_speed = 0.9 * speed - 1.5 * torch.sin(angle) + push
    new_angle = angle + 0.3 * new_speed
    inputs = torch.stack([torch.sin(angle), torch.cos(angle), speed, push], dim=1)
    targets = torch.stack([torch.sin(new_angle), torch.cos(new_angle), new_speed], dim=1)
    return TensorDataset(inputs, targets)
class WorldModel(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 3)
    def forward(self, x):
        return self.head(self.body(x))
def train_step(model, opt, batch, bfloat_enable):
    x, y = batch
    if bfloat_enable:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            prediction = model(x)
        loss = nn.functional.mse_loss(prediction.float(), y)
        loss.backward()  #!
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        opt.step()  #!
    else:
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        opt.step()
    return loss.item()
@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total = sum(nn.functional.mse_loss(model(x), y, reduction="sum").item() for x, y in loader)
    model.train()
    return total / (len(loader.dataset) * 3)
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--bfloat16", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(3)
    train_set, test_set = random_split(make_data(), [1792, 256])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)
    model = WorldModel(48)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        losses = [train_step(model, opt, batch, bool(args.bfloat16)) for batch in train_loader]
        print(f"epoch {epoch:2d}  train {sum(losses) / len(losses):.4f}  test {evaluate(model, test_loader):.4f}")
if __name__ == "__main__":
    main()
""", (
        ("    if bfloat_enable:\n",
         "    if bfloat_enable:\n        opt.zero_grad()\n"),
    ), source="https://github.com/facebookresearch/nwm/issues/16"),
    Program("eval mode kept after validation", ("evaluation mode in training",), """
import numpy as np
from torch.utils.data import DataLoader, TensorDataset
class Trainer:
    def __init__(self, model, optimizer, train_loader, val_loader, interval_validate):
        self.model = model
        self.optim = optimizer
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.interval_validate = interval_validate
        self.iteration = 0
        self.loss_fn = nn.CrossEntropyLoss()
    def validate(self):
        self.model.eval()  #!
        right = count = 0
        with torch.no_grad():
            for data, target in self.val_loader:
                right += (self.model(data).argmax(dim=1) == target).sum().item()
                count += len(target)
        print(f"  iteration {self.iteration}: validation accuracy {right / count:.3f}")
        return right / count
    def train_epoch(self):
        self.model.train()
        total = 0.0
        for data, target in self.train_loader:
            if self.iteration % self.interval_validate == 0:
                self.validate()  #!
            self.iteration += 1
            self.optim.zero_grad()
            loss = self.loss_fn(self.model(data), target)
            loss.backward()
            self.optim.step()
            total += loss.item()
        return total / len(self.train_loader)
    def train(self, epochs):
        for epoch in range(epochs):
            print(f"epoch {epoch}: loss {self.train_epoch():.3f}")
def tables(n, rng, noise=0.5):
    '''Forty columns, the class depends on the signs of three sums.'''
    x = rng.standard_normal((n, 40)).astype(np.float32)
    score = np.stack([x[:, :4].sum(1), x[:, 16:20].sum(1), x[:, 28:32].sum(1)], 1)
    label = (score + noise * rng.standard_normal(score.shape)).argmax(1)
    units = 10.0 ** np.linspace(-2, 2, 40)[::-1].astype(np.float32)  # the columns have very different units
    return TensorDataset(torch.tensor((x * units).astype(np.float32)), torch.tensor(label))
def main():
    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    model = nn.Sequential(
        nn.BatchNorm1d(40),
        nn.Linear(40, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 3),
    )
    train_loader = DataLoader(tables(400, rng), batch_size=25, shuffle=True)
    val_loader = DataLoader(tables(1000, rng), batch_size=250)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    trainer = Trainer(model, optimizer, train_loader, val_loader, interval_validate=4)
    trainer.train(epochs=15)
    print(f"final validation accuracy {trainer.validate():.3f}")
main()
""", (
        ("    def validate(self):\n",
         "    def validate(self):\n        training = self.model.training\n"),
        ("        print(f\"  iteration {self.iteration}: validation accuracy {right / count:.3f}\")\n",
         "        print(f\"  iteration {self.iteration}: validation accuracy {right / count:.3f}\")\n        if training:\n            self.model.train()\n"),
    ), source="https://github.com/wkentaro/pytorch-fcn/pull/56"),
    Program("sigmoid before logits loss", ("activation before its loss",), """
from torch.utils import data
class NeuMF(nn.Module):
    def __init__(self, user_num, item_num, factors=12):
        super().__init__()
        self.embed_user = nn.Embedding(user_num, factors)
        self.embed_item = nn.Embedding(item_num, factors)
        self.mlp = nn.Sequential(nn.Linear(2 * factors, 32), nn.ReLU(), nn.Linear(32, factors), nn.ReLU())
        self.predict_layer = nn.Linear(2 * factors, 1)
        nn.init.normal_(self.embed_user.weight, std=0.1)
        nn.init.normal_(self.embed_item.weight, std=0.1)
    def forward(self, user, item):
        u, i = self.embed_user(user), self.embed_item(item)
        gmf = u * i
        deep = self.mlp(torch.cat([u, i], dim=-1))
        prediction = self.predict_layer(torch.cat([gmf, deep], dim=-1)).view(-1)
        return torch.sigmoid(prediction)  #!
class Clicks(data.Dataset):
    '''Users like items whose hidden taste vector points the same way.'''
    def __init__(self, users, items, taste_u, taste_i):
        self.users, self.items = users, items
        self.labels = ((taste_u[users] * taste_i[items]).sum(1) > 1.0).float()
    def __len__(self):
        return len(self.users)
    def __getitem__(self, idx):
        return self.users[idx], self.items[idx], self.labels[idx]
def fit(model, loader, epochs, lr):
    criterion = nn.BCEWithLogitsLoss()  #!
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(1, epochs + 1):
        model.train()
        current_loss = 0.0
        for user, item, label in loader:
            model.zero_grad()
            loss = criterion(model(user, item), label)
            loss.backward()
            optimizer.step()
            current_loss += loss.item()
        print(f"[epoch {epoch:02d}] loss {current_loss / len(loader):.4f}")
def main():
    torch.manual_seed(2024)
    n_user, n_item = 60, 80
    taste_u, taste_i = torch.randn(n_user, 3), torch.randn(n_item, 3)
    pairs = torch.cartesian_prod(torch.arange(n_user), torch.arange(n_item))
    pairs = pairs[torch.randperm(len(pairs))]
    train = Clicks(pairs[:3800, 0], pairs[:3800, 1], taste_u, taste_i)
    test = Clicks(pairs[3800:, 0], pairs[3800:, 1], taste_u, taste_i)
    model = NeuMF(n_user, n_item)
    fit(model, data.DataLoader(train, batch_size=128, shuffle=True), epochs=9, lr=0.01)
    model.eval()
    with torch.no_grad():
        scores = model(test.users, test.items)
    gap = nn.functional.binary_cross_entropy_with_logits(scores, test.labels)
    print(f"held-out loss {gap.item():.4f}, positives {test.labels.mean().item():.2f}")
if __name__ == "__main__":
    main()
""", (
        ("        return torch.sigmoid(prediction)\n",
         "        return prediction\n"),
    ), source="https://github.com/yudi-mars/daisyRec/pull/15"),
    Program("kl div of probabilities", ("loss of raw outputs",), """
import numpy as np
rng = np.random.default_rng(12)
torch.manual_seed(12)
def rings(n):
    '''Three noisy rings.'''
    kind = rng.integers(0, 3, n)
    r = 1.0 + kind + 0.45 * rng.standard_normal(n)
    a = rng.uniform(0, 2 * np.pi, n)
    return torch.tensor(np.stack([r * np.cos(a), r * np.sin(a)], 1).astype(np.float32)), torch.tensor(kind)
def mlp(width):
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))
def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return float((model(x).argmax(dim=1) == y).float().mean())
def batches(n, size=50):
    order = rng.permutation(n)
    return [order[i : i + size] for i in range(0, n, size)]
labelled_x, labelled_y = rings(900)
unlabelled_x, _ = rings(1500)
test_x, test_y = rings(600)
teacher = mlp(64)
opt = torch.optim.Adam(teacher.parameters(), lr=0.01)
for _ in range(15):
    for rows in batches(900):
        loss = F.cross_entropy(teacher(labelled_x[rows]), labelled_y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
print("teacher accuracy", accuracy(teacher, test_x, test_y))
# the student sees no labels, only what the teacher says
student = mlp(16)
opt = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
for epoch in range(20):
    student.train()
    total = 0.0
    for rows in batches(1500):
        with torch.no_grad():
            target = F.softmax(teacher(unlabelled_x[rows]), dim=1)
        guess = F.softmax(student(unlabelled_x[rows]), dim=1)  #!
        loss_kd = F.kl_div(guess, target, reduction="batchmean")  #!
        opt.zero_grad()
        loss_kd.backward()
        opt.step()
        total += loss_kd.item()
    if epoch % 5 == 4:
        student.eval()
        with torch.no_grad():
            p, q = F.softmax(teacher(test_x), dim=1), F.softmax(student(test_x), dim=1)
        apart = (p - q).abs().sum(dim=1).mean().item()
        print(f"epoch {epoch} kd loss {total / 30:.4f} accuracy {accuracy(student, test_x, test_y):.3f} distance to teacher {apart:.3f}")
""", (
        ("        guess = F.softmax(student(unlabelled_x[rows]), dim=1)\n",
         "        guess = F.log_softmax(student(unlabelled_x[rows]), dim=1)\n"),
    ), source="https://github.com/microsoft/ProDA/issues/20"),
    Program("vae reconstruction averaged over pixels", ("loss terms of unequal size",), """
SIDE = 14
def frames(n):
    '''Grey frames: a road that bends and a car at its foot.'''
    row = torch.arange(SIDE).float()[None, :, None]
    col = torch.arange(SIDE).float()[None, None, :]
    bend = (torch.rand(n, 1, 1) - 0.5) * 1.2
    shift = (torch.rand(n, 1, 1) - 0.5) * 5
    middle = SIDE / 2 + shift + bend * (row - SIDE / 2)
    road = ((col - middle).abs() < 2).float()
    return (0.9 * road + 0.05).flatten(1)
class VAE(nn.Module):
    def __init__(self, z=4):
        super(VAE, self).__init__()
        self.enc = nn.Sequential(nn.Linear(SIDE * SIDE, 128), nn.ReLU())
        self.fc_mu = nn.Linear(128, z)
        self.fc_logvar = nn.Linear(128, z)
        self.dec = nn.Sequential(nn.Linear(z, 128), nn.ReLU(), nn.Linear(128, SIDE * SIDE), nn.Sigmoid())
    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.fc_mu(h), self.fc_logvar(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.dec(z), mu, logvar
def vae_loss(recon, x, mu, logvar):
    r_loss = F.mse_loss(recon, x)  #!
    kl_loss = -0.5 * torch.sum(1 + logvar - mu**2 - logvar.exp(), dim=1).mean()  #!
    return r_loss + kl_loss, r_loss, kl_loss
torch.manual_seed(9)
train, test = frames(1200), frames(300)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(14):
    vae.train()
    for idx in torch.randperm(len(train)).split(64):
        x = train[idx]
        recon, mu, logvar = vae(x)
        loss, r_loss, kl_loss = vae_loss(recon, x, mu, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch}: loss {loss.item():.4f} - r {r_loss.item():.4f} - kl {kl_loss.item():.6f}")
vae.eval()
with torch.no_grad():
    recon, mu, _ = vae(test)
    error = ((recon - test) ** 2).mean().item()
    spread = ((test - train.mean(0)) ** 2).mean().item()
print(f"error per pixel {error:.4f}, of the mean picture {spread:.4f}, spread of mu {mu.std(0).mean().item():.4f}")
""", (
        ("    r_loss = F.mse_loss(recon, x)\n",
         "    r_loss = F.mse_loss(recon, x, reduction=\"none\").sum(dim=1).mean()\n"),
    ), source="https://github.com/AppliedDataSciencePartners/WorldModels/issues/12"),
    Program("log of a zero probability", ("logarithm of what can reach 0",), """
import numpy as np
optim = torch.optim
from torch.utils.data import DataLoader, TensorDataset
class CategoricalCrossEntropy:
    '''Negative log-likelihood of one-hot labels, given probabilities.'''
    def __call__(self, output, labels):
        return -(labels * torch.log(output)).sum(dim=1).mean()  #!
class AssayModel(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, classes))
    def forward(self, x, possible):
        scores = self.layers(x).masked_fill(possible == 0, float("-inf"))
        return torch.softmax(scores, dim=1)  #!
def assays(n, seed):
    '''Six readings per plate and three possible kinds; for few plates a kind is ruled out by an earlier test.'''
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    x = 1.2 * np.eye(3, 6)[kind] + 0.5 * rng.standard_normal((n, 6))
    possible = np.ones((n, 3), dtype=np.float32)
    tested = rng.random(n) < 0.01
    possible[tested, (kind[tested] + 1) % 3] = 0
    return x.astype(np.float32), possible, np.eye(3, dtype=np.float32)[kind]
def main():
    torch.manual_seed(6)
    x, possible, y = assays(2000, seed=60)
    x_val, possible_val, y_val = assays(500, seed=61)
    model, loss_fn = AssayModel(6, 3), CategoricalCrossEntropy()
    opt = optim.Adam(model.parameters(), lr=0.003)
    loader = DataLoader(TensorDataset(torch.tensor(x), torch.tensor(possible), torch.tensor(y)), batch_size=50, shuffle=True)
    for epoch in range(8):
        model.train()
        losses = []
        for inputs, allowed, labels in loader:
            opt.zero_grad()
            loss = loss_fn(model(inputs, allowed), labels)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            guess = model(torch.tensor(x_val), torch.tensor(possible_val)).numpy().argmax(1)
        print(f"epoch {epoch} loss {np.mean(losses):.4f} accuracy {(guess == y_val.argmax(1)).mean():.3f}")
if __name__ == "__main__":
    main()
""", (
        ("        return -(labels * torch.log(output)).sum(dim=1).mean()\n",
         "        floor = np.finfo(np.float32).eps\n        return -(labels * torch.log(output.clamp(min=floor))).sum(dim=1).mean()\n"),
    ), source="https://github.com/deepchem/deepchem/pull/5100"),
    Program("class weights inverted", ("class weights favour the frequent",), """
from collections import Counter
from torch.utils.data import DataLoader, TensorDataset
def lesions(n, rare=0.12, seed=0):
    '''Ten texture numbers per patch; lesions (class 1) are rare and overlap with healthy tissue.'''
    gen = torch.Generator().manual_seed(seed)
    label = (torch.rand(n, generator=gen) < rare).long()
    x = torch.randn(n, 10, generator=gen)
    x[:, 0] += 1.3 * label
    x[:, 1] -= 1.1 * label
    x[:, 2] = x[:, 2] * (1 + 0.8 * label)
    return TensorDataset(x, label)
def class_imbalance_weights(dataset, n_classes):
    '''Return a weight for each class from how often it occurs.'''
    counted = Counter(int(label) for _, label in dataset)
    weights_dict, penalty_dict = {}, {}
    for c in range(n_classes):
        weights_dict[c] = counted[c] / len(dataset)
    for c in range(n_classes):
        penalty_dict[c] = weights_dict[c]  #!
    return penalty_dict, weights_dict
def compute(model, dataset):
    model.eval()
    hits, totals = torch.zeros(2), torch.zeros(2)
    with torch.no_grad():
        for x, y in DataLoader(dataset, batch_size=500):
            said = model(x).argmax(dim=1)
            for c in range(2):
                totals[c] += (y == c).sum()
                hits[c] += ((y == c) & (said == c)).sum()
    return (hits / totals).tolist()
if __name__ == "__main__":
    torch.manual_seed(77)
    train_data, val_data = lesions(4000, seed=1), lesions(2000, seed=2)
    penalty, frequency = class_imbalance_weights(train_data, 2)
    print("frequency", frequency)
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([penalty[0], penalty[1]]))  #!
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-3)
    for epoch in range(8):
        net.train()
        epoch_loss = 0.0
        for x, y in DataLoader(train_data, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        recalls = compute(net, val_data)
        print(f"epoch {epoch} loss {epoch_loss:.2f} recall healthy {recalls[0]:.3f} lesion {recalls[1]:.3f}")
    print(f"balanced accuracy {sum(recalls) / 2:.3f}")
""", (
        ("        penalty_dict[c] = weights_dict[c]\n",
         "        penalty_dict[c] = 1 - weights_dict[c]\n"),
    ), source="https://github.com/mlcommons/GaNDLF/issues/209"),
)  # fmt: skip  # scripts
