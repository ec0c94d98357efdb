"""What C cannot say is refused with its line before anything is written."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.c import compiler as compilers


def refused(function, *args, tmp_path):
    step = gg.compile(function, backend="numpy")
    step(*args)
    with pytest.raises(gg.errors.CompileError) as found:
        step.export_c(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    return str(found.value)


def test_an_op_without_c_is_named_with_its_line(tmp_path):
    told = refused(lambda x: gg.linalg.inv(x + 1), gg.eye(3), tmp_path=tmp_path)
    assert "inv at" in told
    assert "test_refusals.py" in told
    assert "LAPACK" in told


def test_complex_numbers_are_refused(tmp_path):
    assert "C11 has no" in refused(lambda x: x * 2, gg.tensor([1j]), tmp_path=tmp_path)


def test_a_draw_that_c_cannot_repeat_is_refused(tmp_path):
    assert "permutation" in refused(lambda x: x[gg.randperm(3)], gg.ones(3), tmp_path=tmp_path)


def test_an_open_gradient_is_refused(tmp_path):
    w = gg.ones(3, requires_grad=True)
    assert "gradients flow" in refused(lambda x: w * x, gg.ones(3), tmp_path=tmp_path)


def test_a_function_without_a_call_has_no_program(tmp_path):
    with pytest.raises(gg.errors.CompileError, match="the program"):
        gg.compile(lambda x: x).export_c(tmp_path)


def test_a_file_of_another_program_changes_nothing(tmp_path):
    w = gg.ones(3)
    step = gg.compile(lambda: w.mul_(2), backend="numpy")
    step()
    gg.save({"v": gg.zeros(2)}, tmp_path / "other.weights")
    with pytest.raises(gg.errors.ArgumentError, match="no array"):
        step.load_c(tmp_path / "other.weights")
    np.testing.assert_array_equal(w.numpy(), np.full(3, 2.0, np.float32))


def test_no_compiler_is_a_clear_message(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert compilers.compiler() is None
    with pytest.raises(gg.errors.CompileError, match="needs a C compiler"):
        gg.compile(lambda x: x, backend="c")
