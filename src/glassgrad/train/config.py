"""Configurations: one dataclass gives the defaults, the keys of the TOML file and the options of the command line.

A field is declared with `option`, which takes its help text and its allowed values. `resolve` merges the layers
(defaults, then a file, then the command line) and checks every value. An error names the source of an invalid value.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

from glassgrad import errors
from glassgrad.errors.packages import needed

TASK_KEY = "task"
"""The key of a TOML file that names its `glassgrad train` command."""

C = TypeVar("C")


@dataclass(frozen=True)
class Rule:
    """The allowed values of a field. Bounds are inclusive, except `above`.

    `more` finds further choices. This may load modules, so it is called only for a value that is none of `choices`.
    """

    help: str
    low: float | None = None
    above: float | None = None
    high: float | None = None
    choices: Sequence[str] = ()
    more: Callable[[], Sequence[str]] | None = None
    resumable: bool = False
    grows: bool = False
    unit: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """All choices; empty if any text is allowed."""
        return (*self.choices, *(self.more() if self.more else ()))

    def describe(self, kind: type) -> str:
        """Describe the allowed values in words."""
        if self.choices:
            return "one of " + ", ".join(choice or "''" for choice in self.words)
        noun = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[kind]
        bounds = []
        if self.above is not None:
            bounds.append(f"above {self.above:g}")
        if self.low is not None:
            bounds.append(f"at least {self.low:g}")
        if self.high is not None:
            bounds.append(f"at most {self.high:,g}" if self.high < 1e6 else f"at most {self.high:.0e}")
        return " ".join([noun, " and ".join(bounds)]).strip()

    def allows(self, before: Any, after: Any) -> bool:
        """Tell whether a resumed run may have another value than at its start."""
        return self.resumable or before == after or (self.grows and after > before)

    def admits(self, value: Any) -> bool:
        """Tell whether a value of the right type is within bounds; NaN and infinity never are."""
        if isinstance(value, str | bool):
            return not self.choices or value in self.choices or value in self.words
        return (
            math.isfinite(value)
            and (self.low is None or value >= self.low)
            and (self.above is None or value > self.above)
            and (self.high is None or value <= self.high)
        )


class Bounds(TypedDict, total=False):
    """The arguments of `option` besides the default and the help: the fields of a `Rule`."""

    low: float | None
    above: float | None
    high: float | None
    choices: Sequence[str]
    more: Callable[[], Sequence[str]] | None
    resumable: bool
    grows: bool
    unit: str


def option(default: C, help: str, **rule: Unpack[Bounds]) -> C:
    """Declare a field of a configuration: its default, its help text and its `Rule`.

    Arguments: low, above, high (bounds), choices, more (further choices, found on demand), resumable (may change when a
    run is resumed), grows (may increase then, for a longer run), unit.

    Example:
        >>> from dataclasses import dataclass
        >>> from glassgrad.train import TrainingConfig, option
        >>> @dataclass(frozen=True)
        ... class Config(TrainingConfig):
        ...     width: int = option(64, "units of the hidden layer", low=1)
        >>> Config(width=128).width
        128
    """
    return field(default=default, metadata={"rule": Rule(help, **rule)})


@dataclass(frozen=True)
class Layer:
    """Values from one source, and the name of a field there (`--batch`, or `batch in train.toml`)."""

    values: Mapping[str, Any]
    name: Callable[[str], str]


def flag(key: str) -> str:
    """Return the command-line option of a field."""
    return "--" + key.replace("_", "-")


def command_line(values: Mapping[str, Any]) -> Layer:
    """Return the layer of the given options (`None`: not given)."""
    return Layer({key: value for key, value in values.items() if value is not None}, flag)


def rules(config: Any) -> dict[str, tuple[type, Rule]]:
    """Return the type and the rule of every field of a configuration or its class."""
    kinds: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}
    return {
        # Annotations are strings or types, depending on the module that defines the class.
        entry.name: (kinds[entry.type if isinstance(entry.type, str) else entry.type.__name__], entry.metadata["rule"])
        for entry in dataclasses.fields(config)
    }


def resolve(cls: type[C], layers: Sequence[Layer]) -> C:
    """Build a configuration from its defaults and layers; later layers win.

    Raises `errors.InputError` naming the option, or the key and file, of an invalid value.
    """
    return cls(**resolve_values(cls, layers))


def resolve_values(cls: type[Any], layers: Sequence[Layer]) -> dict[str, Any]:
    """Return the values of layers without the defaults; later layers win. Raises like `resolve`."""
    known = rules(cls)
    values: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.values.items():
            values[key] = _checked(value, *known[key], layer.name(key))
    return values


def name_of(key: str, layers: Sequence[Layer]) -> str:
    """Return the name of a field in the source that set it; for a default, its option."""
    return next((layer.name(key) for layer in reversed(layers) if key in layer.values), flag(key))


def check_divides(key: str, value: int, whole: str, size: int, layers: Sequence[Layer]) -> None:
    """Raise `errors.InputError` unless the field `key` divides the field `whole`."""
    if size % value:
        raise errors.CONFIG_DIVISOR(name=name_of(key, layers), whole=name_of(whole, layers), size=size, given=value)


def _checked(value: Any, kind: type, rule: Rule, name: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(value, str) and rule.choices and value not in rule.choices:
        value = next((word for word in rule.words if word.lower() == value.lower()), value)
    shown = repr(value) if isinstance(value, str) else str(value)
    if type(value) is not kind:
        raise errors.CONFIG_WRONG_TYPE(name=name, expected=rule.describe(kind), given=shown)
    if rule.admits(value):
        return value
    if rule.choices:
        raise errors.CONFIG_WRONG_CHOICE(
            name=name, expected=rule.describe(kind), given=shown, nearest=nearest(str(value), rule.words)
        )
    raise errors.CONFIG_OUT_OF_RANGE(name=name, expected=rule.describe(kind), given=shown)


def nearest(given: str, known: Sequence[str]) -> str:
    """Return a suggestion to append to a message; empty if no known word is similar."""
    close = difflib.get_close_matches(given, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def read_toml(path: Path, cls: type[Any], task: str) -> Layer:
    """Read a configuration file into a layer.

    Raises `errors.InputError` if it cannot be read, is not TOML, is for another task or has a key unknown to `cls`.
    """
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise errors.CONFIG_UNREADABLE(source=path, reason=error.strerror) from None
    except RecursionError:
        raise errors.CONFIG_NOT_TOML(source=path, reason="it is nested too deeply") from None
    except ValueError as error:  # not TOML, not UTF-8, or a number with thousands of digits
        raise errors.CONFIG_NOT_TOML(source=path, reason=error) from None
    found = table.pop(TASK_KEY, task)
    if found != task:
        raise errors.CONFIG_TASK(source=path, found=found, expected=task)
    known = list(rules(cls))
    for key in table:
        if key not in known:
            raise errors.CONFIG_UNKNOWN_KEY(key=key, source=path, nearest=nearest(key, known))
    return Layer(table, lambda key: f"{key} in {path}")


def to_toml(config: Any, task: str, *, leave_out: Sequence[str] = ()) -> str:
    """Return a configuration as TOML, each key under its help text, ready to read and edit.

    Example:
        >>> @dataclass
        ... class Example:
        ...     batch: int = option(32, "examples per step")
        >>> print(to_toml(Example(), "names"))
        task = "names"
        <BLANKLINE>
        # examples per step
        batch = 32
        <BLANKLINE>
    """
    with needed("tomli_w", "run directories"):
        import tomli_w

    parts = [tomli_w.dumps({TASK_KEY: task})]
    for key, (_, rule) in rules(config).items():
        if key not in leave_out:
            parts.append(f"# {rule.help}\n" + tomli_w.dumps({key: getattr(config, key)}))
    return "\n".join(parts)


__all__ = ["option"]
