"""A snippet with a fault: its rule, its line, and what makes it healthy."""

from __future__ import annotations

from dataclasses import dataclass

HEADS = {
    "torch": "import torch\nimport numpy as np\nfrom torch import nn\nfrom torch.nn import functional as F\n",
    "ours": "import glassgrad as torch\nimport numpy as np\nfrom glassgrad import nn\n"
    "from glassgrad.nn import functional as F\n",
}
MARK = "  #!"
LOOP = """
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


@dataclass(frozen=True)
class Case:
    """A snippet.

    Attributes:
        title: of the rule that finds it, and no other rule finds anything.
        text: the snippet behind the import lines; the line of the fault ends in `MARK`.
        healed: pairs (text, text) that make it healthy.
        only: the library that the rule is about, if it is about one.
    """

    title: str
    text: str
    healed: tuple[tuple[str, str], ...]
    only: str = ""

    def faulty(self, library: str) -> tuple[str, list[int]]:
        """Return the script and the lines of its faults."""
        text = HEADS[library] + self.text.lstrip("\n")
        lines = text.splitlines()
        if library == "ours":
            lines = [
                line.replace("from torch.", "from glassgrad.").replace("import torch.", "import glassgrad.")
                for line in lines
            ]
        marked = [at for at, line in enumerate(lines, start=1) if line.endswith(MARK)]
        return "\n".join(line.removesuffix(MARK) for line in lines) + "\n", marked

    def healthy(self, library: str) -> str:
        """Return the healthy script."""
        text, _ = self.faulty(library)
        for wrong, right in self.healed:
            assert wrong in text, (self.title, wrong)
            text = text.replace(wrong, right)
        return text
