"""A transformer encoder (Vaswani et al. 2017) that names the class of a text."""

from __future__ import annotations

from benchmarks.workloads.w13_encoder import problem as p


def network(library, dropout=p.DROPOUT):
    """The model in `library`, PyTorch or ours."""
    nn = library.nn

    class Classifier(nn.Module):
        """Embeddings of tokens and places, the encoder, the mean over places, and a linear layer."""

        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(p.VOCABULARY, p.WIDTH)
            self.positions = nn.Embedding(p.PLACES, p.WIDTH)
            layer = nn.TransformerEncoderLayer(p.WIDTH, p.HEADS, p.INNER, dropout=dropout, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, p.LAYERS, enable_nested_tensor=False)
            self.head = nn.Linear(p.WIDTH, p.CLASSES)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.positions.weight
            return self.head(self.encoder(x).mean(1))

    return Classifier()


def loss_fn(library):
    """Cross entropy."""
    return library.nn.functional.cross_entropy
