"""The live display of a run in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import IO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from glassgrad.train.show.display import Display, silence
from glassgrad.train.show.progress import Progress, duration, number, sparkline, speed

_MARGIN = 4
_WIDE = 62
_NARROW = 28
_ASCII_LEVELS = "_.-=+*#@"


class TerminalConsole(Console):
    """A console that reports a closed output; rich's console would end the process without a checkpoint."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class LiveDisplay(Display):
    """Two lines that are redrawn in place: the progress of the run and its losses.

    Colours follow rich's rules, including `NO_COLOR`. The width is read again for every frame.
    """

    def __init__(
        self, output: IO[str], on_closed: Callable[[], None] = lambda: None, console: Console | None = None
    ) -> None:
        self.console = console or TerminalConsole(file=output, highlight=False)
        self._output = output
        self._on_closed = on_closed
        self._closed = False
        self._live: Live | None = None
        encoding = (getattr(output, "encoding", None) or "utf-8").lower()
        self._unicode = encoding.startswith("utf")

    def start(self, progress: Progress) -> None:
        # The loop decides when to draw: a refreshing thread would compete with training for the GIL.
        # A warning on a terminal appears above the display; warnings redirected to a file stay there.
        self._live = Live(
            self._frame(progress),
            console=self.console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=sys.stderr.isatty(),
        )
        self._guarded(self._live.start)

    def update(self, progress: Progress) -> None:
        live = self._live
        if live is not None:
            self._guarded(lambda: live.update(self._frame(progress), refresh=True))

    def milestone(self, progress: Progress) -> None:
        self.update(progress)

    def stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            self._guarded(live.stop)

    def say(self, text: str = "") -> None:
        self._guarded(lambda: self.console.print(text, markup=False, soft_wrap=True))

    def _guarded(self, draw: Callable[[], None]) -> None:
        if self._closed:
            return
        try:
            draw()
        except OSError:  # the terminal is gone
            self._closed = True
            silence(self._output)
            self._on_closed()

    def _frame(self, progress: Progress) -> Group:
        # Some terminals wrap after the last column, and most write ^C at the cursor: either would move the lines.
        width = max(self.console.width - _MARGIN, 1)
        if width >= _WIDE:
            lines = [self._steps(progress, width), self._losses(progress, width)]
        elif width >= _NARROW:
            lines = [self._short_steps(progress, width), self._short_losses(progress)]
        else:
            lines = [Text(f"{progress.fraction:4.0%} "), Text(f"loss {number(progress.loss)}", "bold")]
        for line in lines:
            line.no_wrap = True
            line.truncate(width)
        return Group(*lines)

    def _steps(self, progress: Progress, width: int) -> Text:
        left = f"step {progress.step:{len(f'{progress.steps:,}')},} / {progress.steps:,}  "
        right = f" {progress.fraction:4.0%}  {duration(progress.seconds_left):>7} left"
        bar = self._bar(progress.fraction, width - len(left) - len(right))
        return Text.assemble(left, bar, right)

    def _losses(self, progress: Progress, width: int) -> Text:
        text = Text.assemble(("loss ", "dim"), (number(progress.loss), "bold"))
        text.append(f"  {progress.held_out} ", "dim").append(progress.measured, "bold")
        right = f"{speed(progress.steps_per_second):>18}"
        room = width - len(text) - len(right) - 2
        levels = "▁▂▃▄▅▆▇█" if self._unicode else _ASCII_LEVELS
        line = sparkline(progress.history, min(room, 40), levels)
        text.append("  ").append(line, "cyan")
        return text.append(" " * (width - len(text) - len(right))).append(right, "dim")

    def _short_steps(self, progress: Progress, width: int) -> Text:
        right = f" {progress.fraction:4.0%} {duration(progress.seconds_left):>7} left"
        return Text.assemble(self._bar(progress.fraction, width - len(right)), right)

    def _short_losses(self, progress: Progress) -> Text:
        return Text.assemble(
            ("loss ", "dim"), (number(progress.loss), "bold"), (f"  {speed(progress.steps_per_second)}", "dim")
        )

    def _bar(self, fraction: float, width: int) -> Text:
        width = max(min(width, 60), 1)
        done = round(min(fraction, 1.0) * width)
        full, empty = ("━", "─") if self._unicode else ("#", ".")
        return Text.assemble((full * done, "green"), (empty * (width - done), "dim"))
