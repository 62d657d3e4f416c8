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

from funnel.audit.encoding import check_table
from funnel.audit.released_columns import ReleasedColumns
from funnel.pipeline.expectations import Evidence
from funnel.pipeline.expectations.custom import ExpectReleasedCountsToEqualDrawn
from tests.verdicts import ALL, COLUMNS, COUNTS, OUTPUTS, failures, judge_evidence

Change = Callable[[pa.Table], pa.Table]
Spoil = Callable[[Evidence, Change], Evidence]


def codes_of(table: pa.Table, column: str = "education") -> tuple[list[int], list[str]]:
    """Indices and dictionary of a released column."""
    values = table.column(column).combine_chunks()
    return values.indices.to_pylist(), values.dictionary.to_pylist()


def column_of(codes: list[int | None], categories: list[str]) -> pa.DictionaryArray:
    """A released column of indices and a dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(categories, pa.string()))


def table_of(codes: list[int | None], categories: list[str]) -> pa.Table:
    """A released table of one column, in which nothing may be null, as in every released one."""
    column = column_of(codes, categories)
    nullable = None in codes
    return pa.table([column], schema=pa.schema([pa.field("education", column.type, nullable=nullable)]))


# Each change with the expectations that must fail and what one of them says; where none does, the audit's checks.


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
    return table.cast(pa.schema([pa.field("education", pa.string(), nullable=False)]))


def nest(table: pa.Table) -> pa.Table:
    return pa.table({"education": pa.array([[value] for value in table.column(0).to_pylist()])})


def pandas_metadata(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata({"pandas": json.dumps({"index_columns": ["marital-status"]})})


def field_metadata(table: pa.Table) -> pa.Table:
    field = table.schema.field(0).with_metadata({"source": "39, Never-married"})
    return table.cast(pa.schema([field]))


def undeclared_record(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    return table_of([len(categories), *codes[1:]], [*categories, "Ada Lovelace"])


def undeclared_unused(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    return table_of(codes, [*categories, "Ada Lovelace", "Masters of old"])


def true_value(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    return table_of(codes, [*categories, "Preschool"])


def undictionaried(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    last = len(categories) - 1
    return table_of([code % last for code in codes], categories[:last])


def exchange_outputs(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    common = [code for code, _ in Counter(codes).most_common()]
    swapped = {common[0]: common[-1], common[-1]: common[0]}
    return table_of([swapped.get(code, code) for code in codes], categories)


def null_record(table: pa.Table) -> pa.Table:
    codes, categories = codes_of(table)
    return table_of([None, *codes[1:]], categories)


UNREADABLE = "its evidence could not be gathered: spoiled.parquet"
SPOILT: list[tuple[Change, set[str], str]] = [
    (drop_row, {COUNTS}, "1 of 16 outputs with another count: "),
    (repeat_row, {COUNTS}, "of 16 outputs with another count: "),
    (add_column, {COLUMNS}, "the columns are 'education', 'age' instead of 'education'"),
    (add_secret, {COLUMNS}, "the columns are 'education', 'marital-status' instead of 'education'"),
    (add_disguised_secret, {COLUMNS}, "the columns are 'education', ' Marital Status' instead of 'education'"),
    (rename, ALL, UNREADABLE),
    (publish_twice, ALL, UNREADABLE),
    (plain_text, set(), "not what funnel writes for its rows"),
    (nest, ALL, "its evidence could not be gathered: "),
    (pandas_metadata, set(), "not what funnel writes for its rows"),
    (field_metadata, set(), "not what funnel writes for its rows"),
    (undeclared_record, {OUTPUTS, COUNTS}, "1 record in the file that no output of the protocol stands for"),
    (undeclared_unused, set(), "not what funnel writes for its rows"),
    (true_value, set(), "not what funnel writes for its rows"),
    (undictionaried, {COUNTS}, "of 16 outputs with another count: "),
    (exchange_outputs, {COUNTS}, "2 of 16 outputs with another count: "),
    (null_record, ALL, "a cell without a value"),
]


def audited(evidence: Evidence) -> dict[str, str]:
    """What the checks of an audit say of the table, by their names."""
    columns = ReleasedColumns.of_outputs(evidence.protocol.outputs)
    return {one.name: one.detail for one in check_table(evidence.released, columns)[:2] if not one.passed}


@pytest.mark.parametrize(("change", "expected", "words"), SPOILT, ids=[change.__name__ for change, _, _ in SPOILT])
def test_a_spoilt_file_fails_the_right_expectations_or_the_audit(
    adult: Evidence, spoil: Spoil, change: Change, expected: set[str], words: str
) -> None:
    spoilt = spoil(adult, change)
    verdict, checks = judge_evidence(spoilt), audited(spoilt)
    found = failures(verdict)
    assert set(found) == expected
    assert any(words in sentence for sentence in [*found.values(), *checks.values()])
    # Only that rows are fewer, more or exchanged is none of the audit's: it has them from the draws.
    assert bool(checks) is (change not in (drop_row, repeat_row, exchange_outputs))
    # What is in no alphabet may come from a source row, so nothing of the verdict repeats it.
    text = json.dumps(verdict.content()) + verdict.sentence() + "".join(checks.values())
    assert "Lovelace" not in text
    assert "Never-married" not in text


def test_a_file_as_funnel_writes_it_passes_the_audit(adult: Evidence, spoil: Spoil) -> None:
    assert audited(spoil(adult, lambda table: table)) == {}


def test_counts_say_how_far_an_output_is_off(adult: Evidence, spoil: Spoil) -> None:
    codes, categories = codes_of(pq.read_table(adult.released))
    found = failures(judge_evidence(spoil(adult, drop_row)))
    assert found[COUNTS] == (
        f"1 of {len(categories)} outputs with another count: "
        f"{categories[codes[0]]!r} has 1 record fewer than were drawn"
    )


def test_counts_that_do_not_fit_their_labels_are_an_error() -> None:
    """Cut off at the shorter of the two, a count that is wrong could be among those left out."""
    expectation = ExpectReleasedCountsToEqualDrawn(labels=["a"], drawn=[3, 4])
    with pytest.raises(ValueError, match="zip"):
        expectation.find([{"output": 0, "records": 3}, {"output": 1, "records": 5}])


def test_columns_out_of_order_fail(small: Evidence, spoil: Spoil) -> None:
    found = failures(judge_evidence(spoil(small, lambda table: table.select(["size", "colour"]))))
    assert set(found) == {COLUMNS}
    assert found[COLUMNS] == "the columns are 'size', 'colour' instead of 'colour', 'size'"


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


def test_a_file_that_is_not_parquet_fails_every_expectation(adult: Evidence, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(adult.released.read_bytes()[:-100])
    for released in (path, tmp_path / "missing.parquet"):
        found = failures(judge_evidence(replace(adult, released=released)))
        assert set(found) == ALL
        assert all(sentence.startswith("its evidence could not be gathered: ") for sentence in found.values())
