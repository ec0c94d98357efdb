"""What enters a model, and what its outputs depend on: the other examples of a batch, and inputs that drift."""

from glassgrad.doctor.observers.entering.drift import Drift
from glassgrad.doctor.observers.entering.mixing import Mixing

__all__ = ["Drift", "Mixing"]
