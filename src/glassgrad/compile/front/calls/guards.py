"""Guards: the conditions under which a trace is reused, checked before every call.

The check is one generated expression. Its terms are identity tests on places that the trace read, so a hundred of
them cost a few microseconds. If it fails, `why` finds the first failing term for the message.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from glassgrad.compile.front.state.edges import Edge, is_constant, is_text, same, same_content
from glassgrad.compile.front.state.grad_watch import GRAD
from glassgrad.compile.ir.generated import executed
from glassgrad.engine.tensor import Tensor

Check = Callable[[], bool]
Space = dict[str, Any]  # the globals of a generated function
# Conditions on containers that are compared whole.
_WHOLE = {
    "length": "len({holder}) == v{number}",
    "keys": "tuple({holder}) == v{number}",
    "content": "same_content({holder}, v{number})",
    "text": "{holder} == v{number}",  # only strings: this is faster
    "bytes": "{holder}.tobytes() == v{number}",
    "absent": "k{number} not in {holder}",
}


@dataclass(frozen=True)
class Guards:
    """The conditions of one trace.

    Attributes:
        edges: places that must hold the same objects.
        tracks: tensors, their paths, whether they required a gradient, and their hooks.
        grads: leaves and their gradients in the trace, where these matter.
    """

    edges: Sequence[Edge]
    tracks: Sequence[tuple[Tensor, str, bool, tuple[object, ...]]]
    grads: Sequence[tuple[Tensor, Tensor | None]]

    def compiled(self) -> Check:
        """Return a function without arguments that checks everything."""
        space: Space = {}
        body = " and\n            ".join(self.terms(space)) or "True"
        source = (
            f"def check():\n    try:\n        return (\n            {body}\n        )\n"
            "    except (LookupError, AttributeError, ValueError):\n        return False\n"
        )
        check: Check = executed(source, "<guards>", space)["check"]
        return check

    def terms(self, space: Space) -> list[str]:
        """Return the conditions as Python expressions over names that are put into `space`."""
        return [*self.edge_terms(space), *self.tensor_terms(space)]

    def edge_terms(self, space: Space) -> Iterable[str]:
        """Yield the conditions on places."""
        space["same"], space["same_content"] = same, same_content
        holders: dict[int, str] = {}
        for number, edge in enumerate(self.edges):
            holder = holders.setdefault(id(edge.holder), f"h{len(holders)}")
            space[holder] = _faster(edge.holder)
            space[f"v{number}"] = edge.value
            if edge.kind in _WHOLE:
                space[f"k{number}"] = edge.key
                kind = "text" if edge.kind == "content" and is_text(edge.value) else edge.kind
                yield _WHOLE[kind].format(holder=holder, number=number)
                continue
            match edge.kind:
                case "cell":
                    place = f"{holder}.cell_contents"
                case "context":
                    place = f"{holder}.get(None)"
                case "attribute":
                    place = f"{holder}.{edge.key}"
                case _:
                    key = repr(edge.key) if type(edge.key) in {str, int} else f"k{number}"
                    space[f"k{number}"] = edge.key
                    place = f"{holder}[{key}]"
            if edge.value is None or isinstance(edge.value, bool):
                yield f"{place} is {edge.value}"
            elif is_constant(edge.value):
                yield f"((now := {place}) is v{number} or same(now, v{number}))"
            else:
                yield f"{place} is v{number}"

    def tensor_terms(self, space: Space) -> Iterable[str]:
        """Yield the conditions on tensors."""
        space["hooks_of"] = hooks_of
        for number, (tensor, _, tracks, hooks) in enumerate(self.tracks):
            space[f"t{number}"] = tensor
            yield f"t{number}._tracks is {tracks}"
            if hooks:
                space[f"b{number}"] = hooks
                yield f"hooks_of(t{number}) == b{number}"
            elif tracks:
                yield f"(t{number}._extra is None or not hooks_of(t{number}))"
        for number, (leaf, grad) in enumerate(self.grads):
            space[f"l{number}"], space[f"g{number}"] = leaf, grad
            yield f"l{number}._grad is g{number}"

    def why(self) -> str | None:
        """Describe the first guard that fails; None when all hold."""
        # The name of the new attribute is more helpful than a changed number of attributes.
        for edge in sorted(self.edges, key=lambda edge: edge.path.startswith("len(vars(")):
            if not edge.holds():
                if edge.kind in {"content", "bytes"}:
                    return f"the contents of {edge.path} have changed"
                if edge.kind == "keys":
                    return f"{edge.path} were {list(edge.value)}, now {list(edge.holder)}"
                return f"{edge.path} was {_shown_before(edge)}, now {_shown_now(edge)}"
        for tensor, path, tracks, hooks in self.tracks:
            if tensor._tracks is not tracks:
                return f"{path}.requires_grad was {tracks}, now {tensor._tracks}"
            if hooks_of(tensor) != hooks:
                return f"{path} had {len(hooks)} hooks, now {_hooks_now(tensor, hooks)}"
        for leaf, grad in self.grads:
            now = GRAD.__get__(leaf)
            if now is not grad:
                path = next((path for tensor, path, *_ in self.tracks if tensor is leaf), "a tensor")
                before, after = ("None" if g is None else "a tensor" for g in (grad, now))
                after = "another tensor" if before == after else after
                return f"{path}.grad was {before}, now {after}"
        return None


def _faster(holder: Any) -> Any:
    """Return the dictionary behind a mapping proxy, such as a class's `__dict__`; reading it takes half the time."""
    behind = gc.get_referents(holder) if type(holder) is MappingProxyType else ()
    return behind[0] if len(behind) == 1 and type(behind[0]) is dict else holder


def hooks_of(leaf: Tensor) -> tuple[object, ...]:
    """Return the hooks that the gradient of a leaf goes through."""
    extra = leaf._extra
    return () if extra is None or leaf.node is not None else (*extra.get("hooks", ()), *extra.get("after", ()))


def _hooks_now(leaf: Tensor, before: tuple[object, ...]) -> str:
    now = hooks_of(leaf)
    return "others" if len(now) == len(before) else str(len(now))


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    text = repr(value)
    return text if is_constant(value) and len(text) < 60 else f"a {type(value).__name__}"


def _shown_before(edge: Edge) -> str:
    return "missing" if edge.kind == "absent" else _shown(edge.value)


def _shown_now(edge: Edge) -> str:
    try:
        now = edge.now()
    except (LookupError, AttributeError):
        return "missing"
    text = _shown(now)
    return f"another {text.removeprefix('a ')}" if text == _shown(edge.value) else text
