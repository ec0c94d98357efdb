"""The base class of kernels other than loop nests, and what their code is written with."""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.kernels.parts import Room
from glassgrad.compile.c.sizes import Sizes
from glassgrad.compile.ir.graph import DType, Instr, Var
from glassgrad.compile.llvm.module.ir import kind_of
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.view_chains import Strided

Words = tuple[Sizes, Helpers]


class Solid:
    """One kernel's code; subclasses write it.

    Args:
        kernel: the kernel, of one instruction.
        pointer: returns the name of the pointer to an array.
        words: the program's sizes, and the functions that it calls.

    Attributes:
        rooms: the scratch memory that it needs.
    """

    def __init__(self, kernel: Kernel, pointer: Callable[[Var], str], words: Words) -> None:
        self.kernel, self.instr = kernel, kernel.instrs[0]
        self.pointer = pointer
        self.sizes, self.helpers = words
        self.rooms: list[Room] = []

    @staticmethod
    def takes(instr: Instr) -> bool:
        """Tell whether this instruction has a form that can be written."""
        return True

    @staticmethod
    def accepts(instr: Instr, position: int, strided: Strided) -> bool:
        """Tell whether an operand can be read in its present layout."""
        return strided.contiguous

    def lines(self) -> list[str]:
        """Return the body of the kernel."""
        raise NotImplementedError  # each kind of kernel writes its own body

    # --- helpers of subclasses ---

    @property
    def kind(self) -> str:
        """The element kind of the first result."""
        return kind(self.instr.outputs[0].dtype)

    def operand(self, number: int) -> Strided:
        found = self.kernel.operands[number]
        assert found is not None
        return found

    def start(self, number: int) -> str:
        """Return the address of an operand's first element."""
        found = self.operand(number)
        name = self.pointer(found.root)
        return f"{name} + {found.offset}" if found.offset else name

    def room(self, name: str, kind: str, elements: int) -> str:
        """Ask for scratch memory; return its name."""
        self.rooms.append(Room(name, kind, elements))
        return name


def kind(dtype: DType) -> str:
    """Return the element kind of a dtype that has one."""
    found = kind_of(dtype)
    assert found is not None
    return found


def loop(counter: str, stop: str | int, body: list[str]) -> list[str]:
    """Return a loop from 0."""
    head = f"for (ptrdiff_t {counter} = 0; {counter} < {stop}; {counter}++) {{"
    return [head, *(f"    {line}" for line in body), "}"]
