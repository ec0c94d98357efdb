"""Actors with a copy of the model each, one shared model and one shared optimizer, as asynchronous methods have them."""

import sys

import torch
import torch.multiprocessing as mp
import torch.nn as nn


class SharedAdam(torch.optim.Adam):
    """Adam whose state all processes see."""

    def __init__(self, params, lr=0.01, betas=(0.9, 0.99), eps=1e-8):
        super().__init__(params, lr=lr, betas=betas, eps=eps)
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = torch.zeros(())
                state["exp_avg"] = torch.zeros_like(p.data)
                state["exp_avg_sq"] = torch.zeros_like(p.data)
                state["step"].share_memory_()
                state["exp_avg"].share_memory_()
                state["exp_avg_sq"].share_memory_()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


class Actor(mp.Process):
    def __init__(self, rank, shared, optimizer, counter, lock, results):
        super().__init__()
        self.rank, self.shared, self.optimizer = rank, shared, optimizer
        self.counter, self.lock, self.results = counter, lock, results
        self.local = Model()

    def run(self):
        torch.manual_seed(self.rank)
        for _ in range(40):
            self.local.load_state_dict(self.shared.state_dict())
            x = torch.randn(16, 3)
            loss = ((self.local(x) - x.sum(1, keepdim=True)) ** 2).mean()
            self.local.zero_grad()
            loss.backward()
            with self.lock:
                for theirs, mine in zip(self.shared.parameters(), self.local.parameters()):
                    theirs._grad = mine.grad
                self.optimizer.step()
                self.counter.value += 1
            self.results.put(loss.item())
        self.results.put(None)


def main():
    mp.set_start_method(sys.argv[1] if len(sys.argv) > 1 else "fork", force=True)
    torch.manual_seed(0)
    shared = Model()
    shared.share_memory()
    optimizer = SharedAdam(shared.parameters())
    counter, lock, results = mp.Value("i", 0), mp.Lock(), mp.Queue()
    actors = [Actor(rank, shared, optimizer, counter, lock, results) for rank in range(3)]
    for actor in actors:
        actor.start()
    losses, ended = [], 0
    while ended < len(actors):
        got = results.get()
        if got is None:
            ended += 1
        else:
            losses.append(got)
    for actor in actors:
        actor.join()
    print("updates", counter.value, "losses", len(losses), [actor.exitcode for actor in actors])
    print("falls", sum(losses[-15:]) < 0.5 * sum(losses[:15]))
    print("steps of the optimizer", sorted({int(state["step"]) for state in optimizer.state.values()}))
    print("moments", all(bool((state["exp_avg_sq"] > 0).any()) for state in optimizer.state.values()))


if __name__ == "__main__":
    main()
