"""Every way to spoil a released table fails the right expectations, and each says by how much."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.pipeline.expectations import Evidence
from funnel.pipeline.expectations.custom.drawn_inputs import MeasuredInputs
from funnel.pipeline.expectations.custom.released_table import (
    ExpectReleasedCategoriesToEqualDeclared,
    ExpectReleasedCountsToEqualDrawn,
)
from funnel.pipeline.expectations.suite import declare
from tests.verdicts import (
    ALL,
    CATEGORIES,
    COLUMNS,
    COUNTS,
    HIDDEN,
    INPUTS,
    METADATA,
    NULLS,
    OUTPUTS,
    ROWS,
    TYPES,
    failures,
    judge_evidence,
)

Change = Callable[[pa.Table], pa.Table]
Spoil = Callable[[Evidence, Change], Evidence]


def codes_of(table: pa.Table, column: str = "education") -> tuple[list[int], list[str]]:
    """Indices and dictionary of a released column."""
    values = table.column(column).combine_chunks()
    return values.indices.to_pylist(), values.dictionary.to_pylist()


def column_of(codes: list[int | None], categories: list[str]) -> pa.DictionaryArray:
    """A released column of indices and a dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(categories, pa.string()))


# Each change with the expectations that must fail (no others may) and, for one of them, what its sentence says.


def drop_row(table: pa.Table) -> pa.Table:
    return table.slice(1)


def repeat_row(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(0, 2)])


def add_column(table: pa.Table) -> pa.Table:
    return table.append_column("age", pa.array(range(len(table))))


def add_secret(table: pa.Table) -> pa.Table:
    return table.append_column("marital-status", pa.array(["Divorced"] * len(table)).dictionary_encode())


def add_disguised_secret(table: pa.Table) -> pa.Table:
    return table.append_column(" Marital Status", pa.array(["Divorced"] * len(table)))


def rename(table: pa.Table) -> pa.Table:
    return table.rename_columns(["Education"])


def publish_twice(table: pa.Table) -> pa.Table:
    return table.append_column("education", table.column(0))


def plain_text(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([("education", pa.string())]))


def nest(table: pa.Table) -> pa.Table:
    return pa.table({"education": pa.array([[value] for value in table.column(0).to_pylist()])})


def pandas_metadata(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata({"pandas": json.dumps({"index_columns": ["marital-status"]})})


def field_metadata(table: pa.Table) -> pa.Table:
    field = table.schema.field(0).with_metadata({"source": "39, Never-married"})
    return table.cast(pa.schema([field]))


def undeclared_record(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    return pa.table({"education": column_of([len(categories), *codes[1:]], [*categories, "Ada Lovelace"])})


def undeclared_unused(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    return pa.table({"education": column_of(codes, [*categories, "Ada Lovelace", "Masters of old"])})


def true_value(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    return pa.table({"education": column_of(codes, [*categories, "Preschool"])})


def undictionaried(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    last = len(categories) - 1
    return pa.table({"education": column_of([code % last for code in codes], categories[:last])})


def exchange_outputs(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    common = [code for code, _ in Counter(codes).most_common()]
    swapped = {common[0]: common[-1], common[-1]: common[0]}
    return pa.table({"education": column_of([swapped.get(code, code) for code in codes], categories)})


def null_record(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    return pa.table({"education": column_of([None, *codes[1:]], categories)})


SPOILT: list[tuple[Change, set[str], str, str]] = [
    (drop_row, {ROWS, COUNTS}, ROWS, "row count 48,841 instead of 48,842: 1 fewer"),
    (repeat_row, {ROWS, COUNTS}, ROWS, "row count 48,844 instead of 48,842: 2 more"),
    (add_column, {COLUMNS, HIDDEN}, HIDDEN, "1 undeclared column in the file: 'age'"),
    (add_secret, {COLUMNS, HIDDEN}, HIDDEN, "1 secret column in the file: 'marital-status'"),
    (add_disguised_secret, {COLUMNS, HIDDEN}, HIDDEN, "1 secret column in the file: ' Marital Status'"),
    (
        rename,
        {COLUMNS, HIDDEN, CATEGORIES, OUTPUTS, COUNTS},
        COLUMNS,
        "1 column missing: 'education'; 1 column too many: 'Education'",
    ),
    (publish_twice, {COLUMNS, CATEGORIES, OUTPUTS, COUNTS}, COLUMNS, "1 column there more than once: 'education'"),
    (
        publish_twice,
        {COLUMNS, CATEGORIES, OUTPUTS, COUNTS},
        CATEGORIES,
        "column 'education' cannot be read as categories",
    ),
    (plain_text, {TYPES}, TYPES, "1 column of another type than dictionary<string>: 'education' is string"),
    (nest, {TYPES, CATEGORIES, OUTPUTS, COUNTS}, OUTPUTS, "48,842 records in the file"),
    (pandas_metadata, {METADATA}, METADATA, "1 metadata key in the file: 'pandas'"),
    (field_metadata, {METADATA}, METADATA, "1 metadata key in the file: 'source'"),
    (undeclared_record, {CATEGORIES, OUTPUTS, COUNTS}, CATEGORIES, "1 undeclared category on 1 record"),
    (undeclared_unused, {CATEGORIES}, CATEGORIES, "2 undeclared categories on 0 records"),
    (true_value, {CATEGORIES}, CATEGORIES, "1 undeclared category on 0 records: 'Preschool'"),
    (undictionaried, {CATEGORIES, COUNTS}, CATEGORIES, "1 declared category missing: "),
    (exchange_outputs, {COUNTS}, COUNTS, "2 of 16 outputs with another count: "),
    (null_record, {NULLS, OUTPUTS, COUNTS}, NULLS, "1 column with nulls: 'education' has 1 null"),
]


@pytest.mark.parametrize(
    ("change", "expected", "name", "words"), SPOILT, ids=[f"{change.__name__}, {name}" for change, _, name, _ in SPOILT]
)
def test_a_spoilt_file_fails_the_right_expectations(
    adult: Evidence, spoil: Spoil, change: Change, expected: set[str], name: str, words: str
) -> None:
    verdict = judge_evidence(spoil(adult, change))
    found = failures(verdict)
    assert set(found) == expected
    assert words in found[name]
    # What is in no alphabet may come from a source row, so nothing of the verdict repeats it.
    text = json.dumps(verdict.content()) + verdict.sentence()
    assert "Lovelace" not in text
    assert "Never-married" not in text


def test_counts_say_how_far_an_output_is_off(adult: Evidence, spoil: Spoil) -> None:
    codes, categories = codes_of(pq.read_table(adult.released))
    found = failures(judge_evidence(spoil(adult, drop_row)))
    assert found[COUNTS] == (
        f"1 of {len(categories)} outputs with another count: "
        f"{categories[codes[0]]!r} has 1 record fewer than were drawn"
    )


def test_a_column_of_which_nothing_is_known_fails() -> None:
    expectation = ExpectReleasedCategoriesToEqualDeclared(column="education", categories=["HS-grad"])
    assert expectation.find([]).failure == "column 'education' cannot be read as categories"


def test_counts_that_do_not_fit_their_labels_are_an_error() -> None:
    """Cut off at the shorter of the two, a count that is wrong could be among those left out."""
    expectation = ExpectReleasedCountsToEqualDrawn(labels=["a"], drawn=[3, 4])
    with pytest.raises(ValueError, match="zip"):
        expectation.find([{"output": 0, "records": 3}, {"output": 1, "records": 5}])


def test_columns_out_of_order_fail(small: Evidence, spoil: Spoil) -> None:
    found = failures(judge_evidence(spoil(small, lambda table: table.select(["size", "colour"]))))
    assert set(found) == {COLUMNS}
    assert found[COLUMNS] == "the columns are in the order 'size', 'colour' instead of 'colour', 'size'"


def test_declared_categories_in_an_undeclared_combination_fail(small: Evidence, spoil: Spoil) -> None:
    def combine(table: pa.Table) -> pa.Table:
        colours, first = codes_of(table, "colour")
        sizes, second = codes_of(table, "size")
        colours[0], sizes[0] = first.index("blue"), second.index("L")
        return pa.table({"colour": column_of(colours, first), "size": column_of(sizes, second)})

    found = failures(judge_evidence(spoil(small, combine)))
    assert set(found) == {OUTPUTS, COUNTS}
    assert found[OUTPUTS] == "1 record in the file that no output of the protocol stands for"


def test_no_records_fail_every_expectation(adult: Evidence, spoil: Spoil) -> None:
    found = failures(judge_evidence(spoil(adult, lambda table: table.slice(0, 0))))
    assert set(found) == ALL
    assert set(found.values()) == {"the file holds no records"}


def test_no_columns_fail_every_expectation(adult: Evidence, spoil: Spoil) -> None:
    assert set(failures(judge_evidence(spoil(adult, lambda table: table.select([]))))) == ALL


def test_a_file_that_is_not_parquet_fails_every_expectation(adult: Evidence, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(adult.released.read_bytes()[:-100])
    for released in (path, tmp_path / "missing.parquet"):
        found = failures(judge_evidence(replace(adult, released=released)))
        assert set(found) == ALL
        (sentence,) = set(found.values())
        assert sentence.startswith("its evidence could not be gathered: ")
        assert "cannot be read back as parquet" in sentence


def test_inputs_that_drew_once_too_often_or_too_rarely_are_told_apart(adult: Evidence) -> None:
    (inputs,) = (one for one in declare(adult) if one.configuration.type == INPUTS)
    n = adult.snapshot_rows
    found = inputs.find(MeasuredInputs(n, 16, {"input 'a'": 1, "input 'b'": -1}))
    assert found.failure == (
        "2 of 16 inputs drew other than as often as they occur: input 'a' has 1 draw too many, "
        "input 'b' has 1 draw too few"
    )
    assert inputs.find(MeasuredInputs(n, 16, {})).failure is None
    assert inputs.find(MeasuredInputs(n - 1, 16, {})).failure == f"{n - 1:,} draws for a snapshot of {n:,}"


def test_a_column_that_is_not_there_counts_no_records(small: Evidence, spoil: Spoil) -> None:
    table = spoil(small, lambda table: table.rename_columns(["Colour", "size"])).tables["categories"]
    (unread,) = table[table["column"] == "colour"].to_dict("records")
    assert (unread["readable"], unread["records"]) == (False, 0)
    assert not isinstance(unread["category"], str)
    assert table[table["column"] == "size"]["records"].sum() == 300
