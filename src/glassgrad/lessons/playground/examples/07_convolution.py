"""An edge detector that can be trained.

A convolution of one image with two filters. The gradient of a filter is a correlation of image and cotangent.
"""

import glassgrad as gg
from glassgrad.nn import functional as F

image = gg.zeros(1, 1, 8, 8)
image[0, 0, 2:6, 3:6] = 1.0
filters = gg.tensor([[[[1.0, -1.0], [1.0, -1.0]]], [[[1.0, 1.0], [-1.0, -1.0]]]], requires_grad=True)
edges = F.conv2d(image, filters).tanh()
loss = (edges**2).mean()
