"""Write the package's stubs for type checkers and editors: `python tools/stubs.py`; `make format` runs it.

A type checker does not see names that are made at run time: the names of packages whose files are families
(`glassgrad.base.families`), the functions of the op table, the methods of `Tensor`. Each stub declares these names,
from the same lists and from the functions themselves (`signatures.py`); tests/repo/test_families.py and tests/types
compare every stub with the output of this script.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "glassgrad"
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tools import signatures  # noqa: E402 - found by the line above, where this file is run as a script

SERVED = ("distributed", "distributions", "doctor", "nn", "onnx", "optim", "optim.lr_scheduler", "report", "train")
GATHERED = ("data", "func")
FUNCTIONS = ("linalg", "fft", "special")
FAMILIES = """\
# Written by tools/stubs.py from the lists of public names.
"""
LIVE = """\
# Written by tools/stubs.py from the functions as they are when the library runs.
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike
"""
TYPES = ("Device", "Ints", "Number", "Sizes", "TensorOrArray", "Tensors")
ALIASES = """\
from glassgrad.engine.tensors.devices import device
from glassgrad.engine.node import Node
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.engine.tensors.storage import Storage

Device: TypeAlias = device | str | builtins.int | None
Ints: TypeAlias = builtins.int | Sequence[builtins.int]
Number: TypeAlias = builtins.complex | np.number[Any] | np.bool_
Sizes: TypeAlias = builtins.int | Sequence[builtins.int | None] | None
Tensors: TypeAlias = TensorLike | Sequence[TensorLike]
TensorOrArray = TypeVar("TensorOrArray", Tensor, npt.NDArray[Any])
"""


# --- packages whose names live in families --------------------------------------------------------


def families(name: str) -> str:
    """Return the stub of a package below `glassgrad` whose names live in families."""
    module = importlib.import_module(f"glassgrad.{name}")
    from glassgrad.base.families import FOUND

    found = FOUND[module.__name__]
    homes = {one: home for one, home in found.homes.items() if not one.startswith("_")}
    return FAMILIES + _imports({**dict.fromkeys(found.modules, found.package), **homes})


def gathered(name: str) -> str:
    """Return the stub of a package below `glassgrad` that imports what its `__all__` lists."""
    module = importlib.import_module(f"glassgrad.{name}")
    return FAMILIES + _imports({one: getattr(module, one).__module__ for one in module.__all__})


def messages() -> str:
    """Return the stub of `glassgrad.errors`: the exceptions and every message."""
    from glassgrad import errors

    homes: dict[str, str] = {}
    for area in pkgutil.iter_modules(errors.__path__):
        module = importlib.import_module(f"glassgrad.errors.{area.name}")
        for name, value in vars(module).items():
            home = module.__name__ if isinstance(value, errors.Message) else getattr(value, "__module__", "")
            if home.startswith("glassgrad.errors") and not name.startswith("_"):
                homes.setdefault(name, home)
    return FAMILIES + _imports(homes)


def _imports(homes: Mapping[str, str]) -> str:
    """Import names from their homes; `as` declares that they are public here."""
    return "".join(f"from {home} import {name} as {name}\n" for home, name in sorted((h, n) for n, h in homes.items()))


# --- functions that are made as the library runs --------------------------------------------------


@cache
def methods() -> str:
    """Return the base class of `Tensor` with the members outside of its class body: operators, ops and conversions."""
    import glassgrad.engine.public as _complete  # noqa: F401 - gives `Tensor` its methods
    from glassgrad.engine.reports.absent import Absent
    from glassgrad.engine.tensor import Tensor

    body: list[str] = []
    results: list[FunctionType] = []
    for name in sorted(set(vars(Tensor)) - _written_out("engine/tensor.py", "Tensor") - _PYTHONS):
        value = vars(Tensor)[name]
        if isinstance(value, property):
            body += ["@property", f"def {name}(self) -> {_PROPERTIES.get(name, _TRUTH)}: ..."]
        elif isinstance(value, FunctionType):
            body += signatures.functions(name, value, method=True)
            results.append(value)
        elif not isinstance(value, Absent):
            raise TypeError(f"Tensor.{name} is a {type(value).__name__}: say in tools/stubs.py what it is")
    text = "\n".join(
        [*_named_tuples([*results, *_free()]), "", "class TensorMethods:", *(f"    {line}" for line in body)]
    )
    return LIVE + ALIASES + text + "\n"


def _free() -> list[Callable[..., Any]]:
    """Return the functions of `glassgrad` itself."""
    from glassgrad.compat import NAMES
    from glassgrad.ops.names import PUBLIC

    return [*PUBLIC.values(), *filter(inspect.isfunction, NAMES.values())]


_PROPERTIES = {"device": "device", "itemsize": "builtins.int", "layout": "builtins.str", "H": "Tensor"}
_TRUTH = "builtins.bool"  # all others
_PYTHONS = {
    "__dir__",
    "__weakref__",
    "__slots__",
    "__module__",
    "__doc__",
    "__annotations__",
    "__dict__",
    "__static_attributes__",
    "__firstlineno__",
    "__torch_function__",  # only PyTorch calls it
}


def _written_out(file: str, owner: str) -> set[str]:
    """Return the names that the body of a class defines."""
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _named_tuples(functions: Iterable[Callable[..., Any]], declared: str = "") -> list[str]:
    """Declare the named tuples that functions return, unless they are already declared: their fields are tensors."""
    found: dict[str, type] = {}
    for function in functions:
        inner = inspect.unwrap(function)
        for word in re.findall(r"[A-Z]\w+", str(inspect.signature(inner).return_annotation)) + _OVERLOADED:
            value = inner.__globals__.get(word)
            if hasattr(value, "_fields"):
                found[word] = value
    lines = []
    for name, kind in sorted(found.items()):
        if f"class {name}(" in declared:
            continue
        lines += ["", f"class {name}(NamedTuple):", f'    """{kind.__doc__}"""']
        lines += [f"    {field}: Tensor" for field in kind._fields]  # type: ignore[attr-defined]  # a named tuple
    return lines


_OVERLOADED = ["Extreme", "SlogdetResult"]


def of_module(name: str) -> str:
    """Return the stub of a module of functions, such as `glassgrad.nn.functional`."""
    module = importlib.import_module(f"glassgrad.{name}")
    functions = {one: getattr(module, one) for one in module.__all__}
    own = _named_tuples(functions.values(), declared=methods())
    return LIVE + _shared() + "\n".join([*own, *_declared(functions)]) + "\n"


def front() -> str:
    """Return the stub of `glassgrad` itself."""
    import glassgrad
    from glassgrad.engine import public

    lines = ["from glassgrad._version import __version__ as __version__"]
    lines += [
        f"from glassgrad import {name} as {name}"
        for name in glassgrad._modules()
        if name not in {"compile", *glassgrad._HOMES.values()}
    ]
    table: dict[str, Any] = {}
    for name, value in {**public.NAMES, **glassgrad._compat_names()}.items():
        if name in glassgrad._modules() and name not in {"compile", *glassgrad._HOMES.values()}:
            continue  # the module, under PyTorch's name too
        home = getattr(value, "__module__", None)
        if isinstance(value, type) and home != "glassgrad" and getattr(sys.modules.get(home), name, None) is value:
            lines.append(f"from {home} import {name} as {name}")
        else:
            table[name] = value
    lines += [f"from glassgrad.{home} import {name} as {name}" for name, home in glassgrad._ELSEWHERE.items()]
    lines.append("bfloat16: np.dtype[Any]")  # of ml_dtypes, which asking for the live one imports
    return LIVE + _shared() + "\n".join([*lines, _compiling(), *_declared(table)]) + "\n"


_COMPILE = """
from glassgrad.compile.api import Compiled as _Compiled
from glassgrad.compile.source.document import Source

_P = ParamSpec("_P")
_R = TypeVar("_R")

class _Compile:
    Compiled = _Compiled
    compile: _Compile

    @staticmethod
    def backward_source{source}: ...
    @overload
    def __call__{decorated}: ...
    @overload
    def __call__{options}: ...

compile: _Compile
"""


def _compiling() -> str:
    from glassgrad.compile.api import compile as function
    from glassgrad.compile.source.readable import backward_source

    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "function"]
    options = ", ".join(signatures.parameter("compile", p) for p in parameters) + ", **hints: Any"
    decorated = f"(self, function: Callable[_P, _R], *, {options}) -> _Compiled[_P, _R]"
    maker = f"(self, *, {options}) -> Callable[[Callable[_P, _R]], _Compiled[_P, _R]]"
    docstring = signatures.docstring(function)
    (source,) = signatures.functions("backward_source", backward_source)[:1]
    source = source.removeprefix("def backward_source").rstrip(":")
    return _COMPILE.format(decorated=decorated, options=maker, source=source).replace(
        "]: ...", f"]:\n        {docstring}", 1
    )


def _declared(table: Mapping[str, Any]) -> Iterator[str]:
    """Declare functions and values by their names."""
    for name, value in sorted(table.items()):
        if inspect.isfunction(value):
            yield from signatures.functions(name, value)
        elif getattr(value, "__module__", None) == "numpy" and callable(value):
            yield f"from numpy import {name} as {name}"
        else:
            yield f"{name}: {_value(value)}"


def _value(value: Any) -> str:
    import numpy as np

    if isinstance(value, np.dtype):
        return f"np.dtype[np.{value.type.__name__}]"
    if isinstance(value, float | str):
        return f"builtins.{type(value).__name__}"
    return "Generator" if type(value).__name__ == "Generator" else "Any"


def _shared() -> str:
    """Import the types that both stubs of functions use."""
    text = methods()
    names = [*TYPES, *re.findall(r"^class (\w+)\(NamedTuple", text, re.MULTILINE)]
    lines = [
        "from glassgrad.engine.tensors.devices import device as device",
        "from glassgrad.engine.random import Generator as Generator",
        "from glassgrad.engine.tensor import Tensor as Tensor, TensorLike",
        f"from glassgrad.engine.typed import {', '.join(sorted(names))}",
    ]
    return "\n".join(lines) + "\n"


# --- all of them ----------------------------------------------------------------------------------

WRITERS: dict[str, Callable[[], str]] = {
    "__init__.pyi": front,
    "engine/typed.pyi": methods,
    "errors/__init__.pyi": messages,
    "nn/functional/__init__.pyi": partial(of_module, "nn.functional"),
    **{f"{name}.pyi": partial(of_module, name) for name in FUNCTIONS},
    **{f"{name.replace('.', '/')}/__init__.pyi": partial(families, name) for name in SERVED},
    **{f"{name}/__init__.pyi": partial(gathered, name) for name in GATHERED},
}


def stub(file: str) -> str:
    """Return the formatted content of the stub at a place below the package."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PACKAGE / file), "-"]
    return subprocess.run(command, input=WRITERS[file](), capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    for place in WRITERS:
        (PACKAGE / place).write_text(stub(place), encoding="utf-8")
