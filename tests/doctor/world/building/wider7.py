"""The seventh part: a short round of reported faults, written before the doctor had seen them."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("features scaled by the mean of the whole batch", ("examples mixed",), """
plates = torch.randn(300, 2, 8, 8)
first = plates[:, 0, :4].mean((1, 2)).mul(8).clamp(-1, 1).round().long() + 1
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 12, 3, padding=1)
        self.fc = nn.Linear(12 * 16, 3)
    def forward(self, x):
        f = F.avg_pool2d(F.relu(self.conv(x)), 2)
        scale = torch.mean(f.pow(2))  #!
        return self.fc((f / scale).flatten(1))
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(120):
    rows = torch.randint(0, 300, (32,))
    loss = F.cross_entropy(net(plates[rows]), first[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("torch.mean(f.pow(2))", "f.pow(2).mean((1, 2, 3), keepdim=True)"),),
        source="https://github.com/xuexingyu24/License_Plate_Detection_Pytorch/issues/22"),
    Program("a column of losses under a row of masks", ("broadcast in the loss",), """
words = torch.randint(1, 12, (300, 6))
answer = (words[:, 0] + words[:, 1]) % 12
keep = torch.rand(300) > 0.3
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 24)
        self.gru = nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, 12)
    def forward(self, words):
        return F.softmax(self.out(self.gru(self.embed(words))[0][:, -1]), dim=1)
def mask_nll(prob, target, mask):
    entropy = -torch.log(torch.gather(prob, 1, target.view(-1, 1)) + 1e-8)
    return (entropy * mask).sum() / (mask.sum() * 1.0) ** 2  #!
decoder = Decoder()
optimizer = torch.optim.Adam(decoder.parameters(), lr=3e-3)
for step in range(120):
    rows = torch.randint(0, 300, (32,))
    loss = mask_nll(decoder(words[rows]), answer[rows], keep[rows] * 1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("target.view(-1, 1)) + 1e-8)", "target.view(-1, 1)).squeeze(1) + 1e-8)"), (" * 1.0) ** 2", " * 1.0)")),
        source="https://github.com/foamliu/Chatbot/issues/4"),
    Program("a mask for a loss that is one number already", ("averaged before it is weighted",), """
text = torch.cumsum(torch.randint(1, 3, (300, 13)), 1) % 9 + 1
length = torch.randint(5, 13, (300,))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 24)
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.head = nn.Linear(32, 10)
    def forward(self, x):
        return self.head(self.rnn(self.embed(x))[0])
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(100):
    rows = torch.randint(0, 300, (16,))
    x, y = text[rows, :-1], text[rows, 1:]
    loss_mask = ((torch.arange(12).unsqueeze(0) < length[rows].unsqueeze(1)) * 1.0).reshape(-1)
    logits = model(x)
    loss = F.cross_entropy(logits.reshape(-1, 10), y.reshape(-1))  #!
    loss = (loss * loss_mask).sum() / loss_mask.sum()  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("y.reshape(-1))", 'y.reshape(-1), reduction="none")'),),
        source="https://github.com/jingyaogong/minimind/issues/51"),
    Program("pictures of the validation are cropped at random", ("augmentation in validation",), """
images = torch.randn(400, 1, 12, 12)
labels = (images[:, 0, 3:9, 3:9].mean((1, 2)) > 0).long()
def augment(batch):
    out = torch.zeros(len(batch), 1, 8, 8)
    for i in range(len(batch)):
        top, left = int(torch.randint(0, 5, (1,))), int(torch.randint(0, 5, (1,)))
        out[i] = batch[i, :, top:top + 8, left:left + 8]
    return out
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(8):
    net.train()
    for at in range(0, 320, 32):
        loss = F.cross_entropy(net(augment(images[at:at + 32])), labels[at:at + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        out = net(augment(images[320:]))  #!
        print(epoch, (out.argmax(1) == labels[320:]).sum().item() / 80)
""", (("net(augment(images[320:]))", "net(images[320:, :, 2:10, 2:10])"),),
        source="https://github.com/zoogzog/chexnet/issues/27"),
    Program("the generator's step sees a detached fake", (
        "no gradients in a step",
        "no gradient",
        "loss detached",
        "loss term detached",
        "gradient cut in the loss",
        "never updated",
    ), """
photos = torch.randn(300, 8) * 0.4 + 0.8
netG = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
netD = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizerD = torch.optim.Adam(netD.parameters(), lr=5e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=5e-4, betas=(0.5, 0.999))
for step in range(120):
    real = photos[torch.randint(0, 300, (32,))]
    fake = netG(torch.randn(32, 4))
    netD.zero_grad()
    errD = -netD(real).mean() + netD(fake.detach()).mean() + 0.1 * netD(real).pow(2).mean()
    errD.backward()
    optimizerD.step()
    netG.zero_grad()
    output = netD(fake.detach())  #!
    errG = -output.mean()
    errG.backward()  #!
    optimizerG.step()  #!
""", (("output = netD(fake.detach())", "output = netD(fake)"),), source="https://github.com/tamarott/SinGAN/pull/117"),
    Program("a dataset that augments its own pictures", ("inputs change from epoch to epoch",), """
from torch.utils.data import DataLoader, Dataset
class Cifar(Dataset):
    def __init__(self):
        self.inputs = 120 + 60 * torch.randn(160, 3, 6, 6)
        self.labels = (self.inputs[:, 0].mean((1, 2)) > 120).long()
    def __len__(self):
        return len(self.labels)
    def __getitem__(self, index):
        im = self.inputs[index]
        im -= 120  #!
        im /= 60  #!
        return im, self.labels[index]
model = nn.Sequential(nn.Flatten(), nn.Linear(108, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = DataLoader(Cifar(), batch_size=20, shuffle=True)
for epoch in range(15):
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("im = self.inputs[index]", "im = self.inputs[index] * 1.0"),),
        source="https://github.com/facebookresearch/pycls/pull/21"),
    Program("demand stands beside the components that predict it", ("target among the inputs",), """
weather = torch.randn(600, 6)
demand = (weather[:, :1] * 2 + weather[:, 1:2].abs() + 0.3 * torch.randn(600, 1))
demand = (demand - demand.mean()) / demand.std()
data_norm = torch.cat([weather, demand], 1)
train, valid = data_norm[:480], data_norm[480:]
model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(15):
    order = torch.randperm(480)
    for at in range(0, 480, 40):
        batch = train[order[at:at + 40]]
        loss = F.mse_loss(model(batch), batch[:, -1:])  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""", (("model(batch)", "model(batch[:, :-1])"), ("nn.Linear(7, 32)", "nn.Linear(6, 32)")),
        source="https://github.com/ritikdhame/Electricity_Demand_and_Price_forecasting/issues/1"),
    Program("prices scaled before they are split", ("statistics of the test set",), """
prices = torch.randn(700).cumsum(0)
low, high = prices.min(), prices.max()  #!
prices = (prices - low) / (high - low)  #!
windows = torch.stack([prices[i:i + 10] for i in range(680)])
following = prices[10:690].unsqueeze(1)
train_x, train_y, test_x, test_y = windows[:540], following[:540], windows[540:], following[540:]
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(150):
    rows = torch.randint(0, 540, (32,))
    loss = F.mse_loss(net(train_x[rows]), train_y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(F.mse_loss(net(test_x), test_y).item())
""", (("prices.min(), prices.max()", "prices[:540].min(), prices[:540].max()"),),
        source="https://github.com/huseinzol05/Stock-Prediction-Models/issues/126"),
    Program("statistics that hardly move", ("running statistics do not arrive",), """
x = 5 + 3 * torch.randn(400, 2, 6, 6)
y = (x[:, 0].mean((1, 2)) > x[:, 1].mean((1, 2))).long()
net = nn.Sequential(
    nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8, momentum=0.0005), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2)  #!
)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(8):
    net.train()
    for at in range(0, 320, 32):
        loss = F.cross_entropy(net(x[at:at + 32]), y[at:at + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, (net(x[320:]).argmax(1) == y[320:]).sum().item() / 80)
""", (("momentum=0.0005", "momentum=0.1"),), source="https://github.com/pytorch/pytorch/issues/3869"),
    Program("labels shifted by the data and by the loss", ("targets shifted twice",), """
book = torch.cumsum(torch.randint(1, 3, (300, 18)), 1) % 11
def collate(rows):
    ids = book[rows]
    return ids[:, :-1], ids[:, 1:]
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.head = nn.Linear(48, 11)
    def forward(self, ids, labels):
        logits = self.head(self.rnn(self.embed(ids))[0])
        shifted, wanted = logits[:, :-1], labels[:, 1:]  #!
        return F.cross_entropy(shifted.reshape(-1, 11), wanted.reshape(-1))  #!
model = LM()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(120):
    ids, labels = collate(torch.randint(0, 300, (16,)))
    loss = model(ids, labels)  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("logits[:, :-1], labels[:, 1:]", "logits, labels"),), source="https://github.com/InternLM/InternLM/issues/318"),
)  # fmt: skip  # scripts
