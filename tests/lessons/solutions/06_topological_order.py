def order(root):
    waiting, stack, seen = {}, [root], {root}
    while stack:
        for arg in stack.pop().args:
            waiting[arg] = waiting.get(arg, 0) + 1
            if arg not in seen:
                seen.add(arg)
                stack.append(arg)
    ready, found = [root], []
    while ready:
        node = ready.pop()
        found.append(node)
        for arg in node.args:
            waiting[arg] -= 1
            if waiting[arg] == 0:
                ready.append(arg)
    return found


def gradients(root):
    nodes = order(root)
    slopes = dict.fromkeys(nodes, 0.0)
    slopes[root] = 1.0
    for node in nodes:
        for arg, slope in zip(node.args, node.slopes):
            slopes[arg] += slopes[node] * slope
    return slopes
