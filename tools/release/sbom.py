"""Write the bill of materials: what an installation of the wheel consists of, as CycloneDX 1.6 in JSON.

It lists the versions that a fresh environment got on the day of the release, with their licences and what needs what.
The same commit and the same versions give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Installed by every environment, and no part of the library.
TOOLS = {"pip", "setuptools", "wheel"}


def write(folder: Path, wheel: Path, source: Path, parts: Sequence[Mapping[str, Any]], seconds: int) -> Path:
    """Write `glassgrad-VERSION.cdx.json` beside the archives.

    Args:
        folder: where to.
        wheel: the wheel.
        source: the source archive.
        parts: name, version, requirements and licence of every installed package, glassgrad among them.
        seconds: the time of the commit.
    """
    bill = made([one for one in parts if normal(one["name"]) not in TOOLS], [wheel, source], seconds)
    path = folder / f"glassgrad-{bill['metadata']['component']['version']}.cdx.json"
    path.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def made(parts: Sequence[Mapping[str, Any]], archives: Sequence[Path], seconds: int) -> dict[str, Any]:
    """Return the bill as plain data."""
    known = {normal(one["name"]): one for one in parts}
    own = known.pop("glassgrad")
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archives}
    main = component(own) | {
        "externalReferences": [
            {"type": "distribution", "url": name, "hashes": [{"alg": "SHA-256", "content": digest}]}
            for name, digest in digests.items()
        ]
    }
    identity = "".join([*digests.values(), *(reference(one) for _, one in sorted(known.items()))])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, identity)}",
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds"),
            "lifecycles": [{"phase": "build"}],
            "component": main,
        },
        "components": [component(one) for _, one in sorted(known.items())],
        "dependencies": [
            {"ref": reference(one), "dependsOn": sorted(reference(known[name]) for name in needs(one) if name in known)}
            for _, one in sorted({**known, "glassgrad": own}.items())
        ],
    }


def normal(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def reference(part: Mapping[str, Any]) -> str:
    """Return the address of a package and its version (purl)."""
    return f"pkg:pypi/{normal(part['name'])}@{part['version']}"


def needs(part: Mapping[str, Any]) -> set[str]:
    """Return what a package requires without its extras; a marker of another system stays, and is not installed."""
    plain = [text for text in part["requires"] if "extra ==" not in text]
    return {normal(re.split(r"[^A-Za-z0-9._-]", text.strip(), maxsplit=1)[0]) for text in plain}


def component(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a package as an entry of the bill."""
    found = {
        "type": "library",
        "bom-ref": reference(part),
        "name": part["name"],
        "version": part["version"],
        "purl": reference(part),
    }
    licence = licence_of(part)
    return found | ({"licenses": [licence]} if licence else {})


def licence_of(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a licence: an expression of SPDX, else the words of the package, else those of its classifiers."""
    text = " ".join(part["license"].split())
    if re.fullmatch(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*", text):
        return {"expression": text} if text.upper() != "UNKNOWN" else None
    if 0 < len(text) < 100:
        return {"license": {"name": text}}
    named = [line.rpartition("::")[2].strip() for line in part["classifiers"]]
    return {"license": {"name": named[0]}} if named else None
