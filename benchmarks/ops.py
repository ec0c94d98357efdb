"""Time forward plus backward of single operations, at 1, 1,000 and 1,000,000 elements, float32, beside the peers.

Every library runs in its own process; for each operation the benchmark first checks that results and gradients agree,
then the libraries take turns. JAX is jitted, as its users do; the others run eagerly. Times include building the graph
and the whole backward pass with a given cotangent, down to the gradients of all inputs.
"""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks import harness, quiet, results
from benchmarks.op_cases import FIXED, REASONS, SIDES, SIZED, Case, draw, from_registry

LIBRARIES = {"glassgrad": "glassgrad", "PyTorch": "torch", "HIPS autograd": "autograd", "JAX jit": "jax"}
OURS = "glassgrad"
TITLE = "Operation by operation, forward plus backward"
TURN = 0.02  # seconds
# The first operation runs so often before anything is timed: what a library does once in a process is no operation's
# time.
WARM_UP = 5_000
TOLERANCE = 2e-3
MEDIAN, SLOW = 0.6, 2.0  # the bars: of the median over operations, and of each
LETTERS = "abc"
Once = Callable[[], list[Any]]


# --- in the worker ---


def compiled_expression(case: Case, library: str, space: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the case's expression as a function of its inputs."""
    arguments = ", ".join(LETTERS[: len(case.shapes) or case.inputs])
    function: Callable[..., Any] = eval(f"lambda {arguments}: {case.in_dialect(library)}", dict(space))  # noqa: S307 -- our own table
    return function


def tensor_library(library: str) -> Any:
    """PyTorch or glassgrad: recorded on a tape, `backward` with a cotangent."""
    if library == "torch":
        import torch as m
        from torch.nn import functional
    else:
        import glassgrad as m
        from glassgrad.nn import functional

    def prepare(case: Case, inputs: list[np.ndarray], constants: dict[str, np.ndarray]) -> Once:
        space = {"m": m, "F": functional, **{name: m.tensor(value) for name, value in constants.items()}}
        function = compiled_expression(case, library, space)
        leaves = [m.tensor(value, requires_grad=True) for value in inputs]
        cotangent = m.tensor(cotangent_like(function(*leaves)))

        def once() -> list[Any]:
            for leaf in leaves:
                leaf.grad = None
            y = function(*leaves)
            y.backward(cotangent)
            return [y.detach(), *(leaf.grad for leaf in leaves)]

        return once

    return prepare


def autograd_library(_library: str) -> Any:
    """HIPS autograd: `make_vjp` over all arguments at once."""
    import autograd.numpy as m
    from autograd import make_vjp
    from autograd.scipy import special

    def prepare(case: Case, inputs: list[np.ndarray], constants: dict[str, np.ndarray]) -> Once:
        function = compiled_expression(case, "autograd", {"m": m, "special": special, **constants})
        record = make_vjp(lambda arguments: function(*arguments))
        arguments = tuple(inputs)
        cotangent = cotangent_like(function(*arguments))

        def once() -> list[Any]:
            vjp, y = record(arguments)
            return [y, *vjp(cotangent)]

        return once

    return prepare


def jax_library(_library: str) -> Any:
    """JAX: the vjp jitted as a whole."""
    import jax
    import jax.numpy as m

    def prepare(case: Case, inputs: list[np.ndarray], constants: dict[str, np.ndarray]) -> Once:
        fixed = {name: m.asarray(value) for name, value in constants.items()}
        function = compiled_expression(case, "jax", {"m": m, "jax": jax, "special": jax.scipy.special, **fixed})
        arguments = tuple(m.asarray(value) for value in inputs)
        cotangent = m.asarray(cotangent_like(function(*arguments)))

        @jax.jit
        def both(arguments: Any, cotangent: Any) -> Any:
            y, vjp = jax.vjp(function, *arguments)
            return [y, *vjp(cotangent)]

        return lambda: jax.block_until_ready(both(arguments, cotangent))  # type: ignore[no-any-return]  # a list, as `both` returns

    return prepare


def cotangent_like(y: Any) -> np.ndarray:
    """The same pseudo-random cotangent in every process, in the result's shape."""
    return np.random.default_rng(5).uniform(0.5, 1.5, tuple(y.shape)).astype(np.float32)


def fingerprint(arrays: list[Any]) -> list[tuple[float, float]]:
    """Return for each array a weighted sum, and the sum of magnitudes that scales its tolerance."""
    prints = []
    for array in arrays:
        values = np.asarray(array.numpy() if hasattr(array, "numpy") else array, np.float64)
        weights = np.random.default_rng(3).uniform(0.5, 1.5, values.shape)
        prints.append((float((values * weights).sum()), float(np.abs(values * weights).sum())))
    return prints


class Served:
    """A library's worker: prepares one case at a time, shows its results, times it."""

    def __init__(self, library: str) -> None:
        makers = {"autograd": autograd_library, "jax": jax_library}
        self.library = library
        self.prepare = makers.get(library, tensor_library)(library)
        self.once: Once = list
        self.count = 1
        self.is_warm = False

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Serve `prepare` and `time`; a missing operation of a library is an answer, not a failure."""
        if request["do"] == "time":
            start = time.perf_counter()
            for _ in range(self.count):
                self.once()
            return {"seconds": (time.perf_counter() - start) / self.count}
        case = Case(**request["case"])
        if not case.in_dialect(self.library):
            return {"absent": True}
        try:
            self.once = self.prepare(case, *draw(case, request["size"]))
            prints = fingerprint(self.once())
        except AttributeError as error:
            # Only we are expected to have everything.
            return {"error": str(error)} if self.library == OURS else {"absent": True}
        except Exception as error:  # noqa: BLE001 -- one operation that fails must not end the table
            return {"error": f"{type(error).__name__}: {error}"}
        for _ in range(0 if self.is_warm else WARM_UP):
            self.once()
        self.is_warm = True
        self.calibrate()
        return {"prints": prints}

    def calibrate(self) -> None:
        """Choose the number of runs that makes a turn long enough for timing."""
        self.count = 1
        while True:
            start = time.perf_counter()
            for _ in range(self.count):
                self.once()
            elapsed = time.perf_counter() - start
            if elapsed > TURN / 4:
                self.count = max(1, round(self.count * TURN / elapsed))
                return
            self.count *= 4


def build(mode: str) -> Served:
    """The worker of one library."""
    return Served(mode)


# --- in the harness ---


def agree(mine: list[list[float]], theirs: list[list[float]]) -> bool:
    """Return whether two fingerprints can come from the same results."""
    return len(mine) == len(theirs) and all(
        math.isfinite(ours[0]) and abs(ours[0] - other[0]) <= TOLERANCE * max(ours[1], other[1], 1e-3)
        for ours, other in zip(mine, theirs, strict=True)
    )


def start_libraries(threads: int | None, chosen: list[str]) -> tuple[dict[str, harness.Peer], list[str]]:
    """Return the chosen libraries that run here, and a line for each of the others."""
    peers, notes = {}, []
    wanted = harness.matching(chosen, LIBRARIES)
    for name, library in LIBRARIES.items():
        if name not in wanted:
            continue
        peer = harness.Peer("benchmarks.ops", library, threads)
        try:
            greeting = peer.read(harness.START_LIMIT)
            if "missing" in greeting:
                raise harness.PeerError(f"missing: {greeting['missing']}")  # noqa: TRY301 -- one way out
            peers[name] = peer
        except harness.PeerError as error:
            notes.append(f"- {name}: {str(error).strip().splitlines()[-1]}")
            peer.close()
    return peers, notes


def prepare_all(peers: Mapping[str, harness.Peer], case: Case, size: int, notes: list[str]) -> list[str]:
    """Return the libraries that have the case and agree on it with most of the others."""
    replies = {name: peer.ask(do="prepare", case=dataclasses.asdict(case), size=size) for name, peer in peers.items()}
    where = f"{case.name}{f' at {size:,}' if size else ''}"
    notes += [
        f"- {where}: {name} fails: {one_line(reply['error'])}" for name, reply in replies.items() if "error" in reply
    ]
    prints = {name: reply["prints"] for name, reply in replies.items() if "prints" in reply}
    votes = {name: sum(agree(mine, theirs) for theirs in prints.values()) for name, mine in prints.items()}
    agreeing = [name for name, count in votes.items() if count == max(votes.values()) and count > len(votes) / 2]
    notes += [
        f"- {where}: {name} disagrees with the others and was not timed" for name in prints if name not in agreeing
    ]
    return agreeing


def time_case(
    peers: Mapping[str, harness.Peer], case: Case, size: int, rounds: int, notes: list[str], until: float = math.inf
) -> dict[str, float]:
    """Return the median seconds of forward plus backward for each library that has the case.

    After the first round, no round begins that would end after `until`, a time of `time.monotonic`.
    """
    agreeing = prepare_all(peers, case, size, notes)
    seconds: dict[str, list[float]] = {name: [] for name in agreeing}
    longest = 0.0
    for index in range(rounds):
        start = time.monotonic()
        if index and start + longest > until:
            break
        for name in agreeing[:: 1 if index % 2 == 0 else -1]:
            seconds[name].append(peers[name].ask(do="time")["seconds"])
        longest = max(longest, time.monotonic() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def one_line(text: str) -> str:
    """Return an error as a text short enough for a list."""
    return text.strip().splitlines()[0][:160]


def merged(notes: list[str]) -> list[str]:
    """Return notes, with those that differ only in the size merged into one."""
    return list(dict.fromkeys(re.sub(r" at [\d,]+:", ":", note) for note in notes))


def unwritten() -> list[Case]:
    """Return the cases from the registry; none if the library cannot be imported, which its worker reports."""
    try:
        from glassgrad.ops import names  # noqa: F401 -- fills the registry
        from glassgrad.ops.core import REGISTRY
    except ImportError:
        return []
    return from_registry(REGISTRY)


def plan() -> Iterator[tuple[Case, int]]:
    """All cases at all sizes; size 0 stands for a case's own shapes."""
    for case in (*SIZED, *unwritten()):
        for size in SIDES:
            yield case, size
    for case in FIXED:
        yield case, 0


def cells(medians: Mapping[str, float]) -> list[str]:
    """Our time and its ratio to each peer's."""
    ours = medians.get(OURS, math.nan)
    ratios = [ours / medians.get(name, math.nan) for name in LIBRARIES if name != OURS]
    return [results.duration(ours), *(results.number(ratio, ".2f") for ratio in ratios)]


def summary(found: Mapping[tuple[str, int], Mapping[str, float]]) -> list[str]:
    """Return the median over operations of our time as a multiple of PyTorch's, at each size, and the slowest ones."""
    lines = []
    for size in SIDES:
        ratios = {
            name: medians[OURS] / medians["PyTorch"]
            for (name, at), medians in found.items()
            if at == size and OURS in medians and "PyTorch" in medians
        }
        if not ratios:
            lines.append(f"- {size:,} elements: not measured")
            continue
        middle = statistics.median(ratios.values())
        verdict = "met" if middle <= MEDIAN else "missed"
        slow = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items() if ratio > SLOW) or "none"
        lines.append(
            f"- {size:,} elements: median over {len(ratios)} operations {middle:.2f} of PyTorch's time"
            f" (at most {MEDIAN:g}: {verdict}); over {SLOW:g}: {slow}"
        )
        lines += [f"  - {name}: {reason_for(name, size)}" for name, ratio in ratios.items() if ratio > SLOW]
    return lines + [bar_of_its_own(case, found) for case in FIXED if case.limit is not None]


def reason_for(name: str, size: int) -> str:
    """Return the stated reason for an operation slower than `SLOW` times PyTorch, or that there is none."""
    return REASONS.get(name, {}).get(size, "no reason is written: missed")


def bar_of_its_own(case: Case, found: Mapping[tuple[str, int], Mapping[str, float]]) -> str:
    """Return the verdict on a case with its own limit."""
    medians = found.get((case.name, 0), {})
    if OURS not in medians or "PyTorch" not in medians:
        return f"- {case.name}: not measured"
    ratio = medians[OURS] / medians["PyTorch"]
    verdict = "met" if ratio <= (case.limit or 0) else "missed"
    return f"- {case.name}: {ratio:.2f} of PyTorch's time (at most {case.limit:g}: {verdict})"


def tables(found: Mapping[tuple[str, int], Mapping[str, float]]) -> str:
    """Return one table per size and one for the fixed shapes."""
    head = ["operation", "glassgrad", *(f"/ {name}" for name in LIBRARIES if name != OURS)]
    parts = []
    for size in (*SIDES, 0):
        rows = [[name, *cells(medians)] for (name, at), medians in found.items() if at == size]
        parts.append(f"**{f'{size:,} elements' if size else 'Layers'}**\n\n{results.markdown_table(head, rows)}")
    return "\n\n".join(parts)


def measure(
    threads: int | None, rounds: int, chosen: list[str] | None = None, within: float = math.inf
) -> tuple[str, str, dict[str, Any]]:
    """Return title, text and raw numbers; by default on one thread, because some libraries have only one.

    Each operation gets an equal part of the remaining `within` seconds: fewer rounds, at least one.
    """
    threads = threads or 1
    end = time.monotonic() + within
    peers, notes = start_libraries(threads, chosen or [])
    found = {}
    watch = quiet.Watch(peer.process.pid for peer in peers.values())
    try:
        whole = list(plan())
        for at, (case, size) in enumerate(whole):
            now = time.monotonic()
            until = now + (end - now) / (len(whole) - at)
            found[case.name, size] = time_case(peers, case, size, min(rounds, 5), notes, until)
        busy = quiet.verdict(watch.others())
    finally:
        for peer in peers.values():
            peer.close()
    text = "\n\n".join(
        filter(
            None,
            [
                f"Threads: {threads} for every library.",
                busy,
                "\n".join(summary(found)),
                tables(found),
                "\n".join(merged(notes)),
            ],
        )
    )
    return TITLE, text, {"seconds": [[name, size, medians] for (name, size), medians in found.items()]}
