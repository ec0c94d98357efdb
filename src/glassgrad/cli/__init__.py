"""The command `glassgrad`. This file turns every outcome of a command into output and an exit code.

Exit codes: 0 done, 1 a run failed, 2 the input cannot be used, 128 + n stopped by signal n (130 for Ctrl-C). `app.py`
lists the commands, one file each; `options.py` makes options from a configuration; `launching.py` and `rank.py` run
several processes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

__all__ = ["main", "run"]


def main() -> None:
    """Run the command line and exit."""
    code = 128 + signal.SIGINT
    try:
        code = run(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # finished: ignore another Ctrl-C during exit
    except KeyboardInterrupt:  # another one, while the first was being reported
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command line with arguments and return its exit code; expected errors are one line on stderr.

    Example:
        >>> run(["--version"])
        glassgrad ...
        0
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character must not end a run
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt:
        return _complain("interrupted", 128 + signal.SIGINT)
    except BrokenPipeError:
        # The reader of the pipe is gone; Python would complain at exit about the buffered output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except MemoryError:
        return _complain("error: not enough memory for these sizes", 1)


def _dispatch(arguments: Sequence[str]) -> int:
    from glassgrad.errors import GlassgradError, InputError, OtherRankError
    from glassgrad.errors.packages import needed

    try:
        with needed("typer", "the command glassgrad"):
            from glassgrad.cli.app import command
        chosen = command(arguments[0] if arguments else "")
        code = chosen.main(list(arguments), prog_name="glassgrad", standalone_mode=False)
    except OtherRankError:
        return 1  # rank 0 says it
    except InputError as error:
        return _complain(f"error: {error}", 2)
    except GlassgradError as error:
        return _complain(f"error: {error}", 1)
    except Exception as error:
        # Parser errors come from typer or from click, depending on the version; both have these two attributes.
        if not (hasattr(error, "format_message") and hasattr(error, "exit_code")):
            raise
        message = " ".join(str(error.format_message()).split()).rstrip(".")
        for theirs, ours in _WORDING.items():
            message = message.replace(theirs, ours)
        if not message:  # a command group without a command: its help was shown
            return int(error.exit_code)
        return _complain(f"error: {message[0].lower()}{message[1:]}{_commands(error, message)}", int(error.exit_code))
    return code if isinstance(code, int) else 0


def _commands(error: Exception, message: str) -> str:
    """Name the commands there are, where an unknown one resembles none of them."""
    context = getattr(error, "ctx", None)
    if context is None or not message.startswith("No such command") or "Did you mean" in message:
        return ""
    return f"; there are {', '.join(context.command.list_commands(context))}"


# Messages of the parser, and the words that replace them after "invalid value for '--to': ".
_WORDING = {": Value error, ": ": ", ": Input should be ": ": it has to be "}


def _complain(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code
