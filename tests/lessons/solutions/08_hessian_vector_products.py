def by_nudging(gradient, w, v, h):
    return (gradient(w + h * v) - gradient(w - h * v)) / (2 * h)


def exactly(loss, w, v):
    return grad(lambda w: (grad(loss)(w) * v).sum())(w)


def whole(product, n):
    return np.stack([product(row) for row in np.eye(n)], axis=1)


def largest_curvature(product, start, steps):
    direction = start / np.linalg.norm(start)
    for _ in range(steps):
        turned = product(direction)
        direction = turned / np.linalg.norm(turned)
    return direction @ product(direction)


def largest_rate(curvature):
    return 2 / curvature
