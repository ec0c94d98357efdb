"""The old home of the digits."""

from torchvision.datasets import MNIST, FashionMNIST

__all__ = ["MNIST", "FashionMNIST"]
