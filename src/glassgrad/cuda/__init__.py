"""`torch.cuda`: says that there is no GPU, in every way in which scripts ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glassgrad import amp, errors, provenance  # noqa: F401 - torch.cuda.amp
from glassgrad.errors.missing import getter


def is_available() -> bool:
    """Return False: computation happens on the processor."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False."""
    return False


def is_initialized() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: there is no generator to seed. `glassgrad.manual_seed` seeds the processor's."""


manual_seed_all = manual_seed


def synchronize(device: Any = None) -> None:
    """Do nothing: every op is finished when it returns."""


def empty_cache() -> None:
    """Do nothing: there is no cache."""


def current_device() -> int:
    """Raise: there is no GPU."""
    raise errors.NO_SUCH_DEVICE(given="cuda", where=provenance.here())


set_device = get_device_name = get_device_properties = lambda *_args: current_device()

if not TYPE_CHECKING:
    __getattr__ = getter(__name__, otherwise="there is no GPU to ask; is_available() is False.")
