"""Build the documentation: every Markdown page under docs/, and the pages that are made from the code.

python docs/build.py [--out FOLDER] [--only PAGE ...] [--jobs N]

The folder is build/docs/html by default; open index.html there.

It needs no network once the packages of `pip install '.[docs]'` are there. A warning is an error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT), str(ROOT / "src")]


def build(out: Path, only: tuple[str, ...] = (), jobs: int = 1) -> list[str]:
    """Write the site to a folder, and return the names of its pages.

    Args:
        out: the folder; sources and what the engine keeps for the next build lie beside it.
        only: the pages wanted, by default all.
        jobs: how many processes write pages.

    Raises:
        SystemExit: the engine met an error or gave a warning.
    """
    from sitegen import playgrounds
    from sitegen.assemble import assemble
    from sphinx.cmd.build import build_main

    sources, kept, more = (out.with_name(f"{out.name}-{what}") for what in ("sources", "kept", "more"))
    pages = assemble(sources, only)
    guides = [path.read_text(encoding="utf-8") for name in pages if (path := DOCS / f"{name}.md").is_file()]
    playgrounds.write(more, playgrounds.wanted(guides))
    options = ["-b", "html", "-W", "--keep-going", "-q", "-j", str(jobs), "-c", str(DOCS), "-d", str(kept)]
    options += ["-D", f"html_extra_path={more}"]
    if build_main([*options, str(sources), str(out)]):
        raise SystemExit("the documentation has mistakes: see above")
    return pages


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs" / "html")
    parser.add_argument("--only", nargs="*", default=(), metavar="PAGE", help="such as training or api/glassgrad.optim")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    written = build(given.out.resolve(), tuple(given.only), given.jobs)
    print(f"{len(written)} pages in {given.out}; begin with {given.out / 'index.html'}")


if __name__ == "__main__":
    main()
