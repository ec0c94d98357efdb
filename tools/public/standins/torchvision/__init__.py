"""Small stand-ins for torchvision's data sets, transforms and pictures, for either library."""

from torchvision import datasets, transforms, utils

__all__ = ["datasets", "transforms", "utils"]
__version__ = "0.28.0"
