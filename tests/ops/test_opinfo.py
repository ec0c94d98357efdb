"""Every op with samples in PyTorch, against PyTorch: values and gradients; see `opinfo.py`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch's own samples are what is run here")
pytest.importorskip("expecttest", reason="PyTorch's table of samples imports it")

from tests.ops import opinfo  # noqa: E402 - after the checks above
from tests.ops.opinfo_reasons import KNOWN, LACKING, PROMOTION  # noqa: E402 - after the checks above

SHARES = 16
SAMPLES = 10  # of each op; the file of the docs is made from twice as many


@cache
def infos() -> tuple[Any, ...]:
    return tuple(info for info in opinfo.op_infos() if opinfo.ours(info) is not None)


@pytest.mark.parametrize("share", range(SHARES))
def test_ops_agree_with_pytorch(share: int, single_threaded_torch: None) -> None:
    found = list(opinfo.examine_all(infos()[share::SHARES], limit=SAMPLES))
    assert len(found) > 20
    wrong = [
        f"{report.op}: {how}   {form}"
        for report in found
        if report.op not in opinfo.REASONS
        for form, how in report.disagrees
    ]
    assert not wrong, "\n".join(wrong)


def unexplained(dtype: str, some: tuple[Any, ...], limit: int) -> list[str]:
    """Return how ops differ from PyTorch in a dtype, or refuse what it takes, where no reason is given."""
    wrong = []
    for report in opinfo.examine_all(some, limit, dtype):
        if report.op not in opinfo.REASONS and report.op not in KNOWN[dtype]:
            wrong += [f"{report.op}: {how}   {form}" for form, how in report.disagrees if not how.startswith(PROMOTION)]
            refused = ((why, forms) for why, forms in report.unsupported.items() if "argument of type" not in why)
            wrong += [f"{report.op} refuses: {why}   {forms[0]}" for why, forms in refused]
    return wrong


@pytest.mark.parametrize("dtype", KNOWN)
def test_some_ops_in_other_dtypes(dtype: str, single_threaded_torch: None) -> None:
    first = list(KNOWN).index(dtype)
    some = infos()[first :: 5 * len(KNOWN)] if dtype != "complex128" else infos()[first::5]
    wrong = unexplained(dtype, some, limit=2)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", KNOWN)
def test_all_ops_in_other_dtypes(dtype: str, single_threaded_torch: None) -> None:
    wrong = unexplained(dtype, infos(), limit=SAMPLES)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", KNOWN)
def test_no_reason_of_other_dtypes_is_idle(dtype: str, single_threaded_torch: None) -> None:
    """What has a reason differs or is refused; of an op that is mended the reason has to go."""
    some = [info for info in infos() if opinfo.title(info) in KNOWN[dtype]]
    needed = {
        report.op
        for report in opinfo.examine_all(some, SAMPLES, dtype)
        if [how for _, how in report.disagrees if not how.startswith(PROMOTION)]
        or [why for why in report.unsupported if "argument of type" not in why]
    }
    assert needed == set(KNOWN[dtype])


@pytest.mark.parametrize("op", opinfo.REASONS)
def test_reasons_are_still_needed(op: str, single_threaded_torch: None) -> None:
    reports = [opinfo.examine(info) for info in infos() if opinfo.title(info) == op]
    assert reports, f"no such op: {op}"
    assert all(report is not None and report.disagrees for report in reports)


def test_the_harness_sees_wrong_values_gradients_shapes_and_missing_gradients() -> None:
    (tanh,) = (info for info in infos() if info.name == "tanh")
    sample = next(s for s in opinfo.samples_of(tanh, 20) if s.input.numel() > 1)
    import glassgrad as gg

    assert opinfo.compare(gg.tanh, tanh, sample).kind == "agrees"
    planted = {
        "value": lambda x: gg.tanh(x) * 1.000001,
        "gradient of argument 0": lambda x: gg.tanh(x).detach() + 0.5 * (x - x.detach()),
        "has a gradient, ours has none": lambda x: gg.tanh(x).detach(),
        "shape": lambda x: gg.tanh(x)[None],
        "dtype": lambda x: gg.tanh(x) > 0,
    }
    for said, function in planted.items():
        outcome = opinfo.compare(function, tanh, sample)
        assert outcome.kind == "disagrees", said
        assert said in outcome.why

    def refuses(x: Any) -> Any:
        raise TypeError("not this one")

    assert opinfo.compare(refuses, tanh, sample).kind == "unsupported"


def everything() -> dict[str, Any]:
    return {entry["op"]: entry for entry in json.loads(opinfo.FILE.read_text(encoding="utf-8"))}


def stored() -> dict[str, Any]:
    """Return the entries of ops that are here."""
    return {op: entry for op, entry in everything().items() if entry["verdict"] != "lacking"}


def test_what_lacks_has_a_reason() -> None:
    absent = {opinfo.title(info) for info in opinfo.op_infos() if opinfo.ours(info) is None}
    assert absent == set(LACKING)
    assert {op: entry["reason"] for op, entry in everything().items() if entry["verdict"] == "lacking"} == LACKING


def test_the_file_of_the_docs_lists_the_ops_there_are() -> None:
    there_are = {opinfo.title(info): opinfo.ours(info) for info in infos() if torch.float64 in info.dtypes}
    written = stored()
    differ = set(written) ^ set(there_are)
    assert not differ, f"run python -m tests.ops.opinfo --write: {sorted(differ)}"
    renamed = {op for op, found in there_are.items() if found is None or found[0] != written[op]["ours"]}
    assert not renamed, f"run python -m tests.ops.opinfo --write: {sorted(renamed)}"
    disagreeing = {op for op, entry in written.items() if entry["verdict"] == "disagrees"}
    assert disagreeing == set(opinfo.REASONS)
    counted = (entry[kind] for entry in written.values() for kind in ("agrees", "shapes"))
    assert all(isinstance(count, int) for count in counted)


def test_what_the_file_of_the_docs_calls_unsupported_still_is(single_threaded_torch: None) -> None:
    written = {op: entry for op, entry in stored().items() if entry["unsupported"]}
    assert 1 <= len(written) < 20  # else this test would take long, and the table would be a poor one
    for info in infos():
        entry = written.get(opinfo.title(info))
        if entry is not None:
            report = opinfo.examine(info)
            assert report is not None
            counts = {why: item["count"] for why, item in entry["unsupported"].items()}
            assert report.not_supported == counts, f"run python -m tests.ops.opinfo --write: {report.op}"
