"""An LSTM (Hochreiter and Schmidhuber 1997) of two layers that names the class of a sequence."""

from __future__ import annotations

from benchmarks.workloads.w10_lstm import problem as p


def network(library):
    """The model in `library`, PyTorch or ours."""
    nn = library.nn

    class Classifier(nn.Module):
        """The last state of the upper layer, and a linear layer."""

        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(p.INPUTS, p.HIDDEN, p.LAYERS, batch_first=True)
            self.head = nn.Linear(p.HIDDEN, p.CLASSES)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    return Classifier()


def loss_fn(library):
    """Cross entropy."""
    return library.nn.functional.cross_entropy
