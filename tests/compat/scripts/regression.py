"""Linear regression on a Dataset of one's own, with a device and a learning rate schedule."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class Line(Dataset):
    def __init__(self, n=64, transform=None):
        rng = np.random.RandomState(0)
        self.x = rng.rand(n, 3).astype(np.float32)
        self.y = self.x @ np.array([[1.0], [-2.0], [0.5]], dtype=np.float32) + 0.3
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        sample = torch.from_numpy(self.x[idx]), torch.tensor(self.y[idx], dtype=torch.float32)
        return self.transform(sample) if self.transform else sample


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(Line(), batch_size=16, shuffle=False, num_workers=0, pin_memory=False)
model = nn.Linear(3, 1).to(device)
with torch.no_grad():
    for p in model.parameters():
        p.zero_()
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)
for epoch in range(20):
    model.train()
    running_loss = 0.0
    for i, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device)
        optimizer.zero_grad(set_to_none=True)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        running_loss += loss.item() * inputs.size(0)
    scheduler.step()
    if epoch % 5 == 4:
        lr = scheduler.get_last_lr()[0]
        print(
            f"epoch {epoch + 1} loss {running_loss / len(loader.dataset):.4f} lr {optimizer.param_groups[0]['lr']} {lr}"
        )
model.eval()
with torch.no_grad():
    print([round(v, 2) for v in model.weight.cpu().numpy().ravel().tolist()], round(model.bias.item(), 2))
