def backward():
    dy = 2 * y / y.size
    dx = dy @ w.T
    dw = x.T @ dy
    db = dy.sum(axis=0)


def linear_backward(x, weight, dy):
    dx = dy @ weight
    dweight = dy.T @ x
    dbias = dy.sum(axis=0)
    return dx, dweight, dbias


def shared_weight(x1, dy1, x2, dy2):
    return x1.T @ dy1 + x2.T @ dy2
