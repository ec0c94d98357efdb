"""The identification of an x86-64 processor, from which LLVM derives its name and features.

It uses the same instructions as LLVM, `cpuid` and `xgetbv`, because the system's list of features omits those that the
system does not know or an emulator lacks.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable

from glassgrad.compile.llvm.objects.pages import EXECUTE, READ, Pages

# void ask(uint32 leaf, uint32 subleaf, uint32 *registers): push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi; cpuid;
# mov [r8], eax; mov [r8 + 4], ebx; mov [r8 + 8], ecx; mov [r8 + 12], edx; pop rbx; ret
_ASK = bytes.fromhex("53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3")
# uint64 states(void): xor ecx, ecx; xgetbv; shl rdx, 32; or rax, rdx; ret
_STATES = bytes.fromhex("31c9 0f01d0 48c1e220 4809d0 c3")

# The leaves with names, features and their versions, each with its number of subleaves. Leaves that differ between
# the cores of a processor are left out.
_LEAVES = {0: 1, 1: 1, 7: 3, 0x0D: 2, 0x14: 2, 0x19: 1, 0x1D: 2, 0x1E: 2, 0x24: 2}
_FURTHER = (0, 1, 2, 3, 4, 7, 8, 0x21)  # from 0x80000000 on
_SAVES_STATES = 1 << 27  # leaf 1, ecx: `xgetbv` is available


def answers() -> str | None:
    """Return all answers as text; None on another processor or system, or if no code can be loaded."""
    if not (sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32):
        return None
    code = _ASK + _STATES
    try:
        pages = Pages(len(code))
        pages.content[: len(code)] = list(code)
        pages.protect(0, len(code), READ | EXECUTE)
    except OSError:
        return None
    ask = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(pages.address)
    registers = (ctypes.c_uint32 * 4)()

    def asked(leaf: int, subleaf: int = 0) -> list[int]:
        ask(leaf, subleaf, ctypes.addressof(registers))
        return list(registers)

    said = _said(asked)
    if said[1][3] & _SAVES_STATES:
        said.append([ctypes.CFUNCTYPE(ctypes.c_uint64)(pages.address + len(_ASK))()])
    return repr(said)


def _said(asked: Callable[..., list[int]]) -> list[list[int]]:
    """Return the answers of every existing leaf, each after its number."""
    highest, further = asked(0)[0], asked(1 << 31)[0]
    wanted = [(leaf, sub) for leaf, count in _LEAVES.items() if leaf <= highest for sub in range(count)]
    wanted += [(leaf, 0) for leaf in (at + (1 << 31) for at in _FURTHER) if leaf <= further]
    said = [[leaf, *asked(leaf, sub)] for leaf, sub in wanted]
    said[1][2] &= 0x00FFFFFF  # leaf 1, ebx: the number of the current core
    return said
