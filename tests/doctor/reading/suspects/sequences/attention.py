"""Suspects about attention and transformers."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_NET = """
class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.heads, self.d_model = 4, d
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.score = nn.Linear(d, 1)
        {0}
    def forward(self, x, memory, mask):
        b, t, d = x.shape
        q, k, v = self.query(x), self.key(x), self.value(x)
        {1}
"""
_SCALED = "scores = q @ k.transpose(-2, -1) / d**0.5"
_WEIGHTS = "return torch.softmax(scores, dim=-1) @ v"


def _net(*lines: str, made: str = "self.width = d") -> str:
    """Return a module with attention."""
    return _NET.format(made, "\n        ".join(lines))


CASES = (
    Case(
        "scores not scaled",
        _net("scores = q @ k.transpose(-2, -1)", "return torch.softmax(scores, dim=-1) @ v  #!"),
        (("k.transpose(-2, -1)", "k.transpose(-2, -1) * d**-0.5"),),
    ),
    Case(
        "scores scaled the wrong way",
        _net("scores = q @ k.transpose(-2, -1) * d**0.5  #!", _WEIGHTS),
        (("* d**0.5", "/ d**0.5"),),
    ),
    Case(
        "scale of the whole width",
        _net(
            "scores = q @ k.transpose(-2, -1) / self.d_model**0.5",
            "return torch.softmax(scores, dim=-1) @ v  #!",
        ),
        (("self.d_model**0.5", "q.size(-1)**0.5"),),
    ),
    Case(
        "softmax along another axis than the keys",
        _net(_SCALED, "return F.softmax(scores, dim=-2) @ v  #!"),
        (("dim=-2", "dim=-1"),),
    ),
    Case(
        "softmax over an axis of size one",
        _net("scores = self.score(x)", "return (torch.softmax(scores, dim=-1) * v).sum(1)  #!"),
        (("dim=-1", "dim=1"),),
    ),
    Case(
        "scores filled with a common number",
        _net(_SCALED, "scores = scores.masked_fill(mask == 0, -1e-9)  #!", _WEIGHTS),
        (("-1e-9", "-1e9"),),
    ),
    Case(
        "mask multiplied into the scores",
        _net(_SCALED, "scores = scores * mask  #!", _WEIGHTS),
        (("scores * mask", "scores + mask"),),
    ),
    Case(
        "mask of unclear sense",
        _net(_SCALED, "scores = scores.masked_fill(mask == 1, float('-inf'))  #!", _WEIGHTS),
        (("mask == 1", "mask == 0"),),
    ),
    Case(
        "padding mask of what to keep",
        _net(
            "valid = memory.sum(-1) > 0",
            "return self.inner(x, memory, memory, key_padding_mask=valid)[0]  #!",
            made="self.inner = nn.MultiheadAttention(d, 4, batch_first=True)",
        ),
        (("key_padding_mask=valid", "key_padding_mask=~valid"),),
    ),
    Case(
        "mask over queries instead of keys",
        _net(_SCALED, "scores = scores.masked_fill(mask.unsqueeze(-1) == 0, float('-inf'))  #!", _WEIGHTS),
        (("unsqueeze(-1)", "unsqueeze(1)"),),
    ),
    Case(
        "triangle off by one",
        _net("mask = torch.triu(torch.ones(t, t)).bool()  #!", "return self.inner(x, attn_mask=mask)"),
        (("torch.ones(t, t)", "torch.ones(t, t), diagonal=1"),),
    ),
    Case(
        "padding is attended to",
        """
class Reader(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.embed, self.place = nn.Embedding(9, d, padding_idx=0), nn.Parameter(torch.zeros(20, d))
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, batch_first=True), 2)
    def forward(self, x):
        return self.encoder(self.embed(x) + self.place)  #!
""",
        (("+ self.place)", "+ self.place, src_key_padding_mask=x == 0)"),),
    ),
    Case(
        "heads split before the time",
        _net("q = self.query(x).view(b, self.heads, t, -1)  #!", "return q"),
        (("view(b, self.heads, t, -1)", "view(b, t, self.heads, -1).transpose(1, 2)"),),
    ),
    Case(
        "heads joined without a transpose",
        _net(
            "q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2) for one in (q, k, v))",
            "weights = torch.softmax(q @ k.transpose(-2, -1) / d**0.5, dim=-1)",
            "values = weights @ v",
            "return values.reshape(b, t, d)  #!",
        ),
        (("values.reshape", "values.transpose(1, 2).reshape"),),
    ),
    Case(
        "same layer for two of query, key and value",
        _net("k = self.key(memory)", "v = self.key(memory)  #!", "return q, k, v"),
        (("v = self.key(memory)", "v = self.value(memory)"),),
    ),
    Case(
        "cross-attention without its memory",
        _net("return self.cross(x, x, x)  #!"),
        (("(x, x, x)", "(x, memory, memory)"),),
    ),
    Case(
        "attention weights taken as its output",
        _net(
            "_, x = self.inner(x, memory, memory)  #!",
            "return x",
            made="self.inner = nn.MultiheadAttention(d, 4, batch_first=True)",
        ),
        (("_, x =", "x, _ ="),),
    ),
    Case(
        "transformer along the batch",
        """
class Reader(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4), 2)  #!
    def forward(self, x):
        return self.encoder(x).mean(dim=1)
""",
        (("(d, 4)", "(d, 4, batch_first=True)"),),
    ),
    Case(
        "batch-first outputs pooled over the batch",
        """
class Reader(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, batch_first=True), 2)
    def forward(self, x):
        x = self.encoder(x)
        return x.mean(dim=0)  #!
""",
        (("mean(dim=0)", "mean(dim=1)"),),
    ),
    Case(
        "first position under a causal mask",
        _net(
            "x = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
            "return self.score(x[:, 0])  #!",
        ),
        (("x[:, 0]", "x[:, -1]"),),
    ),
    Case(
        "scores scaled the wrong way",
        _net("scores = q @ k.transpose(-2, -1) * self.scale  #!", _WEIGHTS, made="self.scale = d**0.5"),
        (("d**0.5", "d**-0.5"),),
    ),
)
