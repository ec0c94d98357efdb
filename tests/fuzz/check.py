"""Run random programs by every interpreter and compare: `python -m tests.fuzz.check FIRST LAST [autocast]`.

A line of JSON reports the result of each program. Programs run in this process, which a wrong program may end; the
caller (`tests/fuzz/test_programs.py`) then starts another process.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad import errors, func
from tests.fuzz.programs import WITH_PRODUCTS, Program, leaves_of, loss_of, make

TOLERANCE = 1e-8
Numbers = list[np.ndarray[Any, Any]]


def _tensors(program: Program, *, grad: bool = True) -> list[Any]:
    return [gg.from_numpy(array).requires_grad_(grad) for array in leaves_of(program)]


def by_torch(program: Program) -> Numbers:
    """Loss and gradients by PyTorch."""
    import torch

    leaves = [torch.from_numpy(np.array(array)).requires_grad_() for array in leaves_of(program)]
    loss = loss_of(program, torch, leaves)
    loss.backward()
    return [loss.detach().numpy(), *[leaf.grad.numpy() for leaf in leaves]]


def by_eager(program: Program) -> Numbers:
    """Loss and gradients by our eager mode."""
    leaves = _tensors(program)
    loss = loss_of(program, gg, leaves)
    loss.backward()
    return [loss.detach().numpy(), *[leaf.grad.numpy() for leaf in leaves]]


def by_compiler(backend: str) -> Callable[[Program], Numbers]:
    """Loss and gradients by a compiled step, called twice: the second call takes the fast path."""

    def run(program: Program) -> Numbers:
        def step(*given: Any) -> Any:
            leaves = [x.detach().clone().requires_grad_() for x in given]
            loss = loss_of(program, gg, leaves)
            loss.backward()
            return [loss.detach(), *[leaf.grad for leaf in leaves]]

        compiled = gg.compile(step, backend=backend)
        given = _tensors(program, grad=False)
        compiled(*given)
        return [one.numpy() for one in compiled(*given)]

    return run


def by_vmap(program: Program) -> Numbers:
    """The loss of two examples at once; the gradients of their sum."""
    leaves = [gg.from_numpy(np.stack([array, array])).requires_grad_() for array in leaves_of(program)]
    losses = func.vmap(lambda *given: loss_of(program, gg, given))(*leaves)
    losses.sum().backward()
    assert losses.shape == (2,)
    return [losses.detach().numpy()[1], *[leaf.grad.numpy()[1] for leaf in leaves]]


def by_checkpoint(program: Program) -> Numbers:
    """Loss and gradients with everything recomputed in the backward pass."""
    leaves = _tensors(program)
    loss = gg.checkpoint(lambda *given: loss_of(program, gg, given), *leaves)
    loss.backward()
    return [loss.detach().numpy(), *[leaf.grad.numpy() for leaf in leaves]]


def by_jvp(program: Program) -> tuple[Any, Any, Numbers]:
    """Loss, its derivative along random tangents in forward mode, and the tangents."""
    rng = np.random.default_rng(program.seed + 1)
    tangents = [rng.normal(size=shape) for shape in program.shapes]
    loss, slope = func.jvp(
        lambda *given: loss_of(program, gg, given),
        tuple(_tensors(program, grad=False)),
        tuple(gg.from_numpy(t) for t in tangents),
    )
    return loss.numpy(), slope.numpy(), tangents


INTERPRETERS: dict[str, Callable[[Program], Numbers]] = {
    "eager": by_eager,
    "llvm": by_compiler("llvm"),
    "numpy": by_compiler("numpy"),
    "vmap": by_vmap,
    "checkpoint": by_checkpoint,
}


def differences(program: Program, have_torch: bool) -> Iterator[str]:
    """Yield what an interpreter does otherwise than PyTorch (than eager mode, where there is no PyTorch)."""
    wanted = by_torch(program) if have_torch else by_eager(program)
    found = list(_found(program, wanted))
    if found and _rounding_decides(program):
        found = [one for one in found if " raised " in one]
    yield from found


def _rounding_decides(program: Program) -> bool:
    """Tell whether moving the leaves by rounding changes gradients, as at the relu of numbers less their mean."""
    first, *others = (by_eager(program._replace(nudge=nudge)) for nudge in range(5))
    return any(list(_apart("", other, first)) for other in others)


def _found(program: Program, wanted: Numbers) -> Iterator[str]:
    for name, interpreter in INTERPRETERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", errors.CompileWarning)
                found = interpreter(program)
        except Exception:  # noqa: BLE001 - whatever it is, it belongs into the report
            yield f"{name} raised {traceback.format_exc(limit=-3)}"
            continue
        yield from _apart(name, found, wanted)
    try:
        loss, slope, tangents = by_jvp(program)
    except Exception:  # noqa: BLE001 - as above
        yield f"jvp raised {traceback.format_exc(limit=-3)}"
        return
    along = sum((g * t).sum() for g, t in zip(wanted[1:], tangents, strict=True))
    yield from _apart("jvp", [loss, slope], [wanted[0], np.asarray(along)])


def _apart(name: str, found: Sequence[Any], wanted: Sequence[Any]) -> Iterator[str]:
    scale = max([1.0, *[float(np.abs(one).max(initial=0)) for one in wanted]])
    for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
        what = f"{name}: {'the loss' if at == 0 else f'the gradient of v{at - 1}'}"
        if one.shape != other.shape:
            yield f"{what} has shape {one.shape}, not {other.shape}"
        elif not np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * scale):
            yield f"{what} is {np.array2string(one, threshold=6)}, not {np.array2string(other, threshold=6)}"


# --- under autocast ----------------------------------------------------------------------------------

_ROUNDING = 2.0**-8  # of bfloat16
_FACTOR = 4.0  # how much farther than that, and than what a nudge of the leaves does, results may lie from the truth


def under_autocast(lib: Any, program: Program, given: Sequence[Any]) -> list[Any]:
    """Return loss and gradients of float32 leaves, with products in bfloat16, by our library or by PyTorch."""
    leaves = [x.detach().clone().requires_grad_() for x in given]
    with lib.autocast("cpu", dtype=lib.bfloat16):
        loss = loss_of(program, lib, leaves)
    loss.backward()
    return [loss.detach().float(), *[leaf.grad for leaf in leaves]]


def _singles(program: Program) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(array, dtype=np.float32) for array in leaves_of(program)]


def narrow_eager(program: Program) -> Numbers:
    """Loss and gradients under autocast by our eager mode."""
    return [one.numpy() for one in under_autocast(gg, program, [*map(gg.from_numpy, _singles(program))])]


def narrow_compiled(program: Program) -> Numbers:
    """Loss and gradients under autocast by native code, on one thread or two, from the second call."""

    def step(*given: Any) -> Any:
        return under_autocast(gg, program, given)

    compiled = gg.compile(step, backend="llvm", threads=1 + program.seed % 2)
    given = [*map(gg.from_numpy, _singles(program))]
    compiled(*given)
    return [one.numpy() for one in compiled(*given)]


NARROW_INTERPRETERS: dict[str, Callable[[Program], Numbers]] = {"eager": narrow_eager, "llvm": narrow_compiled}


def narrow_torch(program: Program) -> Iterator[Numbers]:
    """Yield loss and gradients under PyTorch's autocast, also from leaves moved by a rounding."""
    import torch

    for nudge in range(3):
        given = [torch.from_numpy(x.copy()) for x in _singles(program._replace(nudge=nudge, size=_ROUNDING))]
        try:
            yield [one.numpy() for one in under_autocast(torch, program, given)]
        except RuntimeError:  # it has no `lerp` between bfloat16 and float32
            return


def narrow_differences(program: Program, have_torch: bool) -> Iterator[str]:
    """Yield what is farther from float64's results than rounding to bfloat16 explains.

    How much rounding does to a program is seen in float64, from leaves moved by about as much, and in PyTorch's
    autocast; a program in which that decides, or whose numbers leave bfloat16's range, is only run.
    """
    with np.errstate(all="ignore"):
        truth = by_eager(program)
        moved = [by_eager(program._replace(nudge=nudge, size=_ROUNDING)) for nudge in range(1, 5)]
        others = [*moved, *(narrow_torch(program) if have_torch else ())]
        spread = np.max([_relative(one, truth) for one in others], axis=0)
        most = float(spread.max())  # NaN, where anything is
        for name, interpreter in NARROW_INTERPRETERS.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", errors.CompileWarning)
                    found = interpreter(program)
            except Exception:  # noqa: BLE001 - as above
                yield f"{name} raised {traceback.format_exc(limit=-3)}"
                continue
            if not most < 16 * _ROUNDING:
                continue
            for at, (error, usual) in enumerate(zip(_relative(found, truth), spread, strict=True)):
                if not error <= _FACTOR * max(usual, most / 4, _ROUNDING):
                    what = "the loss" if at == 0 else f"the gradient of v{at - 1}"
                    yield f"{name}: {what} is off by {error:.2g} of its scale; moved leaves give {usual:.2g}"


def _relative(found: Numbers, wanted: Numbers) -> list[float]:
    """Return how far each array is off, next to its largest number."""
    return [
        float(np.abs(one - other).max(initial=0) / max(1e-3, np.abs(other).max(initial=0)))
        for one, other in zip(found, wanted, strict=True)
    ]


def main(first: int, last: int, *, autocast: bool = False) -> None:
    """Check the programs of some seeds, and print a line for each."""
    try:
        import torch

        torch.set_num_threads(1)
        have_torch = True
    except ImportError:
        have_torch = False
    for seed in range(first, last):
        print(json.dumps({"started": seed}), flush=True)
        try:
            program = make(seed, WITH_PRODUCTS) if autocast else make(seed)
            wrong = list((narrow_differences if autocast else differences)(program, have_torch))
            text = str(program) if wrong else ""
        except Exception:  # noqa: BLE001 - a statement that our own eager mode cannot run
            wrong, text = [traceback.format_exc(limit=-4)], f"program {seed}"
        print(json.dumps({"seed": seed, "wrong": wrong, "program": text}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), autocast="autocast" in sys.argv[3:])
