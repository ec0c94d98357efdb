"""The first part of the faults of many kinds that were reported or that a manual warns of, gathered in rounds."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("dropout takes the input of the block instead of its sum", ("no gradient", "result never used"), """
torch.manual_seed(4)
wave = torch.randn(300, 8, 20)
kind = (wave[:, 0, :10].mean(1) > wave[:, 1, 10:].mean(1)).long()
class ConvBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.convs = nn.Sequential(nn.Conv1d(width, width, 3, padding=1), nn.ReLU(), nn.Conv1d(width, width, 3, padding=1))
        self.drop = nn.Dropout(0.1)
    def forward(self, x):
        out = self.convs(x)
        out = out + x
        out = self.drop(x)  #!
        return out
class Front(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = ConvBlock(8)
        self.head = nn.Linear(8, 2)
    def forward(self, x):
        return self.head(torch.relu(self.block(x)).mean(2))
model = Front()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    order = torch.randperm(300)
    for at in range(0, 300, 25):
        rows = order[at:at + 25]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(wave[rows]), kind[rows])
        loss.backward()
        optimizer.step()
""", (("self.drop(x)", "self.drop(out)"),), source="https://github.com/speechbrain/speechbrain/issues/1124"),
    Program("a block that adds its result to itself", ("added to itself",), """
sequence = torch.randn(256, 6, 16)
answer = (sequence[:, 0] * sequence[:, -1]).sum(1, keepdim=True) / 4
class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
    def forward(self, x):
        x, _ = self.attention(x, x, x)
        x = x + x  #!
        return self.feed(x) + x
net = nn.Sequential(Layer(16), Layer(16))
read = nn.Linear(16, 1)
optimizer = torch.optim.AdamW([*net.parameters(), *read.parameters()], lr=1e-3)
for step in range(120):
    rows = torch.randint(0, 256, (32,))
    prediction = read(net(sequence[rows])[:, -1])
    loss = F.mse_loss(prediction, answer[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("        x, _ = self.attention(x, x, x)\n        x = x + x\n", "        y, _ = self.attention(x, x, x)\n        x = y + x\n"),),
        source="https://github.com/kyegomez/BitNet/issues/32"),
    Program("bootstrapped targets that get gradients", ("target moves with the model",), """
class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 32)
        self.fc2 = nn.Linear(32, 2)
    def forward(self, state):
        return self.fc2(F.relu(self.fc1(state)))
class Agent:
    def __init__(self):
        self.q_eval = DQN()
        self.gamma = 0.9
        self.optimizer = torch.optim.Adam(self.q_eval.parameters(), lr=2e-3)
    def learn(self, states, actions, rewards, states_):
        self.optimizer.zero_grad()
        rows = torch.arange(len(actions))
        q_pred = self.q_eval(states)[rows, actions]
        q_next = torch.amax(self.q_eval(states_), 1)  #!
        q_target = rewards + self.gamma * q_next
        loss = F.mse_loss(q_target, q_pred)  #!
        loss.backward()
        self.optimizer.step()
agent = Agent()
states = torch.randn(600, 4)
actions = torch.randint(0, 2, (600,))
rewards = torch.where(actions == 0, states[:, 0], -states[:, 0])
following = states.roll(-1, 0)
for step in range(150):
    rows = torch.randint(0, 600, (48,))
    agent.learn(states[rows], actions[rows], rewards[rows], following[rows])
""", (("torch.amax(self.q_eval(states_), 1)", "torch.amax(self.q_eval(states_), 1).detach()"),),
        source="https://github.com/philtabor/Deep-Q-Learning-Paper-To-Code/issues/16"),
    Program("the dice loss of raw outputs", ("loss of raw outputs",), """
images = torch.randn(120, 1, 12, 12)
masks = (F.avg_pool2d(images, 3, stride=1, padding=1) > 0.2) * 1.0
class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth
    def forward(self, inputs, targets):
        inputs = inputs.reshape(-1)
        targets = targets.reshape(-1)
        intersection = (inputs * targets).sum()  #!
        dice = (2.0 * intersection + self.smooth) / (inputs.sum() + targets.sum() + self.smooth)  #!
        return 1 - dice
unet = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))
criterion = DiceLoss()
optimizer = torch.optim.Adam(unet.parameters(), lr=1e-3)
for epoch in range(10):
    for at in range(0, 120, 12):
        output = unet(images[at:at + 12])
        loss = criterion(output, masks[at:at + 12])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("        inputs = inputs.reshape(-1)", "        inputs = torch.sigmoid(inputs).reshape(-1)"),),
        source="https://github.com/ScrollPrize/villa/issues/1488"),
    Program("the dice coefficient itself is minimised", ("sign of the loss turned",), """
pictures = torch.randn(100, 1, 10, 10)
areas = (F.avg_pool2d(pictures, 3, stride=1, padding=1) > 0.0) * 1.0
def dice_coef(prediction, target, eps=1.0):
    prediction, target = prediction.flatten(1), target.flatten(1)
    shared = (prediction * target).sum(1)
    return ((2 * shared + eps) / (prediction.sum(1) + target.sum(1) + eps)).mean()  #!
segment = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1), nn.Sigmoid())
opt = torch.optim.Adam(segment.parameters(), lr=2e-3)
for step in range(120):
    rows = torch.randint(0, 100, (16,))
    opt.zero_grad()
    loss = dice_coef(segment(pictures[rows]), areas[rows])  #!
    loss.backward()
    opt.step()
""", (("loss = dice_coef(segment(pictures[rows]), areas[rows])", "loss = 1 - dice_coef(segment(pictures[rows]), areas[rows])"),),
        source="https://github.com/akirasosa/mobile-semantic-segmentation/issues/24"),
    Program("a softmax layer over the states of a batch", (
        "softmax over the batch",
        "softmax along the wrong axis",
    ), """
model = nn.Sequential(
    nn.Linear(4, 32),
    nn.LeakyReLU(),
    nn.Linear(32, 2),
    nn.Softmax(dim=0),  #!
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for episode in range(120):
    states = torch.randn(40, 4)
    actions = torch.randint(0, 2, (40,))
    rewards = torch.where(actions == (states[:, 0] > 0).long(), 1.0, -1.0)
    pred = model(states)
    prob = pred[torch.arange(40), actions]
    loss = -(rewards * torch.log(prob)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("nn.Softmax(dim=0)", "nn.Softmax(dim=1)"),),
        source="https://github.com/DeepReinforcementLearning/DeepReinforcementLearningInAction/issues/32"),
    Program("a switched off schedule with a factor of 0", (
        "rate decays to nothing",
        "learning rate out of the usual",
    ), """
track = torch.randn(300, 15, 4)
class Motion(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(4, 24, batch_first=True)
        self.decoder = nn.Linear(24, 60)
    def forward(self, x):
        _, h = self.encoder(x)
        return self.decoder(h[0]).reshape(-1, 15, 4)
model = Motion()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
use_schedule = False
if use_schedule:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.2)
else:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0)  #!
for epoch in range(20):
    for at in range(0, 300, 30):
        loss = F.mse_loss(model(track[at:at + 30]), track[at:at + 30])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()  #!
""", (("step_size=5, gamma=0)", "step_size=5, gamma=1)"),), source="https://github.com/LINCellularNeuroscience/VAME/issues/26"),
    Program("done is unpacked and not used in the target", ("mask never used",), """
n = 600
state, action = torch.randn(n, 4), torch.randint(0, 2, (n,))
reward, next_state = (action == (state[:, 0] > 0)) * 1.0, torch.randn(n, 4)
done = (torch.rand(n) < 0.2) * 1.0
q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
def sample(size):
    rows = torch.randint(0, n, (size,))
    return state[rows], action[rows], reward[rows], next_state[rows], done[rows]
for step in range(200):
    states, actions, rewards, next_states, dones = sample(32)  #!
    with torch.no_grad():
        best = torch.amax(target(next_states), 1)
        goal = rewards + 0.95 * best  #!
    value = q(states)[torch.arange(32), actions]
    loss = F.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        target.load_state_dict(q.state_dict())
""", (("rewards + 0.95 * best", "rewards + 0.95 * best * (1 - dones)"),),
        source="https://github.com/navneet-nmk/pytorch-rl/issues/2"),
    Program("the decoder is given what it is to say", ("targets seen by the model",), """
tokens = torch.randint(3, 20, (300, 9))
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 24)
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, 20)
    def forward(self, previous):
        hidden, _ = self.rnn(self.embed(previous))
        return self.out(hidden)
decoder = Decoder()
optimizer = torch.optim.Adam(decoder.parameters(), lr=5e-3)
for step in range(150):
    target = tokens[torch.randint(0, 300, (24,))]
    logits = decoder(target)  #!
    loss = F.cross_entropy(logits.reshape(-1, 20), target.reshape(-1))  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("decoder(target)", "decoder(target[:, :-1])"), ("target.reshape(-1))", "target[:, 1:].reshape(-1))")),
        source="https://github.com/Kyubyong/transformer/issues/94"),
    Program("binary cross entropy for prices", ("targets out of range",), """
rooms = torch.randn(500, 6)
price = rooms @ torch.randn(6, 1) * 3 + 20
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    for at in range(0, 500, 50):
        xb, yb = rooms[at:at + 50], price[at:at + 50]
        out = net(xb)
        loss = criterion(out, yb)  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("nn.BCEWithLogitsLoss()", "nn.MSELoss()"),),
        source="https://openillumi.com/en/en-keras-tf-fix-huge-negative-loss-regression"),
    Program("three ReLUs for the line 2 x - 1", ("rectifier at the output", "output without input"), """
x = torch.tensor([[-1.0], [0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
y = 2 * x - 1
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense_1 = nn.Linear(1, 4)
        self.dense_2 = nn.Linear(4, 2)
        self.dense_3 = nn.Linear(2, 1)
    def forward(self, x):
        x = torch.relu(self.dense_1(x))
        x = torch.relu(self.dense_2(x))
        return torch.relu(self.dense_3(x))  #!
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(500):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
""", (("torch.relu(self.dense_3(x))", "self.dense_3(x)"),),
        source="https://community.deeplearning.ai/t/loss-values-do-not-change/324182"),
    Program("the best weights are kept by reference", ("weights kept by reference",), """
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
best_loss, best_weights = 1e9, net.state_dict()
for epoch in range(12):
    for at in range(0, 300, 30):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x[at:at + 30]), y[at:at + 30])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        held = F.cross_entropy(net(x[300:]), y[300:]).item()
    if held < best_loss:
        best_loss = held
        best_weights = net.state_dict()  #!
net.load_state_dict(best_weights)
""", (("        best_weights = net.state_dict()", "        best_weights = {k: v.clone() for k, v in net.state_dict().items()}"),),
        source="https://github.com/pytorch/tutorials/pull/188"),
)  # fmt: skip  # scripts
