"""Digits made of noise and a bright row, learnt by several processes that update one model without locks.

It prints what does not depend on the order of the updates; with one process, that is every loss.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch import multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3)
        self.norm = nn.BatchNorm2d(4)
        self.fc1 = nn.Linear(4 * 5 * 5, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.norm(self.conv(x)), 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(x), dim=1)


def fill(model):
    """Give the same weights whatever the generator."""
    for number, parameter in enumerate(model.parameters()):
        values = torch.arange(parameter.numel(), dtype=torch.float64) * 0.7 + number
        parameter.data.copy_((torch.sin(values) * 0.2).view_as(parameter))


def digits(count):
    places = torch.arange(count * 144, dtype=torch.float64)
    images = (torch.sin(places * places * 0.01) * 0.3).view(count, 1, 12, 12).float()
    labels = torch.arange(count) * 7 % 10
    for image, label in zip(images, labels):
        image[0, label.item() + 1] += 1.0
    return TensorDataset(images, labels)


def train(rank, args, model, dataset, steps, losses):
    torch.manual_seed(args.seed + rank)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=args.processes > 1)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    model.train()
    for epoch in range(1, args.epochs + 1):
        for data, target in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            steps[rank] += 1
            losses.put(loss.item())


def test(model, dataset):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in DataLoader(dataset, batch_size=100):
            correct += (model(data).argmax(dim=1) == target).sum().item()
    return correct / len(dataset)


def main():
    parser = argparse.ArgumentParser(description="Hogwild")
    parser.add_argument("--start", default="spawn")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    mp.set_start_method(args.start, force=True)
    torch.manual_seed(args.seed)
    dataset = digits(200)
    model = Net()
    fill(model)
    model.share_memory()  # gradients are allocated lazily, so they are not shared
    print("shared", all(parameter.is_shared() for parameter in model.parameters()), test(model, dataset) < 0.3)
    before = [parameter.detach().clone() for parameter in model.parameters()]

    steps = torch.zeros(args.processes, dtype=torch.int64).share_memory_()
    losses = mp.Queue()
    processes = []
    for rank in range(args.processes):
        p = mp.Process(target=train, args=(rank, args, model, dataset, steps, losses))
        p.start()
        processes.append(p)
    total = args.processes * args.epochs * len(dataset) // args.batch_size
    seen = [losses.get() for _ in range(total)]
    for p in processes:
        p.join()

    print("exit codes", [p.exitcode for p in processes], "steps", steps.tolist())
    print("all weights moved", all(bool((a != b).any()) for a, b in zip(before, model.parameters())))
    print("learnt", test(model, dataset) > 0.6)
    if args.processes == 1:
        print("losses", *(f"{loss:.4f}" for loss in seen))
        print("batches", model.norm.num_batches_tracked.item())


if __name__ == "__main__":
    main()
