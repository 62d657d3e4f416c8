"""What noise has cost the people of a register: counted once more from the records of all its series."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from funnel.recount.register_files import entry_folders

Draws = Mapping[str, Decimal]
"""Epsilon of every draw of noise of one version, by the SHA-256 (hex) of what was drawn."""

_TABLES = ("changes", "rows", "means", "departures")


def own_draws(content: Mapping[str, Any]) -> Draws:
    """What the noise of one version cost, by its ``frequencies.json``."""
    changes, rows = content.get("changes"), content.get("rows")
    found: dict[str, Decimal] = {}
    if changes is not None:
        found[_sha256(json.dumps(changes["since"], sort_keys=True))] = Decimal(repr(changes["epsilon"]))
    if rows is not None:
        found[_sha256(json.dumps([rows["stayed"], rows["left"], rows["sizes"]]))] = Decimal(repr(rows["epsilon"]))
    for name in ("means", "departures"):
        if (told := content.get(name)) is not None:
            found[_sha256(json.dumps(list(told["counts"])))] = Decimal(repr(told["epsilon"]))
    alphabets = ({key: content[name][key] for key in ("columns", "symbols")} for name in ("secret", "inputs"))
    counts = _sha256(json.dumps([content["noisy"], *alphabets]))
    return {**found, counts: Decimal(repr(content["epsilon"])) - sum(found.values())}


def spent_complaints(
    content: Mapping[str, Any], record: Mapping[str, Any], register: Path, workspace: Path, until: str | None = None
) -> Iterator[str]:
    """What is wrong with what ``frequencies.json`` says was spent on the people of a register, as parts of sentences.

    Parameters
    ----------
    content : mapping
        Of the file.
    record : mapping
        That of the version: the same noise is paid once where it is for the same exact tables, and noise for others was
        drawn by itself, also where it is the same by chance.
    register : Path
        Its folder.
    workspace : Path
        That keeps the records of all series.
    until : str, optional
        Time of publication of the version (ISO 8601, UTC): later versions do not count. By default none is later.
    """
    records, draws = list(_records(workspace, register.name)), _named(record, own_draws(content))
    before = [one for one in records if until is None or str(one["created"]) < until]
    for one in before:
        draws = {**_named(one, _draws(one["frequencies"])), **draws}
    known = {str(one["history"]["name"]) for one in records}
    entries = (json.loads((folder / "entry.json").read_bytes()) for folder in entry_folders(register))
    names = {str(entry.get("name")) for entry in entries}
    if until is None and (unknown := sorted(names - known)):
        yield f"of {unknown[0]}, which is in the register, no record says what it spent"
    least = sum(draws.values(), Decimal(0))
    if content["spent"] < float(least) * (1 - 1e-12):
        yield f"is {content['spent']!r}, and all series of the register have spent {float(least)!r}"


def _records(workspace: Path, register: str) -> Iterator[dict[str, Any]]:
    """All records of versions about the people of a register."""
    for path in sorted(workspace.glob("*/records/*/*.json")):
        record = json.loads(path.read_bytes())
        history = record.get("history") or {}
        if history.get("register") == register and "frequencies" in record:
            yield record


def _named(record: Mapping[str, Any], draws: Draws) -> dict[tuple[str, str, str], Decimal]:
    """The draws of a version by its series, the digest of what each was drawn for, and that of what was drawn."""
    frequencies, series = record["frequencies"], str(record["history"]["name"]).rpartition("/")[0]
    drawn_for = {str(one["noisy"]): str(one["counted"]) for one in (frequencies, *_tables(frequencies))}
    return {(series, drawn_for.get(noisy, ""), noisy): cost for noisy, cost in draws.items()}


def _tables(frequencies: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for name in _TABLES if (one := frequencies.get(name)) is not None]


def _draws(frequencies: Mapping[str, Any]) -> Draws:
    """The same by the part of a record about frequencies; nothing of a version without noise."""
    if frequencies.get("noisy") is None:
        return {}
    tables = _tables(frequencies)
    found = {one["noisy"]: Decimal(repr(one["epsilon"])) for one in tables}
    return {**found, frequencies["noisy"]: Decimal(repr(frequencies["epsilon"])) - sum(found.values())}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
