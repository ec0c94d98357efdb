def backward():
    dy = r
    db = dy.sum(0)
    dw = (dy * hat).sum(0)
    dhat = dy * w
    ds = (dhat * centred).sum(1, keepdims=True)
    dvar = ds * -0.5 * s**3
    dcentred = dhat * s
    dcentred += dvar * 2 * centred / n
    dmean = -dcentred.sum(1, keepdims=True)
    dx = dcentred + dmean / n


def dx_at_once(dy, w, s, hat):
    d = dy * w
    return s * (d - d.mean(1, keepdims=True) - hat * (d * hat).mean(1, keepdims=True))
