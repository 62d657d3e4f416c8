"""What a release says of itself in formats of others, judged by the validators of these formats, on a real release."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from frictionless import Package, Report
from rdflib import RDF, Graph, Literal, Namespace, URIRef

from funnel.recount.documentation import documentation_again
from funnel.release.handouts import documentation
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from scripts.official_shapes import OURS, entry, violations
from tests.copies import copied
from tests.schemas import validated as by_schema

STANDARDS = Path(__file__).parent / "standards"
DCAT = Namespace("http://www.w3.org/ns/dcat#")


@pytest.fixture
def copy(published: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    return copied(published, tmp_path / "1.0.0")


def validated(folder: ReleaseFolder) -> Report:
    """What the validator of the Data Package standard says of metadata and tables, both of them read to the end."""
    return Package(str(folder.package)).validate()


def test_the_package_and_both_tables_are_valid_data_packages(published: ReleaseFolder) -> None:
    report = validated(published)
    assert report.flatten(["name", "type", "message"]) == []
    assert report.valid
    tables = [(task.place, task.stats["rows"]) for task in report.tasks]
    assert tables == [("data/records.csv", 1000), ("data/records.parquet", 1000)]


def test_the_validator_sees_another_value_in_either_table(copy: ReleaseFolder) -> None:
    rows = pq.read_table(copy.data)
    pq.write_table(rows.set_column(1, "sex", [["Unheard of"] * rows.num_rows]), copy.data)
    lines = copy.csv.read_text().splitlines(keepends=True)
    copy.csv.write_text("".join([*lines[:-1], '"Unheard of","Female"\n']))
    report = validated(copy)
    found = {task.name: {error.type for error in task.errors} for task in report.tasks}
    assert found == {"people": {"constraint-error"}, "people-csv": {"constraint-error", "hash-count", "byte-count"}}


def documents(folder: ReleaseFolder) -> tuple[dict[str, Any], dict[str, Any]]:
    return json.loads(folder.package.read_bytes()), json.loads(folder.protocol.read_bytes())


def test_the_block_on_privacy_is_valid_for_its_published_schema(published: ReleaseFolder) -> None:
    package, _ = documents(published)
    block = package["funnel:privacy"]
    assert by_schema(block) == "privacy"
    with pytest.raises(jsonschema.ValidationError):
        by_schema({**block, "meaning": None})


def test_every_document_that_is_written_is_valid_for_the_schema_that_it_names(published: ReleaseFolder) -> None:
    contents = {
        where + path.name: json.loads(path.read_bytes())
        for where, folder in (("", published.root), ("internal/", published.internal))
        for path in folder.rglob("*.json")
    }
    # The data package has the schema of its standard, and its block on privacy one of ours.
    assert contents.pop("datapackage.json")["$schema"].startswith("https://datapackage.org/")
    assert {name: by_schema(content) for name, content in contents.items()} == {
        "protocol.json": "protocol",
        "report.json": "report",
        "signature.json": "signature",
        "internal/draws.json": "draws",
        "internal/findings.json": "findings",
        "internal/joint.json": "joint",
        "internal/release.json": "record",
        "internal/report.json": "internal",
        "internal/verdict.json": "verdict",
        "internal/words.json": "words",
    }


def test_the_citation_is_valid_for_the_schema_of_its_format(published: ReleaseFolder) -> None:
    judge = jsonschema.Draft7Validator(json.loads((STANDARDS / "cff-1.2.0.schema.json").read_bytes()))
    package, protocol = documents(published)
    # Without anything that may be left out; with a licence that the format does not know; with letters that need care.
    bare = {key: package[key] for key in ("title", "version", "created", "name", "resources", "funnel:privacy")}
    own = {**bare, "licenses": [{"name": "Our own", "path": "https://example.org/licence"}], "keywords": ["a", "a"]}
    odd = {**package, "title": "a: b\u2028#\t'\u0085\U0001f600\\", "contributors": [{"email": "a@example.org"}]}
    for one in (package, {**bare, "licenses": [{"name": "Our own"}]}, own, odd):
        text = documentation(one, protocol)["CITATION.cff"]
        assert text == documentation_again(one, protocol, None)["CITATION.cff"]
        content = yaml.safe_load(text)
        assert [error.message for error in judge.iter_errors(content)] == []
        assert content["title"] == one["title"]
    assert yaml.safe_load(published.citation.read_bytes())["authors"] == [
        {"name": "Office of Tests", "email": "office@example.org"}
    ]
    assert list(judge.iter_errors({**content, "authors": []}))


BASE = "https://example.org/people/"


def parsed(text: bytes) -> Graph:
    """The statements of JSON-LD that lies in the folder of a version."""
    return entry(text, f"{BASE}1.0.0/dcat.jsonld")


def breaks(text: bytes) -> list[str]:
    """What of JSON-LD is not what DCAT-AP 3 asks for."""
    return violations(parsed(text), Graph().parse(OURS))


def test_the_catalogue_entry_is_what_dcat_ap_asks_for(published: ReleaseFolder) -> None:
    package, protocol = documents(published)
    bare = {**package, "licenses": [{"name": "Our own"}]}
    for key in ("description", "keywords", "contributors", "sources"):
        del bare[key]
    for one, previous in ((package, None), (package, "0.9.0"), (bare, None)):
        text = documentation(one, protocol, previous)["dcat.jsonld"]
        assert text == documentation_again(one, protocol, previous)["dcat.jsonld"]
        assert breaks(text) == []
    content = json.loads(published.catalogue.read_bytes())
    for position, key, value in ((0, "dct:description", None), (1, "dct:title", None), (2, "dcat:accessURL", None)):
        spoilt = json.loads(published.catalogue.read_bytes())
        spoilt["@graph"][position][key] = value
        assert breaks(json.dumps(spoilt).encode()), key
    content["@graph"][2]["dcat:byteSize"] = "many"
    assert "byteSize" in "".join(breaks(json.dumps(content).encode()))


def test_a_version_is_a_member_of_its_series_wherever_it_lies(published: ReleaseFolder) -> None:
    package, protocol = documents(published)
    graph = parsed(documentation(package, protocol, "0.9.0")["dcat.jsonld"])
    version, series = URIRef(f"{BASE}1.0.0/"), URIRef(BASE)
    assert set(graph.subjects(RDF.type, DCAT.DatasetSeries)) == {series} == set(graph.objects(version, DCAT.inSeries))
    assert set(graph.objects(version, DCAT.prev)) == {URIRef(f"{BASE}0.9.0/")}
    tables = {str(one).removeprefix(f"{BASE}1.0.0/") for one in graph.objects(version, DCAT.distribution)}
    assert tables == {"data/records.csv", "data/records.parquet"}
    (block,) = graph.objects(version, URIRef("urn:uuid:6f1a1c62-8d0e-5d5c-9b43-2f0c7f6d7a10#privacy"))
    assert Literal("lip:1.0") in set(graph.objects(block))


def test_the_arithmetic_of_the_readme_finds_the_likeliest_shares(published: ReleaseFolder) -> None:
    """Done with the two csv files alone, as the README says it: nothing that is likelier is near what it ends at."""
    with published.channel.open(newline="") as file:
        lines = list(csv.DictReader(file))
    with published.csv.open(newline="") as file:
        counted = Counter((row["relationship"], row["sex"]) for row in csv.DictReader(file))
    probability = {
        ((line["true relationship"], line["true sex"]), (line["published relationship"], line["published sex"])): float(
            line["probability"]
        )
        for line in lines
    }
    values = list(dict.fromkeys(x for x, _ in probability))
    shares = dict.fromkeys(values, 1 / len(values))
    total = sum(counted.values())
    for _ in range(1000):
        expected: Counter[tuple[str, str]] = Counter()
        for (x, y), p in probability.items():
            expected[y] += shares[x] * p  # type: ignore[assignment]
        shares = {
            x: share * sum(counted[y] / total * p / expected[y] for (one, y), p in probability.items() if one == x)
            for x, share in shares.items()
        }
    assert sum(shares.values()) == pytest.approx(1)
    # By the conditions for a maximum, under the protocol itself, no other shares are likelier.
    protocol = ProtocolDocument.read(published.protocol).protocol
    q = np.array([counted[y] for y in protocol.outputs.symbols]) / total
    p = np.array([shares[x] for x in protocol.inputs.symbols])
    slope = protocol.matrix.T @ (q / (protocol.matrix @ p))
    assert slope.max() <= 1 + 1e-3
    assert slope @ p == pytest.approx(1)


def test_nothing_in_a_readme_acts_and_both_writers_agree_on_odd_texts(published: ReleaseFolder) -> None:
    package, protocol = documents(published)
    odd = {**package, "title": "<script>x</script> [a](b) | `c` & #d", "description": "one\n\n# two\t*three*"}
    odd["licenses"] = [{"name": "*Ours*", "path": "https://example.org/<b>_a_"}]
    text = documentation(odd, protocol)["README.md"]
    assert text == documentation_again(odd, protocol, None)["README.md"]
    for protection, begun in (
        ("threshold", "Of the frequencies behind it, rare"),
        ("noise", "The frequencies behind it"),
    ):
        path = "frequencies.json" if protection == "noise" else None
        behind = {**package["funnel:privacy"]["frequencies"], "protection": protection, "path": path}
        behind["meaning"] = "rare ones"
        told = {**odd, "funnel:privacy": {**package["funnel:privacy"], "frequencies": behind}}
        now = documentation(told, protocol)
        now.pop("estimator.csv", None)
        assert now == documentation_again(told, protocol, None)
        assert f"\n\n{begun}".encode() in now["README.md"]
    head = text.decode().splitlines()[:5]
    assert r"Licence: \*Ours\* (<https://example.org/%3Cb%3E_a_>)." in head[4]
    assert head[0] == r"# \<script\>x\</script\> \[a\](b) \| \`c\` \& \#d"
    assert head[2] == r"one \# two \*three\*"


SEARCHED = {"utility": "information", "share": 0.7993, "gap": 0.00061, "weights": None}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (None, "By how much another protocol could be better is not known."),
        (
            {**SEARCHED, "of": "kept"},
            "Of the information in the published columns the protocol keeps 79.9%: under the same promise, no protocol "
            "that reads the same keeps more than 80.0%, 0.1 points more.",
        ),
        (
            {**SEARCHED, "of": "kept", "utility": "variance", "gap": 0.1},
            "Of the variance of the numbers that published values stand for the protocol keeps 79.9%: under the same "
            "promise, no protocol that reads the same keeps more than 90.0%, 10.0 points more.",
        ),
        (
            {**SEARCHED, "of": "unchanged", "weights": "root"},
            "Under the same promise, no protocol that keeps values as they are and tables right on average leaves more "
            "than 0.07 points more of the records unchanged, where rare values count for more than their share of the "
            "records.",
        ),
        (
            {**SEARCHED, "of": "classes", "weights": "share"},
            "Under the same promise, no protocol that moves whole records by their class alone and keeps tables right "
            "on average leaves more than 0.07 points more of the records unchanged, where every record counts alike.",
        ),
    ],
)
def test_the_readme_says_how_near_to_the_best_a_protocol_is(
    published: ReleaseFolder, found: dict[str, Any] | None, told: str
) -> None:
    package, protocol = json.loads(published.package.read_bytes()), json.loads(published.protocol.read_bytes())
    package["funnel:privacy"]["certificate"] = found
    text = documentation(package, protocol)["README.md"]
    assert f"\n\n**How near to the best.** {told}\n\n" in text.decode()
    assert text == documentation_again(package, protocol, None)["README.md"]


def test_handouts_of_a_wide_table_are_those_of_its_weights(published: ReleaseFolder) -> None:
    """Weights without their zeros say the same."""
    package, protocol = documents(published)
    sparse = [{str(x): weight for x, weight in enumerate(row) if weight != "0"} for row in protocol["weights"]]
    assert documentation(package, {**protocol, "weights": sparse}) == documentation(package, protocol)
    again = documentation_again(package, {**protocol, "weights": sparse}, None)
    assert again == {name: text for name, text in documentation(package, protocol).items() if name != "estimator.csv"}
