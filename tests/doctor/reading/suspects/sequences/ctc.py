"""Suspects about CTC."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_CTC = """
letters = "abc"
index = {c: i for i, c in enumerate(letters)}  #!
loss = F.ctc_loss(logits.log_softmax(2).transpose(0, 1), targets, lengths, sizes)
"""

CASES = (
    Case("blank that is a letter as well", _CTC, (("enumerate(letters)", "enumerate(letters, start=1)"),)),
    Case(
        "CTC with the batch first",
        "loss = F.ctc_loss(scores.log_softmax(2), targets, lengths, sizes)  #!\n",
        (("scores.log_softmax(2)", "scores.log_softmax(2).transpose(0, 1)"),),
    ),
    Case(
        "CTC lengths of the input",
        """
shorten = nn.Conv1d(8, 8, 3, stride=2)
lengths = torch.full((16,), frames.size(2))
loss = F.ctc_loss(scores.transpose(0, 1), targets, lengths, sizes)  #!
""",
        (("frames.size(2)", "scores.size(1)"),),
    ),
    Case(
        "CTC of probabilities",
        "scores = torch.softmax(scores, dim=2).transpose(0, 1)\nloss = F.ctc_loss(scores, y, lengths, sizes)  #!\n",
        (("torch.softmax", "torch.log_softmax"),),
    ),
    Case(
        "CTC lengths of padded labels",
        """
sizes = torch.full((16,), y.size(1))  #!
loss = F.ctc_loss(scores.transpose(0, 1), y, lengths, sizes)
""",
        (("torch.full((16,), y.size(1))", "(y != PAD).sum(1)"),),
    ),
    Case(
        "blank of another number",
        "BLANK = len(letters)\nloss_of = nn.CTCLoss(zero_infinity=True)  #!\n",
        (("CTCLoss(", "CTCLoss(blank=BLANK, "),),
    ),
)
