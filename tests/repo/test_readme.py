"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")]


def test_the_example_learns_xor() -> None:
    process = subprocess.run([sys.executable, "-c", EXAMPLES[0]], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    loss, predicted = process.stdout.split(maxsplit=1)
    assert predicted.strip() == "[0, 1, 1, 0]"
    assert float(loss) < 0.1


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs" / "adr").glob("*.md"))], ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not missing


def test_the_compiled_loop_runs_and_prints_itself() -> None:
    assert len(EXAMPLES) == 2
    program = "\n".join(EXAMPLES)
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "# backward: the forward line, and [the rule of its op]" in process.stdout
