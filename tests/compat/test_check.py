"""`--check` lists the lines of a program that would fail, with the text of the error, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import glassgrad as gg
from glassgrad import compat
from glassgrad.compat import differences
from glassgrad.compat.check import check, main
from glassgrad.engine.reports import absent
from glassgrad.errors import missing

HERE = Path(__file__).parent
RUNNING = sorted([*(HERE / "scripts").glob("*.py"), *(HERE.parents[1] / "examples" / "torch_style").glob("*.py")])

# A line of a program, and the names that lack in it, or differ.
LINES: dict[str, str] = {
    "import torch.fx": "torch.fx",
    "import torch.fx as fx": "torch.fx",
    "import torch.nothing.at_all": "torch.nothing",
    "from torch import nn, fx": "torch.fx",
    "from torch.nn.utils import prune, clip_grad_norm_": "torch.nn.utils.prune",
    "from torch.nn.utils.prune import l1_unstructured": "torch.nn.utils.prune",
    "from torch.optim import *": "",
    "import torch.nn as nn; nn.Conv4d(1, 2, 3)": "torch.nn.Conv4d",
    "import torch.nn.functional as F; F.crossentropy": "torch.nn.functional.crossentropy",
    "from torch.nn import functional as G; G.relu(G.mse)": "torch.nn.functional.mse",
    "import torch; torch.optim.lr_scheduler.CosineLR": "torch.optim.lr_scheduler.CosineLR",
    "import torch; torch.float32.nonsense; torch.zeros(3).shape.nonsense": "",
    "import torch; torch.backends.cudnn.benchmark = True; torch.backends.cudnn.deterministic": "",
    "import torch; torch.profiler.profile()": "torch.profiler.profile",
    "import torch; torch.Tensor.frobnicate": "torch.Tensor.frobnicate",
    "import torch; class_ = torch.quantization.QuantStub": "torch.quantization",
    "import torch; torch.manual_seed(0); torch.save({}, 'f')": "torch.manual_seed torch.save",
    "import torchvision.transforms as T; T.ToTensor()": "torchvision",
    # methods of what is certainly a tensor
    "import torch; torch.zeros(3).storage_type()": "torch.Tensor.storage_type",
    "import torch; x = torch.zeros(3) + 1; y = x.exp(); y.storage_type()": "torch.Tensor.storage_type",
    "import torch\ndef f(x: torch.Tensor, y): return x.storage_type(), y.storage_type()": "torch.Tensor.storage_type",
    "import torch; x = torch.zeros(3)\nif x.sum(): x = Other()\nx.storage_type()": "",
    "import torch\nx = torch.zeros(3)\nfor x in range(3): x.storage_type()": "",
    "import torch\nx = torch.zeros(3)\ndef f(x): return x.storage_type()": "",
    "import torch\nx = torch.zeros(3)\ndef f(): return x.storage_type()": "torch.Tensor.storage_type",
    "import torch; x = torch.zeros(3); x.storage_type = 1; x.grad = None; x.data.add_(1)": "",
    # names that are something else
    "def f(torch): return torch.fx": "",
    "import torch\ndef f(torch): return torch.fx": "",
    "import numpy as torch; torch.fx": "",
    "from . import torch; torch.fx": "",
    "text = 'torch.fx'  # torch.fx": "",
}
GUARDED = (
    "try:\n    from torch import fx\nexcept ImportError:\n    fx = None",
    "import torch\ntry:\n    torch.fx\nexcept Exception:\n    pass",
    "import torch\nif hasattr(torch, 'fx'): torch.fx",
    "import torch\nx = torch.fx if hasattr(torch, 'fx') else None",
    "import torch\nif torch.cuda.is_available(): torch.cuda.memory_allocated()",
)


def found(tmp_path: Path, text: str) -> list[compat.check.Finding]:
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    return check(script)


@pytest.mark.parametrize("text", LINES)
def test_names(text: str, tmp_path: Path) -> None:
    findings = found(tmp_path, text)
    assert [finding.name for finding in findings] == LINES[text].split()
    assert not any(finding.guarded for finding in findings)


@pytest.mark.parametrize("text", GUARDED)
def test_guarded_names_are_no_failure(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [finding.guarded for finding in found(tmp_path, text)] == [True]
    assert main([str(tmp_path / "script.py")]) == 0
    assert "0 names lack, 0 differ" in capsys.readouterr().out


@pytest.mark.parametrize("script", RUNNING, ids=lambda path: path.stem)
def test_nothing_lacks_in_programs_that_run(script: Path) -> None:
    assert [finding for finding in check(script) if finding.kind == "lacks" and not finding.guarded] == []


def test_it_says_what_the_error_says(tmp_path: Path) -> None:
    for name in sorted(compat.INSTEAD):
        (finding,) = found(tmp_path, f"import torch\ntorch.{name}")
        with pytest.raises(AttributeError) as caught:
            getattr(gg, name)
        assert f"{finding.message}\n{finding.remedy}" == str(caught.value)
        assert finding.line == 2
    for name in sorted(absent.INSTEAD):
        if hasattr(gg.ones(1), name):
            continue
        (finding,) = found(tmp_path, f"import torch\ntorch.ones(1).{name}")
        with pytest.raises(AttributeError) as caught:
            getattr(gg.ones(1), name)
        assert f"{finding.message}\n{finding.remedy}".rstrip() == str(caught.value)


def test_names_of_the_text_are_pytorchs_and_their_advice_is_given() -> None:
    torch = pytest.importorskip("torch", reason="it knows its names")
    advice = missing._advice()
    assert len(advice) > 100
    unknown, silent = [], []
    for name, words in advice.items():
        theirs, ours = torch, gg
        for part in name.split("."):
            theirs = getattr(theirs, part, None)
        if theirs is None and name.partition(".")[0] not in {"ao", "distributed", "utils", "library", "futures"}:
            unknown.append(name)
        try:
            for part in name.split("."):
                ours = getattr(ours, part)
        except AttributeError as error:
            if words not in str(error) and "Next: " not in str(error):
                silent.append(name)
    assert not silent
    assert set(unknown) <= {"fx.Graph", "nn.utils.prune"}  # in modules that `import torch` leaves out


def test_what_differs_is_there(tmp_path: Path) -> None:
    text = "import torch\n" + "\n".join(differences.DIFFERENT)
    findings = found(tmp_path, text)
    assert [finding.name for finding in findings] == list(differences.DIFFERENT)
    assert {finding.kind for finding in findings} == {"differs"}


def test_modules_beside_the_program_are_read(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("import torch\nimport torchvision\ntorch.fx", encoding="utf-8")
    (tmp_path / "torchvision.py").write_text("import layers", encoding="utf-8")
    findings = found(tmp_path, "import layers\nfrom layers import Block")
    assert [(Path(finding.file).name, finding.line, finding.name) for finding in findings] == [
        ("layers.py", 3, "torch.fx")
    ]


def test_from_the_command_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\nprint('it ran')\ntorch.fx\ntorch.fx", encoding="utf-8")
    command = [sys.executable, "-m", "glassgrad.compat", "--check"]
    done = subprocess.run([*command, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "it ran" not in done.stdout
    assert "train.py:3: torch.fx lacks: glassgrad has no 'fx'.\n    Next: compiled.graph" in done.stdout
    assert done.stdout.endswith("1 names lack, 0 differ\n")
    done = subprocess.run([*command, "--json", str(script)], capture_output=True, text=True, check=False)
    read = json.loads(done.stdout)
    assert (done.returncode, read["lacks"], read["findings"][0]["line"]) == (1, 1, 3)


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.py").write_text("def", encoding="utf-8")
    assert main([str(tmp_path / "bad.py")]) == 2
    assert main([str(tmp_path / "none.py")]) == 2
    assert "cannot read the program" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="usage"):
        main(["--json"])
