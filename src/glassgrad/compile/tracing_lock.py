"""Tracing replaces the arrays of shared tensors for a moment, so one function is traced at a time."""

import threading

TRACING_LOCK = threading.RLock()
