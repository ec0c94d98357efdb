"""Short training scripts with one fault each, as people write them, and the healthy script beside each."""

from __future__ import annotations

from dataclasses import dataclass

HEADS = {
    "torch": "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n\ntorch.manual_seed(0)\n",
    "ours": "import glassgrad as torch\nfrom glassgrad import nn\nfrom glassgrad.nn import functional as F\n\n"
    "torch.manual_seed(0)\n",
}
"""The first lines of a script, by library."""

MARK = "  #!"
"""Ends the line of the cause; a program may have several such lines, of which a finding names one."""


@dataclass(frozen=True)
class Program:
    """A script with a fault.

    Attributes:
        name: what is wrong.
        rules: the titles of the findings that name the cause.
        text: the script behind the import lines.
        healed: pairs (line, line) that make the healthy script of it.
        says: words that the finding holds.
        source: addresses where the fault was reported, separated by spaces.
    """

    name: str
    rules: tuple[str, ...]
    text: str
    healed: tuple[tuple[str, str], ...]
    says: str = ""
    source: str = ""

    def faulty(self, library: str) -> tuple[str, set[int]]:
        """Return the script with the fault, and the numbers of the lines that are its cause."""
        text = HEADS[library] + self.text.lstrip("\n")
        lines = (text if library == "torch" else text.replace("from torch.", "from glassgrad.")).splitlines()
        marked = {at for at, line in enumerate(lines, start=1) if line.endswith(MARK)}
        return "\n".join(line.removesuffix(MARK) for line in lines) + "\n", marked

    def healthy(self, library: str) -> str:
        """Return the healthy script."""
        text, _ = self.faulty(library)
        for wrong, right in self.healed:
            assert wrong in text, (self.name, wrong)
            text = text.replace(wrong, right)
        return text
