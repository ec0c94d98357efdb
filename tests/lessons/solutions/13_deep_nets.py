def slope_of_sigmoid(y):
    return y * (1 - y)


def factor(first, last, layers):
    return (first / last) ** (1 / (layers - 1))


def spread(inputs, activation):
    return ((2 if activation == "relu" else 1) / inputs) ** 0.5


def draw(rng, inputs, outputs):
    return rng.normal(scale=(2 / inputs) ** 0.5, size=(outputs, inputs))


def normalise(x):
    return (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)


def residual_backward(dy, f_backward):
    return dy + f_backward(dy)


def residual_net(x, weights):
    for w in weights:
        x = x + np.maximum(x @ w, 0)
    return x
