"""The tenth part: faults reported to repositories, written before the doctor had seen them."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("labels remapped in place", ("labels alike",), """
import numpy as np
optim = torch.optim
def relabel(label, ordering):
    '''Give class i the number ordering[i].'''
    label2 = label  #!
    for i in range(len(ordering)):
        label2[label == i] = ordering[i]  #!
    return label2
def soil_samples(n, seed):
    '''Spectra of five soils, numbered as in the field book.'''
    rng = np.random.default_rng(seed)
    waves = np.linspace(0, 1, 16)
    kind = rng.integers(0, 5, n)
    spectrum = np.sin((kind[:, None] + 1) * np.pi * waves) + 0.5 * rng.standard_normal((n, 16))
    return spectrum.astype(np.float32), kind
torch.manual_seed(4)
# the archive counts soils in another order than the field book
ordering = [1, 2, 3, 4, 0]
x_train, book_train = soil_samples(1200, seed=7)
x_test, book_test = soil_samples(400, seed=8)
y_train = relabel(book_train.copy(), ordering)
model = nn.Sequential(nn.Linear(16, 40), nn.ReLU(), nn.Linear(40, 5))
opt = optim.Adam(model.parameters(), lr=0.005)
x, y = torch.tensor(x_train), torch.tensor(y_train)
rng = np.random.default_rng(0)
for epoch in range(15):
    model.train()
    for rows in np.array_split(rng.permutation(len(x_train)), 24):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 5 == 4:
        print("epoch", epoch, "loss", round(loss.item(), 4))
model.eval()
with torch.no_grad():
    archive = model(torch.tensor(x_test)).argmax(dim=1).numpy()
back = np.argsort(ordering)
print("accuracy in the numbers of the field book", round(float((back[archive] == book_test).mean()), 3))
print("classes in the training labels", np.bincount(y_train, minlength=5))
""", (
        ("    label2 = label\n",
         "    label2 = label.copy()\n"),
    ), source="https://github.com/donglao/PCEDA/issues/5"),
    Program("best state by reference", ("weights kept by reference",), """
from copy import deepcopy
from torch.utils.data import DataLoader, TensorDataset
class BaseNNModel:
    '''Trains with early stopping and keeps the weights of the best epoch.'''
    def __init__(self, net, lr, epochs, patience):
        self.model = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=lr)
        self.epochs, self.patience = epochs, patience
        self.best_loss, self.best_epoch, self.best_model_dict = float("inf"), -1, None
    def _validate(self, loader):
        self.model.eval()
        total, n = 0.0, 0
        with torch.no_grad():
            for x, y in loader:
                total += nn.functional.mse_loss(self.model(x), y, reduction="sum").item()
                n += y.numel()
        return total / n
    def fit(self, train_loader, val_loader):
        waited = 0
        for epoch in range(self.epochs):
            self.model.train()
            for x, y in train_loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            val_loss = self._validate(val_loader)
            if epoch % 20 == 0:
                print(f"epoch {epoch} train {loss.item():.3f} val {val_loss:.3f}")
            if val_loss < self.best_loss:
                self.best_loss, self.best_epoch, waited = val_loss, epoch, 0
                self.best_model_dict = self.model.state_dict()  #!
            else:
                waited += 1
                if waited == self.patience:
                    break
        self.model.load_state_dict(self.best_model_dict)  #!
        print(f"best epoch {self.best_epoch} with val {self.best_loss:.3f}; stopped at {epoch}")
def station(n, gen):
    '''Impute the noon temperature from a day's other, noisy readings.'''
    x = torch.randn(n, 20, generator=gen)
    y = 0.8 * x[:, :1] - 0.5 * x[:, 1:2] + 0.9 * torch.randn(n, 1, generator=gen)
    return TensorDataset(x, y)
torch.manual_seed(8)
gen = torch.Generator().manual_seed(80)
train = DataLoader(station(120, gen), batch_size=20, shuffle=True)
val = DataLoader(station(300, gen), batch_size=300)
test = DataLoader(station(600, gen), batch_size=600)
net = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
runner = BaseNNModel(net, lr=1e-3, epochs=120, patience=60)
runner.fit(train, val)
print(f"validation with the restored weights {runner._validate(val):.3f}, test {runner._validate(test):.3f}")
""", (
        ("                self.best_model_dict = self.model.state_dict()\n",
         "                self.best_model_dict = deepcopy(self.model.state_dict())\n"),
    ), source="https://github.com/WenjieDu/PyPOTS/issues/667"),
    Program("ema never updated", ("moving average never updated",), """
import logging
import numpy as np
logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("solver")
class ExponentialMovingAverage:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
    def update(self):
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p.detach()
    def apply_shadow(self):
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.copy_(self.shadow[name])
class ModelTrainer:
    def __init__(self, model, lr=0.01, decay=0.9):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.ema = ExponentialMovingAverage(model, decay)
    def train_one_batch(self, image, target):
        self.optimizer.zero_grad()
        loss = F.smooth_l1_loss(self.model(image), target)
        loss.backward()
        self.optimizer.step()  #!
        return loss.item()
    def save_checkpoint(self):
        self.ema.apply_shadow()  #!
        state = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        return state
    def solve(self, images, boxes, epochs, rng):
        for epoch in range(epochs):
            self.model.train()
            losses = [self.train_one_batch(images[r], boxes[r]) for r in np.array_split(rng.permutation(len(images)), 30)]
            self.save_checkpoint()
            log.info("epoch %d loss %.4f", epoch, np.mean(losses))
def boxes_on_canvas(n, rng):
    '''9x9 pictures with one bright box; the target is its centre and size.'''
    images = 0.1 * rng.standard_normal((n, 9, 9)).astype(np.float32)
    size = rng.integers(2, 5, n)
    top, left = rng.integers(0, 5, n), rng.integers(0, 5, n)
    for k in range(n):
        images[k, top[k] : top[k] + size[k], left[k] : left[k] + size[k]] += 1
    target = np.stack([top + size / 2, left + size / 2, size], 1).astype(np.float32) / 9
    return torch.tensor(images.reshape(n, 81)), torch.tensor(target)
rng = np.random.default_rng(25)
torch.manual_seed(25)
images, boxes = boxes_on_canvas(900, rng)
val_images, val_boxes = boxes_on_canvas(300, rng)
model = nn.Sequential(nn.Linear(81, 64), nn.ReLU(), nn.Linear(64, 3))
ModelTrainer(model).solve(images, boxes, epochs=10, rng=rng)
model.eval()
with torch.no_grad():
    error = (model(val_images) - val_boxes).abs().mean().item()
log.info("mean error of the boxes %.4f", error)
""", (
        ("        self.optimizer.step()\n",
         "        self.optimizer.step()\n        self.ema.update()\n"),
        ("    def save_checkpoint(self):\n",
         "    def save_checkpoint(self):\n        live = {name: p.detach().clone() for name, p in self.model.named_parameters()}\n"),
        ("        state = {name: p.detach().clone() for name, p in self.model.named_parameters()}\n",
         "        state = {name: p.detach().clone() for name, p in self.model.named_parameters()}\n        with torch.no_grad():\n            for name, p in self.model.named_parameters():\n                p.copy_(live[name])\n"),
    ), source="https://github.com/MultimediaTechLab/YOLO/issues/97"),
    Program("sdpa mask inverted", ("targets seen by the model",), """
class MHAPyTorchScaledDotProduct(nn.Module):
    def __init__(self, d, heads, context_length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        keep = self.mask[:t, :t]
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)  #!
        return self.proj(context.transpose(1, 2).reshape(b, t, d))
class TinyGPT(nn.Module):
    def __init__(self, vocab, context_length, d=48):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(context_length, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = MHAPyTorchScaledDotProduct(d, 4, context_length)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.out = nn.Linear(d, vocab)
    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        x = x + self.att(self.norm1(x))
        x = x + self.ff(self.norm2(x))
        return self.out(x)
def songs(n, length=16, vocab=10):
    '''Each song walks with its own fixed step: 0 3 6 9 2 5 ...'''
    start = torch.randint(0, vocab, (n, 1))
    stride = torch.randint(1, 5, (n, 1))
    return (start + stride * torch.arange(length)) % vocab
@torch.no_grad()
def continue_songs(model, prefix, length):
    model.eval()
    text = prefix
    while text.shape[1] < length:
        nxt = model(text)[:, -1].argmax(dim=-1, keepdim=True)
        text = torch.cat([text, nxt], dim=1)
    model.train()
    return text
torch.manual_seed(123)
model = TinyGPT(vocab=10, context_length=16)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
held_out = songs(200)
for step in range(400):
    batch = songs(32)
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        written = continue_songs(model, held_out[:, :4], 16)
        right = (written[:, 4:] == held_out[:, 4:]).float().mean().item()
        print(f"step {step + 1} loss {loss.item():.3f}, right notes when continuing {right:.3f}")
""", (
        ("        context = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)\n",
         "        context = F.scaled_dot_product_attention(q, k, v, attn_mask=~keep)\n"),
    ), source="https://github.com/rasbt/LLMs-from-scratch/pull/1062"),
    Program("no causal mask", ("targets seen by the model",), """
import math
import numpy as np
class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))
    def split(self, t):
        b, n, d = t.shape
        return t.reshape(b, n, self.heads, d // self.heads).transpose(1, 2)
    def attention(self, x):
        b, n, d = x.shape
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        weights = F.softmax(scores, dim=-1)  #!
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))
    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))
class CausalLM(nn.Module):
    def __init__(self, vocab, length, dim=32):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.place = nn.Parameter(0.1 * torch.randn(length, dim))
        self.block = Block(dim, 2)
        self.head = nn.Linear(dim, vocab)
    def forward(self, ids):
        return self.head(self.block(self.token(ids) + self.place[: ids.shape[1]]))
def sums(n, rng, length=14, vocab=7):
    '''Each number is the sum of the two before it, modulo 7.'''
    text = np.zeros((n, length), dtype=np.int64)
    text[:, :2] = rng.integers(0, vocab, (n, 2))
    for t in range(2, length):
        text[:, t] = (text[:, t - 1] + text[:, t - 2]) % vocab
    return text
torch.manual_seed(3)
rng = np.random.default_rng(3)
model = CausalLM(vocab=7, length=14)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
for step in range(500):
    text = torch.tensor(sums(32, rng))
    logits = model(text[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print("step", step + 1, "loss", round(loss.item(), 4))
model.eval()
real = sums(200, rng)
text = torch.tensor(real[:, :4])
with torch.no_grad():
    for _ in range(10):
        nxt = model(text)[:, -1].argmax(dim=-1)
        text = torch.cat([text, nxt.unsqueeze(1)], dim=1)
print("numbers continued correctly", round(float((text.numpy()[:, 4:] == real[:, 4:]).mean()), 3))
""", (
        ("        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)\n",
         "        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)\n        future = torch.triu(torch.ones(n, n), diagonal=1).bool()\n        scores = scores.masked_fill(future, float(\"-inf\"))\n"),
    ), source="https://github.com/paiml/entrenar/issues/310"),
)  # fmt: skip  # scripts
