"""`glassgrad.compile`: the callable that traces, compiles and runs."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TextIO, TypeVar, overload

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.kept import Cache, free_in_children
from glassgrad.compile import against_eager, backends
from glassgrad.compile.exporting import Exporting
from glassgrad.compile.front.calls.cached_trace import TraceCall, changed_floats, describe_difference, signature
from glassgrad.compile.front.calls.captured import Capture
from glassgrad.compile.front.calls.fast_call import MISS
from glassgrad.compile.front.calls.parameters import (
    Args,
    Function,
    Kwargs,
    Leaves,
    Signature,
    parameter_names,
    placed,
    plain_parameters,
)
from glassgrad.compile.front.calls.refusal import MANY, RefusedError, failure, is_own, reason, refusal, strict_error
from glassgrad.compile.front.capture import TRACING_LOCK, capture
from glassgrad.compile.front.hidden_branch import StepTracer
from glassgrad.compile.front.interrupts import opened, shielded
from glassgrad.compile.ir.graph import Graph
from glassgrad.compile.ir.totals import Stats
from glassgrad.compile.patience import told_if_long
from glassgrad.compile.portable import Portable
from glassgrad.compile.repeating import Repeating
from glassgrad.compile.showing import Showing, remembered
from glassgrad.engine.mode import ANOMALY, MODE, TRACING
from glassgrad.errors import tracebacks

Given = ParamSpec("Given")
Result = TypeVar("Result")

_AS_WRITTEN = TRACING | ANOMALY
_OFTEN = 16  # traces of one function, after which a warning says why
_IN_A_ROW = 8  # consecutive traces of one kind of call after which such calls run eagerly
_KEPT = 64  # default number of programs that a function keeps; GLASSGRAD_MAX_TRACES overrides it


class Compiled(Portable, Repeating, Showing, Exporting, Generic[Given, Result]):
    """A function that is traced at its first call and then runs as one program.

    Attributes:
        function: the original function.
        retraces: why it was traced again, one sentence per retrace.
        refusals: why calls run eagerly, one text for each kind of call that cannot be compiled.
        backend: "llvm", "c" or "numpy".
        strict: whether a call that cannot be compiled is an error.

    Example:
        >>> import glassgrad as gg
        >>> step = gg.compile(lambda x: (x * 2).sum())
        >>> step(gg.ones(3)), step.retraces
        (tensor(6.), [])
    """

    def __init__(
        self,
        function: Callable[Given, Result],
        *,
        backend: str,
        verify: bool,
        threads: int | None,
        keep_grads: bool,
        strict: bool = False,
        memory: int | None = None,
    ) -> None:
        tracebacks.tell()
        functools.update_wrapper(self, function)
        self.function = self.__compiled_function__ = function
        self.backend = backend
        self.threads = threads
        self.keep_grads = keep_grads
        self.strict, self.memory = strict, memory
        self.retraces: list[str] = []
        self.refusals: list[str] = []
        self._refused: set[Signature] = set()
        self._verify = verify
        self._lock = free_in_children(threading.RLock())
        self._traces: Cache[int, TraceCall] = Cache(
            "traces", lambda: int(os.environ.get("GLASSGRAD_MAX_TRACES") or _KEPT)
        )
        self._in_a_row = 0
        self._latest: TraceCall | None = None
        self._names = parameter_names(function)
        self._plain = plain_parameters(function)
        self._moving: set[int] = set()
        self._fixed: set[int] = set()

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        if MODE.flags & _AS_WRITTEN:  # inside another trace, or every op is inspected
            return self.function(*args, **kwargs)
        if kwargs and self._plain:
            args, kwargs = placed(args, kwargs, self._plain)  # type: ignore[assignment]  # the same arguments
        refused: Any = None
        with self._lock:
            latest = self._latest
            if latest is not None and latest.quick is not None:
                result = latest.quick(args, kwargs)
                if result is not MISS:
                    self._in_a_row = 0
                    return result
            if not MODE.levels:
                result = self._match_or_find(args, kwargs)
                if type(result) is not RefusedError:
                    return result
                refused = result
        if refused is not None:
            return self._run_eagerly(refused, args, kwargs)
        return self.function(*args, **kwargs)  # inside vmap, where a tensor represents many examples

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        # A compiled model keeps its parameters, modes and state.
        if name.startswith("__") or "function" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.__dict__["function"], name)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", self.function)
        return f"<compiled {name}, {self.traces} traces, {self.backend}>"

    def _repr_html_(self) -> str:
        from glassgrad.engine.reports import notebook

        return notebook.compiled(self)

    # --- calls that cannot be compiled -----------------------------------------------------------------

    def _run_eagerly(self, refused: RefusedError, args: Args, kwargs: Kwargs) -> Any:
        error, refused.error = refused.error, None
        if error is not None and self.strict:
            try:
                raise strict_error(error, certain=refused.certain)
            finally:
                del error  # a frame that holds its own exception lives until the next collection
        if error is None or refused.key in self._refused:  # the warning was given before
            return self.function(*args, **kwargs)
        told = reason(error)
        refused.__traceback__ = error = None  # its frames keep the whole trace alive
        if refused.certain:
            self._note_refusal(refused.key, told)
            return self.function(*args, **kwargs)
        result = self.function(*args, **kwargs)  # raises, if the error is the user's own
        self._note_refusal(refused.key, told)
        return result

    def _note_refusal(self, key: Signature, told: str) -> None:
        """Record that calls like this one run eagerly, and warn once."""
        self._refused.add(key)
        self.refusals.append(told)
        if len(self.refusals) == 1:
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            text = errors.RUNS_EAGERLY.text(name=name, reason=told)
            warnings.warn(text, errors.CompileWarning, stacklevel=provenance.stack_level())

    # --- finding or making a trace --------------------------------------------------------------------

    def _match_or_find(self, args: Args, kwargs: Kwargs) -> Any:
        """Return the result of a call, or the `RefusedError` that says why it must run eagerly."""
        latest = self._latest
        try:
            leaves = None if latest is None else latest.match(args, kwargs)
            if latest is not None and leaves is not None:
                self._in_a_row = 0
                return latest.run(leaves)
            with shielded():
                return self._found_and_run(args, kwargs)
        except RefusedError as refused:
            return refused

    def _found_and_run(self, args: Args, kwargs: Kwargs) -> Any:
        with TRACING_LOCK:  # only while tracing: a running program may call other compiled functions
            try:
                call, leaves, new = self._found_or_made(args, kwargs)
            except Exception as error:
                if is_own(error):
                    raise
                raise refusal(error, signature(args, kwargs, self._moving)[0]) from None
        self._latest = call
        if not new:
            return call.run(leaves)
        if self._verify:
            call.capture.undo = None  # in any case the final state is that of the eager call
            return against_eager.checked(call, self.function, args, kwargs, leaves)
        return self._first_run(call, leaves)

    def _first_run(self, call: TraceCall, leaves: Leaves) -> Any:
        """Run a new trace for the first time; undo every effect if that fails."""
        before = against_eager.saved(call.capture, leaves, arrays=call.can_fail_halfway)
        try:
            with opened():  # the last point at which an interrupt needs no undo
                pass
            result = call.run(leaves)
        except BaseException as error:  # including Ctrl-C
            before.restore()
            self._take_back(call)
            if not isinstance(error, Exception) or is_own(error):
                raise
            self._forget(call)
            raise refusal(error, call.key) from None
        call.capture.undo = None
        return result

    def _forget(self, call: TraceCall) -> None:
        """Drop a trace."""
        self._traces.drop(id(call))
        self._latest = next(iter(self._traces.values()), None)

    def _take_back(self, call: TraceCall) -> None:
        """Undo a trace whose first call failed; drop it if it created state, so that the next call traces again."""
        undo, call.capture.undo = call.capture.undo, None
        if undo is not None and undo():
            self._forget(call)

    def _found_or_made(self, args: Args, kwargs: Kwargs) -> tuple[TraceCall, Leaves, bool]:
        """Return a trace that fits, the leaves of the arguments, and whether the trace is new."""
        key, leaves = signature(args, kwargs, self._moving)
        known = self._known(key, leaves)
        if known is None and self._latest is not None:
            # A float that changes from call to call becomes an input, or every value would need its own program.
            self._moving |= changed_floats(self._latest.key, key) - self._fixed
            key, leaves = signature(args, kwargs, self._moving)
            known = self._known(key, leaves)
        if known is not None:
            self._in_a_row = 0
            self._traces.put(id(known), known)  # mark as most recently used
            return known, leaves, False
        if key in self._refused or len(self._refused) >= MANY:
            raise RefusedError(None, certain=True, key=key)
        self._note_reason(key, leaves)
        self._count_in_a_row(key)
        made = self._traced(args, kwargs)
        for one in self._alike(made.key):
            if one.capture.once and one.used:
                self._traces.drop(id(one))
        self._traces.put(id(made), made)
        made.prepare(leaves)
        made.given = remembered(args, kwargs)
        return made, leaves, True

    def _count_in_a_row(self, key: Signature) -> None:
        """Count calls that match a program's arguments but not its guards; refuse them once there are too many."""
        if self._latest is not None and not self._alike(key):
            return
        self._in_a_row += 1
        if self._in_a_row > _IN_A_ROW:
            told = errors.TRACED_EVERY_TIME(count=_IN_A_ROW, reason=self.retraces[-1])
            raise RefusedError(told, certain=True, key=key)

    def _alike(self, key: Signature) -> list[TraceCall]:
        """Return the traces of calls with these types of arguments, the least recently used first."""
        return [one for one in self._traces.values() if one.key == key]

    def _known(self, key: Signature, leaves: Leaves) -> TraceCall | None:
        """Return an existing trace that matches the call."""
        return next((one for one in self._alike(key) if one.fits(leaves)), None)

    def _traced(self, args: Args, kwargs: Kwargs) -> TraceCall:
        """Trace; if the function needs the value of a float that was to be an input, keep that float constant."""
        try:
            return self._trace(args, kwargs)
        except (errors.CompileError, RefusedError):
            if not self._moving:
                raise
            self._fixed |= self._moving
            self._moving = set()
            return self._trace(args, kwargs)

    def _note_reason(self, key: Signature, leaves: Leaves) -> None:
        if self._latest is None:
            return
        if self.traces == _OFTEN:
            self._warn_of_traces()
        same = self._alike(key)
        if same:
            nearest = self._latest if self._latest in same else same[-1]
            self.retraces.append(nearest.why(leaves) or "a value that the function reads has changed")
        else:
            self.retraces.append(describe_difference(self._latest.key, key, self._names))

    def _warn_of_traces(self) -> None:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        text = errors.TRACED_OFTEN.text(name=name, count=self.traces, reason=self.retraces[-1], where=provenance.here())
        warnings.warn(text, errors.CompileWarning, stacklevel=provenance.stack_level())

    def _trace(self, args: Args, kwargs: Kwargs) -> TraceCall:
        began = time.perf_counter()
        captured = capture(
            self.function,
            args,
            kwargs,
            names=self._names,
            moving=self._moving,
            keep_grads=self.keep_grads,
            make_tracer=StepTracer,
        )
        traced = time.perf_counter()
        try:
            made = self._built(captured, signature(args, kwargs, self._moving)[0])
        except BaseException as error:  # Ctrl-C too leaves everything as it was
            if captured.undo is not None:
                captured.undo()
            if isinstance(error, Exception) and not isinstance(error, Warning):
                raise failure(error) from error
            raise
        made.trace_seconds, made.compile_seconds = traced - began, time.perf_counter() - traced
        return made

    def _built(self, captured: Capture, key: Signature) -> TraceCall:
        with opened(), told_if_long(captured.graph.name, len(captured.graph.instrs)):
            program = backends.build(captured.graph, self.backend, self.threads, self.memory)
            if captured.boundary is not None:
                captured.boundary.program = backends.build(captured.boundary.graph, self.backend, self.threads)
        backends.tell_of_memory(program, captured.graph.name, self.memory)
        if self.backend == "llvm":
            program.step.lock = self._lock  # held in every call
        return TraceCall(captured, program, key, self.backend)

    # --- inspection by the user -----------------------------------------------------------------------

    @property
    def traces(self) -> int:
        """The number of times the function was traced."""
        return len(self._traces) + self._traces.evicted

    def assert_max_traces(self, limit: int) -> None:
        """Raise `CompileError` with the reasons when the function was traced more than `limit` times."""
        if self.traces > limit:
            reasons = "".join(f"\n  {number}: {reason}" for number, reason in enumerate(self.retraces, 2))
            raise errors.TOO_MANY_TRACES(count=self.traces, limit=limit, reasons=reasons)

    def _current(self, what: str) -> TraceCall:
        if self._latest is None and self.refusals:
            raise errors.NEVER_COMPILED(what=what.removeprefix("the "), reason=self.refusals[-1])
        if self._latest is None:
            raise errors.NOT_CALLED_YET(what=what)
        return self._latest

    @property
    def graph(self) -> Graph:
        """The program of the latest call, after all passes."""
        return _named(self._current("the graph").graph)

    @property
    def traced(self) -> Graph:
        """The program of the latest call as it was traced."""
        return _named(self._current("the graph").capture.graph)

    @property
    def source(self) -> Any:
        """The latest program as readable NumPy: the user's lines, the backward pass, the updates."""
        from glassgrad.compile.source.listing import step_source

        return step_source(self._current("the source").capture)

    @property
    def stats(self) -> Stats:
        """Totals of the latest program: arithmetic, traffic, kernels, memory, and the time to trace and compile it."""
        from glassgrad.compile import report  # loaded only on request

        return report.stats(self._current("the statistics"))

    def explain(self, file: TextIO | None = None) -> None:
        """Print the plan of the latest program as a table: each kernel, its sizes, and your source lines.

        It is as wide as the terminal, or about 100 columns without one.
        """
        from glassgrad.compile import report  # as above

        current = self._current("the plan")
        out = file or sys.stdout
        width = shutil.get_terminal_size((100, 24)).columns if out.isatty() else 100
        out.write(report.table(current, self.backend, self.retraces, width))

    @property
    def llvm(self) -> str:
        """The native program as LLVM text, before LLVM's own passes.

        Raises `CompileError` if the latest program is not native.
        """
        text = getattr(self._current("the LLVM text").program, "llvm", None)
        if text is None:
            raise errors.NOT_NATIVE(backend=self.backend)
        return str(text)

    @property
    def capture(self) -> Capture:
        """The latest trace: its graph, state, guards and feeds."""
        return self._current("the trace").capture

    @property
    def program(self) -> Any:
        """The executable of the latest trace: a native step or a NumPy one."""
        return self._current("the program").program


def _named(graph: Graph) -> Graph:
    from glassgrad.compile.source.naming.on_request import with_names  # as for `stats`

    return with_names(graph)


@overload
def compile(
    function: Callable[Given, Result],
    *,
    backend: str = "auto",
    verify: bool = False,
    threads: int | None = None,
    keep_grads: bool = True,
    strict: bool = False,
    memory: str | int | None = None,
) -> Compiled[Given, Result]: ...
@overload
def compile(
    function: None = None,
    *,
    backend: str = "auto",
    verify: bool = False,
    threads: int | None = None,
    keep_grads: bool = True,
    strict: bool = False,
    memory: str | int | None = None,
) -> Callable[[Callable[Given, Result]], Compiled[Given, Result]]: ...
def compile(
    function: Function | None = None,
    *,
    backend: str = "auto",
    verify: bool = False,
    threads: int | None = None,
    keep_grads: bool = True,
    strict: bool = False,
    memory: str | int | None = None,
) -> Any:
    """Compile a function, typically a whole training step, into one program. Also a decorator.

    The function may close over models, optimizers and random generators, and is written exactly as in eager
    mode. The first call runs it once on symbols; every call writes parameters, optimizer state and running
    statistics back in place. Python code in it, such as ``if`` on a size, runs only while tracing; a change of
    shapes, dtypes, ``train()`` or ``eval()``, or options that it depends on traces again.

    A call that cannot be compiled runs eagerly, with one warning that names the op, the line and the reason; calls with
    arguments of the same types run eagerly from then on. `refusals` of the compiled function lists all reasons.

    Args:
        function: any function of tensors, arrays and numbers.
        backend: "llvm" for native code, "c" for C and the machine's compiler, "numpy" for a NumPy program; "auto" takes
            the first of them that is available.
        verify: compare the first call of every trace with eager mode.
        threads: the number of threads of native code; by default chosen from the size of the step and the machine.
        keep_grads: leave gradients in ``.grad`` as eager mode does; otherwise they are None after a call.
        strict: raise if a call cannot be compiled, instead of warning.
        memory: the maximum memory for values between kernels, as "256 MB" or in bytes. Parameters, arguments and
            results do not count, but the new copies that a NumPy program makes of them do. Dynamic programming chooses
            the values to recompute (Beaumont et al. 2019); `stats` has `peak_bytes` and `extra_flops`. If no plan is
            that small, a warning says so and `stats` has `least_bytes`.

    Raises:
        ArgumentError: if `memory` is not a size.
        CompileError: at the call, with `strict=True`, if the function cannot be compiled as written; nothing is
            changed.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.ones(2, requires_grad=True)
        >>> @gg.compile
        ... def loss(x):
        ...     return ((w.detach() * x) ** 2).sum()
        >>> loss(gg.tensor([1.0, 2.0]))
        tensor(5.)
    """
    options: dict[str, Any] = {"backend": backend, "verify": verify, "threads": threads, "keep_grads": keep_grads}
    options |= {"strict": strict, "memory": memory}
    if function is None:
        return functools.partial(compile, **options)
    if not callable(function):
        raise errors.COMPILE_NOT_CALLABLE(kind=type(function).__name__, where=provenance.here())
    options["backend"] = backends.chosen(backend)
    options["memory"] = backends.bytes_of(memory)
    return Compiled(function, **options)
