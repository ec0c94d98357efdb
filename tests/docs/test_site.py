"""The sources of the site: they include every public name and page, every link works, and a page can be built."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

import glassgrad as gg
from tests.repo.test_public_surface import MODULES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def sitegen() -> Iterator[SimpleNamespace]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        names = ("assemble", "docstrings", "playgrounds", "public_names", "reference", "spelling")
        yield SimpleNamespace(**{name: importlib.import_module(f"sitegen.{name}") for name in names})
    finally:
        sys.path.remove(str(ROOT / "docs"))


def test_every_public_name_has_an_entry(sitegen: SimpleNamespace) -> None:
    known = set(sitegen.reference.known().values())
    for module in MODULES:
        holder = importlib.import_module(module)
        wanted = {f"{module}.{name}" for name in sitegen.public_names.listed(holder)}
        assert {full for full in wanted - known if not _is_module(full)} == set(), module
    assert len(known) > 1500


def _is_module(full: str) -> bool:
    """Tell whether a name is a module, which has a page instead of an entry."""
    module, _, name = full.rpartition(".")
    return isinstance(getattr(importlib.import_module(module), name), type(sys))


def test_nearly_every_entry_leads_to_its_source(sitegen: SimpleNamespace) -> None:
    entries = [entry for page in sitegen.reference.pages() for entry in page.entries if callable(entry.value)]
    without = [entry.full for entry in entries if sitegen.public_names.place_of(entry) is None]
    written = [name for name in without if not name.startswith(("glassgrad.nn.", "glassgrad.optim."))]
    assert without == written, "each layer and each optimizer is written in a file"
    assert len(without) < len(entries) / 50
    place = sitegen.public_names.place_of(next(entry for entry in entries if entry.full == "glassgrad.exp"))
    assert place.file.name == "elementwise.py"
    assert place.file.read_text().splitlines()[place.line - 1].startswith("exp = ")


def test_signatures_say_what_the_stubs_say(sitegen: SimpleNamespace) -> None:
    write = sitegen.spelling.of_function
    assert write("exp", gg.exp) == ["(x: TensorOrArray) -> TensorOrArray"]
    assert len(write("max", gg.max)) > 3
    assert write("svd", gg.linalg.svd)[0].startswith("(x: TensorOrArray, full_matrices: bool = True) -> ")
    assert sitegen.spelling.of_class(gg.nn.Linear).startswith("(in_features: int, out_features: int, bias: bool = True")


def test_docstrings_become_markdown_without_accidental_markup(sitegen: SimpleNamespace) -> None:
    arguments = "Args:\n    a, b: `code_1` of\n        two lines."
    text = f"x_1 * y_2 <b>.\n\n{arguments}\n\nExample:\n    >>> 1\n    1\n\n    >>> 2\n    2"
    shown = sitegen.docstrings.to_markdown(text)
    assert shown == (
        "x\\_1 \\* y\\_2 \\<b\\>.\n\n**Arguments**\n\n`a`, `b`\n: `code_1` of two lines.\n\n"
        "**Example**\n\n```pycon\n>>> 1\n1\n\n>>> 2\n2\n```"
    )
    linked = sitegen.docstrings.to_markdown("See `SGD`.", sitegen.reference.link_from("glassgrad.optim"))
    assert linked == "See {py:obj}`SGD <glassgrad.optim.SGD>`."


# Why something that can be called has no example.
WITHOUT_EXAMPLES = {
    "what `Trainer` and the command line run, and what a callback is given; they have the examples": {
        "Loop", "RunState", "Task",
    },
    "what `watch` returns, which has the example": {"Watch"},
    "a type of Python's or a name of ours for one": {"memory_format"},
    "a part of the one page on backpropagation, whose lines are counted; docs/scalar.md runs it": {
        "Layer", "MLP", "Module", "Neuron", "Value", "Vector",
    },
}  # fmt: skip  # a table


# Modules whose functions say nothing in one line: their guides and those functions that begin a program have examples.
NOT_IN_ONE_PROCESS = {"glassgrad.distributed"}


def test_everything_that_can_be_called_has_an_example(sitegen: SimpleNamespace) -> None:
    """Modules can be called, too, where they stand for a function; errors are raised, and listed with their causes."""
    without = set()
    for page in sitegen.reference.pages():
        for entry in page.entries if page.module not in NOT_IN_ONE_PROCESS else ():
            plain = inspect.isclass(entry.value) or inspect.isroutine(entry.value)
            raised = inspect.isclass(entry.value) and issubclass(entry.value, Exception)
            if plain and not raised and ">>> " not in (inspect.getdoc(entry.value) or ""):
                without.add(entry.name)
    assert without == set().union(*WITHOUT_EXAMPLES.values())


def test_every_page_is_in_the_navigation_and_every_link_leads_somewhere(
    sitegen: SimpleNamespace, tmp_path: Path
) -> None:
    pages = sitegen.assemble.assemble(tmp_path)
    listed = [page for _, section in sitegen.assemble.navigation(set(pages)) for page in section]
    inside = ("adr/", "lessons/", "api/")
    assert sorted(listed) == sorted(
        name for name in pages if name != "index" and (not name.startswith(inside) or name in listed)
    )
    broken = []
    for page in tmp_path.rglob("*.md"):
        if page.parent.name == "api" and page.name != "index.md":
            continue  # made of directives, without links of their own
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        places = re.findall(r"\]\((?!\w+:)([^()\s#]+)", text)
        broken += [f"{page.name} -> {place}" for place in places if not (page.parent / place).resolve().is_file()]
    assert broken == []


def test_all_environment_variables_are_described() -> None:
    text = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    described = set(re.findall(r"`([A-Z][A-Z_]+)`", text))
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tools").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    found = {name for file in files for name in _variables(file.read_text(encoding="utf-8"))}
    assert {"GLASSGRAD_NATIVE", "XDG_CACHE_HOME", "GLASSGRAD_MNIST_MIRRORS"} <= found
    assert found - described == set()
    assert {name for name in described if name.startswith("GLASSGRAD_")} - found == {"GLASSGRAD_"}


def _variables(source: str) -> Iterator[str]:
    """Yield the variables that a file names: ours, and whatever it reads from the environment."""
    if "environ" not in source and "GLASSGRAD_" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and re.fullmatch(r"GLASSGRAD_[A-Z_]+", str(node.value)):
            yield str(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"os.environ.get", "os.getenv"}:
            yield from (str(one.value) for one in node.args[:1] if isinstance(one, ast.Constant))


@pytest.mark.parametrize("page", ["which_function.md", "index.md", "gallery.md"])
def test_the_names_that_a_page_recommends_exist(page: str) -> None:
    named = re.findall(r"`gg\.([\w.]+)", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert named or page == "index.md"
    for name in named:
        functools.reduce(getattr, name.split("."), gg)


MOST = 10
GUIDES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "lessons").glob("*.md")])


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_page_has_few_sentences_before_its_first_example(page: Path) -> None:
    """An example is code, a picture or a table."""
    before = re.split(r"^(?:```|>>> |!\[|\|)", page.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)
    assert len(before) == 2 or page.stem == "index", "no example at all"
    text = re.sub(r"`[^`]*`|^#.*$", "", before[0], flags=re.MULTILINE)
    assert len(re.findall(r"[.!?](?=\s|$)", text)) <= MOST
    assert len(text.split()) <= 20 * MOST


def build(out: Path, *only: str) -> None:
    command = [sys.executable, str(ROOT / "docs" / "build.py"), "--out", str(out), *(("--only", *only) if only else ())]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert process.returncode == 0, process.stdout + process.stderr


def test_a_part_of_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="the site is built with it")
    build(tmp_path / "html", "glossary")
    page = (tmp_path / "html" / "glossary.html").read_text(encoding="utf-8")
    assert 'class="theme-toggle' in page
    assert f"glassgrad {gg.__version__}" in page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("furo", reason="the site is built with it")
    out = tmp_path_factory.mktemp("site") / "html"
    build(out)
    return out


@pytest.mark.slow
def test_the_whole_site_builds_without_a_warning_or_a_broken_link(site: Path) -> None:
    ids: dict[Path, set[str]] = {}
    links: list[tuple[Path, str]] = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        ids[page.resolve()] = set(re.findall(r"""\bid=["']([^"']+)["']""", text))
        links += [(page, unescape(target)) for target in re.findall(r"""(?:href|src)=["']([^"']+)["']""", text)]
    broken = set()
    for page, target in links:
        place, _, anchor = target.partition("?")[0].partition("#")
        if re.match(r"\w+:", target):
            continue
        file = (page.parent / unquote(place)).resolve() if place else page.resolve()
        if not file.is_file() or (anchor and file in ids and anchor not in ids[file]):
            broken.add(f"{page.relative_to(site)} -> {target}")
    assert len(links) > 10_000
    assert sorted(broken) == []


def test_four_pages_embed_the_playground(sitegen: SimpleNamespace, tmp_path: Path) -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
    site = sitegen.assemble
    framed = {
        name: site.prepared(sitegen.playgrounds.embedded(name, text), site.origin(name), name, set(texts), {})
        for name, text in texts.items()
    }
    shown = {name: re.findall(r'<iframe[^>]* src="([^"]+)"', text) for name, text in framed.items()}
    places = {name: found for name, found in shown.items() if found}
    assert len(places) >= 4
    assert all("```{raw} html\n<iframe" in framed[name] for name in places)
    examples = sitegen.playgrounds.wanted(texts.values())
    led = {place.partition("#")[0] for found in places.values() for place in found}
    assert led == {f"playgrounds/{example}.html" for example in examples}
    sitegen.playgrounds.write(tmp_path, examples[-1:])
    page = (tmp_path / "playgrounds" / f"{examples[-1]}.html").read_text(encoding="utf-8")
    assert "connect-src" not in page
    assert "src=" not in page.partition("<body>")[0]
    assert 100_000 < len(page) < 2_000_000
    with pytest.raises(ValueError, match="no pane 'nothing'"):
        sitegen.playgrounds.wanted(["<!-- playground: xor nothing -->"])


# Axe takes minutes for their thousands of rows, which are alike.
LONG = {"ops", "messages", "api/glassgrad.tensor"}


@pytest.mark.slow
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_pages_in_a_browser(site: Path, size: str) -> None:
    """No page is wider than the window, complains, or asks for anything from elsewhere; axe finds nothing."""
    from tests.report import browsing

    if browsing.BROWSER is None:
        pytest.skip("no browser is installed (apt-get install chromium)")
    window = browsing.PHONE if size == "phone" else {"width": 1280, "height": 900}
    pages = (
        "index", "install", "training", "gallery", "which_function", "ops", "layers", "messages", "api/index",
        "api/glassgrad.optim", "api/glassgrad.tensor", "lessons/index", "source/optim/adam",
    )  # fmt: skip  # a table
    with browsing.sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsing.BROWSER, args=["--no-sandbox", "--disable-gpu"])
        found = {}
        for scheme in ("light", "dark"):
            for name in pages:
                page = browser.new_page(viewport=window, color_scheme=scheme, reduced_motion="reduce")
                said: list[str] = []
                page.on("console", lambda message, said=said: said.append(message.text))
                page.on("pageerror", lambda error, said=said: said.append(str(error)))
                page.on("request", lambda request, said=said: said.append(request.url))
                page.goto((site / f"{name}.html").as_uri())
                outside = [text for text in said if not text.startswith("file:")]
                wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                barriers = browsing.violations(page) if name not in LONG and browsing.AXE.is_file() else []
                found[name, scheme] = [*outside, *barriers, *([f"{wide} px"] if wide > 0 else [])]
                page.close()
        browser.close()
    assert {place: what for place, what in found.items() if what} == {}
    if not browsing.AXE.is_file():
        pytest.skip("pages fit and ask for nothing, but axe-core is not there: npm ci in web/")


# What is typed into the search, and where one of the first three results has to lead: names as PyTorch's programs write
# them, and words.
SEARCHED = {
    "cross_entropy": "api/glassgrad.nn.functional.html",
    "torch.nn.functional.cross_entropy": "api/glassgrad.nn.functional.html#glassgrad.nn.functional.cross_entropy",
    "F.cross_entropy(": "api/glassgrad.nn.functional.html#glassgrad.nn.functional.cross_entropy",
    "optimizer.zero_grad": "api/glassgrad.optim.html",
    "DataLoader": "api/glassgrad.utils.data.html#glassgrad.utils.data.DataLoader",
    "torch.utils.data.DataLoader": "api/glassgrad.utils.data.html#glassgrad.utils.data.DataLoader",
    "clip_grad_norm_": "api/glassgrad.nn.utils.html#glassgrad.nn.utils.clip_grad_norm_",
    "torch.nn.utils.clip_grad_norm_": "api/glassgrad.nn.utils.html#glassgrad.nn.utils.clip_grad_norm_",
    "nn.Linear": "api/glassgrad.nn.linear-layers-embeddings-shapes.html#glassgrad.nn.Linear",
    "loss.backward()": "api/glassgrad.tensor.html#glassgrad.Tensor.backward",
    "install": "install.html",
}


@pytest.mark.slow
def test_the_search_finds_names_and_words(site: Path) -> None:
    from tests.report import browsing

    if browsing.BROWSER is None:
        pytest.skip("no browser is installed (apt-get install chromium)")
    with browsing.sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsing.BROWSER, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        for words, first in SEARCHED.items():
            page.goto((site / "search.html").as_uri() + f"?q={words}")
            page.wait_for_function("document.querySelector('.search-summary')?.innerText.startsWith('Search finished')")
            places = [link.get_attribute("href") or "" for link in page.query_selector_all("ul.search a")]
            assert any(place.startswith(first) for place in places[:3]), (words, places[:5])
            assert page.query_selector_all("h1")[0].inner_text() == "Search"
            assert not browsing.AXE.is_file() or browsing.violations(page) == []
        browser.close()
