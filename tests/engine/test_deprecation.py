"""A deprecated name works, and warns at the user's line with the replacement and the version that lacks it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.base.deprecation import DEPRECATIONS, deprecated

PROGRAM = """import glassgrad as gg
w = gg.tensor([3.0, 4.0], requires_grad=True)
(w * w / 2).sum().backward()
total = gg.nn.utils.clip_grad_norm([w], 1.0)
fill = gg.nn.init.ones
"""


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Let no name of a test stay announced."""
    before = dict(DEPRECATIONS)
    yield
    DEPRECATIONS.clear()
    DEPRECATIONS.update(before)


def test_the_warning_stands_at_the_line_of_the_user(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    scope: dict[str, object] = {}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(compile(PROGRAM, str(script), "exec"), scope)  # noqa: S102 - a program with a file of its own
    assert [(one.filename, one.lineno, one.category) for one in seen] == [
        (str(script), 4, errors.RemovalWarning),
        (str(script), 5, errors.RemovalWarning),
    ]
    assert str(seen[0].message) == (
        "nn.utils.clip_grad_norm is deprecated since glassgrad 1.0 and will be removed in 2.0; "
        "write nn.utils.clip_grad_norm_"
    )
    assert str(seen[1].message).startswith("nn.init.ones is deprecated")
    assert str(seen[1].message).endswith("write nn.init.ones_")
    assert scope["total"].item() == 5
    assert scope["fill"] is gg.nn.init.ones_


def test_python_shows_it_without_an_option() -> None:
    """Unlike a DeprecationWarning, which Python hides outside of the main program."""
    assert issubclass(errors.RemovalWarning, FutureWarning)


@pytest.mark.usefixtures("forgotten")
def test_functions_methods_and_classes_can_be_marked() -> None:
    mark = deprecated("old", instead="new", since="1.1", removed_in="2.0")

    @mark
    def function(x: int, *, y: int = 1) -> int:
        """Add."""
        return x + y

    class Holder:
        @mark
        def method(self) -> str:
            return type(self).__name__

    @mark
    class Old:
        def __init__(self, size: int) -> None:
            self.size = size

    @mark
    class Bare:
        pass

    class Below(Old):
        pass

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert function(1, y=2) == 3
        assert Holder().method() == "Holder"
        assert Old(3).size == 3
        assert Below(4).size == 4
        assert isinstance(Bare(), Bare)
    assert [str(one.message).endswith("write new") for one in seen] == 5 * [True]
    assert {one.filename for one in seen} == {__file__}
    assert (function.__name__, function.__doc__) == ("function", "Add.")
    assert isinstance(Old, type)
    assert DEPRECATIONS["old"].removed_in == "2.0"


def test_importing_an_old_spelling_warns_where_it_is_imported() -> None:
    with pytest.warns(errors.RemovalWarning, match="nn.init.xavier_uniform_") as seen:
        from glassgrad.nn.init import xavier_uniform
    assert xavier_uniform is gg.nn.init.xavier_uniform_
    assert {one.filename for one in seen} == {__file__}
