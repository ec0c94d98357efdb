"""The dependencies of a compiled function besides its arguments: it notices each change of them, and no other."""

from __future__ import annotations

import argparse
import array
import types

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.compile.front.state import edges
from glassgrad.compile.front.state.bytecode_reads import reads_of


def compiled(function):
    return gg.compile(function, backend="numpy", strict=True)


class Settings:
    scale = 2.0
    factors = [2.0]  # noqa: RUF012 - shared by all, as in the scripts this is about

    @classmethod
    def apply(cls, x):
        return x * cls.scale


def class_attribute():
    return lambda x: x * Settings.scale, lambda: setattr(Settings, "scale", 5.0), 5.0


def class_method():
    return lambda x: Settings.apply(x), lambda: setattr(Settings, "scale", 5.0), 5.0  # noqa: PLW0108 - called by name


def list_of_a_class():
    settings = Settings()
    return lambda x: x * settings.factors[0], lambda: Settings.factors.__setitem__(0, 5.0), 5.0


def entries_in_a_loop():
    weights = {"one": 1.0, "two": 2.0}

    def run(x):
        for value in weights.values():
            x = x * value
        return x

    return run, lambda: weights.update(two=5.0), 5.0


def entry_by_a_computed_key():
    weights, name = {"ab": 2.0}, "a"
    return lambda x: x * weights[name + "b"], lambda: weights.update(ab=5.0), 5.0


def entry_that_was_missing():
    options = {"other": 1.0}
    return lambda x: x * options.get("scale", 2.0), lambda: options.update(scale=5.0), 5.0


def entry_that_is_looked_for():
    options = {}
    return lambda x: x * (5.0 if "big" in options else 2.0), lambda: options.update(big=True), 5.0


def dictionary_of_tensors_grows():
    parts = {"a": gg.tensor(2.0)}

    def run(x):
        for part in parts.values():
            x = x * part
        return x

    return run, lambda: parts.update(b=gg.tensor(2.5)), 5.0


def list_of_modules_grows():
    parts = nn.ModuleList([nn.Identity()])

    class Double(nn.Module):
        def forward(self, x):
            return x * 2.5

    def run(x):
        for part in parts:
            x = part(x)
        return x * 2

    return run, lambda: parts.append(Double()), 5.0


def set_of_the_same_size():
    names = {"a"}
    return lambda x: x * (5.0 if "b" in names else 2.0), lambda: (names.clear(), names.add("b")), 5.0


def long_list():
    numbers = [2.0] * 100
    return lambda x: x * numbers[70], lambda: numbers.__setitem__(70, 5.0), 5.0


def long_dictionary():
    numbers = {str(at): 2.0 for at in range(100)}
    return lambda x: x * numbers["70"], lambda: numbers.update({"70": 5.0}), 5.0


def namespaces():
    one, other = types.SimpleNamespace(a=1.0), argparse.Namespace(b=2.0)
    return lambda x: x * one.a * other.b, lambda: setattr(other, "b", 5.0), 5.0


def attribute_that_was_missing():
    class Options:
        pass

    options = Options()
    return lambda x: x * getattr(options, "scale", 2.0), lambda: setattr(options, "scale", 5.0), 5.0


def attribute_of_a_function():
    def run(x):
        return x * run.scale

    run.scale = 2.0
    return run, lambda: setattr(run, "scale", 5.0), 5.0


def defaults():
    def run(x, scale=2.0):
        return x * scale

    return run, lambda: setattr(run, "__defaults__", (5.0,)), 5.0


def keywords_of_a_partial():
    import functools

    inner = functools.partial(lambda x, scale: x * scale, scale=2.0)
    return inner, lambda: inner.keywords.update(scale=5.0), 5.0


def method_that_is_replaced():
    class Part:
        def apply(self, x):
            return x * 2

    part = Part()
    return lambda x: part.apply(x) * 1, lambda: setattr(Part, "apply", lambda self, x: x * 5), 5.0


def item_of_an_own_container():
    class Options:
        def __init__(self):
            self.known = {"scale": 2.0}

        def __getitem__(self, key):
            return self.known[key]

    options = Options()
    return lambda x: x * options["scale"], lambda: options.known.update(scale=5.0), 5.0


CHANGES = (
    class_attribute, class_method, list_of_a_class, entries_in_a_loop, entry_by_a_computed_key,
    entry_that_was_missing, entry_that_is_looked_for, dictionary_of_tensors_grows, list_of_modules_grows,
    set_of_the_same_size, long_list, long_dictionary, namespaces, attribute_that_was_missing,
    attribute_of_a_function, defaults, keywords_of_a_partial, method_that_is_replaced, item_of_an_own_container,
)  # fmt: skip  # a table


@pytest.mark.parametrize("make", CHANGES, ids=lambda make: make.__name__)
def test_a_change_is_noticed_and_named(make, monkeypatch):
    monkeypatch.setattr(Settings, "scale", 2.0)
    monkeypatch.setattr(Settings, "factors", [2.0])
    function, change, factor = make()
    run = compiled(function)
    x = gg.tensor([1.0, 3.0])
    assert run(x).tolist() == [2.0, 6.0]
    assert run(x).tolist() == [2.0, 6.0]
    assert run.traces == 1
    change()
    assert run(x).tolist() == [factor, 3 * factor]
    assert run.traces == 2
    assert len(run.retraces) == 1
    run(x)
    assert run.traces == 2


def test_reasons_name_the_place():
    weights, options = {"one": 1.0, "two": 2.0}, {}
    run = compiled(lambda x: x * sum(weights.values()) * options.get("scale", 1.0))
    x = gg.ones(1)
    run(x)
    weights["two"] = 3.0
    run(x)
    options["scale"] = 4.0
    run(x)
    assert run.retraces == ["weights['two'] was 2.0, now 3.0", "options['scale'] was missing, now 4.0"]


def test_what_is_not_read_may_change():
    """Counters beside what a step reads: in the same dictionary, on the same object, named like a method."""

    class Trainer:
        def __init__(self):
            self.model = nn.Linear(2, 1)
            self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
            self.schedule = optim.lr_scheduler.StepLR(self.optimizer, 2)
            self.every_batch = False
            self.step = self.seen = 0
            self.log = {"scale": 2.0, "batches": 0}

        def train(self, x):
            loss = self.model(x).sum() * self.log["scale"]
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.every_batch:
                self.schedule.step()
            return loss

    trainer = Trainer()
    run = compiled(trainer.train)
    for _ in range(5):
        run(gg.ones(3, 2))
        trainer.step += 1
        trainer.seen += 3
        trainer.log["batches"] += 1
        trainer.log["loss"] = 1.0
        trainer.schedule.step()
    assert run.retraces == []
    trainer.log["scale"] = 3.0
    run(gg.ones(3, 2))
    assert run.retraces == ["self.log['scale'] was 2.0, now 3.0"]


def test_which_entries_code_asks_for():
    def run(config, other, third):
        if "a" in config:
            third.call(config["b"], config.get("c", 1))
        config["d"] = other["x"]
        return other

    reads = reads_of(run.__code__)
    assert reads.keys["config"] == {"a", "b", "c", "d"}
    assert "config" not in reads.whole
    assert "other" in reads.whole
    assert "call" not in reads.attributes


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("size", [3, 5000])
def test_arrays_are_read_anew_in_every_call(backend, size):
    factors, mask = np.full((2, size), 2.0, np.float32), np.ones((2, size), bool)
    run = gg.compile(lambda x: gg.where(mask[1], x * factors[0], 0.0).sum() * factors.mean(), backend=backend)
    x = gg.ones(size)
    assert run(x).item() == 4.0 * size
    factors[0] = 4.0
    assert run.traces == 1
    mask[1, 1:] = False
    # The mean is computed by NumPy while tracing, the rest in every call.
    assert run(x).item() == 8.0


def test_arrays_that_python_looks_at_trace_again():
    table = np.array([1.0, 2.0, 3.0])
    run = compiled(lambda x: x * float(table[1]) if table[0] < 5 else x)
    x = gg.ones(2)
    assert run(x).tolist() == [2.0, 2.0]
    table[1] = 4.0
    assert run(x).tolist() == [4.0, 4.0]
    table[0] = 9.0
    assert run(x).tolist() == [1.0, 1.0]
    assert run.retraces == ["the contents of table have changed"] * 2


def test_an_array_that_lies_in_memory_the_step_writes_to_is_refused():
    w = gg.ones(3)
    array = w.numpy()[1:]

    def run(x):
        before = (x * array).sum()
        w.mul_(2)
        return before

    with pytest.raises(errors.CompileError, match=r"lie in the same memory .* writes to w;"):
        compiled(run)(gg.ones(2))
    assert w.tolist() == [1, 1, 1]


# --- arguments ------------------------------------------------------------------------------------


def test_names_and_places_are_one_program():
    run = compiled(lambda x, y, scale=1.0: (x - y) * scale)
    x, y = gg.ones(2), gg.zeros(2)
    for call in (run(x, y), run(x, y=y), run(x=x, y=y), run(y=y, x=x)):
        assert call.tolist() == [1.0, 1.0]
    assert run.traces == 1
    assert run(scale=3.0, x=x, y=y).tolist() == [3.0, 3.0]
    assert run(y=y, x=x, scale=3.0).tolist() == [3.0, 3.0]
    assert run.retraces == ["there were 2 arguments, now 3"]
    with pytest.raises(TypeError, match="multiple values"):
        run(x, y, x=x)
    with pytest.raises(TypeError, match="unexpected"):
        run(x, y, z=x)


def test_keywords_keep_their_order_where_it_can_be_seen():
    run = compiled(lambda **parts: sum(k * part for k, part in enumerate(parts.values())))
    x, y = gg.ones(2), gg.zeros(2)
    assert run(x=x, y=y).tolist() == [0.0, 0.0]
    assert run(y=y, x=x).tolist() == [1.0, 1.0]


def test_structures_are_named():
    run = compiled(sum)
    run([gg.ones(2)])
    run([gg.ones(2), gg.ones(2)])
    assert run.retraces == ["the arguments were {'args': ([_],), 'kwargs': {}}, now {'args': ([_, _],), 'kwargs': {}}"]


def test_objects_of_the_same_address_are_not_the_same():
    class Options:
        __slots__ = ("scale",)

        def __init__(self, scale):
            self.scale = scale

    run = compiled(lambda options, x: x * options.scale)
    assert [run(Options(float(k)), gg.ones(1)).item() for k in range(6)] == [0, 1, 2, 3, 4, 5]


def test_many_traces_are_warned_of_once():
    run = compiled(lambda x: x * 2)
    with pytest.warns(errors.CompileWarning, match=r"was traced 16 times .* was a tensor") as found:
        [run(gg.ones(size)) for size in range(1, 25)]
    assert len(found) == 1
    assert found[0].filename == __file__


def test_what_changes_at_every_call_runs_eagerly_and_says_so_once():
    class Annealed:
        rate = 1.0

        def step(self, x):
            self.rate *= 0.5
            return x * self.rate

    eager, twin = Annealed(), Annealed()
    run = gg.compile(twin.step, backend="numpy")
    with pytest.warns(errors.CompileWarning) as told:
        found = [run(gg.ones(2)).tolist() for _ in range(14)]
    assert found == [eager.step(gg.ones(2)).tolist() for _ in range(14)]
    (text,) = [str(one.message) for one in told]
    assert "traced 8 times in a row" in text
    assert "set by the function itself at" in text
    assert "test_guards.py:" in text
    assert twin.rate == eager.rate
    assert run.traces == 8


def test_the_program_that_was_not_called_for_longest_is_dropped_first(monkeypatch):
    monkeypatch.setenv("GLASSGRAD_MAX_TRACES", "3")
    run = compiled(lambda x: x * 2)
    for size in (1, 2, 3, 1, 4):  # that for two elements was not called for longest
        run(gg.ones(size))
    assert run.traces == 4
    run(gg.ones(1)), run(gg.ones(3)), run(gg.ones(4))
    assert run.traces == 4
    run(gg.ones(2))
    assert run.traces == 5
    assert len(run._traces) == 3


def test_what_a_failed_trace_added_is_taken_away():
    seen, options = [1], {}

    class Owner:
        known = None

        def step(self, x):
            seen.append(2)
            options["new"] = 1
            self.added = x * 2
            return float(x)

    owner = Owner()
    with pytest.raises(errors.CompileError, match=r"float\(\)"):
        compiled(owner.step)(gg.ones(()))
    assert seen == [1]
    assert vars(owner) == {}


def test_equal_numbers_of_other_types_are_not_the_same():
    """1, 1.0 and True are equal, and make results of other dtypes."""
    options = {"factor": 2}
    step = gg.compile(lambda x: x * options["factor"])
    x = gg.tensor([1, 2, 3])
    for factor in (2, 2.0, 2, 2.0 + 0j, True, 1, 1.0):
        options["factor"] = factor
        assert step(x).dtype == (x * factor).dtype
        assert step(x).tolist() == (x * factor).tolist()
    for now, before in [(1, True), (1.0, 1), (0.0, False), ((1, 2), (1, 2.0)), ("a", b"a"), (1, gg.tensor(1))]:
        assert not edges.same(now, before)
        assert not edges.same(before, now)


def test_the_order_of_a_dictionary_of_text_is_noticed():
    words = {str(at): "a" for at in range(100)}
    function = compiled(lambda x: x * [*words].index("5"))
    assert function(gg.ones(1)).item() == 5
    words["5"] = words.pop("5")
    assert function(gg.ones(1)).item() == 99
    assert function.traces == 2


@pytest.mark.parametrize("numbers", [bytearray(b"\1\2"), array.array("d", [1.0, 2.0])], ids=type)
def test_bytes_and_arrays_of_python_s_are_noticed(numbers):
    function = compiled(lambda x: x * (numbers[0] + len(numbers)))
    assert function(gg.ones(1)).item() == 3
    numbers[0] = 5
    assert function(gg.ones(1)).item() == 7
    numbers.append(9)
    assert function(gg.ones(1)).item() == 8
    assert function(gg.ones(1)).item() == 8
    assert function.traces == 3
