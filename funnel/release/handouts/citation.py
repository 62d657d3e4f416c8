"""CITATION.cff: how to cite a release, in the Citation File Format 1.2.0."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Of the SPDX list, which is the only one that the format knows: licences that data are published under.
_KNOWN = frozenset(
    {
        "CC0-1.0", "CC-BY-3.0", "CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0",
        "CC-BY-NC-SA-4.0", "CC-BY-NC-ND-4.0", "ODbL-1.0", "ODC-By-1.0", "PDDL-1.0", "CDLA-Permissive-1.0",
        "CDLA-Sharing-1.0", "OGL-UK-1.0", "OGL-UK-2.0", "OGL-UK-3.0", "OGL-Canada-2.0",
    }
)  # fmt: skip


def citation(package: Mapping[str, Any]) -> str:
    """The text of the file.

    The author is who the publisher names as contact; without one it is anonymous.

    Parameters
    ----------
    package : JSON object
        Content of ``datapackage.json``.
    """
    contact, (licence, *_) = publisher(package), package["licenses"]
    name = contact.get("title")
    author = [f"name: {quoted(name)}"] if name else ["alias: anonymous"]
    author += [f"email: {quoted(contact['email'])}"] if "email" in contact else []
    lines = [
        "cff-version: 1.2.0",
        'message: "If you use this release, please cite it as below."',
        "type: dataset",
        f"title: {quoted(package['title'])}",
        f"version: {package['version']}",
        f'date-released: "{package["created"][:10]}"',
        "authors:",
        f"  - {author[0]}",
        *(f"    {line}" for line in author[1:]),
    ]
    if package.get("description"):
        lines.append(f"abstract: {quoted(package['description'])}")
    if licence["name"] in _KNOWN:
        lines.append(f"license: {licence['name']}")
    elif "path" in licence:
        lines.append(f"license-url: {quoted(licence['path'])}")
    if package.get("keywords"):
        # The format takes every one once.
        lines += ["keywords:", *(f"  - {quoted(word)}" for word in dict.fromkeys(package["keywords"]))]
    return "\n".join(lines) + "\n"


def publisher(package: Mapping[str, Any]) -> Mapping[str, str]:
    """Whom the package names, by ``title`` and ``email``; empty where it names nobody."""
    contributors = package.get("contributors") or [{}]
    return dict(contributors[0])


def quoted(text: str) -> str:
    """A text as a scalar of YAML: the escapes of JSON are some of its own."""
    return "".join(_escaped(letter) for letter in json.dumps(text, ensure_ascii=False))


def _escaped(letter: str) -> str:
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
