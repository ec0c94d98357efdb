"""The machine: its abilities, and the compilation of IR text into object code and addresses.

LLVM is loaded when something must be compiled; code from the cache on disk is loaded without it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Sequence
from functools import cached_property, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from glassgrad import errors
from glassgrad.compile.llvm.objects.linking import Linked, UnsuitableError, linked_apart
from glassgrad.compile.llvm.objects.machine import machine
from glassgrad.compile.llvm.objects.separate import are_apart, separate
from glassgrad.compile.llvm.objects.symbols import called_symbols, offered_symbols

if importlib.util.find_spec("llvmlite") is None:  # raise before anything relies on it
    raise ModuleNotFoundError("No module named 'llvmlite'", name="llvmlite")

if TYPE_CHECKING:
    from llvmlite.binding import ExecutionEngine, ModuleRef, TargetMachine

# LLVM's passes, by their names in llvmlite: interprocedural ones, and those on single functions.
_OF_MODULES = ("ipsccp", "dead_arg_elimination")
_OF_FUNCTIONS = ("always_inliner", "instruction_combine", "simplify_cfg", "dead_code_elimination")


@lru_cache(maxsize=1)
def host() -> Host:
    """Return the machine this process runs on."""
    return Host()


class Host:
    """The machine that this process runs on, and LLVM's compilation for it."""

    def __init__(self) -> None:
        here = machine()
        self.cpu, self.features, self.triple, self.layout = here.cpu, here.features, here.triple, here.layout
        has = {name[1:] for name in self.features.split(",") if name.startswith("+")}
        self.vector_bytes = 64 if "avx512f" in has else 32 if "avx2" in has else 16
        # x86-64 has 16 vector registers without AVX-512; 64-bit ARM has 32.
        self.registers = 16 if self.triple.startswith("x86_64") and "avx512f" not in has else 32
        # Every 64-bit ARM processor converts halves; x86-64 processors do since 2012.
        self.has_halves = "f16c" in has or self.triple.startswith(("aarch64", "arm64"))
        self.has_bfloat = "avx512bf16" in has
        self.has_amx = {"amx-tile", "amx-bf16", "avx512bf16"} <= has
        self.divides = self.triple.startswith("x86_64") and "linux" in self.triple

    @cached_property
    def machine(self) -> TargetMachine:
        """LLVM's target machine."""
        return self.new_machine()

    @cached_property
    def may_use_amx(self) -> bool:
        """Whether the processor has AMX with bfloat16 and the system permits its use; the system is asked once."""
        return self.has_amx and amx_permitted()

    def new_machine(self, reloc: str = "pic", opt: int = 2) -> TargetMachine:
        """Return a target machine that an engine may own.

        With the code model of LLVM's JIT, a function's constants may be anywhere. The small model requires them within
        2 GiB of the code, which not every system guarantees (e.g. an emulator).
        """
        llvm = _llvm()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=opt, reloc=reloc, codemodel="jitdefault", jit=True
        )

    def attributes(self) -> str:
        """Return the attribute group that every function carries."""
        width = f'"prefer-vector-width"="{self.vector_bytes * 8}"'
        return f'attributes #0 = {{ nounwind {width} "no-trapping-math"="true" }}'

    def header(self) -> str:
        """Return the first lines of a module."""
        return f'target triple = "{self.triple}"\ntarget datalayout = "{self.layout}"\n'

    def compile(self, text: str) -> bytes:
        """Optimise a module and return its object code, which `LoadedCode` loads."""
        module = parsed(text)
        self.optimise(module)
        return bytes(self.machine.emit_object(module))

    def object_codes(self, texts: Sequence[str], *, quickly: bool = False) -> list[bytes]:
        """Return the object code of each module, for `LoadedCode` to load together; only if the machine `divides`.

        `quickly` is for modules that only call others, because LLVM's machine-code passes take a millisecond for each
        module.
        """
        return [self._object_code(text, self._machine_of_units[quickly]) for text in texts]

    @cached_property
    def _machine_of_units(self) -> tuple[TargetMachine, TargetMachine]:
        """Target machines for one of several object files; the second one compiles `quickly`.

        Their code uses absolute addresses. Position-independent code finds its data through a table of addresses, and
        LLVM's loader uses the first file's table for all files.
        """
        return self.new_machine(reloc="static"), self.new_machine(reloc="static", opt=0)

    def _object_code(self, text: str, machine: TargetMachine) -> bytes:
        """Compile a separate module, without functions that it does not need."""
        module = parsed(text)
        self._run(module, machine, "global_dead_code_eliminate", *_OF_FUNCTIONS)
        return bytes(machine.emit_object(module))

    def optimise(self, module: ModuleRef) -> None:
        """Clean up after the emitter. It already writes loops vectorised, unrolled and free of invariant code, so
        LLVM's loop passes find nothing to do; compiling without them takes half the time.

        Functions have arguments for values that differ between calls in some steps. If all calls in a step agree, the
        first two passes insert the value, which saves the compilation of a fifth of the code.
        """
        self._run(module, self.machine, *_OF_MODULES, *_OF_FUNCTIONS)

    def _run(self, module: ModuleRef, machine: TargetMachine, *names: str) -> None:
        llvm = _llvm()
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
        passes = llvm.create_new_module_pass_manager()
        for name in names:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)

    def assembly(self, text: str) -> str:
        """Return the machine code of a module as text."""
        module = parsed(text)
        self.optimise(module)
        return str(self.machine.emit_assembly(module))


_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


def amx_permitted() -> bool:
    """Request AMX's registers from the system; return whether this process may use them.

    Linux saves these 8 KiB only for the threads of a process that has requested them (`arch_prctl` with
    ARCH_REQ_XCOMP_PERM, since 5.16). On other systems nothing is requested.
    """
    if sys.platform != "linux":
        return False
    try:
        call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):  # a C library without it
        return False
    call.restype = ctypes.c_long
    return bool(call(*map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA))) == 0)


class LoadedCode:
    """Object code in memory, from one file or several; the addresses of its functions are valid while it lives.

    Raises:
        LinkError: if it calls functions that this process does not have.
    """

    def __init__(self, code: bytes) -> None:
        objects = separate(code)
        self._linked: Linked | None = None
        try:
            self._linked = linked_apart(objects) if are_apart(code) else Linked(objects)
        except UnsuitableError:
            self._engine = _loaded_by_llvm(objects)

    def address(self, name: str) -> int:
        """Return the address of a function."""
        found = self._engine.get_function_address(name) if self._linked is None else self._linked.offered.get(name)
        if not found:
            raise KeyError(name)
        return int(found)


def _loaded_by_llvm(objects: list[bytes]) -> ExecutionEngine:
    """Return an LLVM engine with object files, which stay in memory as long as it lives.

    LLVM would abort the process for a missing function; raise `LinkError` instead.
    """
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host().new_machine())  # also opens the process
    own = {name for one in objects for name in offered_symbols(one)}
    called = dict.fromkeys(name for one in objects for name in called_symbols(one) if name not in own)
    missing = [name for name in called if not llvm.address_of_symbol(name)]
    if missing:
        raise errors.FUNCTIONS_MISSING(names=", ".join(missing))
    for one in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(one))
    engine.finalize_object()
    return engine


@lru_cache(maxsize=1)
def _llvm() -> ModuleType:
    """Return LLVM, initialised for this machine."""
    import llvmlite.binding

    llvm: ModuleType = llvmlite.binding
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def parsed(text: str) -> ModuleRef:
    """Return the module that a text describes.

    LLVM's passes assume that a module is well-formed and abort the process if it is not. So its verifier runs first,
    which takes about a hundredth of the compile time.

    Raises:
        RuntimeError: with LLVM's message, if the text is not a module, or if a value is used where it may not have been
            computed.
    """
    module: ModuleRef = _llvm().parse_assembly(text)
    module.verify()
    return module


STEP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
