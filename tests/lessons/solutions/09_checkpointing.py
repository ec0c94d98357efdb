def forward(x, segments):
    kept = []
    for segment in segments:
        kept.append(x)
        for w in segment:
            x = layer(x, w)
    return x, kept


def backward(dy, kept, segments):
    dweights = []
    for h, segment in zip(reversed(kept), reversed(segments)):
        inside = [h]
        for w in segment:
            inside.append(layer(inside[-1], w))
        for i in reversed(range(len(segment))):
            dy, dw = layer_backward(dy, inside[i], segment[i], inside[i + 1])
            dweights.append(dw)
    return dweights[::-1]


def bill(n, k):
    return k + n / k


def best_segments(n):
    return min(range(1, n + 1), key=lambda k: bill(n, k))
