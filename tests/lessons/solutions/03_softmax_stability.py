def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))


def softmax_backward(p, dp):
    return p * (dp - (dp * p).sum(1, keepdims=True))


def cross_entropy(x, targets):
    return -log_softmax(x)[np.arange(len(x)), targets].mean()


def cross_entropy_backward(x, targets):
    dx = softmax(x)
    dx[np.arange(len(x)), targets] -= 1
    return dx / len(x)
