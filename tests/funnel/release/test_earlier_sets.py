"""Documents of funnels that knew one set of laws: what they call rldp is rldp over the χ² set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import funnel
from funnel.errors import SpecError
from funnel.release.decision import require_set
from funnel.release.earlier_sets import with_sets
from funnel.release.findings import FindingsDocument
from funnel.release.internal_report import InternalReport
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.release.record import Record
from funnel.spec import ReleaseSpec
from tests.funnel.release.test_decision_people import before, origin
from tests.projects import SPEC, spec_of

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
        (ProtocolDocument, 1, {"guarantee": {"declared": OLD}, "utility": {}}, ("guarantee", "declared")),
        (PublicReport, 2, {"guarantee": OLD, "figures": {"guarantee": OLD}}, ("figures", "guarantee")),
        (InternalReport, 2, {"guarantee": OLD, "figures": {"guarantee": OLD}}, ("figures", "guarantee")),
    ],
)
def test_every_reader_upgrades_it(document: Any, version: int, content: Any, place: tuple[str, ...]) -> None:
    found = document.upgraded(version, content)
    for key in place:
        found = found[key]
    assert found == NOW


@pytest.mark.parametrize("document", [FindingsDocument, InternalReport, PublicReport])
def test_what_was_made_since_is_what_it_says(document: Any) -> None:
    """The third versions of these named their set already: nothing of them is taken for something else."""
    content = {"guarantee": OLD, "figures": {"guarantee": OLD}, "frequencies": {"protection": "noise"}}
    found = document.upgraded(3, dict(content))
    assert (found["guarantee"], found["figures"]["guarantee"]) == (OLD, OLD)
    assert found["frequencies"] == content["frequencies"]


def spec_with(guarantee: str, folder: Path) -> ReleaseSpec:
    """A spec whose text says this of its bound."""
    text = SPEC.replace('guarantee = "lip:1.0"\n', "") + f"\n[guarantee]\n{guarantee}\n"
    if not guarantee.startswith("kind"):
        text = SPEC.replace('"lip:1.0"', f'"{guarantee}"')
    return ReleaseSpec.parse(text, folder / "people.toml")


def published(guarantee: str) -> Any:
    """A version whose record says this of its bound, read as its funnel meant it."""
    made = origin(spec_of("x.parquet", "/", record_key=["id"]))
    return before(made.model_copy(update={"guarantee": guarantee}))


@pytest.mark.parametrize(
    ("said", "was"),
    [("rldp:1.0", NOW), ("rldp:1,alpha=0.05", NOW), ('kind = "rldp"\nepsilon = 1.0', NOW)],
)
def test_a_bound_that_was_over_the_other_set_is_not_taken_for_the_same(said: str, was: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        require_set(spec_with(said, tmp_path), [published(was)])
    assert str(caught.value) == (
        "version 1.0.0 of this series was published under rldp:1.0,0.05,chi2, and a bound that names no set of laws is "
        'rldp:1.0,0.05 over boxes now, so nothing was drawn: write set = "chi2" into [guarantee] to keep it as it was, '
        'or set = "boxes" to change it'
    )


@pytest.mark.parametrize(
    ("said", "was"),
    [
        ("rldp:1.0,set=boxes", NOW),
        ("rldp:1.0,0.05,chi2", NOW),
        ("rldp:1.0,set=CHI2", NOW),
        ('kind = "rldp"\nepsilon = 1.0\nset = "boxes"', NOW),
        # Another bound than before: whoever changed it has read what it is.
        ("rldp:2.0", NOW),
        ("rldp:1.0,0.01", NOW),
        ("rlip:1.0", NOW),
        ("lip:1.0", NOW),
        ("rldp:1.0", OLD),
        ("rldp:1.0", "lip:1.0"),
        ("rlip:1.0", "rlip:1.0,0.05"),
    ],
)
def test_a_set_that_is_named_or_was_the_same_is_taken(said: str, was: str, tmp_path: Path) -> None:
    require_set(spec_with(said, tmp_path), [published(was)])
    require_set(spec_with(said, tmp_path), [])


def test_the_newest_version_says_what_the_bound_of_a_series_was(tmp_path: Path) -> None:
    unsaid = spec_with("rldp:1.0", tmp_path)
    old, new = published(NOW), published(OLD)
    newer = replace(new, record=new.record.model_copy(update={"version": "1.1.0"}))
    require_set(unsaid, [old, newer])
    with pytest.raises(SpecError, match=r"version 1\.1\.0"):
        require_set(unsaid, [new, replace(old, record=newer.record.model_copy(update={"origin": old.record.origin}))])


def test_settings_in_memory_are_taken_as_they_are() -> None:
    require_set(spec_of("x.parquet", "/", guarantee="rldp:1.0"), [published(NOW)])
