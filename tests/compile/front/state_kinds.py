"""Places where Python programs keep state, and changes of that state: programs for a table, run eagerly and compiled.

Every kind defines how a place is made and written; every mutation is the body of a step that changes such a place. The
texts of both are joined and executed, because the compiler reads the code that it compiles.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A place: statements that make it (with INIT), how it is written, and what a function says before it sets it."""

    make: str
    place: str
    declare: str = ""
    parameters: str = "x"


@dataclass(frozen=True)
class Mutation:
    """What a step does to the place P: its first content, and the statements, which may change the result `y`."""

    first: str
    body: str
    outside: str = ""  # done to the place from outside, before the last calls


KINDS = {
    "attribute": Kind("class Box: pass\nbox = Box()\nbox.s = INIT", "box.s"),
    "attribute that begins on the class": Kind("class Box:\n    s = INIT\nbox = Box()", "box.s"),
    "attribute of a class": Kind("class Box:\n    s = INIT", "Box.s"),
    "attribute of a module": Kind("class Box(nn.Module): pass\nbox = Box()\nbox.s = INIT", "box.s"),
    "slot": Kind("class Box:\n    __slots__ = ('s',)\nbox = Box()\nbox.s = INIT", "box.s"),
    "namespace": Kind("box = types.SimpleNamespace(s=INIT)", "box.s"),
    "attribute of a function": Kind("def helper(): pass\nhelper.s = INIT", "helper.s"),
    "module of the user's": Kind("box = types.ModuleType('settings')\nbox.s = INIT", "box.s"),
    "global": Kind("s = INIT", "s", "global s"),
    "nonlocal": Kind("s = INIT", "s", "nonlocal s"),
    "entry": Kind("box = {'s': INIT}", "box['s']"),
    "entry with a computed key": Kind("box = {'s': INIT}\nkey = 's'", "box[key]"),
    "entry of a defaultdict": Kind("box = defaultdict(lambda: None)\nbox['s'] = INIT", "box['s']"),
    "element of a list": Kind("box = [1, INIT]", "box[1]"),
    "element of a deque": Kind("box = deque([1, INIT])", "box[1]"),
    "nested": Kind("class Box: pass\nbox = Box()\nbox.parts = {'a': [INIT]}", "box.parts['a'][0]"),
    "list as default": Kind("", "box[0]", parameters="x, box=[INIT]"),
}

MUTATIONS = {
    "count": Mutation("0", "P += 1"),
    "count elements": Mutation("0", "P += len(x)"),
    "count and look": Mutation("0", "P += 1\ny = y * P"),
    "switch": Mutation("False", "P = not P\nif P: y = y * 2"),
    "cycle": Mutation("0", "P = (P + 1) % 3\ny = y + P"),
    "decay": Mutation("1.0", "P = P * 0.5\ny = y * P"),
    "set a number": Mutation("0", "P = 5"),
    "set and look": Mutation("0", "y = y + P\nP = 5"),
    "text": Mutation("''", "P = P + 'a'\ny = y * len(P)"),
    "initialise from data": Mutation("None", "if P is None: P = x.detach().mean()\ny = y - P"),
    "store a result": Mutation("None", "P = y"),
    "store a part": Mutation("None", "P = (x * 3).sum()"),
    "store detached": Mutation("None", "P = y.detach()"),
    "store an argument": Mutation("None", "P = x"),
    "store and reset": Mutation("None", "P = x * 2 if P is None else None"),
    "previous and present": Mutation("(gg.zeros(3), gg.zeros(3))", "P = (P[1], x * 2)\ny = y + P[0]"),
    "running mean": Mutation("gg.zeros(())", "P = 0.9 * P + x.detach().mean()\ny = y + P", "P = gg.ones(())"),
    "recurrent": Mutation("gg.zeros(3)", "P = (x + P).tanh().detach()\ny = y * P", "P = gg.ones(3)"),
    "in place": Mutation("gg.zeros(())", "P.mul_(0.5).add_(x.detach().mean())\ny = y + P"),
    "in place or new": Mutation("0.0", "P += x.detach().sum()\ny = y + P"),
    "grow": Mutation("gg.zeros(0)", "P = gg.cat([P, x.detach()])\ny = y * P.sum()"),
    "append": Mutation("[]", "P.append(y.sum())"),
    "append and look": Mutation("[]", "P.append(x.sum())\ny = y + P[0]"),
    "append numbers": Mutation("[]", "P.append(7)"),
    "window": Mutation("[gg.zeros(3), gg.zeros(3)]", "P.append(x * 2)\nP.pop(0)\ny = y + P[0]"),
    "rolling deque": Mutation("deque([gg.zeros(3)], maxlen=2)", "P.append(x * 2)\ny = y + P[0]"),
    "new dictionary": Mutation("None", "P = {'mean': x.mean(), 'n': len(x)}"),
    "entry of a cache": Mutation("{}", "if 'k' in P: y = y + P['k']\nP['k'] = x * 2"),
    "entry only written": Mutation("{}", "P['k'] = x * 2"),
    "set of numbers": Mutation("set()", "P.add(len(P))\ny = y * len(P)"),
    "take away": Mutation("[3, 4, 5, 6, 7, 8, 9]", "y = y * P.pop()"),
}

_PROGRAM = """
{make}

def step({parameters}):
    {declare}
    y = w * x
{body}
    return y

def look():
    return {place}

def outside():
    {declare}
    {outside}
"""


def program(kind: Kind, mutation: Mutation, space: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the step, a function that returns what is in the place, and one that changes it from outside."""
    filled = {
        "make": kind.make, "parameters": kind.parameters, "declare": kind.declare or "pass", "place": kind.place,
        "body": textwrap.indent(mutation.body, "    "), "outside": mutation.outside or "pass",
    }  # fmt: skip  # a table
    filled = {name: text.replace("INIT", mutation.first).replace("P", kind.place) for name, text in filled.items()}
    if "box=" in kind.parameters:
        filled["place"], filled["outside"] = "step.__defaults__[0][0]", "pass"
    text = _PROGRAM.format(**filled)
    if kind.declare.startswith("nonlocal"):
        text = f"def outer():\n{textwrap.indent(text, '    ')}\n    return step, look, outside\n"
        text += "step, look, outside = outer()\n"
    exec(compile(text, "<state>", "exec"), space)  # noqa: S102 - made of the tables above
    return space["step"], space["look"], space["outside"]
