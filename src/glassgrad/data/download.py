"""Data sets fetched once into a cache, from the first mirror that answers, and verified by checksum."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from glassgrad import errors

MNIST_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
MIRRORS_VARIABLE = "GLASSGRAD_MNIST_MIRRORS"
"""Environment variable with other addresses to try instead, separated by spaces."""

MNIST_FILES = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
"""SHA-256 of each file."""

_SECONDS = 30.0
_LARGEST = 64 * 2**20


def cache_folder() -> Path:
    """Return the folder for fetched data: `glassgrad` in XDG_CACHE_HOME, or in `~/.cache` where that names none."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The standard requires ignoring a relative path, which would be another folder after each `cd`.
    return (base if base.is_absolute() else Path.home() / ".cache") / "glassgrad"


def fetch_mnist() -> Path:
    """Return the cached folder with MNIST's four files, fetching what is missing.

    Raises `errors.InputError` if no mirror answers or the cache cannot be written.
    """
    mirrors = os.environ.get(MIRRORS_VARIABLE, "").split() or MNIST_MIRRORS
    return fetch(MNIST_FILES, mirrors, cache_folder() / "mnist")


def fetch(files: Mapping[str, str], mirrors: Sequence[str], folder: Path) -> Path:
    """Fetch files, named with their SHA-256, into a folder, unless they are there already with that checksum.

    Mirrors are tried in their order for every file. Raises `errors.InputError`.
    """
    for name, checksum in files.items():
        path = folder / name
        if not (path.is_file() and _sha256(path.read_bytes()) == checksum):
            _store(path, _download(name, checksum, mirrors))
    return folder


def _download(name: str, checksum: str, mirrors: Sequence[str]) -> bytes:
    complaints = []
    for mirror in mirrors:
        address = f"{mirror.rstrip('/')}/{name}"
        if not address.startswith(("https://", "http://")):
            complaints.append(f"{address}: neither http nor https")
            continue
        try:
            with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 - the scheme was checked
                content: bytes = answer.read(_LARGEST)
        except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError) as error:
            complaints.append(f"{address}: {getattr(error, 'reason', None) or error}")
            continue
        if _sha256(content) == checksum:
            return content
        complaints.append(f"{address}: another file than expected (SHA-256 {_sha256(content)[:12]}...)")
    raise errors.FETCH_FAILED(name=name, complaints="; ".join(complaints) or "no mirrors")


def _store(path: Path, content: bytes) -> None:
    from glassgrad.data.atomic import write_atomically

    try:
        # Private for any umask, because the parent folder also holds compiled steps.
        path.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        raise errors.FETCH_NOT_STORED(path=path, reason=error.strerror or error) from None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
