"""Module, the base class of layers and models.

A module has no registries. Its state is every `Parameter`, `Buffer` and `Module` among its attributes, in the order of
assignment, so that reading `self.weight` is a plain attribute lookup. A parameter assigned to the name of a method, as
PyTorch allows, is part of the state; the name still gives the method.
"""

from __future__ import annotations

import builtins
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Handle, Tensor, make
from glassgrad.engine.tensors import devices
from glassgrad.nn import state
from glassgrad.nn.hooks import Hooks
from glassgrad.nn.parameter import Buffer, Parameter, buffer_of
from glassgrad.nn.state import Incompatible
from glassgrad.ops.narrow import bfloat16

Given = ParamSpec("Given")
Result = TypeVar("Result")
Back_co = TypeVar("Back_co", covariant=True)


class _HasForward(Protocol[Given, Back_co]):
    """An object whose call has the signature of its `forward`."""

    @property
    def _hooks(self) -> Hooks | None: ...

    @property
    def forward(self) -> Callable[Given, Back_co]: ...


class Module:
    """Base of all layers and models; subclasses define `forward`.

    `Module.__init__` raises a KindError for arguments, unless the class sets `call_super_init`: then it hands them to
    the next base class.

    Example:
        >>> import glassgrad as gg
        >>> class Twice(gg.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = gg.nn.Linear(2, 2)
        ...     def forward(self, x):
        ...         return self.layer(self.layer(x))
        >>> [name for name, _ in Twice().named_parameters()]
        ['layer.weight', 'layer.bias']
    """

    training: bool = True
    call_super_init: bool = False
    _shown: str = ""  # "size={size}", say: see `extra_repr`
    _hooks: Hooks | None = None
    _state_hooks: dict[str, list[Any]] | None = None
    if TYPE_CHECKING:  # buffers, parameters and modules may be set by name

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, *args: object, **kwargs: object) -> None:
        # Nothing to prepare: defaults live on the class, state in the attributes. Bases that follow in the order of
        # inheritance are prepared by the user, as in PyTorch, unless the class sets `call_super_init`.
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif args or kwargs:
            raise errors.INIT_ARGUMENTS(owner=type(self).__name__, given=[*args, *kwargs], where=provenance.here())

    vars(__init__)["__wrapped__"] = lambda self: None  # its signature: most layers have no arguments

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; subclasses must define it."""
        raise errors.FORWARD_MISSING(owner=type(self).__name__)

    # Typed as `forward` of the subclass, so that a type checker sees a model's arguments and results.
    def __call__(self: _HasForward[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:  # costs nothing if nothing is raised
            if self._hooks is None:
                return self.forward(*args, **kwargs)
            return self._hooks.call(self, args, kwargs)
        except errors.ShapeError as error:
            from glassgrad.nn.between import name_layers

            name_layers(self, args, error)
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is Tensor:
            current = self.__dict__.get(name)
            # Assigning a plain tensor to a buffer's name keeps it a buffer; a parameter would stop being one.
            if isinstance(current, Buffer):
                value = buffer_of(value, current.persistent)
            elif isinstance(current, Parameter):
                raise errors.PARAMETER_REPLACED(owner=type(self).__name__, name=name, where=provenance.here())
        if type(value) is Buffer:
            owner = None if value.owner is None else value.owner()
            if owner is None:
                value.owner = weakref.ref(self)
            elif owner is not self and not isinstance(self.__dict__.get(name), Buffer):
                value = make(value.array, value.node, value._tracks)
        elif isinstance(value, Module | Parameter) and isinstance(
            getattr(type(self), name, None), FunctionType | MethodType
        ):
            from glassgrad.nn.utils import computed

            computed.keep_method(self, name)
        object.__setattr__(self, name, value)

    # --- state --------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set an attribute to a Parameter or None."""
        check_entry(self, name, param, Parameter)
        setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set an attribute to a tensor that is part of the state and not trained."""
        check_entry(self, name, tensor, Tensor)
        setattr(self, name, None if tensor is None else buffer_of(tensor, persistent))

    def register_module(self, name: str, module: Module | None) -> None:
        """Set an attribute to a submodule."""
        check_entry(self, name, module, Module)
        setattr(self, name, module)

    add_module = register_module

    def _own(self, kind: builtins.type[Any]) -> OrderedDict[str, Any]:
        """Return the attributes of a kind, in the order of assignment."""
        return OrderedDict((name, value) for name, value in self.__dict__.items() if isinstance(value, kind))

    @property
    def _modules(self) -> OrderedDict[str, Any]:
        return self._own(Module)  # a copy, for code that reads PyTorch's registries

    @property
    def _parameters(self) -> OrderedDict[str, Any]:
        return self._own(Parameter)

    @property
    def _buffers(self) -> OrderedDict[str, Any]:
        return self._own(Buffer)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the direct submodules with their names, each once."""
        seen: set[int] = set()
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def children(self) -> Iterator[Module]:
        """Yield the direct submodules, each once."""
        for _, child in self.named_children():
            yield child

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module and all below it with dotted names; shared ones once by default."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Module):
                yield from value.named_modules(seen, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def _named_state(
        self, kind: builtins.type[Tensor], prefix: str, recurse: bool, unique: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        walked = self.named_modules(prefix=prefix, remove_duplicate=unique) if recurse else [(prefix, self)]
        for path, module in walked:
            for name, value in module.__dict__.items():
                if isinstance(value, kind) and not (unique and id(value) in seen):
                    seen.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with dotted names; a shared one once, under its first name."""
        return self._named_state(Parameter, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        """Yield the buffers with dotted names."""
        return self._named_state(Buffer, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """Yield the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Return the submodule with a dotted name."""
        module = self
        for name in target.split(".") if target else ():
            module = getattr(module, name)
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted name; with `strict` there has to be one already.

        Raises:
            MissingError: there is nothing of the name, with `strict`, or something that is no module.
        """
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        there = getattr(parent, name, None)
        given: object = module
        if not name or not isinstance(given, Module) or not isinstance(there, Module if strict else Module | None):
            raise errors.NO_SUCH_SUBMODULE(owner=type(parent).__name__, name=target, where=provenance.here())
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter with a dotted name."""
        path, _, name = target.rpartition(".")
        parameter: Parameter = getattr(self.get_submodule(path), name)
        return parameter

    def get_buffer(self, target: str) -> Buffer:
        """Return the buffer with a dotted name."""
        path, _, name = target.rpartition(".")
        buffer: Buffer = getattr(self.get_submodule(path), name)
        return buffer

    def state_dict(
        self, destination: OrderedDict[str, Tensor] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Tensor]:
        """Return all parameters and persistent buffers by name, sharing memory with the model.

        A module that defines `get_extra_state` adds its result under `_extra_state`.
        """
        return state.collect(self, OrderedDict() if destination is None else destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Incompatible:
        """Copy values into the parameters and buffers of the same names, in place.

        Args:
            state_dict: glassgrad's or PyTorch's tensors, or arrays, by name.
            strict: every name has to be on both sides.
            assign: use the given memory and dtype instead of copying.

        Raises:
            AutogradError: on missing or unexpected keys (if `strict`) or a wrong shape; nothing is
                changed then, unless a hook after loading may forgive keys.
        """
        return state.load(self, state_dict, strict, assign)

    def get_extra_state(self) -> object:
        """Return what else belongs into the state dictionary; a subclass defines it together with `set_extra_state`."""
        raise errors.METHOD_MISSING(owner=type(self).__name__, method="get_extra_state", where=provenance.here())

    def set_extra_state(self, state: object) -> None:
        """Take back what `get_extra_state` returned; a subclass defines both."""
        raise errors.METHOD_MISSING(owner=type(self).__name__, method="set_extra_state", where=provenance.here())

    # --- changes to all state -------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode here and below; return self."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Leave training mode here and below; return self."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        for parameter in self.parameters():
            if set_to_none or parameter._grad is None:
                parameter._grad = None
            else:
                parameter._grad.array[...] = 0

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze or unfreeze all parameters; return self."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module below and then on this one; return self."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, dtype: Any = None, device: Any = None, **_kwargs: Any) -> Self:
        """Convert floating-point parameters and buffers to a dtype, in place; devices other than cpu raise."""
        dtype = devices.wanted_dtype(args, dtype, device)
        if dtype is not None:
            for kind in (Parameter, Buffer):
                for _, value in self._named_state(kind, "", True, True):
                    if value.array.dtype.kind in "fV":
                        value.array = value.array.astype(dtype)
                        if value._grad is not None:
                            value._grad.array = value._grad.array.astype(dtype)
        return self

    def type(self, dst_type: Any) -> Self:
        """Convert floating-point parameters and buffers to a dtype, in place."""
        return self.to(np.dtype(dst_type))

    def double(self) -> Self:
        """Convert to float64."""
        return self.to(np.float64)

    def float(self) -> Self:
        """Convert to float32."""
        return self.to(np.float32)

    def half(self) -> Self:
        """Convert to float16."""
        return self.to(np.float16)

    def bfloat16(self) -> Self:
        """Convert to bfloat16; `amp.autocast` keeps the weights in float32, which trains better."""
        return self.to(bfloat16())

    def share_memory(self) -> Self:
        """Move parameters, buffers and gradients into memory that processes share, in place; return self.

        Processes that get the model train the same weights (Hogwild, Recht et al. 2011).
        """
        from glassgrad.engine.memory import shared

        state = [value for _, value in self._named_state(Tensor, "", True, True)]
        grads = [value._grad for value in state if value._grad is not None]
        shared.move(value for value in (*state, *grads) if isinstance(value.array, np.ndarray))
        return self

    def cpu(self) -> Self:
        """Return self: all tensors are in main memory."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raise: there is only the cpu."""
        return self.to("cuda" if device is None else device)

    def to_empty(self, *, device: devices.Device, recurse: bool = True) -> Self:
        """Give parameters and buffers new memory whose values are not set; return self.

        Args:
            device: the cpu; any other raises.
            recurse: in the modules below, too.
        """
        devices.check(device)
        for kind in (Parameter, Buffer):
            for _, value in self._named_state(kind, "", recurse, True):
                value.array = np.empty_like(value.array)
        return self

    # --- hooks ----------------------------------------------------------------------------------------

    def _state_hook(self, kind: str, hook: Callable[..., Any]) -> Handle:
        if self._state_hooks is None:
            self._state_hooks = {}
        listed = self._state_hooks.setdefault(kind, [])
        listed.append(hook)
        return Handle(listed, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads this module."""
        return self._state_hook("before_saving", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict` has read this module.

        The hook changes `state_dict` in place.
        """
        return self._state_hook("after_saving", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call a hook before `load_state_dict` fills this module.

        Its arguments are `(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)`; it may change the dictionary, which is a copy, and the lists.
        """
        return self._state_hook("before_loading", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(module, incompatible_keys)` after `load_state_dict`; it may empty the lists of keys in place."""
        return self._state_hook("after_loading", hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Handle:
        return self._state_hook("before_loading", hook if with_module else state.without_module(hook))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> Handle:
        return self._state_hook("after_saving", hook)

    def _hook(self, kind: str, hook: Any, first: bool) -> Handle:
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks.add(kind, hook, first)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> Handle:
        """Call `hook(module, args)` before forward; it may return other arguments.

        With `with_kwargs` the hook also gets the keyword arguments, and returns both or None.
        """
        return self._hook("before", (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Call `hook(module, args, output)` after forward; it may return another output.

        With `with_kwargs` the keyword arguments come before the output. With `always_call` it is also called after
        forward or an earlier hook has failed; then the output is None.
        """
        return self._hook("after", (hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known; it may return others."""
        return self._hook("backward_before", hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(module, grad_input, grad_output)` in the backward pass; it may return another grad_input."""
        return self._hook("backward", hook, prepend)

    register_backward_hook = register_full_backward_hook  # PyTorch's older name; it sees the same gradients of outputs

    # --- printing ---------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Return the text in the brackets of `repr`: that of the class, with attributes filled in by name."""
        return self._shown.format_map(vars(self))

    def _get_name(self) -> str:
        return type(self).__name__

    def _repr_html_(self) -> str:
        from glassgrad.engine.reports import notebook

        return notebook.module(self)

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._own(Module).items()]
        extra = self.extra_repr()
        if not lines:
            return f"{self._get_name()}({extra})"
        inner = [*([extra] if extra else []), *lines]
        return f"{self._get_name()}(\n  " + "\n  ".join(inner) + "\n)"


def changed(module: Module, **defaults: object) -> list[str]:
    """Return "name=value" for each attribute that differs from its default, for `extra_repr`."""
    given = {name: getattr(module, name) for name in defaults}
    return [f"{name}={value}" for name, value in given.items() if value != defaults[name]]


def check_entry(owner: Module, name: Any, entry: Any, *kinds: type[Any]) -> None:
    """Raise unless an entry of a module's state has a valid type and a valid attribute name.

    It must not hide a method or an attribute of another type.
    """
    shown = type(owner).__name__
    known = getattr(owner, name, None) if isinstance(name, str) else None
    if not isinstance(name, str) or not name or "." in name or not (known is None or isinstance(known, kinds)):
        raise errors.CONTAINER_KEY(owner=shown, given=name, where=provenance.here())
    if entry is not None and not isinstance(entry, kinds):
        raise errors.CONTAINER_ENTRY(
            owner=shown, kind=type(entry).__name__, expected=kinds[0].__name__, where=provenance.here()
        )


__all__ = ["Module"]
