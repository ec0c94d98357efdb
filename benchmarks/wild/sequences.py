"""Families of programs on sequences, words and graphs."""

from __future__ import annotations

import numpy as np

from benchmarks.wild.draw import Draw, Program, dense, joined


def recurrent(d: Draw) -> Program:
    """A recurrent network of a library's own, and a head on its last or its every place."""
    kind, inputs, width = d.among("RNN", "GRU", "LSTM"), d.among(1, 6, 13, 40), d.width(128)
    layers, both, every, length = (
        d.among(1, 1, 2),
        d.among(False, False, True),
        d.among(True, False),
        d.among(10, 24, 50),
    )

    def model(T, dropout):
        nn = T.nn
        parts = {"cells": getattr(nn, kind)(inputs, width, layers, batch_first=True, bidirectional=both)}
        return joined(
            T,
            lambda self, x: self.head(self.cells(x)[0] if every else self.cells(x)[0][:, -1]).squeeze(-1),
            **parts,
            head=nn.Linear(2 * width if both else width, 1),
        )

    return Program(
        f"{'bidirectional ' if both else ''}{kind}, {layers} of {width}, {length} places, head on"
        f" {'every place' if every else 'the last'}",
        model,
        lambda T, m, x, y: T.nn.functional.mse_loss(m(x), y),
        d.batches(lambda n: (d.normal(n, length, inputs), d.normal(n, length) if every else d.normal(n)), 64),
    )


def language(d: Draw) -> Program:
    """The next token by an embedding and a recurrent network."""
    tokens, width, kind, length = d.among(30, 65, 200, 1000), d.width(128), d.among("GRU", "LSTM"), d.among(16, 32, 64)
    drop = d.among(0.0, 0.2)

    def model(T, dropout):
        nn = T.nn
        return joined(
            T,
            lambda self, x: self.head(self.drop(self.cells(self.tokens(x))[0])),
            tokens=nn.Embedding(tokens, width),
            cells=getattr(nn, kind)(width, width, batch_first=True),
            drop=nn.Dropout(drop * dropout),
            head=nn.Linear(width, tokens),
        )

    return Program(
        f"language model by {kind} of {width}, {tokens} tokens, {length} places, dropout {drop}",
        model,
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x).view(-1, tokens), y.view(-1)),
        d.batches(lambda n: (d.below(tokens, n, length), d.below(tokens, n, length)), 32),
    )


def cells(d: Draw) -> Program:
    """A recurrence written as a loop: a cell of the library, or one of the user's own."""
    kind, inputs, width, length = d.among("GRUCell", "RNNCell", "own"), d.among(2, 8), d.width(96), d.among(5, 10, 20)

    def model(T, dropout):
        nn = T.nn
        cell = nn.Linear(inputs + width, 2 * width) if kind == "own" else getattr(nn, kind)(inputs, width)
        return joined(T, cell=cell, head=nn.Linear(width, 3))

    def loss(T, m, x, y):
        state = T.zeros(len(x), width)
        for place in range(length):
            if kind == "own":
                gate, new = m.cell(T.cat([x[:, place], state], 1)).chunk(2, dim=1)
                gate = T.sigmoid(gate)
                state = gate * state + (1 - gate) * T.tanh(new)
            else:
                state = m.cell(x[:, place], state)
        return T.nn.functional.cross_entropy(m.head(state), y)

    text = f"loop over {length} places of {'a gated cell' if kind == 'own' else kind} of {width}"
    return Program(text, model, loss, d.batches(lambda n: (d.normal(n, length, inputs), d.below(3, n))))


def encoder(d: Draw) -> Program:
    """Layers of the library's transformer encoder."""
    width, heads, layers, length = d.among(32, 64, 96, 128), d.among(2, 4, 8), d.among(1, 2), d.among(10, 32, 64)
    drop, first, activation = d.among(0.0, 0.1), d.among(True, False), d.among("relu", "gelu")

    def model(T, dropout):
        nn = T.nn
        options = {"dropout": drop * dropout, "activation": activation, "batch_first": True, "norm_first": first}
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, **options)
        return joined(
            T,
            lambda self, x: self.head(self.encoder(self.tokens(x) + self.places).mean(1)),
            tokens=nn.Embedding(500, width),
            places=nn.Parameter(T.zeros(length, width)),
            encoder=nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
            head=nn.Linear(width, 4),
        )

    return Program(
        f"transformer encoder, {layers} of {width}, {heads} heads, {length} places, dropout {drop}, {activation}",
        model,
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x), y),
        d.batches(lambda n: (d.below(500, n, length), d.below(4, n)), 32),
    )


def decoder(d: Draw) -> Program:
    """Causal attention written out, with the norms of newer models (Zhang and Sennrich 2019) or the usual ones."""
    width, heads, layers, length = d.among(32, 64, 128), d.among(2, 4), d.among(1, 2, 3), d.among(16, 32, 64)
    tokens, norm, gated = d.among(50, 100, 300), d.among("LayerNorm", "RMSNorm"), d.among(True, False)

    def block(T):
        nn = T.nn

        def forward(self, x):
            n, places, _ = x.shape
            q, k, v = (
                part.view(n, places, heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
            )
            mixed = T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(n, places, width))
            inner = self.up(self.norm2(x))
            if gated:
                gate, inner = inner.chunk(2, dim=-1)
                return x + self.down(T.nn.functional.silu(gate) * inner)
            return x + self.down(T.nn.functional.gelu(inner))

        parts = {"norm1": getattr(nn, norm)(width), "norm2": getattr(nn, norm)(width)}
        parts |= {"qkv": nn.Linear(width, 3 * width, bias=False), "out": nn.Linear(width, width, bias=False)}
        parts |= {"up": nn.Linear(width, 4 * width), "down": nn.Linear(2 * width if gated else 4 * width, width)}
        return joined(T, forward, **parts)

    return Program(
        f"causal transformer, {layers} of {width}, {heads} heads, {length} places, {norm}{', gated' if gated else ''}",
        lambda T, dropout: T.nn.Sequential(
            T.nn.Embedding(tokens, width), *(block(T) for _ in range(layers)), T.nn.Linear(width, tokens)
        ),
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x).view(-1, tokens), y.view(-1)),
        d.batches(lambda n: (d.below(tokens, n, length), d.below(tokens, n, length)), 20),
    )


def translation(d: Draw) -> Program:
    """Encoder and decoder, with attention from one to the other."""
    width, heads, length, tokens = d.among(32, 64), d.among(2, 4), d.among(8, 16), d.among(40, 100)

    def model(T, dropout):
        nn = T.nn
        options = {"dropout": 0.0, "batch_first": True}
        return joined(
            T,
            tokens=nn.Embedding(tokens, width),
            reader=nn.TransformerEncoderLayer(width, heads, 2 * width, **options),
            writer=nn.TransformerDecoderLayer(width, heads, 2 * width, **options),
            head=nn.Linear(width, tokens),
        )

    def loss(T, m, source, target, wanted):
        later = T.triu(T.ones(length, length), 1) > 0
        out = m.writer(m.tokens(target), m.reader(m.tokens(source)), tgt_mask=later)
        return T.nn.functional.cross_entropy(m.head(out).view(-1, tokens), wanted.view(-1), ignore_index=0)

    text = f"encoder and decoder of width {width}, {heads} heads, {length} places"
    return Program(text, model, loss, d.batches(lambda n: tuple(d.below(tokens, n, length) for _ in range(3)), 32))


def patches(d: Draw) -> Program:
    """Patches of images, by attention (Dosovitskiy et al. 2021) or by linear layers (Tolstikhin et al. 2021)."""
    side, patch, width, layers = d.among(16, 28, 32), d.among(4, 4, 8), d.among(32, 64, 128), d.among(1, 2)
    side -= side % patch
    count, attend = (side // patch) ** 2, d.among(True, False)

    def block(T):
        nn = T.nn
        mixer = (
            nn.MultiheadAttention(width, 4, batch_first=True) if attend else dense(T, (count, 2 * count, count), "GELU")
        )
        parts = {"norm1": nn.LayerNorm(width), "norm2": nn.LayerNorm(width), "mixer": mixer}

        def forward(self, x):
            y = self.norm1(x)
            x = x + (
                self.mixer(y, y, y, need_weights=False)[0] if attend else self.mixer(y.transpose(1, 2)).transpose(1, 2)
            )
            return x + self.inner(self.norm2(x))

        return joined(T, forward, **parts, inner=dense(T, (width, 2 * width, width), "GELU"))

    def model(T, dropout):
        nn = T.nn
        return joined(
            T,
            lambda self, x: self.head(self.blocks(self.cut(x).flatten(2).transpose(1, 2)).mean(1)),
            cut=nn.Conv2d(3, width, patch, patch),
            blocks=nn.Sequential(*(block(T) for _ in range(layers))),
            head=nn.Linear(width, 10),
        )

    return Program(
        f"{'vision transformer' if attend else 'MLP mixer'}, {layers} of {width}, {count} patches of {patch}x{patch}",
        model,
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x), y),
        d.batches(lambda n: (d.normal(n, 3, side, side), d.below(10, n)), 32),
    )


def words(d: Draw) -> Program:
    """Words near each other, beside drawn ones (Mikolov et al. 2013)."""
    tokens, width, wrong = d.among(1000, 5000, 20000), d.width(128), d.among(5, 10, 20)

    def loss(T, m, middle, near, far):
        F = T.nn.functional
        here = m.inner(middle)
        right = (here * m.outer(near)).sum(1)
        false = (m.outer(far) @ here[:, :, None]).squeeze(2)
        return -(F.logsigmoid(right) + F.logsigmoid(-false).sum(1)).mean()

    return Program(
        f"skip-gram, {tokens} words of {width}, {wrong} drawn",
        lambda T, dropout: joined(T, inner=T.nn.Embedding(tokens, width), outer=T.nn.Embedding(tokens, width)),
        loss,
        d.batches(lambda n: (d.below(tokens, n), d.below(tokens, n), d.below(tokens, n, wrong))),
    )


def ratings(d: Draw) -> Program:
    """Embeddings of several columns, their products and an MLP (Guo et al. 2017)."""
    columns, sizes, width = d.among(4, 8, 16), d.among(20, 100, 1000), d.among(4, 8, 16)
    hidden, drop = d.width(), d.among(0.0, 0.2)

    def model(T, dropout):
        parts = {"tables": T.nn.ModuleList([T.nn.Embedding(sizes, width) for _ in range(columns)])}
        return joined(T, **parts, deep=dense(T, (columns * width, hidden, hidden, 1), dropout=drop * dropout))

    def loss(T, m, x, y):
        embedded = T.stack([table(x[:, column]) for column, table in enumerate(m.tables)], dim=1)
        products = 0.5 * (embedded.sum(1) ** 2 - (embedded**2).sum(1)).sum(1)
        return T.nn.functional.binary_cross_entropy_with_logits(products + m.deep(embedded.flatten(1)).squeeze(1), y)

    return Program(
        f"factorisation machine, {columns} columns of {sizes}, width {width}, MLP of {hidden}, dropout {drop}",
        model,
        loss,
        d.batches(lambda n: (d.below(sizes, n, columns), d.below(2, n).astype(np.float32))),
    )


def bags(d: Draw) -> Program:
    """The mean of the words of a text."""
    tokens, width, length, mode = (
        d.among(500, 2000, 10000),
        d.width(),
        d.among(10, 40, 100),
        d.among("mean", "sum", "max"),
    )
    return Program(
        f"bag of {length} words of {tokens}, {mode}, width {width}",
        lambda T, dropout: T.nn.Sequential(T.nn.EmbeddingBag(tokens, width, mode=mode), dense(T, (width, 32, 4))),
        lambda T, m, x, y: T.nn.functional.cross_entropy(m(x), y),
        d.batches(lambda n: (d.below(tokens, n, length), d.below(4, n))),
    )


def edges(d: Draw) -> Program:
    """Messages along the edges of a graph, added up at their ends (Gilmer et al. 2017)."""
    d.batch, inputs, width, rounds = d.among(64, 200, 1000), d.among(8, 16), d.width(64), d.among(1, 2, 3)
    many, way = d.among(2, 4, 8), d.among("index_add", "scatter_add")

    def model(T, dropout):
        nn = T.nn
        parts = {"start": nn.Linear(inputs, width), "head": nn.Linear(width, 3)}
        parts["say"] = nn.ModuleList([dense(T, (2 * width, width, width)) for _ in range(rounds)])
        return joined(T, **parts, hear=nn.ModuleList([nn.Linear(2 * width, width) for _ in range(rounds)]))

    def loss(T, m, x, source, target, y):
        h = m.start(x)
        for say, hear in zip(m.say, m.hear, strict=True):
            message = say(T.cat([h[source], h[target]], 1))
            empty = T.zeros(len(x), width)
            if way == "index_add":
                heard = empty.index_add(0, target, message)
            else:
                heard = empty.scatter_add(0, target[:, None].expand(-1, width), message)
            h = T.relu(hear(T.cat([h, heard], 1)))
        return T.nn.functional.cross_entropy(m.head(h), y)

    def rows(n):
        return d.normal(n, inputs), d.below(n, many * n), d.below(n, many * n), d.below(3, n)

    text = f"graph of {many} edges a node, {rounds} rounds of width {width}, {way}"
    return Program(text, model, loss, d.batches(rows, d.batch))


def adjacency(d: Draw) -> Program:
    """Graphs with a dense adjacency: convolutions (Kipf and Welling 2017) or attention (Veličković et al. 2018)."""
    nodes, inputs, width, attend = d.among(20, 60, 150), d.among(8, 32), d.width(64), d.among(True, False)

    def model(T, dropout):
        nn = T.nn
        return joined(T, first=nn.Linear(inputs, width), second=nn.Linear(width, 4), score=nn.Linear(width, 2))

    def loss(T, m, x, near, y):
        h = m.first(x)
        if attend:
            out, into = m.score(h).chunk(2, dim=-1)
            scores = T.nn.functional.leaky_relu(out + into.transpose(-1, -2), 0.2)
            near = T.softmax(T.where(near > 0, scores, -1e9), dim=-1)
        return T.nn.functional.cross_entropy(m.second(T.relu(near @ h)).mean(1), y)

    def rows(n):
        near = (d.uniform(n, nodes, nodes) < 0.2) + np.eye(nodes)
        return d.normal(n, nodes, inputs), (near / near.sum(-1, keepdims=True)).astype(np.float32), d.below(4, n)

    text = f"graph {'attention' if attend else 'convolution'}, {nodes} nodes, width {width}"
    return Program(text, model, loss, d.batches(rows, 32))
