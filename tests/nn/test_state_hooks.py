"""Extra state, hooks of state dictionaries, and modules set by name: the same programs in PyTorch are the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.errors.kinds import MissingError

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these programs")


def counting(lib: Any) -> Any:
    """Return a model whose second layer has extra state."""

    class Counting(lib.nn.Linear):  # the class of either library
        count = 0

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    return lib.nn.Sequential(lib.nn.Linear(2, 2), Counting(2, 2))


def extra_state_is_saved_and_loaded(lib: Any) -> Any:
    model, other = counting(lib), counting(lib)
    model[1].count = 3
    found = other.load_state_dict(model.state_dict())
    return list(model.state_dict()), model.state_dict()["1._extra_state"], other[1].count, list(found)


def extra_state_is_missing_or_unexpected(lib: Any) -> Any:
    model, plain = counting(lib), lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Linear(2, 2))
    return [list(part) for part in model.load_state_dict(plain.state_dict(), strict=False)] + [
        list(part) for part in plain.load_state_dict(model.state_dict(), strict=False)
    ]


def hooks_of_saving_are_called_around_each_module(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.Sequential(lib.nn.Linear(1, 1, bias=False)))
    seen: list[Any] = []

    def after(module: Any, state: Any, prefix: str, about: Any) -> None:
        seen.append(("after", prefix, sorted(state), about["version"]))
        if prefix == "0.":
            state["0.renamed"] = state.pop("0.bias")

    handles = []
    for module in model.modules():
        handles.append(
            module.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((type(m).__name__, prefix, keep)))
        )
        handles.append(module.register_state_dict_post_hook(after))
    names = [list(model.state_dict(keep_vars=True))]
    for handle in handles:
        handle.remove()
    return seen, names, list(model.state_dict())


def hooks_before_loading_rename_keys(lib: Any) -> Any:
    old = {"0.w": lib.ones(2, 2), "0.bias": lib.zeros(2), "more": lib.zeros(1)}
    model = lib.nn.Sequential(lib.nn.Linear(2, 2))
    seen = []

    def rename(module: Any, state: Any, prefix: str, about: Any, strict: bool, *lists: Any) -> None:
        seen.append((type(module).__name__, prefix, strict, [list(one) for one in lists]))
        if f"{prefix}w" in state:
            state[f"{prefix}weight"] = state.pop(f"{prefix}w")

    model[0].register_load_state_dict_pre_hook(rename)
    model._register_load_state_dict_pre_hook(lambda state, prefix, *rest: state.pop("more"))
    found = model.load_state_dict(old)
    return seen, list(found), sorted(old), model[0].weight.sum().item()


def hooks_before_loading_may_refuse(lib: Any) -> Any:
    model = lib.nn.Linear(1, 1)
    model.register_load_state_dict_pre_hook(lambda *given: given[-1].append("of another version"))
    with pytest.raises(RuntimeError, match="of another version"):
        model.load_state_dict(model.state_dict())
    return None


def hooks_after_loading_forgive(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(2, 1), lib.nn.Linear(1, 1))
    order = []

    def forgive(module: Any, found: Any) -> None:
        order.append(type(module).__name__)
        found.missing_keys.clear()

    for module in model.modules():
        module.register_load_state_dict_post_hook(forgive)
    found = model.load_state_dict({"0.weight": lib.full((1, 2), 5.0)})
    with pytest.raises(RuntimeError, match="surplus"):
        model.load_state_dict({"surplus": lib.zeros(1)})
    return order, list(found), model[0].weight.tolist()


def modules_are_set_by_name(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Sequential(lib.nn.Linear(2, 2)))
    model.set_submodule("1.0", lib.nn.Tanh())
    model.set_submodule("1.more", lib.nn.ReLU())
    model.set_submodule("0", lib.nn.Identity(), strict=True)
    wrong = (
        ("1.none", lib.nn.ReLU(), True),
        ("1.0.more.0", lib.nn.ReLU(), False),
        ("1.training", lib.nn.ReLU(), False),
    )
    for target, module, strict in wrong:
        with pytest.raises(AttributeError):
            model.set_submodule(target, module, strict)
    for target, module in (("", lib.nn.ReLU()), ("0", 3)):
        with pytest.raises((ValueError, AttributeError)):
            model.set_submodule(target, module)
    return repr(model)


def other_bases_are_prepared_on_demand(lib: Any) -> Any:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    class Left(lib.nn.Module, Named):  # the class of either library
        def __init__(self) -> None:
            super().__init__()

    class Handed(lib.nn.Module, Named):
        call_super_init = True

        def __init__(self) -> None:
            super().__init__("handed on")
            self.layer = lib.nn.Linear(1, 1)

    with pytest.raises(TypeError, match="takes"):
        lib.nn.Module(1)
    return hasattr(Left(), "name"), Handed().name, list(Handed().state_dict())


def memory_without_values(lib: Any) -> Any:
    model = lib.nn.Sequential(lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 2)).double()
    before = [value.data_ptr() for value in model.state_dict().values()]
    same = model.to_empty(device="cpu") is model
    after = [value.data_ptr() for value in model.state_dict().values()]
    kept = model.to_empty(device="cpu", recurse=False)[1].weight.data_ptr() in after
    moved = [a != b for a, b in zip(before, after, strict=True)]
    return same, moved, kept, [(tuple(p.shape), p.requires_grad) for p in model.parameters()]


PROGRAMS = (
    extra_state_is_saved_and_loaded, extra_state_is_missing_or_unexpected, hooks_before_loading_rename_keys,
    hooks_of_saving_are_called_around_each_module, hooks_before_loading_may_refuse, hooks_after_loading_forgive,
    modules_are_set_by_name, other_bases_are_prepared_on_demand, memory_without_values,
)  # fmt: skip  # a table


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program: Callable[[Any], Any]) -> None:
    assert program(gg) == program(torch)


def test_a_state_that_a_hook_lets_through_changes_nothing_when_it_does_not_fit() -> None:
    model = counting(gg)
    model[1].count = 7
    model.register_load_state_dict_pre_hook(lambda *_: None)
    before = model[0].weight.numpy(force=True).copy()
    state = counting(gg).state_dict()
    state["0.bias"] = gg.zeros(3)
    with pytest.raises(RuntimeError, match=r"wrong shape: 0\.bias"):
        model.load_state_dict(state)
    np.testing.assert_array_equal(model[0].weight.detach().numpy(), before)
    assert model[1].count == 7


def test_what_has_to_be_defined_says_so() -> None:
    with pytest.raises(gg.errors.GlassgradError, match=r"Linear has no get_extra_state\(\)"):
        gg.nn.Linear(1, 1).get_extra_state()
    with pytest.raises(gg.errors.GlassgradError, match="Linear has no set_extra_state"):
        gg.nn.Linear(1, 1).set_extra_state(1)
    with pytest.raises(MissingError, match="a name that is free"):
        gg.nn.Linear(1, 1).set_submodule("weight", gg.nn.ReLU())
    with pytest.raises(ValueError, match="cuda"):
        gg.nn.Linear(1, 1).to_empty(device="cuda")
