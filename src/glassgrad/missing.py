"""What a module says when it is asked for a name that PyTorch has and glassgrad has not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from glassgrad import errors


def missing(module: str, name: str, known: Iterable[str], instead: Mapping[str, str] | None = None) -> Exception:
    """Return the exception: it names the nearest thing there is.

    Args:
        module: the module that was asked.
        name: what it was asked for.
        known: what it has.
        instead: what to use in place of certain names.
    """
    if instead is not None and name in instead:
        return errors.MISSING_NAME(module=module, name=name, nearest=f"\nNext: {instead[name]}")
    if name.startswith("_"):  # Python's own questions, whose answer nobody reads
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    import difflib

    lower = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)
    nearest = "\nNearest: " + ", ".join(lower[one] for one in close) if close else ""
    return errors.MISSING_NAME(module=module, name=name, nearest=nearest)
