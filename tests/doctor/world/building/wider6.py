"""The sixth part: the rest of the round of `wider5`."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("the actor's loss reaches the critic", ("advantage with gradients", "target moves with the model"), """
states = torch.randn(600, 4)
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    def forward(self, state):
        return F.log_softmax(self.actor(state), 1), self.critic(state).squeeze(1)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
for step in range(200):
    state = states[torch.randint(0, 600, (64,))]
    log_probs, value = agent(state)
    action = torch.multinomial(log_probs.detach().exp(), 1)
    reward = (action[:, 0] == state[:, :3].argmax(1)) * 1.0
    advantage = reward - value  #!
    policy_loss = -(log_probs.gather(1, action).squeeze(1) * advantage).mean()  #!
    value_loss = F.mse_loss(value, reward)
    loss = policy_loss + 0.5 * value_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("advantage = reward - value", "advantage = (reward - value).detach()"),),
        source="https://github.com/astariul/encode-attend-navigate-pytorch/pull/3"),
    Program("log-probabilities collected into a new tensor", (
        "loss detached",
        "no gradients in a step",
        "gradient cut in forward",
        "no gradient",
        "loss term detached",
        "parameters without an optimizer",
    ), """
states = torch.randn(500, 4)
policy = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3))
value = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=5e-3)
for episode in range(120):
    memory = []
    for at in torch.randint(0, 500, (20,)):
        state = states[at]
        scores = F.log_softmax(policy(state), dim=0)
        action = int(torch.multinomial(scores.detach().exp(), 1)[0])
        reward = float(action == int(state[:3].argmax()))
        memory.append((state, scores[action], reward))
    batch = torch.stack([one[0] for one in memory])
    log_probs = torch.tensor([one[1].item() for one in memory])  #!
    rewards = torch.tensor([one[2] for one in memory])
    guess = value(batch).squeeze(1)
    advantage = rewards - guess.detach()
    loss = -(log_probs * advantage).mean() + F.mse_loss(guess, rewards)  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("torch.tensor([one[1].item() for one in memory])", "torch.stack([one[1] for one in memory])"),),
        source="https://github.com/Quantum-Cheese/DeepReinforcementLearning_Pytorch/issues/1"),
    Program("both directions read at the last step", (
        "sequence read at its beginning",
    ), """
notes = torch.randn(400, 16, 5)
label = (notes[:, :4].sum((1, 2)) > 0).long()
class BiRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 24, num_layers=1, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(48, 2)
    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1, :])  #!
model = BiRNN()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(120):
    rows = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(model(notes[rows]), label[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("self.fc(out[:, -1, :])", "self.fc(torch.cat([out[:, -1, :24], out[:, 0, 24:]], 1))"),),
        source="https://github.com/yunjey/pytorch-tutorial/pull/174"),
    Program("the teacher distils itself", ("loss term detached", "loss term never used", "loss detached"), """
x = torch.randn(500, 10)
y = x[:, :4].argmax(1)
large = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
first = torch.optim.Adam(large.parameters(), lr=5e-3)
for step in range(60):
    rows = torch.randint(0, 500, (50,))
    loss = F.cross_entropy(large(x[rows]), y[rows])
    first.zero_grad()
    loss.backward()
    first.step()
small = nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, 4))
optimizer = torch.optim.Adam(small.parameters(), lr=5e-3)
temperature = 5.0
for step in range(120):
    rows = torch.randint(0, 500, (50,))
    with torch.no_grad():
        large_logits = large(x[rows])
    output = small(x[rows])
    soft_targets = F.softmax(large_logits / temperature, dim=-1)
    soft_prob = F.log_softmax(large_logits / temperature, dim=-1)
    soft_loss = F.kl_div(soft_prob, soft_targets, reduction="batchmean")  #!
    label_loss = F.cross_entropy(output, y[rows])
    loss = 0.5 * temperature ** 2 * soft_loss + 0.5 * label_loss  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("F.log_softmax(large_logits / temperature", "F.log_softmax(output / temperature"),),
        source="https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/66"),
    Program("the teacher's answers in the order of another epoch", (
        "labels do not belong to the inputs", "pairs shuffled apart", "learns less than a probe",
    ), """
x = torch.randn(480, 10)
teacher_map = torch.randn(10, 5)
def loader():
    order = torch.randperm(480)
    for at in range(0, 480, 40):
        yield x[order[at:at + 40]]
with torch.no_grad():
    teacher_outputs = [torch.tanh(batch @ teacher_map) for batch in loader()]
student = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for epoch in range(15):
    for i, batch in enumerate(loader()):
        output = student(batch)
        loss = F.mse_loss(output, teacher_outputs[i])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("teacher_outputs[i]", "torch.tanh(batch @ teacher_map)"),),
        source="https://github.com/haitongli/knowledge-distillation-pytorch/pull/16"),
    Program("a mean over trajectories divided by their number", ("averaged twice",), """
past = torch.randn(512, 16)
future = past[:, -4:] * 0.5 + past[:, :4]
model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
def calculate_loss(pred, target, batch_size):
    loss = (target - pred).pow(2).sum(-1).mean()
    return loss / batch_size  #!
for step in range(200):
    rows = torch.randint(0, 512, (64,))
    pred = model(past[rows])
    loss = calculate_loss(pred, future[rows], pred.shape[0])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("return loss / batch_size", "return loss"),), source="https://github.com/MediaBrain-SJTU/GroupNet/issues/2"),
    Program("a helper of the loss that ends in eval()", ("evaluation mode in training",), """
images = torch.randn(400, 20)
count = (images > 0.5).sum(1) // 3
model = nn.Sequential(nn.Linear(20, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
def get_blobs(model, batch):
    model.eval()  #!
    with torch.no_grad():
        return model(batch).argmax(1)
def compute_loss(model, batch, target):
    model.train()
    blobs = get_blobs(model, batch)
    logits = model(batch)
    weight = 1 + (blobs != target) * 1.0
    return (F.cross_entropy(logits, target, reduction="none") * weight).mean()
for step in range(120):
    rows = torch.randint(0, 400, (32,))
    optimizer.zero_grad()
    loss = compute_loss(model, images[rows], count[rows].clamp(max=4))
    loss.backward()
    optimizer.step()  #!
""", (("        return model(batch).argmax(1)", "        found = model(batch).argmax(1)\n    model.train()\n    return found"),),
        source="https://github.com/ServiceNow/LCFCN/issues/20"),
    Program("grasps tested in the mode of training", ("training mode in evaluation",), """
touch = torch.randn(500, 24)
stable = (touch[:, :6].sum(1) > 0).long()
class Grasp:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(24, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
    def train_epoch(self):
        for at in range(0, 400, 40):
            loss = F.cross_entropy(self.model(touch[at:at + 40]), stable[at:at + 40])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
    def evaluate(self):
        right = 0
        with torch.no_grad():
            for at in range(400, 500, 20):
                right += (self.model(touch[at:at + 20]).argmax(1) == stable[at:at + 20]).sum().item()  #!
        return right / 100
grasp = Grasp()
for epoch in range(12):
    grasp.train_epoch()
    print(epoch, grasp.evaluate())
""", (("        right = 0\n", "        right = 0\n        self.model.eval()\n"),
      ("    def train_epoch(self):\n", "    def train_epoch(self):\n        self.model.train()\n")),
        source="https://github.com/facebookresearch/tacto/issues/25"),
    Program("CTC of raw scores", ("no logarithm in nll_loss", "loss of raw outputs"), """
sound = torch.randn(200, 12, 8)
words = sound[:, ::3, :5].argmax(2) + 1
class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 32, batch_first=True)
        self.out = nn.Linear(32, 6)
    def forward(self, sound):
        return self.out(self.rnn(sound)[0])
model = Recogniser()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
lengths = torch.full((20,), 12, dtype=torch.long)
sizes = torch.full((20,), 4, dtype=torch.long)
for step in range(100):
    rows = torch.randint(0, 200, (20,))
    logits = model(sound[rows]).transpose(0, 1)
    loss = F.ctc_loss(logits, words[rows], lengths, sizes)  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("F.ctc_loss(logits,", "F.ctc_loss(logits.log_softmax(2),"),), source="https://github.com/gwx314/STARS/issues/9"),
    Program("a triplet loss of similarities with the signs of distances", ("sign of the loss turned",), """
centres = torch.randn(10, 12)
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
def triplet(anchor, positive, negative, margin=0.3):
    near = F.cosine_similarity(anchor, positive)
    far = F.cosine_similarity(anchor, negative)
    return torch.clamp(near - far + margin, min=0).mean()  #!
for step in range(150):
    kind = torch.randint(0, 10, (32,))
    other = (kind + torch.randint(1, 10, (32,))) % 10
    anchor, positive = (centres[kind] + 0.3 * torch.randn(32, 12) for _ in range(2))
    negative = centres[other] + 0.3 * torch.randn(32, 12)
    loss = triplet(net(anchor), net(positive), net(negative))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("near - far + margin", "far - near + margin"),), source="https://github.com/Delong-liu-bupt/SEN/issues/6"),
    Program("the loader of the validation has the training set", (
        "validated on training data", "validation on the training data",
    ), """
from torch.utils.data import DataLoader, TensorDataset
x = torch.randn(500, 12)
y = (x[:, :3].sum(1) > 0).long()
dataset_train = TensorDataset(x[:400], y[:400])
dataset_val = TensorDataset(x[400:], y[400:])
dataloader_train = DataLoader(dataset_train, batch_size=40, shuffle=True)
dataloader_val = DataLoader(dataset_train, batch_size=40)  #!
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
def validation(loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for features, labels in loader:
            total += criterion(model(features), labels).item()  #!
    return total / len(loader)
for epoch in range(12):
    model.train()
    for features, labels in dataloader_train:
        optimizer.zero_grad()
        loss = criterion(model(features), labels)
        loss.backward()
        optimizer.step()
    print(epoch, validation(dataloader_val))
""", (("DataLoader(dataset_train, batch_size=40)", "DataLoader(dataset_val, batch_size=40)"),),
        source="https://github.com/KrishnaDN/x-vector-pytorch/issues/8"),
    Program("the discriminator's gradients of all steps", ("zero_grad is missing",), """
pictures = torch.randn(300, 16)
encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
judge = nn.Sequential(nn.Linear(16, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
optimizer_e = torch.optim.Adam(encoder.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(judge.parameters(), lr=1e-4)
for step in range(120):
    real = pictures[torch.randint(0, 300, (32,))]
    fake = encoder(real)
    loss_e = F.mse_loss(fake, real) + 0.05 * F.softplus(-judge(fake)).mean()
    optimizer_e.zero_grad()
    loss_e.backward()
    optimizer_e.step()
    loss_d = F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(real)).mean()
    loss_d.backward()  #!
    optimizer_d.step()  #!
""", (("    loss_d.backward()", "    optimizer_d.zero_grad()\n    loss_d.backward()"),),
        source="https://github.com/Hsintien-Ng/idinvert_pytorch-reproduced/issues/1"),
    Program("an initial state drawn anew in each call", ("random initial state",), """
tracks = torch.randn(400, 10, 4).cumsum(1) * 0.3
goal = tracks[:, -1] - tracks[:, -2]
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 24, batch_first=True)
        self.out = nn.Linear(24, 4)
    def forward(self, x):
        state = torch.randn(1, len(x), 24), torch.randn(1, len(x), 24)  #!
        out, _ = self.lstm(x, state)  #!
        return self.out(out[:, -1])
model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    model.train()
    for at in range(0, 320, 32):
        loss = F.mse_loss(model(tracks[at:at + 32]), goal[at:at + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, F.mse_loss(model(tracks[320:]), goal[320:]).item())  #!
""", (("torch.randn(1, len(x), 24), torch.randn(1, len(x), 24)", "torch.zeros(1, len(x), 24), torch.zeros(1, len(x), 24)"),),
        source="https://github.com/schmidt-ju/crat-pred/issues/8"),
    Program("the phase of validation trains as well", ("validation trains as well",), """
pose = torch.randn(500, 14)
joint = pose[:, :2] * pose[:, 2:4]
parts = {"train": (pose[:400], joint[:400]), "val": (pose[400:], joint[400:])}
net = nn.Sequential(nn.Linear(14, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
def run(phase, rows):
    inputs, wanted = parts[phase]
    loss = F.mse_loss(net(inputs[rows]), wanted[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #!
    return loss.item()
for epoch in range(15):
    for phase in ["train", "val"]:
        size = len(parts[phase][0])
        order = torch.randperm(size)
        losses = [run(phase, order[at:at + 25]) for at in range(0, size, 25)]  #!
        print(epoch, phase, sum(losses) / len(losses))
""", (("    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()",
       "    if phase == \"train\":\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()"),),
        source="https://github.com/princeton-vl/pose-ae-train/issues/11"),
)  # fmt: skip  # scripts
