"""The base class of kernels other than loop nests, and what their code is written with."""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.kernels.parts import Room, indented, rounded
from glassgrad.compile.c.sizes import Sizes
from glassgrad.compile.ir.graph import DType, Instr, Var
from glassgrad.compile.llvm.module.ir import kind_of
from glassgrad.compile.plan.kernels import Kernel
from glassgrad.compile.plan.view_chains import Strided

Words = tuple[Sizes, Helpers]
PARTS = 4  # of a long loop, each with scratch memory of its own


class Solid:
    """One kernel's code; subclasses write it.

    Args:
        kernel: the kernel, of one instruction.
        pointer: returns the name of the pointer to an array.
        words: the program's sizes, and the functions that it calls.

    Attributes:
        rooms: the scratch memory that it needs.
        parts: the parts of its outermost loop, which threads may take.
    """

    def __init__(self, kernel: Kernel, pointer: Callable[[Var], str], words: Words) -> None:
        self.kernel, self.instr = kernel, kernel.instrs[0]
        self.pointer = pointer
        self.sizes, self.helpers = words
        self.rooms: list[Room] = []
        self.parts = 1

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

    def own(self, name: str, elements: int) -> str:
        """Ask for scratch memory for each part; return its address in a part."""
        apart = rounded(elements, self.kind)
        self.room(name, self.kind, self.parts * apart)
        return f"{name} + part * {apart}" if self.parts > 1 else name

    def each(self, counter: str, count: int, body: list[str]) -> list[str]:
        """Return a loop over a size."""
        return loop(counter, self.sizes.text(count), body)

    def shared(self, counter: str, count: int, body: list[str], step: int = 1) -> list[str]:
        """Return a loop in steps. Threads share its parts: the same whatever the number of threads."""
        first, each = (f"part * {step}" if step > 1 else "part", self.parts * step) if self.parts > 1 else ("0", step)
        head = f"for (ptrdiff_t {counter} = {first}; {counter} < {self.sizes.text(count)}; {counter} += {each}) {{"
        lines = [head, *indented(body), "}"]
        return ["GG_SHARED()", *loop("part", self.parts, lines)] if self.parts > 1 else lines


def kind(dtype: DType) -> str:
    """Return the element kind of a dtype that has one."""
    found = kind_of(dtype)
    assert found is not None
    return found


def loop(counter: str, stop: str | int, body: list[str]) -> list[str]:
    """Return a loop from 0."""
    head = f"for (ptrdiff_t {counter} = 0; {counter} < {stop}; {counter}++) {{"
    return [head, *(f"    {line}" for line in body), "}"]
