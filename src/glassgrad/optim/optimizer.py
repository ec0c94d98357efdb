"""What all optimizers share: parameter groups, state, and the walk over parameters.

A subclass states `defaults` and one method, `update`, the rule of the paper for one parameter. The rule
works on arrays with in-place operators: ``m *= beta`` changes an ndarray where it is and rebinds a
Symbol, so the same lines serve eager mode, without allocating, and compilation. `into` writes a result
to a scratch array under the same convention.
"""

from __future__ import annotations

import copy
import gc
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from glassgrad import errors, provenance
from glassgrad.engine.mode import MODE, TRACING, enable_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.writes import Writer
from glassgrad.ops.core import Array, Primitive

_HINTS = frozenset({"foreach", "fused", "capturable", "differentiable"})

Limit = tuple[str, Callable[[Any], bool], str]


def at_least(name: str, low: float) -> Limit:
    """The check of an option that must not be below `low`."""
    return name, lambda v: v >= low, f"a number of at least {low}"


def share(name: str) -> Limit:
    """The check of an option that is a share."""
    return name, lambda v: 0 <= v <= 1, "a share between 0 and 1"


betas: Limit = ("betas", lambda v: len(v) == 2 and all(0 <= beta < 1 for beta in v), "two numbers in [0, 1)")


def into(scratch: Array, prim: Primitive, *args: Array) -> Array:
    """Return ``prim(*args)``, written to `scratch` if that is an ndarray."""
    if type(scratch) is np.ndarray:
        return prim.evaluate(*args, out=scratch)
    return prim.evaluate(*args) if type(args[0]) is np.ndarray else prim(*args)


def stored(old: Array, new: Array) -> Array:
    """Return `new`, written to `old` if that is an ndarray, which stays the one of the state."""
    if type(old) is not np.ndarray:
        return new
    old[...] = new
    return old


class Optimizer:
    """Base of the optimizers.

    Args:
        params: tensors, or dictionaries of groups with "params" and options of their own.
        defaults: the options of groups that do not set them.
        hints: PyTorch's advice on how to compute (`foreach`, `fused`, ...), which changes nothing here.

    Attributes:
        moving: options besides the rate that a schedule changes.

    Raises:
        ArgumentError: no parameters, one that is not a leaf, or an impossible option.
        KindError: an option that the optimizer does not have.
    """

    moving: frozenset[str] = frozenset()

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any], hints: Iterable[str] = ()) -> None:
        self.defaults = defaults
        for name in hints:
            if name not in _HINTS:
                raise errors.UNKNOWN_OPTION(
                    owner=type(self).__name__, name=name, expected=", ".join(defaults), where=provenance.here(2)
                )
        self.param_groups: list[dict[str, Any]] = []
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self._writer = Writer()
        self._scratch: dict[tuple[int, int], Array] = {}
        self._pools: dict[tuple[Any, int], Array] = {}
        if isinstance(params, Tensor):
            raise errors.PARAMS_NOT_ITERABLE(owner=type(self).__name__, where=provenance.here(2))
        groups = list(params)
        if not groups:
            raise errors.EMPTY_PARAMETERS(owner=type(self).__name__, where=provenance.here(2))
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with options of its own."""
        group = {**self.defaults, **param_group}
        params = group["params"]
        group["params"] = [params] if isinstance(params, Tensor) else list(params)
        if group["params"] and isinstance(group["params"][0], tuple):  # named_parameters()
            group["params"] = [parameter for _, parameter in group["params"]]
        known = {id(parameter) for other in self.param_groups for parameter in other["params"]}
        for position, parameter in enumerate(group["params"]):
            self._check(parameter, position, known)
        for name, test, expected in self.limits():
            if name in group and not test(group[name]):
                raise errors.BAD_OPTION(
                    owner=type(self).__name__, name=name, given=group[name], expected=expected, where=provenance.here()
                )
        self.param_groups.append(group)

    def _check(self, parameter: Any, position: int, known: set[int]) -> None:
        owner, where = type(self).__name__, provenance.here(2)
        if not isinstance(parameter, Tensor):
            raise errors.PARAMETER_KIND(owner=owner, index=position, kind=type(parameter).__name__, where=where)
        if parameter.dtype.kind == "c":
            raise errors.PARAMETER_COMPLEX(owner=owner, index=position, dtype=parameter.dtype, where=where)
        if parameter.node is not None:
            raise errors.NOT_A_LEAF_PARAMETER(owner=owner, index=position, op=parameter.node.name, where=where)
        if id(parameter) in known:
            raise errors.PARAMETER_TWICE(owner=owner, index=position, where=where)
        known.add(id(parameter))

    def limits(self) -> list[Limit]:
        """Return (option, test, what was expected) for the checks of a group, of those options that it has."""
        return [
            ("lr", lambda v: v >= 0, "a rate of at least 0"),
            ("weight_decay", lambda v: v >= 0, "a decay of at least 0"),
        ]

    # --- the step -------------------------------------------------------------------------------------

    def update(self, p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> Array:
        """Return the new value of a parameter, changed in place where it can be."""
        raise errors.UPDATE_MISSING(owner=type(self).__name__)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what `closure` returns, if there is one."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        witness = MODE.witness
        if witness is not None:
            witness.stepping(self)
        tracing = MODE.flags & TRACING
        if not tracing:
            self._expect_writeable()
        written: list[Array] = []
        for group in self.param_groups:
            climbing = group.get("maximize")
            for parameter in group["params"]:
                if parameter._grad is None:
                    continue
                p = parameter.lifted() if tracing else parameter.array
                g = parameter._grad.array
                p = self.update(p, -g if climbing else g, self.state[parameter], group)
                if p is not parameter.array:
                    parameter.array = p
                elif type(p) is np.ndarray:
                    written.append(p)
        self._writer.wrote(written)
        if witness is not None:
            witness.stepped(self)
        return loss

    def _expect_writeable(self) -> None:
        """Raise before anything is changed where a parameter with a gradient cannot be written."""
        position = 0
        for group in self.param_groups:
            for parameter in group["params"]:
                p = parameter.array
                if parameter._grad is not None and type(p) is np.ndarray and not p.flags.writeable:
                    name = _name_of(parameter)
                    what = f"parameter {position}" + (f" ({name})" if name else "")
                    owner, where = type(self).__name__, provenance.here(1)
                    raise errors.PARAMETER_READ_ONLY(owner=owner, what=what, shape=tuple(p.shape), where=where)
                position += 1

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none or parameter._grad is None:
                    parameter._grad = None
                else:
                    parameter._grad.array[...] = 0

    # --- what a rule needs ----------------------------------------------------------------------------

    def scratch(self, like: Array, slot: int = 0) -> Array:
        """Return an array of the shape and dtype of a parameter to write intermediate results to.

        None for a small one, where a new array costs less than looking for an old one, and for Symbols.
        """
        if type(like) is not np.ndarray or like.size < _SMALL:
            return None
        found = self._scratch.get((id(like), slot))
        if found is None or found.shape != like.shape or found.dtype != like.dtype:
            found = self._scratch[id(like), slot] = self._part_of_pool(like, slot)
        return found

    def _part_of_pool(self, like: Array, slot: int) -> Array:
        """Return a view of the one buffer that all parameters use in turn."""
        pool = self._pools.get((like.dtype, slot))
        if pool is None or pool.size < like.size:
            pool = self._pools[like.dtype, slot] = np.empty(like.size, like.dtype)
        return pool[: like.size].reshape(like.shape)

    def slot(self, state: dict[str, Any], name: str, like: Array) -> Array:
        """Return the state array `name`, zeros of the parameter's shape at first."""
        tensor = state.get(name)
        if tensor is None:
            tensor = state[name] = make(np.zeros(like.shape, like.dtype), None, False)
        elif tensor.array.shape != like.shape:  # of a state that was loaded; it might broadcast
            raise errors.OPTIMIZER_SLOT_SHAPE(
                owner=type(self).__name__, name=name, given=tensor.array.shape, expected=like.shape
            )
        return tensor.lifted()

    def first(self, state: dict[str, Any], name: str) -> bool:
        """Tell whether the state array `name` is still to be made, for rules that begin differently.

        A rule has to ask this way, so that a compiled step knows that its second call is another program.
        """
        if name in state:
            return False
        if MODE.flags & TRACING:
            MODE.once()  # type: ignore[misc]  # set whenever the flag is
        return True

    def count(self, state: dict[str, Any]) -> Any:
        """Count the steps of a parameter; return the number of this one, from 1."""
        tensor = state.get("step")
        if tensor is None:
            tensor = state["step"] = make(np.zeros((), np.float64), None, False)
        counted = tensor.lifted()
        counted = counted + 1
        tensor.assign(counted)
        return float(counted) if isinstance(counted, np.ndarray | np.generic) else counted

    def moved(self, group: dict[str, Any], name: str) -> Any:
        """Return an option that few schedules move: numbers, while tracing Symbols if one does."""
        return self.number(group, name) if name in self.moving else group[name]

    def number(self, group: dict[str, Any], name: str) -> Any:
        """Return a numeric option; while tracing a Symbol, so that a schedule does not retrace."""
        if MODE.flags & TRACING and MODE.lift_number is not None:
            return MODE.lift_number(group, name)
        return group[name]

    # --- saving ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return state and groups, parameters named by their position, as PyTorch does."""
        order = [parameter for group in self.param_groups for parameter in group["params"]]
        position = {id(parameter): at for at, parameter in enumerate(order)}
        return {
            "state": {position[id(parameter)]: dict(values) for parameter, values in self.state.items()},
            "param_groups": [
                {**group, "params": [position[id(parameter)] for parameter in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state from `state_dict()`; the parameters must have the same order and shapes.

        Raises:
            ArgumentError: other groups, or options that this optimizer has are missing; nothing is changed then.
        """
        groups = state_dict["param_groups"]
        sizes = [len(group["params"]) for group in groups]
        if sizes != [len(group["params"]) for group in self.param_groups]:
            raise errors.OPTIMIZER_STATE_MISMATCH(
                owner=type(self).__name__,
                given=sizes,
                expected=[len(group["params"]) for group in self.param_groups],
                where=provenance.here(),
            )
        # Switches came in over the years and have their defaults; numbers belong to the method.
        numbers = {name for name, value in self.defaults.items() if value is not None and not isinstance(value, bool)}
        missing = sorted({name for given in groups for name in numbers if name not in given})
        if missing:
            where = provenance.here()
            raise errors.OPTIMIZER_OPTIONS_MISSING(owner=type(self).__name__, missing=", ".join(missing), where=where)
        order = [parameter for group in self.param_groups for parameter in group["params"]]
        unknown = [position for position in state_dict["state"] if not 0 <= int(position) < len(order)]
        if unknown:
            raise errors.OPTIMIZER_STATE_PLACES(
                owner=type(self).__name__, given=unknown, expected=len(order), where=provenance.here()
            )
        # All of it is made before anything is changed.
        states = {
            order[int(position)]: {name: _copied(value) for name, value in values.items()}
            for position, values in state_dict["state"].items()
        }
        options = [{name: value for name, value in given.items() if name != "params"} for given in groups]
        for own, given in zip(self.param_groups, options, strict=True):
            own.update(given)
        self.state.clear()
        self.state.update(states)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for at, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {at}")
            lines.extend(f"    {name}: {value}" for name, value in group.items() if name != "params")
        return "\n".join([*lines, ")"])


def _name_of(parameter: Tensor) -> str | None:
    """Return a name that somebody has for a parameter, for messages: that of a module, or a global one."""
    holders = [holder for holder in gc.get_referrers(parameter) if isinstance(holder, dict)]
    names = (key for holder in holders for key, value in holder.items() if value is parameter and isinstance(key, str))
    return next((name for name in names if not name.startswith("_")), None)


def _copied(value: Any) -> Any:
    if hasattr(value, "detach"):
        return make(np.asarray(value.detach()).copy(), None, False)
    return copy.deepcopy(value)


_NUMBERS = (float, int)
_SMALL = 8192  # elements


def weak(value: Any, like: Array) -> Any:
    """Return a number that does not widen `like`: a float as it is, a Symbol in the dtype of `like`."""
    if isinstance(value, _NUMBERS):
        return value
    from glassgrad.ops.shape import astype

    return astype(value, like.dtype)


__all__ = ["Optimizer"]
