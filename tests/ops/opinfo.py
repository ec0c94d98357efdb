"""PyTorch's own samples of its operators, run through ours: values and gradients, one verdict per op.

`python -m tests.ops.opinfo --write` writes docs/opinfo.json, which the op table of the docs is made from.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

import glassgrad as gg
from glassgrad import compat
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tree import flatten, tree_map
from glassgrad.ops import names
from tests.ops.opinfo_reasons import LACKING

FILE = Path(__file__).resolve().parents[2] / "docs" / "opinfo.json"
SAMPLES = 20
DTYPES = {name: getattr(torch, name) for name in ("float64", "float32", "int64", "bool", "complex128")}
# Of single precision each library has its own rounding: what is compared is the meaning.
RTOL, ATOL = {"float64": 1e-7, "float32": 3e-3}, {"float64": 1e-9, "float32": 1e-4}
SHOWN = 4  # forms of arguments that are listed when they are not supported

# Where PyTorch's table wraps an op in a lambda with other arguments, so do we.
WRAPPED: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "where": lambda f: lambda x, cond, other: f(cond, x, other),
    "nn.functional.embedding": lambda f: lambda weight, index, **options: f(index, weight, **options),
    "nn.functional.embedding_bag": lambda f: lambda weight, index, **options: f(index, weight, **options),
    "einsum": lambda f: lambda tensors, equation: f(equation, *tensors),
    "polygamma": lambda f: lambda x, n: f(n, x),
    "special.polygamma": lambda f: lambda x, n: f(n, x),
    "linalg.pinv (singular)": lambda f: lambda a, b: f(a @ b.mT),
    "linalg.lstsq (grad_oriented)": lambda f: lambda a, b, driver: f(a, b, driver=driver)[:2],
    **dict.fromkeys(("svd_lowrank", "pca_lowrank"), lambda f: lambda a, b, **options: f(a @ b.mT, **options)),
    "zero_": lambda f: lambda x: f(x.clone()),
    "normal (in_place)": lambda f: lambda x, mean, std: x.clone().normal_(mean, std),
}
# Results that differ by design: drawn from another generator, or never written to. Shapes and dtypes are compared.
DRAWN = {
    "bernoulli", "empty", "empty_like", "multinomial", "new_empty", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout1d", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "normal", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "uniform", "exponential", "geometric", "cauchy", "log_normal",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "empty_permuted", "empty_strided",
    "new_empty_strided", "resize_", "resize_as_",
}  # fmt: skip  # a table


# Methods that write, which PyTorch's table lists without the underscore and calls on a copy.
IN_PLACE = {"uniform", "exponential", "geometric", "cauchy", "log_normal"}
# No op may disagree without a reason here; the docs show it, and a test checks that it is still needed.
_BESSEL = (
    "PyTorch's is off by up to 4e-7 beyond 5, measured against the integral that defines it; ours is right to rounding."
)
# What is the same for all three of them.
_UNPOOLED = (
    "Where windows overlap, several elements go to one place and the last one stays: it alone has the gradient here, "
    "PyTorch gives it to all of them, which is not the derivative."
)
_PARTS = (
    "The samples are parts of larger tensors and reach beyond themselves; here a tensor's memory is its own, and a "
    "storage offset of a part is refused."
)
_TRIANGLE = "PyTorch's gradient reaches the triangle of the factor that is not read; here it is 0 there."
REASONS = {
    "as_strided (partial_views)": _PARTS,
    "as_strided_scatter": (
        "PyTorch's gradient of the input is the part that is replaced, which has no effect; ours is the rest."
    ),
    **dict.fromkeys(("cholesky_inverse", "cholesky_solve"), _TRIANGLE),
    "svd_lowrank": (
        "In samples with M the matrix has more singular values than are computed, and what is found depends on random "
        "numbers; otherwise both agree."
    ),
    **{f"special.bessel_{kind}": _BESSEL for kind in ("j0", "j1", "y1")},
    **{f"nn.functional.max_unpool{dims}d": _UNPOOLED for dims in (1, 2, 3)},
    "cov": (
        "PyTorch's samples have weights in float32 beside numbers in float64: the gradients of the weights agree to "
        "the precision of float32, in which both libraries round them."
    ),
    "nextafter": "PyTorch's result requires a gradient that raises when it is asked for; here it requires none.",
    "nn.functional.ctc_loss": (
        "PyTorch's gradient is the one of a log_softmax before it, whatever the input is; for log-probabilities that "
        "are not normalised, as in these samples, it is not the derivative of the loss. Ours passes gradcheck."
    ),
}


def op_infos() -> list[Any]:
    """Return PyTorch's table of operators."""
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def ours(info: Any) -> tuple[str, Callable[..., Any]] | None:
    """Return our op for an entry of PyTorch's table: its name and a function, or None."""
    found = _ours(info)
    wrap = WRAPPED.get(title(info)) or WRAPPED.get(info.name)
    return (found[0], wrap(found[1])) if found is not None and wrap is not None else found


def _ours(info: Any) -> tuple[str, Callable[..., Any]] | None:
    area, _, name = info.name.rpartition(".")
    if info.name.startswith("_") and not info.name.startswith("__"):
        return None
    spaces = {
        "": ("", "special", "linalg"),
        # Tensor.unfold is another function than functional.unfold.
        "nn.functional": ("nn.functional", "") if name != "unfold" else ("nn.functional",),
        "special": ("special", ""),
        "linalg": ("linalg", ""),
        "fft": ("fft",),
        "signal.windows": ("signal.windows",),
        "masked": ("masked",),
    }.get(area, ())
    for space in spaces:
        holder = namespace(space)
        found = getattr(holder, name, None) if holder is not None else None
        if callable(found) and (space or name in names.PUBLIC or name in gg.__all__ or name in compat.NAMES):
            return name, found
    # `uniform` and the like are methods in place; PyTorch's table calls them on a copy.
    method = None if area else getattr(Tensor, f"{name}_" if name in IN_PLACE else name, None)
    if isinstance(method, property):
        return name, method.fget
    if callable(method):
        return name, method
    return None


def namespace(path: str) -> Any:
    holder: Any = gg
    for part in path.split(".") if path else ():
        try:
            holder = getattr(holder, part)
        except (AttributeError, ImportError):
            return None
    return holder


def title(info: Any) -> str:
    return info.name + (f" ({info.variant_test_name})" if info.variant_test_name else "")


# --- between the two libraries --------------------------------------------------------------------


# What PyTorch would do anyway: such an argument is left out of the call.
WITHOUT_EFFECT = (torch.preserve_format, torch.contiguous_format, torch.strided)
LEFT_OUT = object()


class NotOurs(Exception):  # noqa: N818 - a kind of argument, not a mistake
    """An argument that has no counterpart: generators, sparse layouts."""


def translated(value: Any) -> Any:
    """Return PyTorch's argument as ours."""
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, torch.dtype):
        name = str(value).removeprefix("torch.")
        if name in {"bfloat16", "complex32"}:
            raise NotOurs(name)
        return np.dtype(name)
    if value in WITHOUT_EFFECT:
        return LEFT_OUT
    if isinstance(value, torch.memory_format):
        return "contiguous"
    if isinstance(value, torch.Generator | torch.layout | torch.device):
        raise NotOurs(type(value).__name__)
    if isinstance(value, torch.Tensor):
        if value.is_sparse or value.dtype is torch.bfloat16:
            raise NotOurs(str(value.dtype))
        array = value.detach().resolve_conj().resolve_neg().numpy()
        return gg.tensor(array.copy(), requires_grad=bool(value.requires_grad))
    if isinstance(value, slice):
        return slice(*map(translated, (value.start, value.stop, value.step)))
    return value


def signature(sample: Any) -> str:
    """Write a sample's arguments as a call, with shapes instead of tensors."""

    def word(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            kind = "" if value.dtype == torch.float64 else f" {str(value.dtype).removeprefix('torch.')}"
            return f"{tuple(value.shape)}{kind}"
        if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
            left, right = "[]" if isinstance(value, list) else "()"
            return left + ", ".join(map(word, value)) + right
        return str(tuple(value)) if isinstance(value, torch.Size) else str(value)

    given = [word(sample.input), *map(word, sample.args)]
    given += [f"{name}={word(value)}" for name, value in sample.kwargs.items()]
    text = ", ".join(given)
    return text if len(text) <= 100 else text[:97] + "..."


# --- one sample -----------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of one sample: "agrees", "shapes" (alone, of random numbers), "unsupported" or "disagrees", and why."""

    kind: str
    form: str = ""
    why: str = ""


def compare(function: Callable[..., Any], info: Any, sample: Any) -> Outcome:
    """Run one sample through both libraries."""
    form = signature(sample)
    try:
        mine_in = tree_map(translated, (sample.input, tuple(sample.args), dict(sample.kwargs)))
        mine_in = (*mine_in[:2], {name: value for name, value in mine_in[2].items() if value is not LEFT_OUT})
    except NotOurs as argument:
        return Outcome("unsupported", form, f"an argument of type {argument}")
    # PyTorch's samples of symmetric matrices are not symmetric; its own checks make them so with this.
    symmetric = info.gradcheck_wrapper.__name__ == "gradcheck_wrapper_hermitian_input"
    call = info.gradcheck_wrapper if symmetric else lambda f, *args, **kwargs: f(*args, **kwargs)
    theirs = call(info.op, sample.input, *sample.args, **sample.kwargs)
    try:
        mine = call(function, mine_in[0], *mine_in[1], **mine_in[2])
    except Exception as error:  # noqa: BLE001 - whatever is raised is the finding
        return Outcome("unsupported", form, first_line(error))
    processed = sample.output_process_fn_grad(theirs)
    try:
        mine = sample.output_process_fn_grad(mine)
    except Exception as error:  # noqa: BLE001 - PyTorch's function may need PyTorch's tensors
        return Outcome("unsupported", form, f"PyTorch's processing of the output: {first_line(error)}")
    mine, theirs = flat(mine), flat(processed)
    attention = info.name == "nn.functional.multi_head_attention_forward"
    if info.name in DRAWN or sample.kwargs.get("dropout_p", sample.args[9] if attention else 0) > 0:
        kinds = compare_kinds(mine, theirs, form, strict=False)
        return Outcome("shapes", form) if kinds.kind == "agrees" else kinds
    return compare_results(mine, theirs, leaves(mine_in), leaves((sample.input, sample.args, sample.kwargs)), form)


def flat(value: Any) -> list[Any]:
    # PyTorch's named results are sequences that are no tuples of ours.
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in flat(part)]
    return [value]


def leaves(value: Any) -> list[Any]:
    return [leaf for leaf in flatten(value)[0] if getattr(leaf, "requires_grad", False)]


def first_line(error: BaseException) -> str:
    # Without the line of this file that called: the finding stays the same when the file changes.
    text = re.sub(r" (\(|at )\S+\.py:\d+\)?", "", str(error).splitlines()[0]) if str(error) else ""
    return f"{type(error).__name__}: {text}"[:160]


def array_of(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, torch.Tensor):
        if value.dtype is torch.bfloat16:  # which PyTorch does not give to NumPy
            return value.detach().view(torch.int16).numpy(force=True).view(gg.bfloat16)
        return value.detach().numpy(force=True)
    return np.asarray(value.detach().numpy() if isinstance(value, Tensor) else value)


def compare_kinds(mine: list[Any], theirs: list[Any], form: str, strict: bool = True) -> Outcome:
    """Compare how many results there are, and their shapes and dtypes."""
    if len(mine) != len(theirs):
        return Outcome("disagrees", form, f"{len(mine)} results, PyTorch gives {len(theirs)}")
    for y, expected in zip(mine, theirs, strict=True):
        a, b = array_of(y), array_of(expected)
        if a.shape != b.shape:
            return Outcome("disagrees", form, f"shape {a.shape}, PyTorch's {b.shape}")
        if a.dtype.kind != b.dtype.kind or (a.dtype != b.dtype and strict):
            return Outcome("disagrees", form, f"dtype {a.dtype}, PyTorch's {b.dtype}")
    return Outcome("agrees", form)


def compare_results(
    mine: list[Any], theirs: list[Any], my_leaves: list[Any], their_leaves: list[Any], form: str
) -> Outcome:
    kinds = compare_kinds(mine, theirs, form)
    if kinds.kind != "agrees":
        return kinds
    for y, expected in zip(mine, theirs, strict=True):
        if difference := differs(array_of(y), array_of(expected)):
            return Outcome("disagrees", form, f"value: {difference}")
        wanted = isinstance(expected, torch.Tensor) and expected.numel() and expected.requires_grad
        if wanted and not getattr(y, "requires_grad", False):
            return Outcome("disagrees", form, "PyTorch's result has a gradient, ours has none")
    rng = np.random.default_rng(0)
    seeds = [rng.normal(size=y.shape) + 1j * rng.normal(size=y.shape) for y in map(array_of, mine)]
    seeds = [seed if array_of(y).dtype.kind == "c" else seed.real for seed, y in zip(seeds, mine, strict=True)]
    return compare_gradients(mine, theirs, my_leaves, their_leaves, seeds, form)


def compare_gradients(
    mine: list[Any], theirs: list[Any], my_leaves: list[Any], their_leaves: list[Any], seeds: list[Any], form: str
) -> Outcome:
    chosen = [at for at, y in enumerate(theirs) if getattr(y, "requires_grad", False)]
    if not chosen or not their_leaves:
        return Outcome("agrees", form)
    expected = torch.autograd.grad(
        [theirs[at] for at in chosen],
        their_leaves,
        [torch.tensor(seeds[at], dtype=theirs[at].dtype) for at in chosen],
        allow_unused=True,
    )
    try:
        found = gg.autograd.grad(
            [mine[at] for at in chosen],
            my_leaves,
            [gg.tensor(seeds[at].astype(mine[at].dtype)) for at in chosen],
            allow_unused=True,
        )
    except Exception as error:  # noqa: BLE001 - whatever is raised is the finding
        return Outcome("disagrees", form, f"no gradient: {first_line(error)}")
    for at, (g, g_expected, x) in enumerate(zip(found, expected, my_leaves, strict=True)):
        a = np.zeros(x.shape) if g is None else array_of(g)
        b = np.zeros(x.shape) if g_expected is None else array_of(g_expected)
        if difference := differs(a, b):
            return Outcome("disagrees", form, f"gradient of argument {at}: {difference}")
    return Outcome("agrees", form)


def differs(a: Any, b: Any) -> str:
    """Return the largest difference in words, or nothing where the two agree."""
    if a.dtype.kind in "biu" or b.dtype.kind in "biu":
        wrong = np.asarray(a != b)
    elif a.dtype == b.dtype == gg.bfloat16:  # PyTorch rounds float64 twice
        wrong = ~np.isclose(a.astype(np.float32), b.astype(np.float32), rtol=2**-8, atol=0, equal_nan=True)
    else:
        precision = "float32" if np.dtype(a.dtype) in {np.dtype("f"), np.dtype("F")} else "float64"
        scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)) if precision == "float32" else 1.0)
        wrong = ~np.isclose(a, b, rtol=RTOL[precision], atol=ATOL[precision] * scale, equal_nan=True)
    if not wrong.any():
        return ""
    place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    return (
        f"{a[place]!s} at {tuple(int(i) for i in place)}, PyTorch's {b[place]!s} ({int(wrong.sum())} of {wrong.size})"
    )


# --- an op, all ops -------------------------------------------------------------------------------


@dataclass
class Report:
    """The verdict on one op of PyTorch's table."""

    op: str
    ours: str
    agrees: int = 0
    shapes: int = 0
    unsupported: dict[str, list[str]] = field(default_factory=dict)  # why -> forms
    disagrees: list[tuple[str, str]] = field(default_factory=list)  # form, how

    @property
    def verdict(self) -> str:
        if self.disagrees:
            return "disagrees"
        return "agrees" if self.agrees else "shapes" if self.shapes else "unsupported"

    @property
    def not_supported(self) -> dict[str, int]:
        """How many calls were refused, by the reason given."""
        return {why: len(forms) for why, forms in self.unsupported.items()}

    def as_json(self) -> dict[str, Any]:
        return {
            "op": self.op, "ours": self.ours, "verdict": self.verdict, "agrees": self.agrees, "shapes": self.shapes,
            "unsupported": {why: {"count": len(forms), "example": forms[0]} for why, forms in self.unsupported.items()},
            "disagrees": [{"form": form, "how": how} for form, how in self.disagrees],
            "reason": REASONS.get(self.op, ""),
        }  # fmt: skip  # a table


def seeded(number: int) -> None:
    """Seed what PyTorch's sample functions draw from."""
    torch.default_generator.manual_seed(number)
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002 - one of them


def samples_of(info: Any, limit: int, dtype: str = "float64") -> list[Any]:
    """Return some of PyTorch's samples of a dtype, spread over all of them, always the same."""
    from torch.testing._internal import common_utils

    seeded(0)
    kind = DTYPES[dtype]
    tracked = kind in info.supported_backward_dtypes("cpu") and (kind.is_floating_point or kind.is_complex)
    # PyTorch seeds before each sample, also devices that are absent, of which it notes the stack each time, and looks
    # for a test case on the stack: more than half of the time of all samples.
    plain = {"set_rng_seed": seeded, "extract_test_fn": lambda: None}
    with mock.patch.multiple(common_utils, **plain):
        drawn = list(info.sample_inputs("cpu", kind, requires_grad=tracked))
    if len(drawn) <= limit:
        return drawn
    return [drawn[round(at * (len(drawn) - 1) / (limit - 1))] for at in range(limit)]


def examine(info: Any, limit: int = SAMPLES, dtype: str = "float64") -> Report | None:
    """Return the verdict on one op, or None when we have no such op or PyTorch no samples of the dtype."""
    found = ours(info)
    if found is None or DTYPES[dtype] not in info.dtypes:
        return None
    name, function = found
    report = Report(title(info), name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in samples_of(info, limit, dtype):
            outcome = compare(function, info, sample)
            if outcome.kind == "agrees":
                report.agrees += 1
            elif outcome.kind == "shapes":
                report.shapes += 1
            elif outcome.kind == "unsupported":
                report.unsupported.setdefault(outcome.why, []).append(outcome.form)
            else:
                report.disagrees.append((outcome.form, outcome.why))
    return report


def examine_all(infos: Iterable[Any], limit: int = SAMPLES, dtype: str = "float64") -> Iterator[Report]:
    for info in infos:
        report = examine(info, limit, dtype)
        if report is not None:
            yield report


def lacking() -> list[dict[str, Any]]:
    """Return the entries of PyTorch's ops that are not here, for the docs."""
    counts = {"agrees": 0, "shapes": 0, "unsupported": {}, "disagrees": []}
    return [{"op": op, "ours": "", "verdict": "lacking", **counts, "reason": why} for op, why in LACKING.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    parser.add_argument("--dtype", default="float64", choices=DTYPES, help="what to look at; the file has them all")
    parser.add_argument("--limit", type=int, default=SAMPLES, help="samples of each op")
    parser.add_argument("--only", default="", help="only ops whose name contains this")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    reports = []
    infos = [info for info in op_infos() if arguments.only in info.name]
    for report in examine_all(infos, arguments.limit, arguments.dtype):
        reports.append(report)
        print(f"{report.op:<50} {report.verdict:<12} {report.agrees}", flush=True)
        for why, forms in report.unsupported.items():
            print(f"    unsupported {len(forms)}: {why}   {forms[0]}")
        for form, how in report.disagrees[:3]:
            print(f"    disagrees: {how}   {form}")
    if arguments.write:
        entries = [report.as_json() for report in reports] + lacking()
        FILE.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
