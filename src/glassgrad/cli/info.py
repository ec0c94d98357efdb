"""`glassgrad info`."""

from __future__ import annotations

import json as text_format
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from glassgrad import errors


def info(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    bug: Annotated[
        bool, typer.Option("--bug", help="Print a report to fill in, with checks of the installation.")
    ] = False,
) -> int:
    """Show the facts for a bug report: versions, processor, BLAS, compiler and cache."""
    facts = collected()
    if json:
        print(text_format.dumps(facts, indent=1))
        return 0
    if bug:
        from glassgrad.cli.bug import report

        print(report(facts))
        return 0
    for heading, values in facts.items():
        print(heading)
        width = max((len(name) for name in values), default=0)
        for name, value in values.items():
            print(f"  {name:{width}}  {value}")
        if not values:
            print("  none")
    return 0


def collected() -> dict[str, dict[str, Any]]:
    """Return the facts under their headings."""
    from glassgrad.train.kept.sessions import environment

    found = environment()
    return {
        "versions": {**found["versions"], **_installed()},
        "machine": found["machine"],
        "arrays": {"numpy": _numpys_blas()},
        "compiler": _compiler(),
        "cache": _cache(),
        "variables": found["variables"],
    }


def _installed() -> dict[str, str]:
    """Return the versions of the packages that the library can use, without importing them."""
    from importlib.metadata import PackageNotFoundError, version

    names = ("scipy", "llvmlite", "safetensors", "tomli_w", "rich", "typer", "matplotlib", "torch")
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _numpys_blas() -> str:
    import numpy as np

    settings: Any = np.show_config(mode="dicts")
    blas = (settings or {}).get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _compiler() -> dict[str, Any]:
    """Return the compiler and the processor of native code, or why there is none."""
    try:
        from llvmlite.binding import llvm_version_info

        from glassgrad.compile.llvm.module.blas import blas
        from glassgrad.compile.llvm.module.target import host
        from glassgrad.compile.native.runtime import available_cores
    except (ImportError, OSError, RuntimeError) as error:
        return {"native code": f"none: {error}"}
    return {
        "native code": f"LLVM {'.'.join(map(str, llvm_version_info))}",
        "target": _or_why_not(lambda: f"{host().triple}, {host().cpu}, vectors of {host().vector_bytes} bytes"),
        "matrix products": _or_why_not(lambda: blas().name),
        "cores used": available_cores(),
    }


def _or_why_not(fact: Callable[[], str]) -> str:
    """Return a fact, or the error of an invalid environment variable that it depends on."""
    try:
        return fact()
    except errors.GlassgradError as error:
        return str(error).splitlines()[0]


def _cache() -> dict[str, Any]:
    """Return the folder of compiled steps, their number and their size."""
    from glassgrad.compile.kept import files

    place = files.folder()
    if place is None:
        return {"folder": "none: the cache is off, or its folder belongs to somebody else"}
    sizes = []
    for entry in place.glob("*.native"):
        with suppress(OSError):  # another process has just removed it
            sizes.append(entry.stat().st_size)
    return {"folder": _without_home(place), "programs": len(sizes), "megabytes": round(sum(sizes) / 1e6, 1)}


def _without_home(place: Path) -> str:
    """Return a path without the user's name."""
    try:
        return str(Path("~") / place.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(place)
