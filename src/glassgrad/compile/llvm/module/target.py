"""The machine: what it can do, and turning IR text into object code and into addresses.

LLVM is loaded when something has to be translated: code that lies on the disk is loaded without it.
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

if importlib.util.find_spec("llvmlite") is None:  # said before anybody relies on it
    raise ModuleNotFoundError("No module named 'llvmlite'", name="llvmlite")

if TYPE_CHECKING:
    from llvmlite.binding import ExecutionEngine, ModuleRef, TargetMachine

# LLVM's passes, by their names in llvmlite: those that compare the calls of a function, and the others.
_OF_MODULES = ("ipsccp", "dead_arg_elimination")
_OF_FUNCTIONS = ("always_inliner", "instruction_combine", "simplify_cfg", "dead_code_elimination")


@lru_cache(maxsize=1)
def host() -> Host:
    """Return the machine this process runs on."""
    return Host()


class Host:
    """The machine that this process runs on, and LLVM as it translates for it."""

    def __init__(self) -> None:
        here = machine()
        self.cpu, self.features, self.triple, self.layout = here.cpu, here.features, here.triple, here.layout
        has = {name[1:] for name in self.features.split(",") if name.startswith("+")}
        self.vector_bytes = 64 if "avx512f" in has else 32 if "avx2" in has else 16
        # Processors of Intel's kind have 16 vector registers without AVX-512; 64-bit ARM has 32.
        self.registers = 16 if self.triple.startswith("x86_64") and "avx512f" not in has else 32
        # Every 64-bit ARM processor converts halves; among those of Intel's kind, the ones since 2012.
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
        """Whether the processor has AMX with bfloat16, and the system lets this process use it; it is asked once."""
        return self.has_amx and amx_permitted()

    def new_machine(self, reloc: str = "pic", opt: int = 2) -> TargetMachine:
        """Return a target machine that an engine may own.

        With the code model of LLVM's JIT, a function's constants may lie anywhere: the small model wants them within
        2 GiB of the code, and memory is not handed out like that everywhere (not by an emulator, for one).
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
        """Return the object code of each of these modules, which `LoadedCode` may load together; where it `divides`.

        `quickly` is for modules that do nothing but call others: LLVM's passes over machine code alone take a
        millisecond for one.
        """
        return [self._object_code(text, self._machine_of_units[quickly]) for text in texts]

    @cached_property
    def _machine_of_units(self) -> tuple[TargetMachine, TargetMachine]:
        """Target machines for one of several object files, the second one for those that are translated quickly.

        Their code names absolute addresses. Code that may lie anywhere finds its data by way of a table of addresses,
        and LLVM's loader takes the first file's table for that of all.
        """
        return self.new_machine(reloc="static"), self.new_machine(reloc="static", opt=0)

    def _object_code(self, text: str, machine: TargetMachine) -> bytes:
        """Translate a module by itself, without functions that it does not need."""
        module = parsed(text)
        self._run(module, machine, "global_dead_code_eliminate", *_OF_FUNCTIONS)
        return bytes(machine.emit_object(module))

    def optimise(self, module: ModuleRef) -> None:
        """Clean up after the emitter. Loops are vectorised, unrolled and free of invariant code as they are written, so
        LLVM's loop passes find nothing to do; without them compiling takes half the time.

        Functions take as arguments what differs between their calls, for the sake of steps where it does. Where all
        calls agree, the first two passes put the value in its place, and a fifth of the code need not be translated.
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
    """Ask the system for AMX's registers; return whether this process may use them.

    Linux saves these 8 KiB for the threads of a process that has asked for them (`arch_prctl` with ARCH_REQ_XCOMP_PERM,
    since 5.16). Other systems are not asked.
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
    """Object code in memory, of one file or several; gives the addresses of its functions for as long as it lives.

    Raises:
        LinkError: where it calls functions that this process does not have.
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
    """Return an engine of LLVM's with object files in it, which lie in memory as long as it lives.

    LLVM would end the process over a function that is not there. Raises `LinkError` instead.
    """
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host().new_machine())  # opens the process, too
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
    """Return LLVM, ready to translate for this machine."""
    import llvmlite.binding

    llvm: ModuleType = llvmlite.binding
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def parsed(text: str) -> ModuleRef:
    """Return the module that a text describes.

    LLVM's passes take for granted that a module is well-formed, and end the process where one is not. Its verifier is
    asked first, which takes about a hundredth of the time of compiling.

    Raises:
        RuntimeError: with LLVM's words, when the text is no module, or one in which a value is used where it may not
            have been computed.
    """
    module: ModuleRef = _llvm().parse_assembly(text)
    module.verify()
    return module


STEP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
