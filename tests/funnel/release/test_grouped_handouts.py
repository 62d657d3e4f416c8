"""What a release of groups tells people and portals, by the validators of these formats and by its own arithmetic."""

from __future__ import annotations

import csv
import json
from collections import Counter
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
import yaml

import funnel
from funnel.recount.grouped_handouts import grouped_handouts_again
from funnel.recount.handouts import TEXTS
from funnel.release.channel_rows import ChannelRow, read_channel_rows
from funnel.release.handouts import grouped_handouts
from funnel.release.reading import GroupedRelease
from tests.funnel.release.test_standards import STANDARDS, breaks, validated
from tests.groups import grouped_release
from tests.schemas import validated as by_schema


def documents() -> tuple[dict[str, Any], list[ChannelRow]]:
    folder = grouped_release()
    return json.loads(folder.package.read_bytes()), read_channel_rows(folder.channels)


MEANING = "rare combinations are grouped; the counts of the others are exact, and only rounded"


def again(
    package: dict[str, Any], rows: list[ChannelRow], previous: str | None = None, text: int = TEXTS[-1]
) -> dict[str, bytes]:
    lines = [(row[:2], row[2:4], row[4:6], row[6], row[7]) for row in rows]
    return grouped_handouts_again(package, lines, previous, text)


def test_the_package_is_valid_and_says_the_units_and_ranges_of_numbers() -> None:
    folder = grouped_release()
    assert validated(folder).flatten(["name", "type", "message"]) == []
    package, _ = documents()
    told = {field["name"]: field.get("funnel:numbers") for field in package["resources"][0]["schema"]["fields"]}
    assert told.pop("age") == {
        "unit": "years",
        "range": [17, 90],
        "whole": True,
        "intervals": {"under 30": [17, 29], "30 to under 50": [30, 49], "50 and over": [50, 90]},
    }
    assert set(told.values()) == {None}
    assert by_schema(package["funnel:privacy"]) == "grouped-privacy"
    with pytest.raises(jsonschema.ValidationError):
        by_schema({**package["funnel:privacy"], "meaning": None})


def test_every_document_is_valid_for_the_schema_that_it_names() -> None:
    folder = grouped_release()
    names = {str(path.relative_to(folder.root)) for path in folder.root.rglob("*.json")} - {"datapackage.json"}
    for name in names:
        assert by_schema(json.loads((folder.root / name).read_bytes()))


def test_citation_and_catalogue_are_what_their_formats_ask_for() -> None:
    package, rows = documents()
    judge = jsonschema.Draft7Validator(json.loads((STANDARDS / "cff-1.2.0.schema.json").read_bytes()))
    for previous in (None, "0.9.0"):
        told = grouped_handouts(package, rows, previous)
        assert told == again(package, rows, previous)
        assert not list(judge.iter_errors(yaml.safe_load(told["CITATION.cff"])))
        assert breaks(told["dcat.jsonld"]) == []
    assert told["README.md"] == grouped_release().readme.read_bytes()


def test_both_writers_agree_on_odd_texts_and_on_values_that_none_has() -> None:
    package, rows = documents()
    odd = {**package, "title": "<script>x</script> [a](b)", "description": "one\n\n# two\t*three*"}
    odd["licenses"] = [{"name": "*Ours*", "path": "https://example.org/<b>_a_"}]
    strange: list[ChannelRow] = [
        ("=a", None, '"x" or | y', None, "any", None, 0.5, 1.0),
        ("=a", None, "z", None, "+z", None, 0.5, 0.25),
        ("=a", None, "z", None, None, None, 0.5, 0.75),
        ("=a", "b", "z", "u", None, None, 0.5, 1.0),
    ]
    few: list[ChannelRow] = [("=a", None, None, None, "any", None, 1.0, 1.0)]
    for some in (rows, strange, few):
        assert grouped_handouts(odd, some) == again(odd, some)
    protected = {**package["funnel:privacy"]["frequencies"], "protection": "threshold", "meaning": MEANING}
    grouped = {**odd, "funnel:privacy": {**package["funnel:privacy"], "frequencies": protected}}
    told = grouped_handouts(grouped, rows)
    assert told == again(grouped, rows)
    assert f"\n\nOf the frequencies behind it, {MEANING}.\n\n" in told["README.md"].decode()
    # Releases that are out have the first wording, of which nothing else differs.
    before = again(grouped, rows, text=1)
    was = f"\n\nThe frequencies behind it are {MEANING}.\n\n"
    assert before.pop("README.md").decode().split(was) == told.pop("README.md").decode().split(
        f"\n\nOf the frequencies behind it, {MEANING}.\n\n"
    )
    assert before == told
    assert b"none is told by itself" in grouped_handouts(odd, few)["README.md"]
    assert grouped_handouts(odd, strange)["protocol.csv"].decode().splitlines()[1:] == [
        '"\'=a","""x"" or | y","any",0.5,1.0',
        '"\'=a","z","\'+z",0.5,0.25',
        '"\'=a","z",,0.5,0.75',
    ]


def test_the_arithmetic_of_the_readme_finds_the_shares_of_a_column() -> None:
    folder = grouped_release()
    with folder.channel.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["column"] == "relationship"]
    probability = {(line["true value"], line["published value"]): float(line["probability"]) for line in lines}
    told = {line["true value"]: float(line["share"]) for line in lines}
    named = {shown for _, shown in probability}
    values = pq.read_table(folder.data).column("relationship").to_pylist()
    counted = Counter(value if value in named else "" for value in values)
    assert sum(counted[y] for y in named) == len(values)
    shares = dict.fromkeys(told, 1 / len(told))
    for _ in range(300):
        expected: Counter[str] = Counter()
        for (x, y), p in probability.items():
            expected[y] += shares[x] * p  # type: ignore[assignment]
        shares = {
            x: share
            * sum(counted[y] / len(values) * p / expected[y] for (one, y), p in probability.items() if one == x)
            for x, share in shares.items()
        }
    assert sum(shares.values()) == pytest.approx(1)
    assert shares == pytest.approx(told, abs=0.05)


def test_a_release_of_groups_is_opened_as_its_readers_take_it() -> None:
    folder = grouped_release()
    opened = funnel.open_release(folder.root)
    assert isinstance(opened, GroupedRelease)
    assert (opened.version, opened.privacy.made_for, opened.privacy.published) == (
        "1.0.0",
        opened.protocol.people,
        opened.document.columns,
    )
    assert opened.privacy.groups == tuple(stage.columns for stage in opened.protocol.stages)
    assert opened.table(["age"]).num_rows == opened.privacy.records
