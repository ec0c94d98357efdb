"""`torch.backends`: switches for hardware that is not used here. They can be read and set, and change nothing."""

from __future__ import annotations

from types import SimpleNamespace


def _absent() -> bool:
    return False


cuda = SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False), is_built=_absent)
cudnn = SimpleNamespace(
    deterministic=True, benchmark=False, enabled=False, allow_tf32=False, is_available=_absent, version=lambda: None
)
mps = SimpleNamespace(is_available=_absent, is_built=_absent)
mkldnn = SimpleNamespace(is_available=_absent)
openmp = SimpleNamespace(is_available=_absent)

__all__ = ["cuda", "cudnn", "mkldnn", "mps", "openmp"]
