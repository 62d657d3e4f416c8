"""The judge passes a good release, and refuses every spoilt one for the right reason, saying by how much."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.audit.false_alarms import SHARES
from funnel.errors import ReleaseRefused
from funnel.pipeline.expectations import Evidence, Verdict, judge, judging
from funnel.pipeline.expectations.custom.base import Measured, named
from funnel.pipeline.expectations.custom.categories import ExpectReleasedCategoriesToEqualDeclared
from funnel.pipeline.expectations.custom.counts import ExpectReleasedCountsToEqualDrawn
from funnel.pipeline.expectations.custom.drawn_inputs import MeasuredInputs
from funnel.pipeline.expectations.engine import ExpectationSuite
from funnel.pipeline.expectations.evidence import ROWS as TOTAL
from funnel.pipeline.expectations.suite import declare

COLUMNS = "expect_released_columns_to_equal_declared"
HIDDEN = "expect_no_secret_or_undeclared_column"
TYPES = "expect_released_columns_to_be_categories"
METADATA = "expect_released_file_to_carry_no_metadata"
NULLS = "expect_released_columns_to_hold_no_nulls"
ROWS = "expect_released_rows_to_equal_snapshot"
CATEGORIES = "expect_released_categories_to_equal_declared"
OUTPUTS = "expect_released_symbols_to_be_outputs"
COUNTS = "expect_released_counts_to_equal_drawn"
INPUTS = "expect_drawn_inputs_to_equal_snapshot"
DRAWS = "expect_draws_to_follow_protocol"
LEVEL = "expect_protocol_level_to_meet_bound"
ALL = {COLUMNS, HIDDEN, TYPES, METADATA, NULLS, ROWS, CATEGORIES, OUTPUTS, COUNTS, INPUTS, DRAWS, LEVEL}

Change = Callable[[pa.Table], pa.Table]
Spoil = Callable[[Evidence, Change], Evidence]


def failures(verdict: Verdict) -> dict[str, str]:
    """Failure sentences by expectation; the verdict must agree with them."""
    assert verdict.passed is not bool(verdict.failed)
    assert all(judgement.name in verdict.sentence() for judgement in verdict.failed)
    return {judgement.name: str(judgement.failure) for judgement in verdict.failed}


def codes_of(table: pa.Table, column: str = "education") -> tuple[list[int], list[str]]:
    """Indices and dictionary of a released column."""
    values = table.column(column).combine_chunks()
    return values.indices.to_pylist(), values.dictionary.to_pylist()


def column_of(codes: list[int | None], categories: list[str]) -> pa.DictionaryArray:
    """A released column of indices and a dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(categories, pa.string()))


def test_a_good_release_passes_every_expectation(adult_verdict: Verdict) -> None:
    assert failures(adult_verdict) == {}
    assert {judgement.name for judgement in adult_verdict.results} == ALL
    assert all(judgement.description.endswith(".") for judgement in adult_verdict.results)
    assert adult_verdict.sentence() == "all 12 expectations hold"
    judged = {judgement.name: judgement for judgement in adult_verdict.results}
    assert 0.999999 < judged[LEVEL].observed <= 1.0 == judged[LEVEL].expected
    assert judged[DRAWS].expected == SHARES["draws"] <= judged[DRAWS].observed


def test_the_verdict_is_plain_json(adult_verdict: Verdict) -> None:
    content = adult_verdict.content()
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_a_good_release_of_two_columns_with_inputs_outside_the_alphabet_passes(small: Evidence) -> None:
    verdict = judge(small)
    assert failures(verdict) == {}
    assert Counter(judgement.name for judgement in verdict.results)[CATEGORIES] == 2
    assert small.pair_counts[-1].sum() == 60


def test_judging_writes_nothing_prints_nothing_and_stays_offline(
    adult: Evidence, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert judge(adult).passed
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_the_room_is_imported_without_great_expectations() -> None:
    code = "import sys, funnel.pipeline.expectations; sys.exit('great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0


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
    verdict = judge(spoil(adult, change))
    found = failures(verdict)
    assert set(found) == expected
    assert words in found[name]
    # What is in no alphabet may come from a source row, so nothing of the verdict repeats it.
    text = json.dumps(verdict.content()) + verdict.sentence()
    assert "Lovelace" not in text
    assert "Never-married" not in text


def test_counts_say_how_far_an_output_is_off(adult: Evidence, spoil: Spoil) -> None:
    codes, categories = codes_of(pq.read_table(adult.released))
    found = failures(judge(spoil(adult, drop_row)))
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
    found = failures(judge(spoil(small, lambda table: table.select(["size", "colour"]))))
    assert set(found) == {COLUMNS}
    assert found[COLUMNS] == "the columns are in the order 'size', 'colour' instead of 'colour', 'size'"


def test_declared_categories_in_an_undeclared_combination_fail(small: Evidence, spoil: Spoil) -> None:
    def combine(table: pa.Table) -> pa.Table:
        colours, first = codes_of(table, "colour")
        sizes, second = codes_of(table, "size")
        colours[0], sizes[0] = first.index("blue"), second.index("L")
        return pa.table({"colour": column_of(colours, first), "size": column_of(sizes, second)})

    found = failures(judge(spoil(small, combine)))
    assert set(found) == {OUTPUTS, COUNTS}
    assert found[OUTPUTS] == "1 record in the file that no output of the protocol stands for"


def test_no_records_fail_every_expectation(adult: Evidence, spoil: Spoil) -> None:
    found = failures(judge(spoil(adult, lambda table: table.slice(0, 0))))
    assert set(found) == ALL
    assert set(found.values()) == {"the file holds no records"}


def test_no_columns_fail_every_expectation(adult: Evidence, spoil: Spoil) -> None:
    assert set(failures(judge(spoil(adult, lambda table: table.select([]))))) == ALL


def test_a_file_that_is_not_parquet_is_refused(adult: Evidence, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(adult.released.read_bytes()[:-100])
    for released in (path, tmp_path / "missing.parquet"):
        with pytest.raises(ReleaseRefused, match="cannot be read back as parquet"):
            judge(replace(adult, released=released))


# Great Expectations fails open; the judge must not.


@pytest.mark.parametrize("position", [0, 5, 8, 11])
def test_an_expectation_dropped_silently_fails_the_verdict(adult: Evidence, position: int) -> None:
    dropped = declare(adult)[position]
    whole = ExpectationSuite.expectation_configurations

    def without(suite: ExpectationSuite) -> list[Any]:
        return [one for one in whole.fget(suite) if one.type != dropped.configuration.type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExpectationSuite, "expectation_configurations", property(without))
        found = failures(judge(adult))
    assert found == {dropped.configuration.type: "it was declared but not evaluated, so it is not met"}


def test_an_expectation_evaluated_with_other_arguments_fails_the_verdict(
    adult: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ExpectationSuite.expectation_configurations

    def loosened(suite: ExpectationSuite) -> list[Any]:
        configurations = whole.fget(suite)
        for one in configurations:
            if one.type == LEVEL:
                one.kwargs |= {"budget": 2.0, "guarantee": "lip:2.0"}
        return configurations

    monkeypatch.setattr(ExpectationSuite, "expectation_configurations", property(loosened))
    verdict = judge(adult)
    assert not verdict.passed
    assert [(judgement.name, judgement.failure) for judgement in verdict.failed] == [
        (LEVEL, "it was declared but not evaluated, so it is not met"),
        (LEVEL, "it was evaluated but not declared with these arguments"),
    ]


def test_an_expectation_evaluated_twice_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ExpectationSuite.expectation_configurations
    monkeypatch.setattr(
        ExpectationSuite, "expectation_configurations", property(lambda suite: whole.fget(suite) + whole.fget(suite))
    )
    verdict = judge(adult)
    assert len(verdict.results) == 24
    assert len(verdict.failed) == 12


def test_an_exception_in_a_metric_fails_the_verdict_without_quoting_it(
    adult: Evidence, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("row 17: 39, Never-married")

    monkeypatch.setattr("funnel.pipeline.expectations.custom.draws.draw_consistency", fail)
    verdict = judge(adult)
    assert failures(verdict) == {DRAWS: "it could not be judged because ZeroDivisionError was raised"}
    assert "Never-married" not in json.dumps(verdict.content()) + "".join(capfd.readouterr())


def test_an_exception_in_an_expectation_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("Never-married")

    monkeypatch.setattr("funnel.pipeline.expectations.custom.rows.ExpectReleasedRowsToEqualSnapshot.find", fail)
    assert failures(judge(adult)) == {ROWS: "it could not be judged because KeyError was raised"}


def test_an_expectation_that_fails_says_so_to_great_expectations_too(adult: Evidence) -> None:
    (rows,) = (one for one in declare(adult) if one.configuration.type == ROWS)
    n = adult.snapshot_rows
    for found, announced, read in ((3, 3, 3), (n + 1, n + 1, n + 1), (n, 3, n), (n, n + 1, n), (n, n, 0)):
        measured = Measured(read, [{TOTAL: found, "footer_rows": announced}])
        result = rows._validate({"evidence.records": measured})
        assert result["success"] is False
        assert result["result"]["details"]["failure"] is not None
    whole = [{TOTAL: n, "footer_rows": n}]
    assert rows._validate({"evidence.records": Measured(1, whole)})["success"] is True


def test_a_failure_without_a_reason_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "funnel.pipeline.expectations.custom.rows.ExpectReleasedRowsToEqualSnapshot._validate",
        lambda *_, **__: {"success": False, "result": {"details": {"failure": None}}},
    )
    assert failures(judge(adult)) == {ROWS: "it did not succeed, without saying why"}


def test_a_success_with_a_failure_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "funnel.pipeline.expectations.custom.rows.ExpectReleasedRowsToEqualSnapshot._validate",
        lambda *_, **__: {"success": True, "result": {"details": {"failure": "3 instead of 2"}}},
    )
    assert failures(judge(adult)) == {ROWS: "3 instead of 2"}


def test_a_result_without_its_configuration_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = judging._evaluate

    def lost(*arguments: Any) -> list[Any]:
        results = evaluate(*arguments)
        # Which of them comes first is for Great Expectations to say.
        (rows,) = (one for one in results if one.expectation_config.type == ROWS)
        rows.expectation_config = None
        return results

    monkeypatch.setattr(judging, "_evaluate", lost)
    verdict = judge(adult)
    assert [(judgement.name, judgement.failure) for judgement in verdict.failed] == [
        (ROWS, "it was declared but not evaluated, so it is not met"),
        ("an expectation without a type", "it was evaluated but not declared with these arguments"),
    ]


def test_a_table_with_a_line_of_no_records_fails_what_is_judged_on_it(
    small: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = small.tables["columns"]
    assert len(columns) == 2
    monkeypatch.setitem(vars(small), "tables", small.tables | {"columns": columns.assign(**{TOTAL: [300, 0]})})
    found = failures(judge(small))
    assert set(found) == {COLUMNS, HIDDEN, TYPES, NULLS}
    assert set(found.values()) == {"the file holds no records"}


def test_a_success_without_a_finding_fails_the_verdict(adult: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "funnel.pipeline.expectations.custom.rows.ExpectReleasedRowsToEqualSnapshot._validate",
        lambda *_, **__: {"success": True},
    )
    assert failures(judge(adult)) == {ROWS: "it was evaluated without a finding"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], ""),
        (["a", "b", "c"], "'a', 'b', 'c'"),
        (["a", "b", "c", "d"], "'a', 'b', 'c' and 1 more"),
        ([str(i) for i in range(1005)], "'0', '1', '2' and 1,002 more"),
    ],
)
def test_few_of_many_names_are_listed(names: list[str], said: str) -> None:
    assert named(names) == said


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
