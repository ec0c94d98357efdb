"""The base of all optimizers: parameter groups, state, and the loop over parameters.

A subclass states `defaults` and one method, `update`: the equations of the paper for one parameter.
It does not decide where results are stored; see `glassgrad.optim.equations`.
"""

from __future__ import annotations

import copy
import gc
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, TypedDict

import numpy as np
from numpy import ndarray

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import MODE, TRACING, enable_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.writes import Writer
from glassgrad.ops.core import Array, bad_option
from glassgrad.optim.equations import Direct, Group, State
from glassgrad.optim.in_place import InPlace, Item, fits_none


class Hints(TypedDict, total=False):
    """PyTorch's implementation flags, accepted and ignored by every optimizer."""

    foreach: bool | None
    fused: bool | None
    capturable: bool
    differentiable: bool


_HINTS = frozenset(Hints.__annotations__)
_NO_OPTIONS = frozenset({"self", "__class__", "params", "hints"})
_NO_FUNCTION = object()
_first = itemgetter(0)

Params = Iterable[Any]  # tensors, (name, tensor) pairs, or dictionaries of groups
Options = dict[str, Any]  # of a group, with its parameters
StepRun = tuple[Any, Options, list[Item]]
Limit = tuple[str, Callable[[Any], bool], str]


def options(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a group from the `locals()` of a constructor with an argument for each option."""
    return {name: value for name, value in arguments.items() if name not in _NO_OPTIONS}


def at_least(name: str, low: float) -> Limit:
    """Return the check of an option that must be at least `low`."""
    return name, lambda v: v >= low, f"a number of at least {low}"


def share(name: str) -> Limit:
    """Return the check of an option that must be a fraction."""
    return name, lambda v: 0 <= v <= 1, "a share between 0 and 1"


betas: Limit = ("betas", lambda v: len(v) == 2 and all(0 <= beta < 1 for beta in v), "two numbers in [0, 1)")


class Optimizer:
    """Base of the optimizers.

    Args:
        params: tensors, or dictionaries of groups with "params" and their options.
        defaults: the options for groups that do not set them.
        hints: PyTorch's implementation flags (`foreach`, `fused`, ...), which are ignored.

    Attributes:
        moving: options that a schedule changes, besides the rate.
        checks: checks of options besides the rate and the weight decay; see `limits`.

    Raises:
        ArgumentError: no parameters, one that is not a leaf, or an invalid option.
        KindError: an option that the optimizer does not have.

    Example:
        >>> import glassgrad as gg
        >>> class Descent(gg.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     def update(self, p, g, state, group):
        ...         return p - group.lr * g
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> (w**2).sum().backward()
        >>> Descent([w], lr=0.5).step()
        >>> w.detach()
        tensor([0.])
    """

    moving: frozenset[str] = frozenset()
    checks: tuple[Limit, ...] = ()

    def __init__(self, params: Params, defaults: Options, hints: Iterable[str] = ()) -> None:
        self.defaults = defaults
        for name in hints:
            if name not in _HINTS:
                raise errors.UNKNOWN_OPTION(
                    owner=type(self).__name__, name=name, expected=", ".join(defaults), where=provenance.here()
                )
        self.param_groups: list[Options] = []
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self._writer = Writer()
        self._in_place = InPlace()
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            raise self._not_iterable(params)
        groups = list(params)
        if groups and hasattr(groups[0], "parameters"):  # a Sequential, or a list of modules
            raise self._not_iterable(params)
        if not groups:
            raise errors.EMPTY_PARAMETERS(owner=type(self).__name__, where=provenance.here())
        given = groups if isinstance(groups[0], dict) else [{"params": groups}]
        for group in given:
            self.add_param_group(group)
        used_up = any(isinstance(group["params"], Iterator) for group in given)
        if used_up and not any(group["params"] for group in self.param_groups):
            raise errors.EMPTY_PARAMETERS(owner=type(self).__name__, where=provenance.here())

    def _not_iterable(self, params: object) -> Exception:
        """Return the error for an object that is not parameters: a single tensor, a model, or its method."""
        given, instead = f"a {type(params).__name__}", "give it a list of tensors"
        if isinstance(params, Tensor):
            given, instead = "one tensor", "put it into a list"
        elif isinstance(params, Iterable) or "parameters" in (*dir(params), getattr(params, "__name__", "")):
            instead = "give it model.parameters()"
        where = provenance.here(2)
        return errors.PARAMS_NOT_ITERABLE(owner=type(self).__name__, given=given, instead=instead, where=where)

    def add_param_group(self, param_group: Options) -> None:
        """Add a group of parameters with its own options."""
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
                raise bad_option(type(self).__name__, name, group[name], expected)
        self.param_groups.append(group)

    def _check(self, parameter: Tensor, position: int, known: set[int]) -> None:
        owner, where = type(self).__name__, provenance.here()
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
        """Return (option, test, expectation) for the checks of a group's options."""
        return [
            ("lr", lambda v: v >= 0, "a rate of at least 0"),
            ("weight_decay", lambda v: v >= 0, "a decay of at least 0"),
            *self.checks,
        ]

    # --- the step -------------------------------------------------------------------------------------

    def update(self, p: Array, g: Array, state: State, group: Group) -> Array:
        """Return the new value of a parameter: the rule. Its only side effects are assignments to `state`.

        Args:
            p: the parameter.
            g: its gradient, negated with `maximize`.
            state: arrays and numbers that persist between steps, ``state.exp_avg``; see `equations.State`.
            group: options, ``group.lr``.
        """
        raise errors.UPDATE_MISSING(owner=type(self).__name__)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the result of `closure`, if given."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        witness = MODE.witness
        if witness is not None:
            witness.stepping(self)
        written: list[Array] = []
        owner = type(self).__name__
        try:
            for function, group, items in self._runs():
                if function is Direct:
                    for parameter, g, state in items:
                        Direct(parameter, g, state, group, self.moving, owner).step(self.update)
                    continue
                rest = iter(items)
                while (unfit := function(rest, group)) is not None:
                    p, g, state = unfit
                    self._in_place.step(self.update, p, g, state, group, owner)
                written += map(_first, items)
        finally:
            if self._in_place.batch.offered:  # also after an error: the state of the taken parameters has changed
                self._in_place.batch.end()
        self._writer.wrote(written)
        if witness is not None:
            witness.stepped(self)
        return loss

    def _runs(self) -> list[StepRun]:
        """Return runs of consecutive parameters that one function updates: the function, their group, their items.

        All parameters are checked before any is changed; a read-only one raises. The function is the last one that
        fitted the parameter's shape, `fits_none` if there is none yet, or `Direct` if the rule is not compiled.
        """
        latest, states = self._in_place.latest, self.state
        plain = None if MODE.flags & TRACING else ndarray  # while a step is traced, all arrays belong to the trace
        runs: list[StepRun] = []
        new: dict[Tensor, dict[str, Any]] = {}
        for group in self.param_groups:
            current: Any = _NO_FUNCTION
            items: list[Item] = []
            for parameter in group["params"]:
                gradient = parameter._grad
                if gradient is None:
                    continue
                what, g = parameter.array, gradient.array
                function: Any = Direct
                if type(what) is plain and type(g) is plain:
                    if not what.flags.writeable:
                        raise self._read_only(parameter)
                    function = latest.get(what.shape, fits_none)
                else:
                    if type(what) is ndarray and not what.flags.writeable:
                        raise self._read_only(parameter)
                    what = parameter
                if function is not current:
                    current, items = function, []
                    runs.append((function, group, items))
                state = states.get(parameter)
                if state is None:
                    state = new[parameter] = {}
                items.append((what, g, state))
        states.update(new)
        if not runs:
            self._warn_idle()
        return runs

    def _warn_idle(self) -> None:
        count = sum(len(group["params"]) for group in self.param_groups)
        text = errors.STEP_WITHOUT_GRADIENTS.text(owner=type(self).__name__, count=count, where=provenance.here())
        warnings.warn(text, errors.IdleStepWarning, stacklevel=provenance.stack_level())

    def _read_only(self, parameter: Tensor) -> Exception:
        listed = [one for group in self.param_groups for one in group["params"]]
        position = next(at for at, one in enumerate(listed) if one is parameter)
        name = _name_of(parameter)
        what = f"parameter {position}" + (f" ({name})" if name else "")
        shape, where = tuple(parameter.array.shape), provenance.here()
        return errors.PARAMETER_READ_ONLY(owner=type(self).__name__, what=what, shape=shape, where=where)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        for group in self.param_groups:
            if set_to_none:
                for parameter in group["params"]:
                    parameter._grad = None
                continue
            for parameter in group["params"]:
                if parameter._grad is not None:
                    parameter._grad.array[...] = 0

    # --- saving ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return state and groups, with parameters identified by position, as in PyTorch."""
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
        """Load a state from `state_dict()`; the parameters must have the same order and shapes.

        Raises:
            ArgumentError: the groups differ, or options of this optimizer are missing. Nothing is changed in this case.
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
        # PyTorch added flags over the years, so they have defaults; numbers are part of the method and required.
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
        # Prepare everything before anything is changed.
        states = {
            order[int(position)]: {name: _copied(value) for name, value in values.items()}
            for position, values in state_dict["state"].items()
        }
        options = [{name: value for name, value in given.items() if name != "params"} for given in groups]
        for own, given in zip(self.param_groups, options, strict=True):
            own.update(given)
        self.state.clear()
        self.state.update(states)

    def _repr_html_(self) -> str:
        from glassgrad.engine.reports import notebook

        return notebook.optimizer(self)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for at, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {at}")
            lines.extend(f"    {name}: {value}" for name, value in group.items() if name != "params")
        return "\n".join([*lines, ")"])


def _name_of(parameter: Tensor) -> str | None:
    """Return a name of a parameter for messages: its name in a module, or a global variable."""
    # Since Python 3.13 objects store attributes themselves and create their dictionary on demand.
    referrers = gc.get_referrers(parameter)
    holders = [one if isinstance(one, dict) else getattr(one, "__dict__", {}) for one in referrers]
    names = (key for holder in holders for key, value in holder.items() if value is parameter and isinstance(key, str))
    return next((name for name in names if not name.startswith("_")), None)


def _copied(value: Any) -> Any:
    if hasattr(value, "detach"):
        return make(np.asarray(value.detach()).copy(), None, False)
    return copy.deepcopy(value)


__all__ = ["Optimizer"]
