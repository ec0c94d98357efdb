"""One dataclass gives defaults, file keys and options; later layers win; errors name wrong values and their places."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from glassgrad.errors import InputError
from glassgrad.train.config import Layer, command_line, flag, option, read_toml, resolve, to_toml


@dataclass(frozen=True)
class Config:
    model: str = option("mlp", "which model", choices=("mlp", "bigram"))
    batch_size: int = option(32, "examples per step", low=1, high=100)
    rate: float = option(0.1, "learning rate", above=0)
    data: str = option("", "file")
    lowercase: bool = option(False, "in lowercase")


def from_file(folder: Path, text: str) -> Layer:
    file = folder / "train.toml"
    file.write_text(text, encoding="utf-8")
    return read_toml(file, Config, "names")


def test_command_line_over_file_over_default(tmp_path: Path) -> None:
    file = from_file(tmp_path, "batch_size = 64\nrate = 0.5\n")
    config = resolve(Config, [file, command_line({"rate": 0.2, "batch_size": None, "model": None})])
    assert config == Config(batch_size=64, rate=0.2)


def test_what_is_written_reads_as_the_same_configuration(tmp_path: Path) -> None:
    config = Config("bigram", 7, 1e-30, 'a "b"\\c\n\t\x7f é 明.txt', lowercase=True)
    text = to_toml(config, "names")
    assert resolve(Config, [from_file(tmp_path, text)]) == config
    assert tomllib.loads(text)["task"] == "names"
    assert "# learning rate\nrate = 1e-30" in text


def test_whole_numbers_are_numbers() -> None:
    rate = resolve(Config, [command_line({"rate": 1})]).rate
    assert rate == 1.0
    assert type(rate) is float


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rate", -0.1, "--rate must be a number above 0, given -0.1"),
        ("rate", 0.0, "--rate must be a number above 0, given 0.0"),
        ("rate", float("nan"), "--rate must be a number above 0, given nan"),
        ("rate", float("inf"), "--rate must be a number above 0, given inf"),
        ("batch_size", 0, "--batch-size must be a whole number at least 1 and at most 100, given 0"),
        ("batch_size", 101, "--batch-size must be a whole number at least 1 and at most 100, given 101"),
        ("model", "mpl", "--model must be one of mlp, bigram, given 'mpl'; did you mean 'mlp'?"),
        ("model", "transformer", "--model must be one of mlp, bigram, given 'transformer'"),
    ],
)
def test_values_that_cannot_be(key: str, value: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve(Config, [command_line({key: value})])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rat = 1", "unknown key 'rat' in FILE; did you mean 'rate'?"),
        ("qqqq = 1", "unknown key 'qqqq' in FILE"),
        ("batch-size = 1", "unknown key 'batch-size' in FILE; did you mean 'batch_size'?"),
        ("batch_size = 3.0", "batch_size in FILE must be a whole number at least 1 and at most 100, given 3.0"),
        ("batch_size = true", "batch_size in FILE must be a whole number at least 1 and at most 100, given True"),
        ("rate = '0.1'", "rate in FILE must be a number above 0, given '0.1'"),
        ("lowercase = 1", "lowercase in FILE must be true or false, given 1"),
        ("data = ['a']", "data in FILE must be text, given ['a']"),
        ("[rate]\nx = 1", "rate in FILE must be a number above 0, given {'x': 1}"),
        ("task = 'digits'", "FILE is for `glassgrad train digits`, expected one for `glassgrad train names`"),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve(Config, [from_file(tmp_path, text)])
    assert str(caught.value) == message.replace("FILE", str(tmp_path / "train.toml"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not valid TOML"):
        from_file(tmp_path, "rate = = 1")
    (tmp_path / "latin.toml").write_bytes(b"data = 'ren\xe9e'")
    with pytest.raises(InputError, match="is not valid TOML"):
        read_toml(tmp_path / "latin.toml", Config, "names")
    with pytest.raises(InputError, match=r"cannot read .*none\.toml: No such file"):
        read_toml(tmp_path / "none.toml", Config, "names")


def test_names_of_options() -> None:
    assert flag("batch_size") == "--batch-size"
