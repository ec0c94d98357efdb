"""What enters a model, and what its outputs depend on: the examples of a batch, the mode, and inputs that drift."""

from glassgrad.doctor.observers.entering.alike import Alike
from glassgrad.doctor.observers.entering.draws import Draws
from glassgrad.doctor.observers.entering.drift import Drift
from glassgrad.doctor.observers.entering.effects import Effects
from glassgrad.doctor.observers.entering.held import Held, of_training
from glassgrad.doctor.observers.entering.mixing import Mixing
from glassgrad.doctor.observers.entering.modes import Modes

__all__ = ["Alike", "Draws", "Drift", "Effects", "Held", "Mixing", "Modes", "of_training"]
