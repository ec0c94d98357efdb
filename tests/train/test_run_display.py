"""The display of a run: in a terminal of any width, in a pipe, and without a reader."""

from __future__ import annotations

import io
import os
import re

import pytest
from rich.cells import cell_len

from glassgrad.train.show import choose_display
from glassgrad.train.show.display import PlainDisplay
from glassgrad.train.show.live import LiveDisplay, TerminalConsole
from glassgrad.train.show.progress import History, Progress, Speedometer, duration, sparkline, speed

NOW = Progress(45_231, 200_000, 2.15431, 2.18012, 6_512.3, [3.0, 2.5, 2.3, 2.2, 2.15])
BEGIN = Progress(0, 200_000, None, None, None)
END = Progress(200_000, 200_000, 2.1, 2.11, 6_512.3, [3.0] * 200)


def frame_lines(progress: Progress, width: int, **console: object) -> list[str]:
    output = io.StringIO()
    display = LiveDisplay(output, console=TerminalConsole(file=output, force_terminal=True, width=width, **console))
    display.console.print(display._frame(progress))
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in output.getvalue().splitlines()]


@pytest.mark.parametrize("progress", [BEGIN, NOW, END], ids=["begin", "middle", "end"])
@pytest.mark.parametrize("width", [2, 5, 10, 25, 31, 32, 33, 40, 60, 65, 66, 67, 80, 120, 200])
def test_two_lines_fit_into_any_width(progress: Progress, width: int) -> None:
    lines = frame_lines(progress, width)
    assert len(lines) == 2
    # Room for the ^C that a terminal writes where the cursor is; wrapped, it would leave a line behind.
    assert all(cell_len(line) <= max(width - 3, 1) for line in lines)


def test_a_wide_terminal_shows_everything() -> None:
    text = " ".join(frame_lines(NOW, 80))
    for part in ("45,231 / 200,000", "23%", "0:24 left", "loss 2.1543", "validation 2.1801", "6,512 steps/s", "█"):
        assert part in text


def test_a_narrow_terminal_shows_what_matters() -> None:
    text = " ".join(frame_lines(NOW, 40))
    for part in ("23%", "0:24 left", "loss 2.1543", "6,512 steps/s"):
        assert part in text
    assert "loss 2.1543" in " ".join(frame_lines(NOW, 15))


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    def colours() -> bool:
        output = io.StringIO()
        console = TerminalConsole(file=output, force_terminal=True, width=80, color_system="truecolor")
        display = LiveDisplay(output, console=console)
        display.console.print(display._frame(NOW))
        return re.search(r"\x1b\[[0-9;]*3[0-7]m", output.getvalue()) is not None

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colours()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours()


def test_an_old_terminal_gets_plain_characters() -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    display = LiveDisplay(output, console=TerminalConsole(file=output, force_terminal=True, width=80))
    display.start(NOW)
    display.update(NOW)
    display.stop()
    output.flush()


def test_the_cursor_comes_back() -> None:
    output = io.StringIO()
    display = LiveDisplay(output, console=TerminalConsole(file=output, force_terminal=True, width=80))
    display.start(NOW)
    display.stop()
    display.stop()
    assert output.getvalue().rindex("\x1b[?25h") > output.getvalue().rindex("\x1b[?25l")


def test_a_pipe_gets_lines_without_control_characters() -> None:
    output = io.StringIO()
    display = choose_display(output=output)
    assert isinstance(display, PlainDisplay)
    display.start(BEGIN)
    display.update(NOW)
    display.milestone(NOW)
    display.stop()
    assert output.getvalue() == (
        "step  45,231 / 200,000   loss 2.1543   validation 2.1801   6,512 steps/s   0:24 left\n"
    )


def test_a_dumb_terminal_gets_lines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_display(output=Terminal()), PlainDisplay)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert isinstance(choose_display(output=Terminal()), LiveDisplay)


@pytest.mark.parametrize("live", [False, True], ids=["plain", "live"])
def test_a_closed_output_is_told_once_and_then_left_alone(live: bool) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    closed = []
    with open(writer, "w", encoding="utf-8") as output:  # noqa: PTH123 - a descriptor, not a path
        if live:
            console = TerminalConsole(file=output, force_terminal=True, width=80)
            display = LiveDisplay(output, lambda: closed.append(1), console=console)
        else:
            display = PlainDisplay(output, lambda: closed.append(1))
        display.start(NOW)
        for _ in range(3):
            display.milestone(NOW)
            display.say("words")
        display.stop()
    assert closed == [1]


def test_speed_is_that_of_the_last_seconds() -> None:
    meter = Speedometer()
    assert meter.mark(0.0, 0) is None
    assert meter.mark(1.0, 100) == pytest.approx(100)
    for second in range(2, 30):
        speed_now = meter.mark(float(second), 100 + 1_000 * (second - 1))
    assert speed_now == pytest.approx(1_000)


def test_history_keeps_the_course_in_few_points() -> None:
    history = History([float(value) for value in range(100_000)])
    assert 100 < len(history.points) <= 256
    assert history.points == sorted(history.points)
    assert history.points[0] < 1_000
    assert history.points[-1] > 98_000


def test_sparkline() -> None:
    assert sparkline([8, 4, 2, 1], 4) == "█▆▃▁"
    assert sparkline([5, 5, 5], 10) == "▁▁▁"
    assert sparkline([], 10) == sparkline([1.0], 0) == ""
    assert len(sparkline(list(range(1, 1000)), 37)) == 37
    assert len(sparkline([-1.0, 0.0, 1.0], 3)) == 3


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3_599, "59:59"), (3_600, "1:00:00"), (360_000, "100:00:00")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_speeds() -> None:
    assert (speed(None), speed(0.123), speed(12_345.6)) == ("- steps/s", "0.1 steps/s", "12,346 steps/s")
