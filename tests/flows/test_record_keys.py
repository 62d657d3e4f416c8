"""Releases with record keys: the same answers, whoever draws them, from whatever order of the source."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError, FunnelError, LedgerError, ReleaseRefused, SpecError
from funnel.pipeline.tasks.secret_blocks import read_secret_block
from funnel.release import protected
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.layout import ReleaseFolder, find_release
from funnel.release.record import Record
from funnel.release.secret import FILE, find_secret
from tests import chance
from tests.projects import SPEC, adult_rows, make_project, tree
from tests.releases import release

KEYED = SPEC.replace('publish = ["relationship"]', 'publish = ["relationship"]\nrecord_key = ["id"]')


def people(rows: int = 3000) -> pa.Table:
    return adult_rows(0, rows).append_column("id", pa.array([f"person {i * 7919 % 10007}" for i in range(rows)]))


def project(folder: Path, spec: str = KEYED, table: pa.Table | None = None) -> Path:
    return make_project(folder, spec, people() if table is None else table)


def rows_of(spec: Path, version: str) -> bytes:
    """The records of a version, which no other draw has but by a chance of less than 1e-9."""
    folder = find_release(spec.parent / "releases" / "people" / version)
    assert chance.of_equal_releases(folder) < 1e-9
    return folder.data.read_bytes()


def record_of(spec: Path, version: str) -> Record:
    return Record.read(ReleaseFolder(spec.parent / "releases" / "people" / version).record)


def test_records_keep_their_answers(tmp_path: Path) -> None:
    spec = project(tmp_path)
    first = release(str(spec))
    assert (first["version"], first["fresh"]) == ("1.0.0", True)
    work = tmp_path / ".funnel" / "people"
    secret = (work / FILE).read_text()
    # Neither the secret nor a key is in any file but its own.
    assert not [name for name, content in tree(tmp_path / "releases").items() if secret.encode() in content]
    assert not [name for name, content in tree(work / "snapshots").items() if b"person 7919" in content]
    assert not (work / "rows").exists()
    assert release(str(spec))["status"] == "unchanged"

    # Drawn again by two processes: the same bytes, and nothing more revealed.
    spec.write_text(KEYED + "\n[engine]\nworkers = 2\n")
    second = release(str(spec), again=True)
    assert (second["version"], second["fresh"], second["drawn"]) == ("1.0.1", False, True)
    assert rows_of(spec, "1.0.1") == rows_of(spec, "1.0.0")
    assert record_of(spec, "1.0.1").origin.spec == record_of(spec, "1.0.0").origin.spec

    # Another secret, knowingly: stored, and every record drawn afresh.
    third = release(str(spec), rotate_secret=True)
    assert (third["version"], third["fresh"]) == ("1.1.0", True)
    assert rows_of(spec, "1.1.0") != rows_of(spec, "1.0.0")
    assert record_of(spec, "1.1.0").rotated == record_of(spec, "1.0.0").origin.secret
    assert (work / FILE).read_text() != secret
    assert release(str(spec))["status"] == "unchanged"

    # Without the secret nothing is released, and nothing is touched.
    (work / FILE).write_text(secret)
    refused(spec, LedgerError, "is not the one that the newest version was drawn with")
    (work / FILE).unlink()
    refused(spec, LedgerError, "is gone; restore it from a backup")


def test_people_with_the_same_keys_are_the_same_people_whatever_the_spec_says(tmp_path: Path) -> None:
    spec, source = project(tmp_path), tmp_path / "people.parquet"
    release(str(spec))
    same = 'though [history] says people = "different"'
    # The same source, with another bound.
    spec.write_text(KEYED.replace("lip:1.0", "lip:0.9"))
    refused(spec, SpecError, "these are the records of version 1.0.0", same, "--again")
    spec.write_text(KEYED)
    # The same people in another order; one of them among others; also where it is asked for.
    pq.write_table(people().take(pa.array(np.random.default_rng(1).permutation(3000))), source)
    refused(spec, SpecError, "these have record keys in common with version 1.0.0", same)
    one = pa.concat_tables([others(1), people(1)])
    pq.write_table(one, source)
    refused(spec, SpecError, "these have record keys in common with version 1.0.0", same)
    with pytest.raises(SpecError, match="record keys in common"):
        release(str(spec), again=True)
    # Others, once; then a person of the first version, and one of the second.
    pq.write_table(others(2), source)
    assert release(str(spec))["version"] == "1.1.0"
    for known in (people(1), others(2).slice(2999)):
        pq.write_table(pa.concat_tables([others(3), known]), source)
        refused(spec, SpecError, "record keys in common")
    pq.write_table(others(3), source)
    kept = next((tmp_path / ".funnel" / "people" / "records").glob("*/1.1.0.keys"))
    content = kept.read_bytes()
    assert len(content) == 16 * 3000
    kept.write_bytes(content[:-16])
    refused(spec, LedgerError, "is damaged; restore it from a backup")
    kept.unlink()
    refused(spec, LedgerError, "nobody knows whether people of version 1.1.0 are among these")
    kept.write_bytes(content)
    assert release(str(spec))["version"] == "1.2.0"


def others(year: int) -> pa.Table:
    """Other people in every year."""
    ids = pa.array([f"person of {year}: {i}" for i in range(3000)])
    return adult_rows(3000 * year).append_column("id", ids)


def refused(spec: Path, error: type[FunnelError], *words: str) -> None:
    before = published(spec)
    with pytest.raises(error) as caught:
        release(str(spec))
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)
    assert published(spec) == before


def published(spec: Path) -> dict[str, bytes]:
    """All files in the folder of releases but the lock of the series."""
    return {name: content for name, content in tree(spec.parent / "releases").items() if name != ".people.lock"}


def test_keys_that_do_not_identify_records_are_counted_and_refused(tmp_path: Path) -> None:
    ids = [f"person {i}" for i in range(3000)]
    ids[5] = ids[7] = ids[9]
    spec = project(tmp_path, table=adult_rows().append_column("id", pa.array(ids)))
    refused(spec, DataError, "2 records repeat the record key 'id'")
    holed = pa.array([None if i in (3, 4) else "" if i == 8 else name for i, name in enumerate(ids)])
    pq.write_table(adult_rows().append_column("id", holed), tmp_path / "people.parquet")
    refused(spec, DataError, "3 records have no value in the record key 'id'")
    pq.write_table(adult_rows(), tmp_path / "people.parquet")
    refused(spec, DataError, "has no column 'id'")
    assert not list((tmp_path / ".funnel" / "people" / "snapshots").glob("*"))


def test_a_secret_cannot_be_rotated_without_record_keys(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="names no record_key"):
        release(str(make_project(tmp_path)), rotate_secret=True)


@pytest.mark.usefixtures("in_process")
def test_a_secret_may_be_a_block_of_the_orchestrator(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="which only the pipeline can read"):
        find_secret("prefect:of-people", tmp_path, None, False)
    with pytest.raises(SpecError, match="no Secret block 'of-people'"):
        find_secret("prefect:of-people", tmp_path, None, False, read_secret_block)
    from prefect.blocks.system import Secret

    Secret(value="a long phrase that only the orchestrator holds").save("of-people")
    found = find_secret("prefect:of-people", tmp_path, None, False, read_secret_block)
    assert found.record_key(("id",), read_secret_block).secret == b"a long phrase that only the orchestrator holds"


def test_keys_of_another_kind_or_name_are_no_proof_that_people_are_others(tmp_path: Path) -> None:
    """They have unrelated digests, so nobody could know; nor without keys, or from a register that has other ones."""
    numbers = pa.array([i * 7919 % 10007 for i in range(3000)])
    spec, source = project(tmp_path, table=adult_rows().append_column("id", numbers)), tmp_path / "people.parquet"
    assert release(str(spec))["fresh"] is True
    assert record_of(spec, "1.0.0").origin.key_kinds == ("number",)
    unknown = "whether people of version 1.0.0 are among these cannot be known, since "
    other = f"{unknown}its record key is of columns of other names, or of another type"
    pq.write_table(adult_rows(1).append_column("id", numbers.cast(pa.string())), source)
    refused(spec, SpecError, other)
    pq.write_table(adult_rows(1).append_column("person", numbers), source)
    spec.write_text(KEYED.replace('["id"]', '["person"]'))
    refused(spec, SpecError, other)
    with pytest.raises(SpecError, match=other):
        release(str(spec), again=True)
    spec.write_text(KEYED.replace('record_key = ["id"]\n', ""))
    refused(spec, SpecError, f"{unknown}it has a record key, and these have none")


def test_people_of_a_register_are_not_others_because_the_spec_says_so(tmp_path: Path) -> None:
    spec = project(tmp_path, KEYED.replace('people = "different"', 'people = "same"\nregister = "adults"'))
    release(str(spec))
    pq.write_table(people().slice(1), tmp_path / "people.parquet")
    spec.write_text(KEYED)
    with pytest.raises(SpecError, match="cannot be known, since it is in the register 'adults'"):
        release(str(spec), rotate_secret=True)


def test_a_series_has_answers_of_its_own_under_the_same_secret(tmp_path: Path) -> None:
    numbers = pa.array([i * 7919 % 10007 for i in range(3000)])
    spec = project(tmp_path, table=adult_rows().append_column("id", numbers))
    release(str(spec))
    # Another series with the same secret, of the same people and columns.
    other = project(tmp_path / "other", table=adult_rows().append_column("id", numbers))
    other.write_text(KEYED.replace('name = "people"', 'name = "others"'))
    work = tmp_path / "other" / ".funnel" / "others"
    work.mkdir(parents=True)
    shutil.copy(tmp_path / ".funnel" / "people" / FILE, work / FILE)
    release(str(other))
    found = ReleaseFolder(tmp_path / "other" / "releases" / "others" / "1.0.0")
    assert Record.read(found.record).origin.secret == record_of(spec, "1.0.0").origin.secret
    assert found.data.read_bytes() != rows_of(spec, "1.0.0")


MARITAL = '["Divorced", "Married-civ-spouse", "Never-married", "Separated", "Widowed", "Other"]'
RELATIONSHIP = '["Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"]'
NOISY = KEYED.replace('frequencies.protection = "none"\n', 'frequencies.protection = "noise"\n')
# Values that are learned under noise are others in every file, and with them the recoded records.
NOISY += f'\n[mechanism]\nname = "grr"\n\n[categories]\nmarital-status = {MARITAL}\nrelationship = {RELATIONSHIP}\n'


def test_the_same_records_in_another_file_are_the_same_people_and_what_they_spend_adds_up(tmp_path: Path) -> None:
    for number, text in enumerate((NOISY, NOISY.replace('record_key = ["id"]\n', ""))):
        folder = tmp_path / str(number)
        spec = project(folder, text)
        release(str(spec))
        pq.write_table(people(), folder / "people.parquet", compression="gzip", row_group_size=700)
        refused(spec, SpecError, "these are the records of version 1.0.0")
        assert release(str(spec), again=True)["drawn"]
        told = FrequenciesDocument.read(find_release(latest_of(spec)).frequencies)
        assert (told.epsilon, told.spent) == (1.0, 2.0)
        # The second computation adds them up by itself.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(protected, "_before", lambda context: [])
            pq.write_table(people(), folder / "people.parquet", compression="brotli")
            with pytest.raises(ReleaseRefused, match=r"spent epsilon is 1\.0, and the versions that are there have"):
                release(str(spec), again=True)


def latest_of(spec: Path) -> Path:
    return spec.parent / "releases" / "people" / "latest"


def test_records_without_keys_are_the_same_people_in_any_order(tmp_path: Path) -> None:
    spec = project(tmp_path, KEYED.replace('record_key = ["id"]\n', ""))
    release(str(spec))
    order = pa.array(np.random.default_rng(1).permutation(3000))
    pq.write_table(people().take(order), tmp_path / "people.parquet")
    words = "these are as many with every combination of values as the records of version 1.0.0, so people are the same"
    refused(spec, SpecError, words)
    with pytest.raises(SpecError, match=words):
        release(str(spec), again=True)


def test_nearly_all_people_of_before_are_not_others_without_keys_that_say_so(tmp_path: Path) -> None:
    """One person fewer, and one in a hundred: without keys, with a rotated secret, and where one column is left out."""
    words = "these are more alike than other people would be, once in a million versions, to version 1.0.0"
    wide = KEYED.replace('["relationship"]', '["relationship", "sex"]')
    for number, text in enumerate((wide.replace('record_key = ["id"]\n', ""), wide)):
        folder = tmp_path / str(number)
        spec = project(folder, text)
        release(str(spec))
        for fewer in (people(2999), pa.concat_tables([others(1).slice(2970), people(2970)])):
            pq.write_table(fewer, folder / "people.parquet")
            for changed in (text, text.replace('", "sex"', '"')):
                spec.write_text(changed)
                with pytest.raises(SpecError, match=words):
                    release(str(spec), again=number == 0, rotate_secret=number == 1)
        # Other people of the same population.
        spec.write_text(text)
        pq.write_table(others(1), folder / "people.parquet")
        assert release(str(spec), rotate_secret=number == 1)["drawn"]
