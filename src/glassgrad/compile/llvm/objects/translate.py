"""Object code in pieces, for as many cores: a module's functions are divided, and LLVM translates each part by itself.

LLVM works on one module with one thread, and asks threads only to keep to contexts and target machines of their own.
llvmlite lets one thread at a time into LLVM all the same, with a lock around every call. The long calls are made here
without it: they are functions of the same library, with the types that llvmlite has declared for them.

Each part has a copy of the whole module in which the functions of the other parts are "available externally": known,
so that calls of them are right and small ones can be put in their callers' place, and not translated. What used to be
internal to the module becomes external, hidden from everything but the other parts.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ModuleRef, TargetMachine, ValueRef

from glassgrad.compile.llvm.objects.separate import joined

Passes = Callable[[ModuleRef, TargetMachine], None]

# A part takes some hundredths of a second to set apart, and a thousand characters about a thousandth to translate.
LEAST_CHARACTERS = 250_000
_MOST_PARTS = 4  # the passes over the whole module and the largest function take about as long as a quarter
_DEFINED = re.compile(r"^define [^\n]*?@(\w+)\([^\n]*\{\n.*?^\}$", re.MULTILINE | re.DOTALL)


def parts_of(text: str, cores: int) -> int:
    """Return into how many parts to divide a module so that so many cores have done with it soonest."""
    return max(1, min(cores, _MOST_PARTS, len(text) // LEAST_CHARACTERS)) if _free_calls() is not None else 1


def emitted(module: ModuleRef, text: str, parts: int, machine: Callable[[], TargetMachine], passes: Passes) -> bytes:
    """Return the object code of a module in so many parts, one of them made by this thread.

    Args:
        module: what passes that look at several functions have done with.
        text: of the module, to see how large its functions are.
        parts: 2 or more.
        machine: makes a target machine.
        passes: runs on a module, by functions of a pass manager, what is left to do before it is translated.
    """
    free = _free_calls()
    assert free is not None
    groups = _divided(_sizes(module, text), parts)
    whole = module.as_bitcode()

    def one(number: int) -> bytes:
        # The module that is there is the first part.
        context = llvm.create_context()
        part = module if number == 0 else llvm.parse_bitcode(whole, context=context)
        _keep_only(part, groups[number], variables=number == 0)
        translator = machine()
        passes(part, translator)
        return free(translator, part)

    from concurrent.futures import ThreadPoolExecutor  # not for loading: it imports much

    with ThreadPoolExecutor(parts - 1) as pool:
        others = [pool.submit(one, number) for number in range(1, parts)]
        return joined([one(0), *(other.result() for other in others)])


def each_emitted(
    texts: Sequence[str],
    cores: int,
    machine: Callable[[], TargetMachine],
    passes: Passes,
    idle: list[TargetMachine],
) -> list[bytes]:
    """Return the object code of each of some modules.

    Args:
        texts: of the modules.
        cores: on how many to translate them.
        machine, passes: as for `emitted`.
        idle: target machines that were made before, and are kept: making one takes as long as a small function.
    """
    free = _free_calls() or (lambda translator, module: bytes(translator.emit_object(module)))

    def one(text: str) -> bytes:
        module = llvm.parse_assembly(text, context=llvm.create_context())
        module.verify()
        try:
            translator = idle.pop()
        except IndexError:
            translator = machine()
        passes(module, translator)
        code = free(translator, module)
        idle.append(translator)
        return code

    found: dict[int, bytes] = {}
    left = sorted(range(len(texts)), key=lambda number: len(texts[number]))  # the largest is the first that is taken

    def some() -> None:
        with contextlib.suppress(IndexError):  # nothing is left
            while True:
                number = left.pop()
                found[number] = one(texts[number])

    helpers = min(cores, len(texts), _MOST_PARTS) - 1
    if helpers < 1:
        some()
    else:
        from concurrent.futures import ThreadPoolExecutor  # as above

        with ThreadPoolExecutor(helpers) as pool:
            others = [pool.submit(some) for _ in range(helpers)]
            some()
            for other in others:
                other.result()
    return [found[number] for number in range(len(texts))]


def _sizes(module: ModuleRef, text: str) -> dict[str, int]:
    """Return how large each function is. LLVM may have made copies of some for arguments they are often given."""
    written = {found[1]: len(found[0]) for found in _DEFINED.finditer(text)}
    defined = [function.name for function in module.functions if not function.is_declaration]
    return {name: written.get(name.partition(".")[0], 0) for name in defined}


def _divided(sizes: Mapping[str, int], parts: int) -> list[set[str]]:
    """Divide functions into groups of about the same size, the largest first to where least is."""
    groups: list[set[str]] = [set() for _ in range(parts)]
    load = [0] * parts
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        least = load.index(min(load))
        groups[least].add(name)
        load[least] += sizes[name]
    return groups


def _keep_only(module: ModuleRef, names: set[str], *, variables: bool) -> None:
    """Leave to a module some of its functions, and its variables or none; the rest is to be found elsewhere."""
    for function in module.functions:
        if function.is_declaration:
            continue
        mine = function.name in names
        _give(function, mine=mine)
        if not mine and not any(b"alwaysinline" in attribute for attribute in function.attributes):
            for attribute in ("noinline", "optnone"):  # no pass spends time on what is not translated
                function.add_function_attribute(attribute)
    for variable in module.global_variables:
        if not variable.is_declaration:
            _give(variable, mine=variables)


def _give(value: ValueRef, *, mine: bool) -> None:
    local = value.linkage.name in {"internal", "private"}
    value.linkage = "external" if mine else "available_externally"
    if local:
        value.visibility = "hidden"


@functools.cache
def _free_calls() -> Callable[[TargetMachine, ModuleRef], bytes] | None:
    """Return what translates a module without llvmlite's lock; None where its library looks different."""
    with contextlib.suppress(AttributeError, OSError):
        library = llvm.ffi.lib
        locked = library.LLVMPY_TargetMachineEmitToMemory
        translate = ctypes.CDLL(library._name).LLVMPY_TargetMachineEmitToMemory
        translate.argtypes, translate.restype = locked.argtypes, locked.restype
        return functools.partial(_object_code, library, translate)
    return None


def _object_code(library: Any, translate: Callable[..., Any], machine: TargetMachine, module: ModuleRef) -> bytes:
    """As `TargetMachine.emit_object` of llvmlite."""
    with llvm.ffi.OutputString() as told:
        buffer = translate(machine, module, 1, told)
        if not buffer:
            raise RuntimeError(str(told))
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)
