def bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def lost(gradients, scale):
    return float(((gradients * scale).astype(np.float16) == 0).mean())


def largest_scale(gradients):
    return 2.0 ** np.floor(np.log2(65504 / np.abs(gradients).max()))


def step(weights, gradients, scale, rate):
    g = gradients.astype(np.float32) / np.float32(scale)
    if not np.isfinite(g).all():
        return weights
    return weights - np.float32(rate) * g


def next_scale(scale, finite, good):
    if not finite:
        return scale / 2
    return scale * 2 if good >= 1000 else scale


def slope(f, x):
    h = 1e-5
    return (f(x + h) - f(x - h)) / (2 * h)
