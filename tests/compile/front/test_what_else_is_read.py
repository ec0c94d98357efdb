"""Values that a step reads besides its arguments and plain variables: each changes between calls, as in eager mode."""

from __future__ import annotations

import contextvars
import itertools
import sys
import types
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.nn import functional as F
from glassgrad.utils.data import DataLoader, TensorDataset

Case = tuple[Callable[..., Any], Callable[[], None]]
LEVEL = contextvars.ContextVar("LEVEL", default=1.0)


def reordered() -> Case:
    parts = {"a": 1.0, "b": 2.0}

    def change() -> None:
        parts["a"] = parts.pop("a")

    return lambda x: sum((x**k * part for k, part in enumerate(parts.values())), x), change


def reordered_tensors() -> Case:
    parts = OrderedDict(a=gg.ones(3), b=gg.zeros(3))
    return lambda x: x + next(part for part in list(parts.values())), lambda: parts.move_to_end("a")


def default_of_a_defaultdict() -> Case:
    parts: Any = defaultdict(lambda: 2.0, a=1.0)

    def change() -> None:
        parts["b"] = 5.0

    return lambda x: x * parts["a"] * parts["b"], change


def context_variable() -> Case:
    token = LEVEL.set(2.0)
    LEVEL.reset(token)
    return lambda x: x * LEVEL.get(), lambda: LEVEL.set(3.0) and None


def code_of_a_function() -> Case:
    def helper(x: Any) -> Any:
        return x * 2

    def change() -> None:
        helper.__code__ = (lambda x: x * 3).__code__

    return lambda x: helper(x) + 0, change


def imported_inside() -> Case:
    settings: Any = types.ModuleType("settings_of_a_user")
    settings.scale = 2.0
    sys.modules["settings_of_a_user"] = settings

    def step(x: Any) -> Any:
        import settings_of_a_user

        return x * settings_of_a_user.scale

    return step, lambda: setattr(settings, "scale", 4.0)


def imported_name_inside() -> Case:
    settings: Any = types.ModuleType("more_settings_of_a_user")
    settings.scale = 2.0
    sys.modules["more_settings_of_a_user"] = settings

    def step(x: Any) -> Any:
        from more_settings_of_a_user import scale

        return x * scale

    return step, lambda: setattr(settings, "scale", 4.0)


def attribute_of_a_class() -> Case:
    class Settings:
        scale = 2.0

    class Model:
        settings = Settings

        def step(self, x: Any) -> Any:
            return x * self.settings.scale

    return Model().step, lambda: setattr(Settings, "scale", 5.0)


def class_inside_of_a_class() -> Case:
    class Settings:
        class Model:
            scale = 2.0

    return lambda x: x * Settings.Model.scale, lambda: setattr(Settings.Model, "scale", 5.0)


def property_of_a_class() -> Case:
    class Model:
        @property
        def scale(self) -> float:
            return 2.0

    model = Model()
    return lambda x: x * model.scale, lambda: setattr(Model, "scale", property(lambda self: 6.0))


def static_method() -> Case:
    class Model:
        @staticmethod
        def act(x: Any) -> Any:
            return x * 2

    model = Model()
    return lambda x: model.act(x) + 0, lambda: setattr(Model, "act", staticmethod(lambda x: x * 7))


def class_method() -> Case:
    class Model:
        @classmethod
        def act(cls, x: Any) -> Any:
            return x * 2

    return lambda x: Model.act(x) + 0, lambda: setattr(Model, "act", classmethod(lambda cls, x: x * 7))


def method_of_a_layer_class() -> Case:
    class Twice(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    model = nn.Sequential(Twice())
    return lambda x: model(x) + 0, lambda: setattr(Twice, "forward", lambda self, x: x * 9)


def hook_of_a_module() -> Case:
    model = nn.Sequential(nn.ReLU())
    tripled = lambda module, args, result: result * 3
    return lambda x: model(x) + 0, lambda: model[0].register_forward_hook(tripled) and None


def removed_hook_of_a_tensor() -> Case:
    w = gg.ones(3, requires_grad=True)
    handle = w.register_hook(lambda g: g * 5)

    def step(x: Any) -> Any:
        w.grad = None
        (w * x).sum().backward()
        return w.grad * 1

    return step, handle.remove


def added_hook_of_a_tensor() -> Case:
    w = gg.ones(3, requires_grad=True)

    def step(x: Any) -> Any:
        w.grad = None
        (w * x).sum().backward()
        return w.grad * 1

    return step, lambda: w.register_hook(lambda g: g * 5) and None


def number_in_a_hook() -> Case:
    w, scale = gg.ones(3, requires_grad=True), [2.0]
    w.register_hook(lambda g: g * scale[0])

    def step(x: Any) -> Any:
        w.grad = None
        (w * x).sum().backward()
        return w.grad * 1

    return step, lambda: scale.__setitem__(0, 7.0)


CASES = [
    reordered, reordered_tensors, default_of_a_defaultdict, context_variable, code_of_a_function, imported_inside,
    imported_name_inside, attribute_of_a_class, class_inside_of_a_class, property_of_a_class, static_method,
    class_method, method_of_a_layer_class, hook_of_a_module, removed_hook_of_a_tensor, added_hook_of_a_tensor,
    number_in_a_hook,
]  # fmt: skip  # a table


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_change_is_noticed(case: Callable[[], Case]) -> None:
    def run(*, compiled: bool) -> list[Any]:
        step, change = case()
        called = gg.compile(step, backend="numpy", strict=True) if compiled else step
        found = []
        for call in range(4):
            if call == 2:
                change()
            found.append(called(gg.tensor([1.0, 2.0, 3.0])).tolist())
        return found

    context = contextvars.copy_context()
    wanted = context.run(lambda: run(compiled=False))
    assert wanted[1] != wanted[2], "the case changes nothing"
    assert contextvars.copy_context().run(lambda: run(compiled=True)) == wanted


# --- what is used up ------------------------------------------------------------------------------


def numbers() -> list[Any]:
    return [gg.full((2,), float(k)) for k in range(6)]


def loader() -> Iterator[Any]:
    return iter(DataLoader(TensorDataset(gg.arange(12).float().reshape(6, 2)), batch_size=1))


ITERATORS: dict[str, Callable[[], Any]] = {
    "list": lambda: iter(numbers()),
    "generator": lambda: (part for part in numbers()),
    "cycle": lambda: itertools.cycle(numbers()),
    "count": itertools.count,
    "zip": lambda: (part[0] for part in zip(numbers(), strict=True)),
    "loader": loader,
}


@pytest.mark.parametrize("place", ["variable", "entry", "attribute", "argument"])
@pytest.mark.parametrize("kind", ITERATORS)
def test_a_step_that_takes_from_an_iterator_runs_eagerly(kind: str, place: str) -> None:
    def run(*, compiled: bool) -> list[Any]:
        it = ITERATORS[kind]()
        box = types.SimpleNamespace(it=it)
        entries = {"it": it}

        def value(taken: Any) -> Any:
            return taken[0] if isinstance(taken, list | tuple) else taken

        steps = {
            "variable": lambda x: x + value(next(it)),
            "entry": lambda x: x + value(next(entries["it"])),
            "attribute": lambda x: x + value(next(box.it)),
            "argument": lambda x, given: x + value(next(given)),
        }
        called = gg.compile(steps[place], backend="numpy") if compiled else steps[place]
        args = (it,) if place == "argument" else ()
        return [called(gg.zeros(2), *args).tolist() for _ in range(4)]

    wanted = run(compiled=False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert run(compiled=True) == wanted
    (text,) = [str(one.message) for one in told]
    assert "takes the next element of" in text
    assert "test_what_else_is_read.py" in text


# --- random streams -------------------------------------------------------------------------------


def seeded(x: Any) -> Any:
    gg.manual_seed(7)
    return F.dropout(x, 0.5) + gg.rand(3)


def set_aside(x: Any) -> Any:
    state = gg.get_rng_state()
    gg.manual_seed(3)
    drawn = gg.rand(3)
    gg.set_rng_state(state)
    return x + drawn + gg.rand(3)


def own_generator(x: Any) -> Any:
    return x + gg.rand(3, generator=gg.Generator().manual_seed(5))


def seeded_afterwards(x: Any) -> Any:
    drawn = gg.rand(3)
    gg.manual_seed(9)
    return x + drawn


@pytest.mark.parametrize("step", [seeded, set_aside, own_generator, seeded_afterwards])
def test_seeding_inside_of_a_step(step: Callable[[Any], Any]) -> None:
    def run(called: Callable[[Any], Any]) -> list[Any]:
        gg.manual_seed(1)
        return [called(gg.ones(3)).tolist() for _ in range(4)] + [gg.rand(2).tolist()]

    assert run(gg.compile(step, backend="numpy", strict=True)) == run(step)


# --- kinds ----------------------------------------------------------------------------------------


def test_an_array_is_an_array_while_tracing() -> None:
    @gg.compile(backend="numpy", strict=True)
    def step(x: Any) -> Any:
        assert not isinstance(x, gg.Tensor)
        return np.exp(x) if isinstance(x, np.ndarray) else None

    np.testing.assert_allclose(step(np.ones(2)), np.exp(np.ones(2)), rtol=1e-12)


def test_a_defaultdict_as_argument_and_result() -> None:
    @gg.compile(backend="numpy", strict=True)
    def step(parts: Any) -> Any:
        return defaultdict(list, {name: part * 2 for name, part in parts.items()})

    found = step(defaultdict(list, a=gg.ones(2)))
    assert found["a"].tolist() == [2.0, 2.0]
    assert found["missing"] == []


def test_what_a_step_makes_and_stores_is_refused_in_its_own_words() -> None:
    class Box(nn.Module):
        def forward(self, x: Any) -> Any:
            self.weight = nn.Parameter(x * 2)
            return x

    with pytest.raises(errors.CompileError, match=r"stores a Parameter that it created"):
        gg.compile(Box(), backend="numpy", strict=True)(gg.ones(2))


class Shared:
    """Has an attribute for all its objects, which the class below computes."""

    kind: ClassVar[Any] = {"a": 1}


class Computed(Shared):
    def __init__(self) -> None:
        self.parts: tuple[Any, ...] = ()

    @property
    def kind(self) -> Any:
        return self.parts[0]


class Holder(gg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.note = Computed()

    def forward(self, x: Any) -> Any:
        return x * 2 if not self.note.parts else x


def test_a_property_that_hides_a_shared_attribute_is_not_asked() -> None:
    assert gg.compile(Holder(), strict=True)(gg.ones(2)).tolist() == [2.0, 2.0]


class Fading(gg.nn.Module):
    """Returns the buffer that it assigned."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gg.nn.Parameter(gg.ones(2))
        self.register_buffer("level", gg.zeros(2))

    def forward(self, x: Any) -> Any:
        self.level = 0.5 * self.level.detach() + x * self.w
        return self.level


def test_a_buffer_that_is_returned_has_its_gradient() -> None:
    plain, model = Fading(), Fading()
    compiled = gg.compile(model, strict=True)
    for _ in range(3):
        for call, owner in ((plain, plain), (compiled, model)):
            owner.zero_grad()
            y = call(gg.tensor([1.0, 2.0]))
            (y * y).sum().backward()
        assert model.level.tolist() == plain.level.tolist()
        assert model.w.grad.tolist() == plain.w.grad.tolist()
    assert isinstance(model.level, gg.nn.Buffer)
