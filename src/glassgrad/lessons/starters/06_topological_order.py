"""An order to send gradients in.

Find an order in which every value is complete before it sends, for any graph, and send gradients along it.
"""

# A node knows what it was made from (`args`), and the slope for each of those (`slopes`).


class Node:
    def __init__(self, name, args=(), slopes=()):
        self.name = name
        self.args = list(args)
        self.slopes = list(slopes)

    def __repr__(self):
        return self.name


# ## The order
#
# Return a list of all nodes that `root` was made from, and of `root` itself, which comes first. Each occurs once,
# before everything that it was made from. The graph may be deep (thousands of steps), and it may have more paths than
# any program can follow.


def order(root):
    return ...


# ## Sending
#
# Return a dictionary: for each node, the slope of `root`. That of `root` for itself is 1.


def gradients(root):
    return ...
