def slope_by_nudging(f, x, nudge):
    return (f(x + nudge) - f(x - nudge)) / (2 * nudge)


def backward():
    dmiss = 2 * miss
    dprediction = dmiss
    dscaled = dprediction
    dx = dscaled * w
    dw = dscaled * x
    dw += w
    db = dprediction


def slopes_of(book):
    slopes = {name: 0.0 for name, _ in book}
    slopes[book[-1][0]] = 1.0
    for name, makers in reversed(book):
        for maker, slope in makers:
            slopes[maker] += slope * slopes[name]
    return slopes
