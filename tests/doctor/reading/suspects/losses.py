"""Suspects about losses: what is compared with what, reductions, weights of terms, distributions."""

from __future__ import annotations

from tests.doctor.reading.case import Case
from tests.doctor.reading.suspects import losses_more

_OF_LIBRARY = (
    Case(
        "one unit for several classes",
        """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.CrossEntropyLoss()
for x, y in batches:
    out = model(x)
    loss = criterion(out, y)  #!
""",
        (("16, 1)", "16, 3)"),),
    ),
    Case(
        "softmax of a single unit",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 1)
    def forward(self, x):
        return F.softmax(self.out(x), dim=-1)  #!
""",
        (("(8, 1)", "(8, 2)"),),
    ),
    Case(
        "bounded before a loss of logits",
        """
class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU())
    def forward(self, x):
        return self.layers(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(1, 8)
        self.last = Block(8, 1)  #!
    def forward(self, x):
        return self.last(self.first(x))
model = Net()
for x, y in batches:
    loss = F.binary_cross_entropy_with_logits(model(x), y)
""",
        (("self.last = Block(8, 1)", "self.last = nn.Conv2d(8, 1, 1)"),),
    ),
    Case(
        "bounded before a loss of logits",
        """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
for x, y in batches:
    logits = torch.tanh(model(x))  #!
    loss = F.cross_entropy(logits, y)  #!
""",
        (("torch.tanh(model(x))", "model(x)"),),
    ),
    Case(
        "classes by squared error",
        """
mse = nn.MSELoss()
for x, y in batches:
    loss = mse(net(x), F.one_hot(y, 10).float())  #!
""",
        (("mse(net(x), F.one_hot(y, 10).float())", "F.cross_entropy(net(x), y)"),),
    ),
    Case(
        "several answers by cross entropy",
        """
criterion = nn.CrossEntropyLoss()
for x, labels in batches:
    loss = criterion(net(x), labels.float())  #!
""",
        (("nn.CrossEntropyLoss", "nn.BCEWithLogitsLoss"),),
    ),
    Case(
        "softmax before a binary loss",
        """
net = nn.Sequential(nn.Linear(8, 4))
for x, y in batches:
    probs = torch.softmax(net(x), dim=1)  #!
    loss = F.binary_cross_entropy(probs, y)  #!
""",
        (("torch.softmax(net(x), dim=1)", "torch.sigmoid(net(x))"),),
    ),
    Case(
        "cosines as logits",
        """
def classify(features, weight, labels):
    cosine = F.linear(F.normalize(features), F.normalize(weight))  #!
    return F.cross_entropy(cosine, labels)
""",
        (("F.cross_entropy(cosine,", "F.cross_entropy(30.0 * cosine,"),),
    ),
    Case(
        "loss of a value with itself",
        """
for x, y in batches:
    out = net(x)
    loss = F.mse_loss(out, out)  #!
""",
        (("(out, out)", "(out, y)"),),
    ),
    Case(
        "prediction and target of different parts",
        """
pred_train = net(x_train)
loss = F.mse_loss(pred_train, y_test)  #!
""",
        (("y_test", "y_train"),),
    ),
    Case(
        "target of another output",
        """
for x, y_age, y_height in batches:
    out_age, out_height = net(x)
    first = F.mse_loss(out_age, y_age)
    second = F.mse_loss(out_height, y_age)  #!
    fake, real = net(x), y_age
    third = F.mse_loss(judge_real, F.relu(judge_real)) + F.l1_loss(fake, real)
    guess_1, view_1, guess_2, view_2 = head(x), net(x), head(-x), net(-x)
    fourth = F.mse_loss(guess_1, view_2) + F.mse_loss(guess_2, view_1)
""",
        (("(out_height, y_age)", "(out_height, y_height)"),),
    ),
    Case(
        "labels that no loss reads",
        """
def step(docs, grades):
    optimizer.zero_grad()
    loss = list_loss(net(docs))  #!
    loss.backward()
    optimizer.step()
for at in order:
    step(x[at], y[at])
""",
        (("list_loss(net(docs))", "list_loss(net(docs), grades)"),),
    ),
    Case(
        "labels that no loss reads",
        """
def step(net, x, labels):
    loss = list_loss(net(x))  #!
    loss.backward()
for at, (x, labels) in enumerate(batches):
    optimizer.zero_grad()
    step(net, x, labels)
    optimizer.step()
""",
        (("list_loss(net(x))", "list_loss(net(x), labels)"),),
    ),
    Case(
        "labels that no loss reads",
        """
for x, labels in batches:
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), x.mean(1))  #!
    loss.backward()
    optimizer.step()
""",
        (("x.mean(1)", "labels"),),
    ),
    Case(
        "prediction cut before its loss",
        """
for x, y in batches:
    out = torch.clamp(net(x), 0, 1)  #!
    loss = F.mse_loss(out, y)
""",
        (("torch.clamp(net(x), 0, 1)", "net(x)"),),
    ),
    Case(
        "logits viewed before their loss",
        """
for x, y in batches:
    logits = net(x).view(x.size(0), 21, -1)  #!
    loss = F.cross_entropy(logits, y)
""",
        (("net(x).view(x.size(0), 21, -1)", "net(x).permute(0, 2, 1)"),),
    ),
    Case(
        "normalised along the batch",
        """
def embed(x):
    return F.normalize(net(x), dim=0)  #!
""",
        (("dim=0", "dim=1"),),
    ),
    Case(
        "logarithm as the target of kl_div",
        """
criterion = nn.KLDivLoss(reduction="batchmean")
loss = criterion(F.log_softmax(a, dim=1), F.log_softmax(b, dim=1))  #!
""",
        (("F.log_softmax(b", "F.softmax(b"),),
    ),
    Case(
        "kl_div averaged over the classes",
        """
criterion = nn.KLDivLoss()  #!
loss = criterion(F.log_softmax(a, dim=1), F.softmax(b, dim=1))
""",
        (("nn.KLDivLoss()", 'nn.KLDivLoss(reduction="batchmean")'),),
    ),
    Case(
        "kl_div the other way round",
        """
def distil(student_logits, teacher_logits):
    student = F.softmax(student_logits, dim=1)
    teacher = F.log_softmax(teacher_logits, dim=1)
    return F.kl_div(teacher, student, reduction="batchmean")  #!
""",
        (
            ("F.softmax(student", "F.log_softmax(student"),
            ("F.log_softmax(teacher", "F.softmax(teacher"),
            ("(teacher, student,", "(student, teacher,"),
        ),
    ),
    Case(
        "temperature on one side",
        """
T = 4.0
soft = F.softmax(teacher(x) / T, dim=1)
loss = F.kl_div(F.log_softmax(student(x), dim=1), soft, reduction="batchmean")  #!
""",
        (("student(x), dim", "student(x) / T, dim"),),
    ),
    Case(
        "deviation given as a variance",
        """
mean, sigma = net(x)
loss = nn.GaussianNLLLoss()(mean, y, sigma)  #!
""",
        (("y, sigma)", "y, sigma**2)"),),
    ),
    Case(
        "rate or logarithm for the Poisson loss",
        """
criterion = nn.PoissonNLLLoss()
rate = F.softplus(net(x))
loss = criterion(rate, counts)  #!
""",
        (("nn.PoissonNLLLoss()", "nn.PoissonNLLLoss(log_input=False)"),),
    ),
    Case(
        "lengths or axes of the CTC loss",
        """
logp = F.log_softmax(net(x).transpose(0, 1), dim=-1)
loss = F.ctc_loss(logp, targets, target_lengths, input_lengths)  #!
""",
        (("target_lengths, input_lengths", "input_lengths, target_lengths"),),
    ),
    Case(
        "triplet in another order",
        """
triplet = nn.TripletMarginLoss(margin=0.5)
loss = triplet(anchor, negative, positive)  #!
""",
        (("negative, positive", "positive, negative"),),
    ),
    Case(
        "similarity instead of a distance",
        """
criterion = nn.TripletMarginWithDistanceLoss(distance_function=nn.CosineSimilarity())  #!
""",
        (("nn.CosineSimilarity()", "lambda a, b: 1 - F.cosine_similarity(a, b)"),),
    ),
    Case(
        "multi-hot labels for the margin loss",
        """
criterion = nn.MultiLabelMarginLoss()  #!
loss = criterion(net(x), y)
""",
        (("MultiLabelMarginLoss", "MultiLabelSoftMarginLoss"),),
    ),
    Case(
        "first class ignored",
        """
PAD = 0
names = ["NOUN", "VERB", "ADJ"]
numbers = {name: at for at, name in enumerate(names)}
y = nn.utils.rnn.pad_sequence([torch.tensor([numbers[one] for one in row]) for row in rows], padding_value=PAD)
loss = F.cross_entropy(net(x), y, ignore_index=PAD)  #!
""",
        (('= ["NOUN"', '= ["<pad>", "NOUN"'),),
    ),
    Case(
        "ignored index of a real class",
        """
criterion = nn.CrossEntropyLoss(ignore_index=0)  #!
loss = criterion(net(x), y)
""",
        (("ignore_index=0", "ignore_index=-100"),),
    ),
    Case(
        "ignored places in a mean",
        """
criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="none")
token_loss = criterion(logits, y)
loss = token_loss.mean()  #!
""",
        (("token_loss.mean()", "token_loss.sum() / (y != PAD).sum()"),),
    ),
    Case(
        "weights times a mean",
        """
criterion = nn.CrossEntropyLoss()
loss = (criterion(net(x), y) * sample_weights).mean()  #!
""",
        (("nn.CrossEntropyLoss()", 'nn.CrossEntropyLoss(reduction="none")'),),
    ),
    Case(
        "strong label smoothing",
        """
criterion = nn.CrossEntropyLoss(label_smoothing=0.9)  #!
""",
        (("0.9", "0.1"),),
    ),
    Case(
        "threshold of a robust loss",
        """
criterion = nn.HuberLoss(delta=1e-4)  #!
""",
        (("1e-4", "1.0"),),
    ),
    Case(
        "pos_weight upside down",
        """
pos, neg = y.sum(), (1 - y).sum()
criterion = nn.BCEWithLogitsLoss(pos_weight=pos / neg)  #!
""",
        (("pos / neg", "neg / pos"),),
    ),
    Case(
        "weights of the classes",
        """
criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.1, 0.9]))  #!
""",
        (("weight=torch.tensor([0.1, 0.9])", ""),),
    ),
    Case(
        "names of prediction and target exchanged",
        """
def objective(logits, targets):
    return F.binary_cross_entropy_with_logits(targets, logits)  #!
""",
        (("logits(targets, logits)", "logits(logits, targets)"),),
    ),
    Case(
        "mask that a loss never reads",
        """
def masked_mse_loss(pred, target, mask):
    error = (pred - target) ** 2
    return error.mean()  #!
loss = masked_mse_loss(model(x), x, known)
""",
        (("return error.mean()", "return (error * mask).sum() / mask.sum()"),),
    ),
    Case(
        "pairs labelled the other way",
        """
def draw(data, i, j, a, b):
    return data[i], data[j], (a == b).float()
def contrastive(d, s, margin=2.0):
    return ((1.0 - s) * d ** 2 + s * torch.clamp(margin - d, min=0) ** 2).mean()  #!
""",
        (("a == b", "a != b"),),
    ),
    Case(
        "pairs labelled the other way",
        """
class Pairs:
    def __getitem__(self, i):
        j = torch.randint(0, len(self.x), (1,)).item()
        label = float(self.labels[i] == self.labels[j])
        return self.x[i], self.x[j], label
def contrastive_loss(a, b, y, margin=1.0):
    dist = F.pairwise_distance(a, b)
    near, far = dist.pow(2), F.relu(margin - dist).pow(2)
    return ((1 - y) * near + y * far).mean()  #!
""",
        (("self.labels[i] == self", "self.labels[i] != self"),),
    ),
    Case(
        "pairs labelled the other way",
        """
def pair(x, same):
    if same:
        target = 0
    else:
        target = 1
    return x, target
def contrastive_loss(d, target, margin=1.0):
    return (target * d ** 2 + (1 - target) * F.relu(margin - d) ** 2).mean()  #!
""",
        (("target * d ** 2 + (1 - target)", "(1 - target) * d ** 2 + target"),),
    ),
    Case(
        "pairs labelled the other way",
        """
def draw(data, k):
    alike = bool(torch.rand(()) < 0.5)
    other = k if alike else k + 1
    return data[k], data[other], torch.tensor([float(alike)])
def contrastive(d, s, margin=2.0):
    attraction = (1.0 - s) * d ** 2
    repulsion = s * torch.clamp(margin - d, min=0) ** 2  #!
    return (attraction + repulsion).mean()
""",
        (("float(alike)", "float(not alike)"),),
    ),
    Case(
        "pairs labelled the other way",
        """
pairs = []
for _ in range(100):
    match = torch.rand(()) < 0.5
    pairs.append((first(match), second(match), 1 if match else 0))
def distance_loss(dist, y, m=1.0):
    return ((1 - y) * dist.square() + y * F.relu(m - dist).square()).mean()  #!
""",
        (("(1 - y) * dist.square() + y", "y * dist.square() + (1 - y)"),),
    ),
    Case(
        "noise in the target as well",
        """
model = nn.Linear(9, 9)
for x in batches:
    optimizer.zero_grad()
    x = x + 0.3 * torch.randn(20, 9)  #!
    loss = F.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
""",
        (("    x = x +", "    noisy = x +"), ("model(x)", "model(noisy)")),
    ),
    Case(
        "missing labels taken for negatives",
        """
UNKNOWN = -1
y = torch.where(tested, answers, UNKNOWN)
loss = F.binary_cross_entropy_with_logits(model(x), y.clamp(min=0))  #!
""",
        (("clamp(min=0))", "clamp(min=0), weight=(y != UNKNOWN).float())"),),
    ),
)
CASES = (*_OF_LIBRARY, *losses_more.CASES)
