def clip_by_norm(gradients, limit):
    length = np.sqrt(sum((one * one).sum() for one in gradients))
    scale = limit / length if length > limit else 1.0
    return [one * scale for one in gradients]


def clip_by_value(gradients, limit):
    return [np.clip(one, -limit, limit) for one in gradients]


def angle(first, second):
    a = np.concatenate([one.ravel() for one in first])
    b = np.concatenate([one.ravel() for one in second])
    cosine = a @ b / np.sqrt((a @ a) * (b @ b))
    return np.degrees(np.arccos(min(cosine, 1.0)))


def usable(gradients):
    return all(np.isfinite(one).all() for one in gradients)
