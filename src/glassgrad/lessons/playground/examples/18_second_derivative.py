"""The gradient of a gradient.

A gradient made with create_graph=True is a result like any other, and can be differentiated again.
"""

import glassgrad as gg

x = gg.tensor(1.5, requires_grad=True)
y = x**3 - 2.0 * x
(slope,) = gg.autograd.grad(y, [x], create_graph=True)
(curvature,) = gg.autograd.grad(slope, [x], create_graph=True)
print(f"y {y.item():.3f}, slope {slope.item():.3f}, curvature {curvature.item():.3f}")
loss = slope * slope
