"""The order of calls, schedules and modes: faults that people reported, each with the answer it got."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("a schedule of epochs moved in the loop of batches", ("rate decays to nothing",), """
scans = torch.randn(200, 1, 10, 10)
mask = (F.avg_pool2d(scans, 3, 1, 1) > 0) * 1.0
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.85)
for epoch in range(12):
    for batch in torch.randperm(200).split(20):
        loss = F.binary_cross_entropy_with_logits(net(scans[batch]), mask[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()  #!
""", (("        scheduler.step()", "    scheduler.step()"),),
            source="https://github.com/ivadomed/ivadomed/pull/55"),
    Program("a plateau of the loss looked for upward", ("rate decays to nothing",), """
genome = torch.randn(400, 24)
binds = (genome[:, :8] * genome[:, 8:16]).sum(1)
def make():
    return nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 1))
model = make()
adam = torch.optim.Adam(model.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(adam, "max", patience=1, factor=0.1)  #!
for epoch in range(30):
    for part in torch.randperm(320).split(32):
        adam.zero_grad()
        F.mse_loss(model(genome[part]).squeeze(1), binds[part]).backward()
        adam.step()
    with torch.no_grad():
        held = F.mse_loss(model(genome[320:]).squeeze(1), binds[320:])
    plateau.step(held.item())  #!
""", (('"max", ', '"min", '), ("patience=1", "patience=3")),
            source="https://github.com/FunctionLab/selene/issues/115"),
    Program("a warm-up that begins anew each epoch", ("warm-up begins again", "rate unfit for the weights",
                                                      "learning rate out of the usual",
                                                      "rate decays to nothing"), """
x = torch.randn(512, 12)
y = torch.sin(x[:, :4]).sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 1))
adamw = torch.optim.AdamW(net.parameters(), lr=1e-6)
warm, top = 100, 5e-3
done = 0
for epoch in range(20):
    for inner, batch in enumerate(torch.randperm(512).split(32)):
        now = 1e-6 + top * min(inner, warm) / warm  #!
        for group in adamw.param_groups:
            group["lr"] = now  #!
        loss = F.mse_loss(net(x[batch]), y[batch])
        adamw.zero_grad()
        loss.backward()
        adamw.step()
        done += 1
""", (("min(inner, warm)", "min(done, warm)"),), "rises",
            source="https://github.com/Vision-CAIR/MiniGPT-4/pull/263"),
    Program("clipped before there is anything to clip", ("clipping before backward",), """
table = torch.randn(400, 9)
value = (table[:, :3].prod(1) + table[:, 3]).unsqueeze(1)
model = nn.Sequential(nn.Linear(9, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=3e-4)
clip = True
for epoch in range(15):
    for part in torch.randperm(400).split(32):
        model.train()
        opt.zero_grad()
        loss = F.mse_loss(model(table[part]), value[part])
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #!
        loss.backward()
        opt.step()
""", (
        ("        if clip:\n            nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        loss.backward()\n",
         "        loss.backward()\n        if clip:\n            nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"),
    ), source="https://github.com/yandex-research/tabm/issues/20"),
    Program("clipped when the step is over", ("clipping before backward",), """
graphs = torch.randn(60, 12, 6)
links = graphs @ graphs.transpose(1, 2)
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(6, 16, batch_first=True), nn.Linear(16, 8)
    def forward(self, g):
        z = self.out(self.gru(g)[0])
        return z @ z.transpose(1, 2)
model = Cell()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(60):
    some = torch.randint(0, 60, (12,))
    optimizer.zero_grad()
    loss = F.mse_loss(model(graphs[some]), links[some])
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10)  #!
""", (
        ("    optimizer.step()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), 10)\n",
         "    torch.nn.utils.clip_grad_norm_(model.parameters(), 10)\n    optimizer.step()\n"),
    ), "clip", source="https://github.com/VGraphRNN/VGRNN/issues/4"),
    Program("a limit that no step feels", ("clipping before backward",), """
nodes = torch.randn(300, 10)
label = (nodes @ torch.randn(10, 4)).argmax(1)
class Trainer:
    def __init__(self, model, max_grad_norm=0.5):
        self.model, self.max_grad_norm = model, max_grad_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    def fit(self, epochs):
        for epoch in range(epochs):
            for ids in torch.randperm(300).split(30):
                loss = F.cross_entropy(self.model(nodes[ids]), label[ids])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if self.max_grad_norm is not None:
                    nn.utils.clip_grad_value_(self.model.parameters(), self.max_grad_norm)  #!
Trainer(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))).fit(12)
""", (
        ("                self.optimizer.step()\n", ""),
        ("                    nn.utils.clip_grad_value_(self.model.parameters(), self.max_grad_norm)\n",
         ("                    nn.utils.clip_grad_value_(self.model.parameters(), self.max_grad_norm)\n"
         "                self.optimizer.step()\n")),
    ), "clip", source="https://github.com/awslabs/graphstorm/issues/1366"),
    Program("clipped after every small batch of four", ("clipping before backward", "always clipped"), """
words = torch.randn(512, 16)
sense = (words @ torch.randn(16, 6)).argmax(1)
bert = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 6))
adam = torch.optim.AdamW(bert.parameters(), lr=5e-3)
every = 4
for step in range(240):
    part = torch.randint(0, 512, (8,))
    loss = F.cross_entropy(bert(words[part]), sense[part]) / every
    loss.backward()
    nn.utils.clip_grad_norm_(bert.parameters(), 0.1)  #!
    if (step + 1) % every == 0:
        adam.step()
        bert.zero_grad()
""", (
        ("    nn.utils.clip_grad_norm_(bert.parameters(), 0.1)\n    if (step + 1) % every == 0:\n",
         "    if (step + 1) % every == 0:\n        nn.utils.clip_grad_norm_(bert.parameters(), 0.1)\n"),
    ), "accumul", source="https://github.com/huggingface/transformers/issues/1563"),
    Program("sixteen losses added, none divided", ("accumulated without division",), """
speech = torch.randn(640, 20)
phone = (speech @ torch.randn(20, 5)).argmax(1)
asr = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 5))
sgd = torch.optim.SGD(asr.parameters(), lr=0.5, momentum=0.9)
accum_grad = 16
for step in range(480):
    some = torch.randint(0, 640, (8,))
    loss = F.cross_entropy(asr(speech[some]), phone[some])
    loss.backward()  #!
    if (step + 1) % accum_grad == 0:
        sgd.step()
        sgd.zero_grad()
""", (("phone[some])\n    loss.backward()", "phone[some])\n    (loss / accum_grad).backward()"),),
            source="https://github.com/hirofumi0810/neural_sp/issues/168"),
    Program("gradients of the whole past", ("zero_grad is missing",), """
sounds = torch.randn(300, 1, 24)
keyword = (sounds[:, 0, :12].mean(1) > sounds[:, 0, 12:].mean(1)) * 1
model = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), nn.Flatten(), nn.Linear(160, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
def executor(batches):
    for rows in batches:
        loss = F.cross_entropy(model(sounds[rows]), keyword[rows])
        loss.backward()  #!
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        if torch.isfinite(norm):
            optimizer.step()  #!
for epoch in range(15):
    executor(torch.randperm(300).split(30))
""", (("        loss.backward()", "        optimizer.zero_grad()\n        loss.backward()"),),
            source="https://github.com/wenet-e2e/wekws/issues/72"),
    Program("zeroed once an epoch", ("zero_grad is missing",), """
from torch.utils.data import DataLoader, TensorDataset
x = torch.randn(512, 16)
y = (x @ torch.randn(16, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
sgd = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(10):
    sgd.zero_grad()  #!
    for a, b in loader:
        loss = F.cross_entropy(net(a), b)
        loss.backward()  #!
        sgd.step()  #!
""", (("    sgd.zero_grad()\n    for a, b in loader:\n", "    for a, b in loader:\n        sgd.zero_grad()\n"),),
            source="https://github.com/pytorch/pytorch/issues/47175"),
    Program("zeroed just before it is used", ("no gradients in a step",), """
pixels = torch.randn(256, 3, 6, 6)
segment = (pixels.mean(1) > 0) * 1
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for rows in torch.randperm(256).split(32):
        loss = criterion(net(pixels[rows]), segment[rows])
        loss.backward()
        optimizer.zero_grad()  #!
        optimizer.step()  #!
""", (
        ("        loss.backward()\n        optimizer.zero_grad()\n",
         "        optimizer.zero_grad()\n        loss.backward()\n"),
    ), source="https://github.com/sacmehta/EdgeNets/issues/14"),
    Program("a model made anew in the loop", ("optimizer of another model", "parameters without an optimizer"), """
x = torch.randn(300, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
def fresh():
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
model = fresh()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(40):
    model = fresh()  #!
    for rows in torch.randperm(300).split(60):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()  #!
""", (("    model = fresh()\n    for rows", "    for rows"),), source="https://duoke360.com/post/34678"),
    Program("layers exchanged when the optimizer has the old ones", ("parameters without an optimizer",
                                                                    "optimizer of another model"), """
class Quantised(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.weight = nn.Parameter(conv.weight.detach().clone())
        self.bias = nn.Parameter(conv.bias.detach().clone())
    def forward(self, x):
        w = self.weight + ((self.weight * 8).round() / 8 - self.weight).detach()
        return F.conv2d(x, w, self.bias)
pictures = torch.randn(256, 1, 6, 6)
kind = (pictures[:, 0, :3].mean((1, 2)) > pictures[:, 0, 3:].mean((1, 2))) * 1
net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(96, 2))
sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)  #!
net[0] = Quantised(net[0])  #!
for epoch in range(8):
    for rows in torch.randperm(256).split(32):
        loss = F.cross_entropy(net(pictures[rows]), kind[rows])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
""", (
        ("sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)\nnet[0] = Quantised(net[0])\n",
         "net[0] = Quantised(net[0])\nsgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)\n"),
    ), source="https://github.com/hustzxd/EfficientPyTorch/issues/1"),
    Program("validated every few steps, evaluation mode until the epoch ends", ("evaluation mode in training",), """
images, captions = torch.randn(320, 16), torch.randn(320, 8)
images[:, :8] += captions
net = nn.Sequential(nn.Linear(16, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.3), nn.Linear(48, 8))
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
def validate():
    net.eval()  #!
    with torch.no_grad():
        return F.mse_loss(net(images[256:]), captions[256:]).item()
for epoch in range(8):
    net.train()
    for number, rows in enumerate(torch.randperm(256).split(16)):
        loss = F.mse_loss(net(images[rows]), captions[rows])  #!
        adam.zero_grad()
        loss.backward()
        adam.step()
        if number % 4 == 3:
            held = validate()  #!
""", (("            held = validate()", "            held = validate()\n            net.train()"),),
            source="https://github.com/fartashf/vsepp/issues/4"),
    Program("accuracy checked, training mode forgotten", ("evaluation mode in training",), """
clues = torch.randn(400, 12)
answer = (clues @ torch.randn(12, 4)).argmax(1)
program = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.5))
execution = nn.Linear(64, 4)
def set_mode(mode):
    for part in (program, execution):
        part.train(mode == "train")
def check_accuracy():
    set_mode("eval")  #!
    return (execution(program(clues[320:])).argmax(1) == answer[320:]).sum().item() / 80
adam = torch.optim.Adam([*program.parameters(), *execution.parameters()], lr=3e-3)
set_mode("train")
for step in range(300):
    part = torch.randint(0, 320, (32,))
    adam.zero_grad()
    F.cross_entropy(execution(program(clues[part])), answer[part]).backward()  #!
    adam.step()
    if step % 50 == 0:
        accuracy = check_accuracy()  #!
""", (("        accuracy = check_accuracy()", '        accuracy = check_accuracy()\n        set_mode("train")'),),
            source="https://github.com/facebookresearch/clevr-iep/pull/22"),
)  # fmt: skip  # scripts
