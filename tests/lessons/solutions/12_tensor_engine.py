def shrink(g, shape):
    in_front = tuple(range(g.ndim - len(shape)))
    if in_front:
        g = g.sum(in_front)
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1)
    return g.sum(stretched, keepdims=True) if stretched else g


def receive(self, g):
    if self.grad is None:
        self.grad, self.owned = g, False
    elif self.owned:
        self.grad += g
    else:
        self.grad, self.owned = self.grad + g, True


def divide(a, b):
    y = a.data / b.data
    return Tensor(y, made_from=[(a, lambda g: g / b.data), (b, lambda g: -g * y / b.data)])


def sigmoid(a):
    y = 1 / (1 + np.exp(-a.data))
    return Tensor(y, made_from=[(a, lambda g: g * y * (1 - y))])


def matmul(a, b):
    to_a = lambda g: g @ np.swapaxes(b.data, -1, -2)
    to_b = lambda g: np.swapaxes(a.data, -1, -2) @ g
    return Tensor(a.data @ b.data, made_from=[(a, to_a), (b, to_b)])


def total(a, axis):
    to_a = lambda g: np.broadcast_to(np.expand_dims(g, axis), a.data.shape)
    return Tensor(a.data.sum(axis), made_from=[(a, to_a)])


def pick(a, rows):
    def to_a(g):
        out = np.zeros_like(a.data)
        np.add.at(out, rows, g)
        return out

    return Tensor(a.data[rows], made_from=[(a, to_a)])


def backward(root):
    found, waiting = {root}, [root]
    while waiting:
        fresh = {argument for argument, _ in waiting.pop().made_from} - found
        found |= fresh
        waiting += fresh
    root.grad = np.ones_like(root.data)
    for t in sorted(found, key=lambda t: t.tick, reverse=True):
        for argument, rule in t.made_from:
            receive(argument, rule(t.grad))
