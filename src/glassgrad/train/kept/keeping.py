"""`Checkpoint`: everything that your own training loop needs to continue bit for bit, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.data.atomic import sweep
from glassgrad.train.kept.checkpoint import Stateful, load_checkpoint, pack, save_checkpoint, unpack
from glassgrad.train.kept.randomness import RandomState
from glassgrad.train.kept.weights import shapes_of
from glassgrad.train.learners.engine import AsArrays
from glassgrad.train.transaction import all_or_nothing, check_parts, described, named_as_damaged, named_as_unfit

_RANDOM = "random numbers"


class Checkpoint:
    """Saves and loads parts with `state_dict` and `load_state_dict`, and the random state.

    A rename replaces the file, so the previous one survives a kill or a full disk. It has a checksum and no pickle.

    Args:
        path: the file.
        parts: model, optimizer, scheduler, loader and so on, under any names.

    Example:
        >>> import tempfile
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(2, 1)
        >>> folder = tempfile.mkdtemp()
        >>> checkpoint = Checkpoint(folder + "/last.safetensors", model=model)
        >>> checkpoint.load() is None
        True
        >>> checkpoint.save(epoch=3)
        >>> checkpoint.load()
        {'epoch': 3}
    """

    def __init__(self, path: str | Path, **parts: Any) -> None:
        self.path = Path(path)
        self._parts = parts
        self._stored: dict[str, Stateful] = {name: AsArrays(part) for name, part in parts.items()}
        own = [part.generator for part in parts.values() if hasattr(getattr(part, "generator", None), "get_state")]
        self._random = RandomState(*own)

    def save(self, **values: Any) -> None:
        """Write the parts and your own values: numbers, text, lists and dictionaries of them.

        Raises `errors.RunError` if it cannot be written; the previous file is then unchanged.
        """
        arrays: dict[str, Any] = {}
        rest = {
            "shapes": {name: shapes_of(part) for name, part in self._parts.items() if hasattr(part, "parameters")},
            "described": {name: described(part) for name, part in self._parts.items()},
            "parts": {name: pack(part.state_dict(), name, arrays) for name, part in self._stored.items()},
            "random": pack(self._random.state_dict(), "random", arrays),
            "values": values,
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save_checkpoint(self.path, arrays, rest)
        except OSError as error:
            kept = f"; {self.path.name} from before is intact" if self.path.exists() else ""
            raise errors.RUN_NOT_SAVED(path=self.path, reason=error.strerror or error, kept=kept) from None

    def load(self) -> dict[str, Any] | None:
        """Load the parts and return the values; None if there is no file.

        Raises `errors.InputError` if the file is truncated, corrupt or foreign, or belongs to another optimizer,
        schedule or other part. For another model the error names the missing and unexpected names and those of another
        shape or dtype. After any error, all parts and the random state are as before.
        """
        sweep(self.path.parent, self.path.name)
        if not self.path.exists():
            return None
        arrays, rest = load_checkpoint(self.path)
        with named_as_damaged(self.path):
            if not {"shapes", "parts", "random", "values"} <= set(rest):
                raise errors.RUN_DAMAGED(path=self.path, reason="it was not written by Checkpoint")
            if set(rest["parts"]) != set(self._parts):
                raise errors.CHECKPOINT_PARTS(
                    path=self.path, given=", ".join(sorted(rest["parts"])), expected=", ".join(sorted(self._parts))
                )
            check_parts(self._parts, rest["shapes"], rest.get("described", {}), self.path)
            states = {name: unpack(rest["parts"][name], arrays) for name in self._stored}
            states[_RANDOM] = unpack(rest["random"], arrays)
            values: dict[str, Any] = rest["values"]
        parts: dict[str, Stateful] = {**self._stored, _RANDOM: self._random}
        with all_or_nothing(parts):
            for name, part in parts.items():
                with named_as_unfit(self.path, name):
                    part.load_state_dict(states[name])
        return values


__all__ = ["Checkpoint"]
