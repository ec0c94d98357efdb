"""Small stand-ins for torchvision's data sets, transforms and pictures, for either library."""

from torchvision import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
__version__ = "0.28.0"
