"""The harness times only equal computations, and states the reason for every other peer."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import harness, isa, machine, op_cases, ops, picture, quiet, results, worker
from benchmarks.harness import Outcome
from benchmarks.limits import Limits, copying_rate
from benchmarks.workload import Bar, FirstStep, Workload
from benchmarks.workloads import WORKLOADS
from glassgrad.ops.core import Elementwise
from glassgrad.ops.samples import reals

MODES = ("good", "twin", "wrong", "slow", "missing", "unwritten", "ours", "nan", "dies", "breaks", "stores")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    workload = Workload(
        key="toy",
        title="toy",
        package="tests.repo",
        peers={mode: f"bench_peers:{mode}" for mode in MODES},
        reference="good",
        check_steps=4,
        tolerance=1e-6,
        seconds=0.01,
    )
    return {outcome.name: outcome for outcome in harness.run(workload, rounds=3)}


def test_agreeing_peers_are_timed_every_round(outcomes: dict[str, Outcome]) -> None:
    for name in ("good", "twin", "slow"):
        assert len(outcomes[name].rounds) == 3
        assert outcomes[name].trouble == ""
        assert outcomes[name].first_step > 0
        assert outcomes[name].megabytes > 5
    assert outcomes["good"].losses == [pytest.approx(9 * 0.64**step) for step in range(1, 5)]
    assert outcomes["slow"].best > 0.002 > outcomes["good"].median


def test_what_a_peer_stores_spares_its_second_process_the_time(outcomes: dict[str, Outcome]) -> None:
    stores = outcomes["stores"]
    assert stores.first_step > stores.compiling >= 0.3 > stores.compiled > 0
    assert math.isnan(outcomes["good"].compiled)
    assert "in a second process" in results.compile_line(stores)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wrong", "disagrees: loss"),
        ("nan", "disagrees: loss nan at step 1"),
        ("missing", "missing: torch.nothing is not installed"),
        ("unwritten", "missing: glassgrad has no 'no_such_part' in this version"),
        ("ours", "No module named 'glassgrad.nothing'"),
        ("dies", "ended with status 3"),
        ("breaks", "broke while it was timed"),
    ],
)
def test_others_are_not_timed_and_say_why(outcomes: dict[str, Outcome], name: str, reason: str) -> None:
    assert outcomes[name].rounds == []
    assert reason in outcomes[name].trouble
    assert math.isnan(outcomes[name].median)


def test_the_table_sorts_and_lists_troubles(outcomes: dict[str, Outcome]) -> None:
    table = results.outcome_table(list(outcomes.values()))
    lines = table.splitlines()
    assert lines[5].startswith("| slow")
    assert "- missing: missing: torch.nothing is not installed" in lines
    assert sum(line.startswith("|") for line in lines) == 2 + 4


def outcome(name: str, seconds: float, others: float = 0.0) -> Outcome:
    return Outcome(name, rounds=[seconds, seconds * 2, seconds * 0.5], others=others)


def test_peers_are_named_by_parts_of_their_names() -> None:
    peers = ["PyTorch eager", "torch.compile", "JAX jit", "glassgrad eager", "glassgrad compiled"]
    assert harness.matching(["jax", "torch.compile"], peers) == ["torch.compile", "JAX jit"]
    assert harness.matching(["glassgrad"], peers) == ["glassgrad eager", "glassgrad compiled"]
    assert harness.matching(["eager"], [*peers, "eager"]) == ["eager"]
    with pytest.raises(ValueError, match="no peer is called 'tensorflow'; there are PyTorch eager,"):
        harness.matching(["tensorflow"], peers)


def test_what_the_shell_says_of_threads_reaches_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside others on all cores it would run on one, and nobody would see it in the table."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for threads, expected in ((None, None), (2, "2")):
        peer = harness.Peer("bench_peers", "good", threads)
        try:
            environment = Path(f"/proc/{peer.process.pid}/environ")
            if not environment.exists():
                pytest.skip("this system does not show the environment of a process")
            found = dict(line.split("=", 1) for line in environment.read_text().split("\0") if "=" in line)
            assert found.get("OMP_NUM_THREADS") == expected
        finally:
            peer.close()


def test_when_the_time_is_up_one_round_is_timed_and_no_peer_waited_for() -> None:
    peers = {mode: f"bench_peers:{mode}" for mode in ("good", "twin")}
    workload = Workload("toy", "toy", "tests.repo", peers, "good", check_steps=2, seconds=0.01)
    running, outcomes = harness.start(workload, ["good"], None, Path(), time.monotonic() - 1)
    assert not running
    assert outcomes["good"].trouble == "no answer within 0 s"
    running, outcomes = harness.start(workload, ["twin"], None, Path())
    try:
        harness.time_in_turn(running, outcomes, 0.01, 5, time.monotonic())
        assert len(outcomes["twin"].rounds) == 1
    finally:
        running["twin"].close()


def test_bars_are_judged_by_medians_against_the_fastest_peer() -> None:
    measured = [outcome("ours", 2.0), outcome("a", 4.0), outcome("b", 8.0)]
    assert results.judge(Bar("ours", ("a", "b"), 0.5), measured).endswith("0.5, met")
    assert results.judge(Bar("ours", ("a", "b"), 0.4), measured).endswith("0.5, missed")
    assert results.judge(Bar("ours", ("c",), 0.4), measured).endswith("not measured")
    assert results.judge(Bar("ours", ("a", "b", "c"), 0.6), measured).endswith("0.5, met by what ran; c not measured")
    assert results.judge(Bar("absent", ("a",), 0.4), measured).endswith("not measured")


def test_a_first_step_has_a_bar_of_its_own() -> None:
    first = outcome("ours", 2.0)
    assert results.judge(FirstStep("ours", 3.0), [first]).endswith("not measured")
    first.compiling = 2.5
    assert results.judge(FirstStep("ours", 3.0), [first]) == "- first step of ours at most 3 s: 2.5, met"
    assert results.judge(FirstStep("ours", 2.0), [first]).endswith("2.5, missed")


def test_a_bar_may_differ_where_avx2_is_the_widest() -> None:
    measured, bar = [outcome("ours", 3.5), outcome("a", 10.0)], Bar("ours", ("a",), 0.3, narrow=0.4)
    assert results.judge(bar, measured, "AMD EPYC Zen 4").endswith("0.35, missed")
    assert results.judge(bar, measured, "AMD EPYC Zen 4 held to AVX2").endswith("0.35, met")
    assert str(bar) == "ours at most 0.3 (0.4 with AVX2) of a"


class WithCheck:
    """A peer whose losses are compared by another training than the one that is timed."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, count: int) -> float:
        self.asked.append("timed")
        return 1.0

    def check(self, count: int) -> float:
        self.asked.append("checked")
        return 2.0


def test_a_peer_with_a_check_is_compared_by_it_and_timed_without() -> None:
    run = WithCheck()
    assert worker.answer(run, {"do": "losses", "count": 3})["losses"] == [2.0, 2.0, 2.0]
    assert run.asked == ["timed", "checked", "checked", "checked"]
    assert worker.timed(run, 1)["loss"] == 1.0


def test_a_busy_machine_judges_nothing() -> None:
    measured = [outcome("ours", 2.0), outcome("a", 4.0, others=0.9)]
    assert results.judge(Bar("ours", ("a",), 0.9), measured).endswith("busy")
    assert quiet.verdict(0.9).startswith(quiet.MARK)
    assert quiet.verdict(0.01) == quiet.verdict(math.nan) == ""


def test_the_watch_sees_another_process_at_work() -> None:
    if not quiet.STAT.exists():
        pytest.skip("this system does not say how busy it is")
    program = "import time\nend = time.perf_counter() + 1.0\nwhile time.perf_counter() < end: pass"
    with subprocess.Popen([sys.executable, "-c", program]) as other:
        blind, informed, before = quiet.Watch([]), quiet.Watch([other.pid]), quiet.process_seconds(other.pid)
        time.sleep(0.6)
        seen, known = blind.others(), informed.others()
        given = quiet.process_seconds(other.pid) - before  # on a busy machine less than the time that passed
    assert given > 0
    assert seen - known > given / 2


def test_the_limit_of_a_step_is_what_takes_longer_at_the_rate_of_the_nearest_memory_it_fits() -> None:
    limits = Limits(flops=100e9, bandwidths=((1_000, 200e9), (1_000_000, 50e9), (10**9, 10e9)))
    assert limits.seconds(flops=50e9, moved=1e9) == 0.5, "copying takes 0.1 s meanwhile"
    assert limits.seconds(flops=0, moved=500) == 500 / 200e9
    assert limits.seconds(flops=0, moved=1_000_000) == 2e-5
    assert limits.seconds(flops=0, moved=5e9) == 0.5, "beyond the largest size, memory's rate"
    assert limits.text(1_000_000) == "100 GFLOP/s in float32 matrix products or 50 GB/s copying so much"


def test_copying_is_measured_in_bytes_a_second() -> None:
    rate = copying_rate(1 << 20)
    assert 1e8 < rate < 1e13


def test_a_section_is_replaced_in_place_and_other_processors_stay(tmp_path) -> None:
    path = tmp_path / "RESULTS.md"
    results.write_section("one", "First", "old \\1 text", path, "Cray")
    results.write_section("one", "First", "of another", path, "Zuse")
    results.write_section("two", "Second", "stays", path, "Cray")
    path.write_text(path.read_text() + "\nwritten by hand\n")
    results.write_section("one", "First, anew", "new \\1 text", path, "Cray")
    text = path.read_text()
    assert "old" not in text
    parts = ["# Measured", "## First, anew", "### Cray", "new \\1 text", "### Zuse", "of another", "## Second", "stays"]
    places = [text.index(part) for part in [*parts, "written by hand"]]
    assert places == sorted(places)
    assert text.count("## First") == text.count("### Zuse") == 1


def test_bars_are_tabled_by_processor(tmp_path) -> None:
    for processor, ours in (("Cray", 1.0), ("Zuse-3", 3.0)):
        (tmp_path / processor).mkdir()
        rounds = {"glassgrad compiled": [ours], "PyTorch eager": [2.0, 4.0, 3.0]}
        text = json.dumps({"title": "W5", "seconds_per_step": rounds})
        (tmp_path / processor / "w5.json").write_text(text)
    path = tmp_path / "RESULTS.md"
    results.write_bars(path, tmp_path)
    head, *rows = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    assert head.split("|")[2:4] == ["  Cray ", "     Zuse 3 "]
    (row,) = [row for row in rows if "glassgrad compiled" in row]
    assert [cell.strip() for cell in row.split("|")[2:4]] == ["0.333", "1 (missed)"]


def test_a_processor_is_named_without_what_all_names_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cpu_family", lambda: 0)
    for name, short in (
        ("Intel(R) Xeon(R) Processor", "Intel Xeon"),
        ("AMD EPYC 9R14 96-Core Processor", "AMD EPYC 9R14"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Intel Xeon Platinum 8481C"),
    ):
        monkeypatch.setattr(machine, "cpu_name", lambda name=name: name)
        monkeypatch.setattr(machine, "instructions", lambda: "AVX-512")
        assert machine.processor() == short
        monkeypatch.setattr(machine, "instructions", lambda: "AVX-512, AVX512-BF16, AMX")
        assert machine.processor() == f"{short} with AMX"


def test_processors_of_one_name_are_told_apart_by_their_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cpu_name", lambda: "AMD EPYC")
    monkeypatch.setattr(machine, "instructions", lambda: "AVX-512, AVX512-BF16")
    for family, name in ((25, "AMD EPYC Zen 4"), (26, "AMD EPYC Zen 5"), (99, "AMD EPYC")):
        monkeypatch.setattr(machine, "cpu_family", lambda family=family: family)
        assert machine.processor() == name


def test_processors_with_avx2_alone_and_those_held_to_it_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cpu_name", lambda: "AMD EPYC")
    monkeypatch.setattr(machine, "cpu_family", lambda: 25)
    named = {}
    for known in ("AVX2", "AVX-512, AVX512-BF16", "AVX-512, AMX"):
        monkeypatch.setattr(machine, "instructions", lambda known=known: known)
        monkeypatch.delenv(isa.HELD, raising=False)
        free = machine.processor()
        monkeypatch.setenv(isa.HELD, "avx2")
        named[free] = machine.processor()
    assert named == {
        "AMD EPYC Zen 3 with AVX2": "AMD EPYC Zen 3 with AVX2",
        "AMD EPYC Zen 4": "AMD EPYC Zen 4 held to AVX2",
        "AMD EPYC with AMX": "AMD EPYC with AMX held to AVX2",
    }
    bar = Bar("ours", ("theirs",), 0.3, narrow=0.4)
    assert [bar.limit_on(name) for pair in named.items() for name in pair] == [0.4, 0.4, 0.3, 0.4, 0.3, 0.4]
    assert Bar("ours", ("theirs",), 0.3).limit_on("AMD EPYC Zen 3 with AVX2") == 0.3


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.5 s"), (0.0123, "12.3 ms"), (0.000334, "334 µs"), (2.5e-7, "250 ns"), (math.nan, "–"), (120.0, "120 s")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert results.duration(seconds) == text


def test_fingerprints_tell_different_results_apart() -> None:
    assert ops.agree([[1.0, 10.0]], [[1.001, 10.0]])
    assert not ops.agree([[1.0, 10.0]], [[1.1, 10.0]])
    assert not ops.agree([[1.0, 10.0]], [[1.0, 10.0], [0.0, 0.0]])
    assert not ops.agree([[math.nan, 10.0]], [[math.nan, 10.0]])


def test_the_picture_is_drawn_from_recorded_numbers(tmp_path) -> None:
    assert picture.draw(tmp_path / "none.png", tmp_path) is None
    for processor in ("Cray", "Zuse-3"):
        (tmp_path / processor).mkdir()
        (tmp_path / processor / "w1.json").write_text(
            '{"title": "W1", "seconds_per_step": {"glassgrad eager": [1.0, 2.0, 9.0], "NumPy by hand": [4.0]}}'
        )
    medians = {"glassgrad eager": 2.0, "NumPy by hand": 4.0}
    assert results.recorded_medians(tmp_path) == {"w1": {"Cray": medians, "Zuse 3": medians}}
    drawn = picture.draw(tmp_path / "some.png", tmp_path)
    assert drawn is not None
    assert drawn.stat().st_size > 5_000


def test_a_peer_is_one_line_of_the_picture_with_a_mark_for_each_processor() -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    rows = {"Cray": {"glassgrad compiled": 1.0, "JAX jit": 3.0}, "Zuse": {"glassgrad compiled": 2.0, "JAX jit": 9.0}}
    picture.draw_panel(axes, "W1", rows, {"Cray": "o", "Zuse": "s"})
    assert [label.get_text() for label in axes.get_yticklabels()] == ["JAX jit", "glassgrad compiled"]
    assert [text.get_text() for text in axes.texts] == ["3 to 4.5", "1"]
    assert [float(mark.get_offsets()[0][0]) for mark in axes.collections] == [3.0, 4.5, 1.0, 1.0]
    assert picture.colour("torch.compile") == picture.colour("PyTorch eager") != picture.colour("JAX scan")
    assert axes.get_xlim()[1] == picture.COMMON


def test_every_bar_names_peers_that_exist() -> None:
    for workload in WORKLOADS.values():
        assert workload.reference in workload.peers
        for bar in workload.bars:
            assert {bar.ours, *bar.theirs} <= set(workload.peers)


def test_an_operation_without_a_case_gets_one_from_the_registry() -> None:
    registry = {
        "tanh": Elementwise.__new__(Elementwise),
        "brand_new": Elementwise.__new__(Elementwise),
        "flat": Elementwise.__new__(Elementwise),
    }
    for primitive, partials in zip(registry.values(), [(1,), (1, 2), (None,)], strict=True):
        primitive.samples, primitive.partials = (reals(0.5, 1), reals(2, 3))[: len(partials)], partials
    (case,) = op_cases.from_registry(registry)
    assert (case.name, case.expression, case.inputs) == ("brand_new", "m.brand_new(a, b)", 2)
    (first, second), _ = op_cases.draw(case, 1_000)
    assert first.shape == second.shape == (1_000,)
    assert 0.5 <= first.min() <= first.max() <= 1
    assert 2 <= second.min() <= second.max() <= 3


@pytest.mark.slow
def test_the_phases_of_a_step_are_printed_with_their_kernels() -> None:
    command = [sys.executable, "-m", "benchmarks.phases", "w1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count(" product ") == 6
    assert "on 1 threads" in done.stdout
    assert done.stdout.rstrip().endswith("µs in one call of the compiled function")
