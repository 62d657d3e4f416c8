"""Catalogue entries under shapes of others: what is violated is told, and what our own shapes do not ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rdflib import Graph

from funnel.release.handouts import documentation
from funnel.release.layout import ReleaseFolder
from scripts.official_shapes import OURS, Constraint, constraints, main, with_what_follows

# A licence that a dataset has to have is violated; one title at most is asked by nobody else; no entry has a theme; and
# a title at least is asked by our own shapes too.
OTHERS = """
@prefix : <urn:shapes#> .
@prefix dcat: <http://www.w3.org/ns/dcat#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .

:Dataset a sh:NodeShape ;
    sh:closed false ;
    sh:targetClass dcat:Dataset ;
    sh:nodeKind sh:IRI ;
    sh:property :licence , :title , :titles , :theme , :nowhere .
:licence sh:path dct:license ; sh:minCount 1 ; sh:name "licence"@en .
:title sh:path dct:title ; sh:minCount 1 .
:titles sh:path dct:title ; sh:maxCount 1 ; sh:in ( "one" "People: a \\"test\\" & more" ) .
:theme sh:path dcat:theme ; sh:class skos:Concept .
:Catalog a sh:NodeShape ; sh:targetClass dcat:Catalog ; sh:property [ sh:path dct:title ; sh:minCount 1 ] .
"""


@pytest.fixture
def series(published: ReleaseFolder, tmp_path: Path) -> Path:
    """Catalogue entries of two versions."""
    package, protocol = (json.loads(path.read_bytes()) for path in (published.package, published.protocol))
    for version, previous in (("1.0.0", None), ("1.1.0", "1.0.0")):
        place = tmp_path / "people" / version / "dcat.jsonld"
        place.parent.mkdir(parents=True)
        place.write_bytes(documentation({**package, "version": version}, protocol, previous)["dcat.jsonld"])
    return tmp_path / "people"


@pytest.fixture
def shapes(tmp_path: Path) -> str:
    (tmp_path / "others.ttl").write_text(OTHERS, encoding="utf-8")
    return str(tmp_path / "others.ttl")


def lines_below(printed: str, head: str) -> list[str]:
    """What is listed under a line."""
    lines = printed.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith(head))
    listed = lines[at + 1 : at + 1 + int(lines[at].rpartition(" ")[2])]
    return [line.strip() for line in listed]


def test_what_is_violated_and_what_is_not_asked_by_our_own_shapes_is_told(
    series: Path, shapes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([shapes, str(series), "--all"]) == 1
    printed = capsys.readouterr().out
    for name, number in (("people/1.0.0", 1), ("people/1.1.0", 1), ("all together", 2)):
        found = lines_below(printed, f"{name}: violated")
        assert len(found) == number
        assert all("dcterms:license sh:MinCountConstraintComponent" in line for line in found)
    assert lines_below(printed, "left out, since the file does not say what they ask") == ["<urn:shapes#nowhere>"]
    assert lines_below(printed, "on what is there, and not among our own shapes") == [
        'dcat:Dataset dcterms:title sh:in (one People: a "test" & more)',
        "dcat:Dataset dcterms:title sh:maxCount 1",
        "dcat:Dataset sh:nodeKind sh:IRI",
    ]
    assert lines_below(printed, "on properties that no entry has") == [
        "dcat:Dataset dcat:theme sh:class skos:Concept",
        "dcat:Dataset dcterms:license sh:minCount 1",
    ]
    assert "dcat:Dataset: 2 nodes, 6 constraints, 4 of them on what is there" in printed
    assert "dcat:Catalog" not in printed


def test_our_own_shapes_find_nothing_in_a_series_nor_in_a_version(
    series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (series, series / "1.1.0"):
        assert main([str(OURS), str(folder)]) == 0
        printed = capsys.readouterr().out
        assert ("all together" in printed) == (folder == series)
        # And they were about something.
        assert "dcat:DatasetSeries: 1 nodes" in printed


def test_one_publisher_of_a_series_for_whoever_reads_all_versions(
    series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nodes without names are others in every file, so that a series of two versions had two publishers."""

    def nameless(node: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in node.items() if key != "@id"}

    for place in series.glob("*/dcat.jsonld"):
        content = json.loads(place.read_bytes())
        for node in content["@graph"][:2]:
            node["dct:publisher"] = nameless(node["dct:publisher"])
        place.write_text(json.dumps(content), encoding="utf-8")
    assert main([str(OURS), str(series)]) == 1
    printed = capsys.readouterr().out
    assert lines_below(printed, "people/1.1.0: violated") == []
    (line,) = lines_below(printed, "all together: violated")
    assert "dcterms:publisher sh:MaxCountConstraintComponent" in line


def test_a_folder_without_an_entry_is_refused(tmp_path: Path, shapes: str) -> None:
    with pytest.raises(SystemExit, match=r"has no dcat\.jsonld"):
        main([shapes, str(tmp_path)])


def test_the_same_is_asked_however_it_is_written() -> None:
    def asked(text: str) -> set[str]:
        head = OTHERS[: OTHERS.index(":Dataset")]
        return set(map(str, constraints(Graph().parse(data=head + text, format="turtle"))))

    together = asked(
        ":a sh:targetClass dcat:Dataset ; sh:property [ sh:path dct:title ; sh:minCount 1 ; sh:maxCount 1 ] ."
    )
    apart = asked(
        ":a sh:targetClass dcat:Dataset ; sh:property :b , :c ."
        ":b sh:path dct:title ; sh:minCount 1 ; sh:order 2 ; :told 3 ."
        ":c sh:path dct:title ; sh:maxCount 1 ; sh:message 'no' ."
    )
    assert together == apart == {"dcat:Dataset dcterms:title sh:minCount 1", "dcat:Dataset dcterms:title sh:maxCount 1"}
    assert asked(
        ":a sh:targetClass dcat:Dataset ; sh:property [ sh:path ( dct:title [ sh:inversePath dct:source ] ) ;"
        " sh:or ( [ sh:minCount 1 ; sh:class dcat:Role ] [ sh:nodeKind sh:IRI ] ) ] ."
    ) == {
        "dcat:Dataset (dcterms:title [sh:inversePath dcterms:source]) "
        "sh:or ([sh:class dcat:Role; sh:minCount 1] [sh:nodeKind sh:IRI])"
    }


@pytest.mark.parametrize(
    ("component", "value", "kinds"),
    [
        ("sh:class", "foaf:Agent", {"sh:BlankNodeOrIRI"}),
        ("sh:datatype", "xsd:hexBinary", {"sh:Literal", "sh:BlankNodeOrLiteral", "sh:IRIOrLiteral"}),
        ("sh:nodeKind", "sh:IRI", {"sh:BlankNodeOrIRI", "sh:IRIOrLiteral"}),
        ("sh:minCount", "1", set()),
    ],
)
def test_kinds_of_nodes_that_follow_are_not_missing(component: str, value: str, kinds: set[str]) -> None:
    one = Constraint("dcat:Dataset", "dcterms:publisher", component, value)
    others = {Constraint("dcat:Dataset", "dcterms:publisher", "sh:nodeKind", kind) for kind in kinds}
    assert with_what_follows({one}) == {one} | others
