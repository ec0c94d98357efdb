def backward():
    dlogprobs = np.zeros_like(logprobs)
    dlogprobs[np.arange(n), targets] = -1.0 / n
    dprobs = dlogprobs / probs
    dshare = (dprobs * counts).sum(1, keepdims=True)
    dtotal = -dshare * share**2
    dcounts = dprobs * share
    dcounts += dtotal
    dshifted = dcounts * counts
    dtop = -dshifted.sum(1, keepdims=True)
    dlogits = dshifted.copy()
    dlogits += (logits == top) * dtop
    dh = dlogits @ W2.T
    dW2 = h.T @ dlogits
    db2 = dlogits.sum(0)
    dact = dh * (1.0 - h**2)
    dgain = (dact * hat).sum(0)
    dshift = dact.sum(0)
    dhat = dact * gain
    dinv = (dhat * diff).sum(0, keepdims=True)
    dvar = dinv * -0.5 * inv**3
    ddiff2 = np.ones_like(diff2) * dvar / (n - 1)
    ddiff = dhat * inv
    ddiff += ddiff2 * 2 * diff
    dmean = -ddiff.sum(0, keepdims=True)
    dpre = ddiff.copy()
    dpre += dmean / n
    dflat = dpre @ W1.T
    dW1 = flat.T @ dpre
    db1 = dpre.sum(0)
    demb = dflat.reshape(emb.shape)
    dC = np.zeros_like(C)
    np.add.at(dC, contexts, demb)


def dlogits_at_once(probs, targets):
    n = len(targets)
    dlogits = probs.copy()
    dlogits[np.arange(n), targets] -= 1
    return dlogits / n


def dpre_at_once(dact, gain, inv, hat):
    n = len(hat)
    return gain * inv * (dact - dact.mean(0) - hat * (dact * hat).sum(0) / (n - 1))
