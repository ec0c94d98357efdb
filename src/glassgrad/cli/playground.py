"""`glassgrad playground`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def playground(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.py", help="A program to open; it is written when you save it.")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Where to serve it (default: a free port).")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    example: Annotated[
        str, typer.Option("--example", metavar="NAME", help="Begin with an example, as lesson-07.", show_default=False)
    ] = "",
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE.html", help="Write a page that shows the results, and serve nothing."),
    ] = None,
) -> int:
    """Write a program in the browser, and see its values, gradients, graph and machine code while you type.

    Only this machine can open the page. Programs run in a process with limits of time and memory.
    """
    from glassgrad import errors

    if file is not None and example:
        raise errors.OPTIONS_EXCLUDE(first=str(file), second="--example", reason="both are the text to begin with")
    if export is not None:
        return _export(file, example, export)
    from glassgrad.lessons.playground.server import Server

    with Server(file, port, example) as server:
        print(
            f"{server.url}\nonly this machine can open it, and only with the whole address; Ctrl-C ends it", flush=True
        )
        if browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def _export(file: Path | None, example: str, path: Path) -> int:
    from glassgrad import errors
    from glassgrad.lessons.playground import gallery, saving
    from glassgrad.lessons.playground.runner import Runner

    if path.suffix != ".html":
        raise errors.PLAYGROUND_EXPORT(given=path.suffix.removeprefix("."))
    text = gallery.text_of(example) if example else saving.opened(file)
    with Runner(seconds=60.0) as runner:
        _, page = saving.exported(text, "html", runner)
    try:
        path.write_bytes(page)
    except OSError as error:
        raise errors.PLAYGROUND_FILE(path=path, reason=error.strerror or error) from None
    print(f"wrote {path}")
    return 0
