"""`glassgrad lesson` and `glassgrad exercise`."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassgrad import errors

if TYPE_CHECKING:
    from glassgrad.lessons.exercise import Exercise
    from glassgrad.lessons.program import Cell, Program


def _known(incomplete: str) -> list[tuple[str, str]]:
    from glassgrad.lessons import programs

    return [(str(one.number), one.title) for one in programs() if str(one.number).startswith(incomplete)]


Number = Annotated[
    str | None,
    typer.Argument(
        metavar="NUMBER|WORD", help="Its number, or a word of its title.", autocompletion=_known, show_default=False
    ),
]


def lesson(
    which: Number = None,
    run: Annotated[bool, typer.Option("--run", help="Run the program of the lesson.")] = False,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="With --run: keep its figures there, as SVG.")
    ] = None,
    notebook: Annotated[
        Path | None, typer.Option("--notebook", metavar="FILE", help="Write the lesson as a notebook.")
    ] = None,
    pager: Annotated[bool, typer.Option("--pager/--no-pager", help="Page through it on a terminal.")] = True,
    quiz: Annotated[bool, typer.Option("--quiz", help="Ask questions about it, or about all lessons.")] = False,
    count: Annotated[
        int | None,
        typer.Option("--count", min=1, help="With --quiz: how many questions, at most all (default: 10)."),
    ] = None,
) -> int:
    """List the lessons on backpropagation, show one of them, or ask questions about them."""
    from glassgrad.lessons import programs
    from glassgrad.lessons.showing import listed, markdown, plain

    if quiz:
        for name, given in {"--run": run, "--figures": figures, "--notebook": notebook}.items():
            if given:
                raise errors.OPTIONS_EXCLUDE(first="--quiz", second=name, reason="a quiz shows no lesson")
        number = None if which is None else _found(which, programs(), errors.LESSON_UNKNOWN).number
        return _quiz(number, 10 if count is None else count)
    if count is not None:
        raise errors.QUIZ_COUNT(given=count)
    _as_notebook(notebook)
    if which is None:
        _without_a_number("lesson", {"--run": run, "--figures": figures, "--notebook": notebook})
        print(listed(programs()), end="")
        print("\nglassgrad lesson NUMBER shows one; glassgrad exercise lists the exercises;")
        print("glassgrad lesson --quiz asks what you remember.")
        return 0
    program = _found(which, programs(), errors.LESSON_UNKNOWN)
    if notebook is not None:
        from glassgrad.lessons.writing import lesson_notebook, write

        write(notebook, lesson_notebook(program))
        print(f"wrote {notebook}")
    if run or figures is not None:
        return _run(program, figures)
    if notebook is None:
        command = f"glassgrad lesson {program.number}"
        more = f"{command} --run              runs it\n{command} --notebook FILE    makes it a notebook\n"
        if any(one.number == program.number for one in programs("starters")):
            more += f"glassgrad exercise {program.number}{' ' * 18}writes the exercise to it\n"
        _show(f"{markdown(program)}\n---\n```text\n{more}```\n", f"{plain(program)}\n{more}", pager)
    return 0


def exercise(
    which: Number = None,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The file with your work (default: exercise_NN.py).")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the file step by step; write nothing.")] = False,
    notebook: Annotated[
        Path | None, typer.Option("--notebook", metavar="FILE", help="Write, or check, a notebook instead.")
    ] = None,
    answer: Annotated[
        str | None, typer.Option("--answer", metavar="STEP", help="Show where the lesson works out a step.")
    ] = None,
) -> int:
    """Write a file with gaps to fill in, and judge what you filled in with --check.

    The exit status of --check is 0 if all steps are right, and 1 otherwise.
    """
    from glassgrad.lessons.exercise import exercises

    every = exercises()
    _as_notebook(notebook)
    if which is None:
        from glassgrad.lessons.showing import listed

        _without_a_number("exercise", {"--check": check, "--notebook": notebook, "--answer": answer})
        steps = {one.number: len(one.steps) for one in every}
        print(listed([one.starter for one in every], lambda one: f"  ({_steps(steps[one.number])})"), end="")
        print("\nglassgrad exercise NUMBER writes one; glassgrad exercise NUMBER --check judges it.")
        return 0
    program = _found(which, [one.starter for one in every], errors.EXERCISE_UNKNOWN)
    chosen = next(one for one in every if one.starter is program)
    from glassgrad.lessons.writing import exercise_text, file_of, named, write

    if answer is not None:
        return _answer(chosen, answer)
    if notebook is not None and file is not None:
        raise errors.OPTIONS_EXCLUDE(first=str(file), second="--notebook", reason="both name the file with your work")
    path = notebook or file or file_of(chosen)
    if check:
        return _check(chosen, path)
    write(path, exercise_text(chosen, path))
    ask = "fill in every `...`" if chosen.starter.has_gaps else "correct the mistakes"
    print(f"wrote {path}, with {_steps(len(chosen.steps))}: {ask}, then")
    print(f"glassgrad exercise {chosen.number} --check{named(chosen, path)}")
    return 0


def _as_notebook(path: Path | None) -> None:
    if path is not None and path.suffix != ".ipynb":
        raise errors.NOTEBOOK_NAME(path=path)


def _without_a_number(what: str, options: dict[str, object]) -> None:
    """Raise for options that need the number of a lesson or exercise if none is given."""
    for option, value in options.items():
        if value:
            raise errors.LESSON_WHICH(option=option, what=what)


def _quiz(number: int | None, count: int) -> int:
    import random

    from glassgrad.lessons.quiz import ask, chosen
    from glassgrad.lessons.showing import width

    def read(prompt: str) -> str | None:
        print(prompt, end="", flush=True)
        line = sys.stdin.readline()
        if not line or not sys.stdin.isatty():  # a pipe does not show typed lines
            print(line.rstrip("\n"))
        return line or None

    rng = random.Random()
    questions = chosen(number, count, rng)
    print(f"\n{ask(questions, read, lambda text: print(text, end=''), rng, width())}")
    return 0


def _steps(count: int) -> str:
    return "one step" if count == 1 else f"{count} steps"


def _found(which: str, known: list[Program], unknown: errors.kinds.Message) -> Program:
    lines = "\n".join(f"{one.number:>3}  {one.title}" for one in known)
    if which.isdecimal():
        found = [one for one in known if one.number == int(which)]
    else:
        found = [one for one in known if which.lower() in f"{one.title} {one.path.stem.replace('_', ' ')}".lower()]
    if not found:
        raise unknown(given=which, known=lines)
    if len(found) > 1:
        several = "\n".join(f"{one.number:>3}  {one.title}" for one in found)
        raise errors.LESSON_SEVERAL(given=which, known=several)
    return found[0]


def _show(rich_text: str, plain_text: str, pager: bool = True) -> None:
    """Print text: in colours and page by page on a terminal, plainly elsewhere."""
    if not sys.stdout.isatty():
        print(plain_text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    theme = Theme({"markdown.code": "bold cyan"})  # without a background, which suits dark terminals only
    console = Console(width=min(Console().width, 110), theme=theme)
    body = Markdown(rich_text, code_theme="ansi_dark")
    if not pager:
        console.print(body)
        return
    os.environ.setdefault("LESS", "-RFX")  # colours; no pager for what fits; the text stays when it ends
    with console.pager(styles=True):
        console.print(body)


def _run(program: Program, figures: Path | None) -> int:
    from glassgrad.lessons.program import PROSE
    from glassgrad.lessons.running import running

    if figures is not None:
        os.environ["LESSON_FIGURES"] = str(figures)
    for cell in running(program):
        headings = [line for line in cell.text.splitlines() if cell.kind == PROSE and line.startswith("## ")]
        print("".join(f"\n{line}\n" for line in headings), end="", flush=True)
    if figures is None and "figure(" in program.text:
        print(f"\n(It draws figures too: glassgrad lesson {program.number} --run --figures FOLDER keeps them.)")
    return 0


def _check(chosen: Exercise, path: Path) -> int:
    from glassgrad.lessons.checking import LIMIT, RIGHT, LoadError, load
    from glassgrad.lessons.limits import Watchdog, memory_limited
    from glassgrad.lessons.showing import judged
    from glassgrad.lessons.writing import named

    if not path.is_file():
        raise errors.EXERCISE_NO_FILE(path=path, number=chosen.number, named=named(chosen, path))

    def ended(reason: str, line: int | None) -> None:
        what = "takes too much memory" if reason == "memory" else "does not come to an end"
        if line is not None:
            print(f"  ERROR  line {line}: {linecache.getline(str(path), line).strip()}")
        print(f"This call {what}, and cannot be stopped alone: the check ends here.", flush=True)
        os._exit(1)

    watchdog = Watchdog(ended, str(path), 2 * LIMIT, hard=True)

    def write(text: str) -> None:
        print(text, end="", flush=True)
        watchdog.reset()

    watchdog.reset()
    try:
        with memory_limited():
            outcomes = judged(chosen, load(path), write)
    except LoadError as error:
        print(f"{path} cannot be run:\n{error}")
        return 1
    finally:
        watchdog.stop()
    return 0 if all(outcome.state == RIGHT for outcome in outcomes) else 1


def _answer(chosen: Exercise, name: str) -> int:
    from glassgrad.lessons import programs
    from glassgrad.lessons.showing import markdown, plain

    step = next((step for step in chosen.steps if step.name == name), None)
    if step is None:
        known = "\n".join(f"  {one.name}" for one in chosen.steps)
        raise errors.EXERCISE_STEP(number=chosen.number, given=name, known=known)
    (program,) = (one for one in programs() if one.number == chosen.number)
    cells: list[Cell] = program.section(step.section)
    print(f'{step.name}: lesson {chosen.number}, "{step.section}"\n')
    _show(markdown(program, cells), plain(program, cells), pager=False)
    return 0
