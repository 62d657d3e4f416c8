"""Documents of funnels that knew one set of laws: what they call rldp is rldp over the χ² set."""

from __future__ import annotations

from typing import Any

import pytest

import funnel
from funnel.release.earlier_sets import with_sets
from funnel.release.findings import FindingsDocument
from funnel.release.internal_report import InternalReport
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.release.record import Record

OLD, NOW = "rldp:1.0,0.05", "rldp:1.0,0.05,chi2"


@pytest.mark.parametrize(("text", "read"), [(OLD, NOW), (NOW, NOW), ("lip:1.0", "lip:1.0"), ("alip:1.3,0.7",) * 2])
def test_the_set_is_that_of_the_paper(text: str, read: str) -> None:
    content = {"guarantee": text, "origin": [{"declared": text, "guarantee": {"declared": text}}], "spec": text}
    found = with_sets(content)
    assert found == {"guarantee": read, "origin": [{"declared": read, "guarantee": {"declared": read}}], "spec": text}
    assert str(funnel.parse_guarantee(read)) == read


@pytest.mark.parametrize(
    ("document", "version", "content", "place"),
    [
        (Record, 4, {"origin": {"guarantee": OLD}}, ("origin", "guarantee")),
        (FindingsDocument, 2, {"guarantee": OLD}, ("guarantee",)),
        (FindingsDocument, 1, {"guarantee": OLD}, ("guarantee",)),
        (FindingsDocument, 0, {"guarantee": OLD, "confidence": {}}, ("guarantee",)),
        (ProtocolDocument, 1, {"guarantee": {"declared": OLD}}, ("guarantee", "declared")),
        (PublicReport, 2, {"guarantee": OLD, "figures": {"guarantee": OLD}}, ("figures", "guarantee")),
        (InternalReport, 2, {"guarantee": OLD, "figures": {"guarantee": OLD}}, ("figures", "guarantee")),
    ],
)
def test_every_reader_upgrades_it(document: Any, version: int, content: Any, place: tuple[str, ...]) -> None:
    found = document.upgraded(version, content)
    for key in place:
        found = found[key]
    assert found == NOW
