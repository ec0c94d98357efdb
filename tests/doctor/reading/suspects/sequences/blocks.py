"""Suspects about blocks of transformers."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_PLACES = """
class Reader(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.embed, self.position = nn.Embedding(9, d), nn.Embedding(20, d)
    def forward(self, x):
        place = torch.zeros_like(x)  #!
        return self.embed(x) + self.position(place)
"""

CASES = (
    Case(
        "query, key and value in another order",
        "x = F.scaled_dot_product_attention(q, v, k)  #!\n",
        (("(q, v, k)", "(q, k, v)"),),
    ),
    Case(
        "keys times queries",
        """
def attend(q, k, v):
    scores = k @ q.transpose(-2, -1) / 8**0.5  #!
    return torch.softmax(scores, dim=-1) @ v
""",
        (("k @ q.transpose", "q @ k.transpose"),),
    ),
    Case(
        "softmax over the queries of an einsum",
        """
def attend(q, k, v):
    scores = torch.einsum("bqd,bkd->bqk", q, k) / 8**0.5
    weights = torch.softmax(scores, dim=1)  #!
    return torch.einsum("bqk,bkd->bqd", weights, v)
""",
        (("dim=1", "dim=2"),),
    ),
    Case(
        "mask added to the scores",
        """
def attend(q, k, v, future):
    scores = q @ k.transpose(-2, -1) / 8**0.5 + future * -1e-9  #!
    return torch.softmax(scores, dim=-1) @ v
""",
        (("-1e-9", "-1e9"),),
    ),
    Case(
        "attention without a residual",
        """
class Block(nn.Module):
    def forward(self, x):
        x = self.attend(self.norm(x))  #!
        return x + self.feed(x)
""",
        (("x = self.attend(", "x = x + self.attend("),),
    ),
    Case("LayerNorm over the length", "norm = nn.LayerNorm(seq_len)  #!\n", (("seq_len", "width"),)),
    Case("positions all alike", _PLACES, (("torch.zeros_like(x)", "torch.arange(x.size(1))"),)),
    Case(
        "positions that nobody trains",
        """
class Reader(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.pos_embed = torch.randn(20, d)  #!
""",
        (("torch.randn(20, d)", "nn.Parameter(torch.randn(20, d))"),),
    ),
    Case(
        "frequencies that grow",
        """
def table(n, d):
    rate = 10000 ** (torch.arange(0, d, 2) / d)  #!
    return torch.sin(torch.arange(n)[:, None] * rate)
""",
        (("(torch.arange(0, d, 2) / d)", "(-torch.arange(0, d, 2) / d)"),),
    ),
    Case(
        "class token at the other end",
        """
class Reader(nn.Module):
    def forward(self, x):
        x = self.encoder(torch.cat([x, self.cls], dim=1))
        return self.head(x[:, 0])  #!
""",
        (("[x, self.cls]", "[self.cls, x]"),),
    ),
)
