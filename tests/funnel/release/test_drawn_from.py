"""What rows are drawn with and from: read again where they are taken over, and counted by what the drawing reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import funnel
from funnel.alphabet import Alphabet
from funnel.errors import DataError
from funnel.findings import DrawnRelease, audit_release
from funnel.findings.followed import FoundHistory
from funnel.joint import Joint
from funnel.protocol import Protocol
from funnel.release.drawing_document import DrawingDocument, drawing_document
from funnel.release.drawn_from import DrawnFrom
from funnel.release.findings import findings_document
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import protocol_document
from funnel.release.record import History
from tests.funnel.release.test_decision import SHA, SNAPSHOT
from tests.public import UNPROTECTED, public_of
from tests.schemas import validated

JOINT = Joint.from_counts([[30, 20], [10, 40]], ["yes", "no"], ["a", "b"])
TARGET = funnel.fit("grr", JOINT, funnel.LIP(0.5))
BY = Alphabet(("history channel", "X"), (("0", "a"), ("0", "b"), ("1", "a"), ("1", "b")))
COUNTED = Joint.from_counts([[20, 15, 10, 5], [5, 20, 5, 20]], JOINT.secret, BY)
WEIGHTS = np.concatenate([TARGET.weights, TARGET.weights[:, ::-1]], axis=1)
DRAWING = replace(TARGET, weights=WEIGHTS, inputs=BY)
RECORD = History.model_validate(
    {"people": "same", "register": "panel", "name": "panel/1.0.0", "target": SHA(8), "drawing": SHA(9)}
    | {"histories": 2, "level": 0.4, "moved": 0, "outside": 0, "reserve": 1.0}
)
FOUND = FoundHistory(
    "panel", 2, 2, 50, 0, 2, 0.4, None, (("panel/1.0.0", "a"),), "a", "yes", 0, 0, 1.0, 0.1, 0.2, 0.3, 0.6
)


def written(folder: Path) -> ReleaseFolder:
    release = ReleaseFolder(folder)
    folder.mkdir()
    release.internal.mkdir()
    pairs = np.zeros((3, 2), dtype=np.int64)
    pairs[[0, 1], [0, 1]] = JOINT.counts.sum(axis=0)
    findings = replace(audit_release(JOINT, DrawnRelease(TARGET, funnel.LIP(0.5), pairs)), history=FOUND)
    release.drawing.write_bytes(drawing_document(DRAWING, COUNTED, TARGET).to_bytes())
    release.findings.write_bytes(findings_document(findings).to_bytes())
    public = public_of(JOINT, TARGET, funnel.LIP(0.5))
    release.protocol.write_bytes(protocol_document(TARGET, funnel.LIP(0.5), public, UNPROTECTED).to_bytes())
    return release


def test_a_drawing_is_read_back_as_it_was() -> None:
    document = drawing_document(DRAWING, COUNTED, TARGET)
    assert validated(document.content()) == "drawing"
    again = DrawingDocument.from_json(document.to_bytes())
    assert again == document
    assert again.protocol.digest == DRAWING.digest
    assert (again.joint.counts == COUNTED.counts).all()
    assert (again.joint.secret, again.joint.inputs) == (COUNTED.secret, COUNTED.inputs)


def test_records_are_counted_by_what_the_drawing_reads() -> None:
    with pytest.raises(ValueError, match="are counted by what it reads"):
        drawing_document(DRAWING, JOINT, TARGET)


def test_rows_that_are_taken_over_keep_their_drawing_and_what_was_found(tmp_path: Path) -> None:
    release = written(tmp_path / "1.0.0")
    found = DrawnFrom.taken_over(release, SNAPSHOT, RECORD)
    assert (found.channel.digest, found.drawing.digest) == (TARGET.digest, DRAWING.digest)
    assert (found.counts.counts == COUNTED.counts).all()
    assert (found.snapshot, found.target, found.history, found.record) == (SNAPSHOT, None, FOUND, RECORD)
    release.drawing.unlink()
    with pytest.raises(DataError, match=r"^the drawing of a version .* is missing"):
        DrawnFrom.taken_over(release, SNAPSHOT, RECORD)


def test_only_rows_that_have_no_entry_yet_are_followed() -> None:
    entered = RECORD.model_copy(update={"ordinal": 0, "entry": SHA(7), "head": SHA(6)})
    for record, followed in ((RECORD, True), (entered, False), (History(people="different"), False), (None, False)):
        alone: DrawnFrom = DrawnFrom.alone(TARGET, SNAPSHOT, record)
        assert alone.is_followed == followed
        assert (alone.channel, alone.drawing, alone.counts, alone.history) == (TARGET, TARGET, None, None)


def test_a_drawing_whose_weights_were_changed_is_damaged() -> None:
    content = drawing_document(DRAWING, COUNTED, TARGET).content()
    other: Protocol = replace(DRAWING, weights=WEIGHTS[:, [2, 3, 0, 1]])
    changed = content | {"weights": [[str(weight) for weight in row] for row in other.weights.tolist()]}
    with pytest.raises(DataError, match=r"^the drawing of a version is damaged: "):
        DrawingDocument.from_json(json.dumps(changed))
