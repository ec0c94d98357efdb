"""Data loading: collate functions, samplers, workers, map and iterable datasets, batches of dictionaries."""

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
)


class Words(Dataset):
    data = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return {"ids": torch.tensor(self.data[i]), "label": i % 2, "name": f"w{i}"}


def collate_fn(batch):
    ids = pad_sequence([b["ids"] for b in batch], batch_first=True, padding_value=0)
    return {"ids": ids, "mask": ids != 0, "label": torch.LongTensor([b["label"] for b in batch])}


for batch in DataLoader(Words(), batch_size=2, collate_fn=collate_fn):
    print(batch["ids"].tolist(), batch["mask"].sum(1).tolist(), batch["label"].tolist())


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


print([b.tolist() for b in DataLoader(Stream(), batch_size=2)])
pairs = [(float(i), {"x": torch.ones(2) * i, "y": i}) for i in range(4)]
first, rest = next(iter(DataLoader(pairs, batch_size=4)))
print(first.tolist(), rest["x"].shape, rest["y"].tolist())
whole = ConcatDataset([Subset(pairs, [0, 1]), Subset(pairs, [3])])
print(len(whole), whole[2][0])
loader = DataLoader(range(10), batch_size=3, sampler=SequentialSampler(range(10)), drop_last=True)
print(len(loader), [b.tolist() for b in loader])
torch.manual_seed(0)
print(sorted(torch.cat(list(DataLoader(range(10), batch_size=4, shuffle=True))).tolist()))
print(len(list(RandomSampler(range(7)))), set(WeightedRandomSampler([0.0, 1.0], 5)))
print(torch.cat(list(DataLoader(torch.arange(6), batch_size=4, num_workers=2))).tolist())
it = iter(DataLoader(range(4), batch_size=2))
print(next(it).tolist(), next(it).tolist(), next(it, None))
