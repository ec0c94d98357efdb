def product(m, n, k, a, a_row, a_column, b, b_row, b_column):
    c = [0.0] * (m * n)
    for i in range(m):
        for j in range(n):
            for p in range(k):
                c[i * n + j] += a[i * a_row + p * a_column] * b[p * b_row + j * b_column]
    return c


def weight_gradient(product, x, dy, batch, inputs, outputs):
    return product(inputs, outputs, batch, x, 1, inputs, dy, outputs, 1)


def input_gradient(product, dy, w, batch, inputs, outputs):
    return product(batch, inputs, outputs, dy, outputs, 1, w, 1, outputs)


def backward_tanh(dhidden, hidden, bias, rate, batch, width):
    sums = [0.0] * width
    for i in range(batch):
        for j in range(width):
            at = i * width + j
            g = dhidden[at] * (1 - hidden[at] * hidden[at])
            dhidden[at] = g
            sums[j] += g
    for j in range(width):
        bias[j] -= rate * sums[j]


def arena(values):
    places = [0] * len(values)
    placed = []
    for number in sorted(range(len(values)), key=lambda number: -values[number][0]):
        size, first, last = values[number]
        at = 0
        for other in sorted(placed, key=lambda other: places[other]):
            other_size, other_first, other_last = values[other]
            if first <= other_last and other_first <= last and at + size > places[other]:
                at = max(at, places[other] + other_size)
        places[number] = at
        placed.append(number)
    return places
