"""The page of all layers, losses and optimizers, from the code and from the run of PyTorch's samples (layers.json)."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from glassgrad import nn, optim
from glassgrad.nn import init
from glassgrad.optim import lr_scheduler
from sitegen.optable import WIDE, raw

SAMPLES = Path(__file__).resolve().parents[1] / "layers.json"
HEAD = """# All layers, losses and optimizers

Every class is compared with PyTorch's of the same name: outputs, gradients of inputs and parameters, state and print
(`tests/nn/test_layers_against_torch.py`); ten steps of every optimizer from equal state, and a hundred of every
schedule (`tests/optim`); layers again in native code, under `checkpoint` and under `vmap`
(`tests/nn/test_layers_everywhere.py`). The last column is of the samples that PyTorch tests its own classes with: how
many agree; how many draw random numbers in training, which differ; how many ask for something that is not offered."""
FILTER = "<p><input id='filter' type='search' placeholder='Filter: a name, a word …' aria-label='Filter'></p>"


def families() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (heading, kind of samples, classes or functions by name)."""
    classes = {name: getattr(nn, name) for name in nn.__all__ if inspect.isclass(getattr(nn, name))}
    modules = {name: value for name, value in classes.items() if issubclass(value, nn.Module)}
    losses = {name: value for name, value in modules.items() if name.endswith("Loss")}
    yield "Layers and containers", "modules", {name: modules[name] for name in modules if name not in losses}
    yield "Losses", "modules", losses
    optimizers = {name: getattr(optim, name) for name in optim.__all__ if inspect.isclass(getattr(optim, name))}
    yield "Optimizers and what stands around them", "optimizers", optimizers
    yield "Schedules", "", {name: getattr(lr_scheduler, name) for name in lr_scheduler.__all__}
    own = {name: value for name, value in vars(init).items() if name.endswith("_") and not name.startswith("_")}
    yield "Initialisers", "", {name: value for name, value in own.items() if inspect.isfunction(value)}


def verdict(entry: dict[str, int] | None) -> str:
    """Write the counts of one class."""
    if entry is None:
        return "<span class='none'>&ndash;</span>"
    parts = [f"<span class='good'>{entry.get('agrees', 0)} agree</span>"]
    parts += [f"{entry[kind]} {kind}" for kind in ("random", "not offered") if entry.get(kind)]
    return ", ".join(parts)


def page() -> str:
    """Return the page: Markdown, its tables in HTML."""
    samples = json.loads(SAMPLES.read_text(encoding="utf-8"))
    parts = [WIDE + HEAD, raw(FILTER)]
    for heading, kind, members in families():
        rows = "".join(
            f"<tr><td><a id='{name}'></a><b>{name}</b></td><td>{first_line(value)}</td>"
            f"<td>{verdict(samples.get(kind, {}).get(name))}</td></tr>"
            for name, value in sorted(members.items())
        )
        top = "<thead><tr><th>name</th><th>what it is</th><th>PyTorch's samples</th></tr></thead>"
        table = f"<table class='made layers'>{top}<tbody>{rows}</tbody></table>"
        parts.append(f"## {heading}\n\n{raw(table)}")
    return "\n\n".join(parts) + "\n"


def first_line(value: Any) -> str:
    """Return the first line of a docstring, in HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape((inspect.getdoc(value) or "").partition("\n")[0]))


__all__ = ["families", "page"]
