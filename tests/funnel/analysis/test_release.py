"""A release is opened as its users read it: what it was written with today, and what was written before."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import funnel
from funnel.analysis.estimated import estimate_numbers_of, estimate_release
from funnel.errors import DataError, SpecError
from funnel.estimation.regression import Regression
from funnel.release.document import dump
from funnel.release.layout import ReleaseFolder
from tests.copies import copied


@pytest.fixture
def copy(published: ReleaseFolder, tmp_path: Path) -> ReleaseFolder:
    return copied(published, tmp_path / "1.0.0")


def test_a_release_is_opened_by_its_series_or_its_version(published: ReleaseFolder) -> None:
    for path in (published.root, published.root.parent, str(published.root.parent / "latest")):
        released = funnel.load_release(path)
        assert (released.version, released.privacy.guarantee, released.privacy.people) == (
            "1.0.0",
            "lip:1.0",
            "different",
        )
        assert released.table().equals(pq.read_table(published.data))
        assert released.table(["relationship"]).num_rows == released.privacy.records == 1000
        assert released.protocol.outputs.columns == ("relationship", "sex")
        assert released.protocol.digest == released.privacy.protocol_digest


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda package: package.pop("funnel:privacy"), "is no data package of a release"),
        (lambda package: package["funnel:privacy"].update(schema="funnel/privacy/2"), "was made by a newer funnel"),
        (lambda package: package["funnel:privacy"].update(level="low"), "is damaged: level"),
        (lambda package: package["funnel:privacy"].pop("scope"), "is damaged: scope is missing"),
    ],
)
def test_a_release_that_cannot_be_read_says_why(copy: ReleaseFolder, change: Any, said: str) -> None:
    package = json.loads(copy.package.read_bytes())
    change(package)
    copy.package.write_bytes(dump(package))
    with pytest.raises(DataError, match=said):
        funnel.load_release(copy.root)


def test_columns_that_there_are_not_and_files_that_are_damaged_are_named(copy: ReleaseFolder) -> None:
    released = funnel.load_release(copy.root)
    with pytest.raises(DataError, match="has no column 'income'; its columns are relationship, sex"):
        released.table(["income"])
    copy.data.write_bytes(b"PAR1")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        released.table()
    copy.package.write_bytes(b"[")
    with pytest.raises(DataError, match="is no data package of a release"):
        funnel.load_release(copy.root)
    with pytest.raises(DataError, match="there is no release at"):
        funnel.load_release(copy.root / "gone")


@pytest.mark.parametrize(
    ("failure", "said"),
    [(PermissionError(13, "Permission denied"), "Permission denied"), (OSError(), "OSError")],
)
def test_a_package_that_the_system_does_not_give_is_told_with_its_reason(
    published: ReleaseFolder, monkeypatch: pytest.MonkeyPatch, failure: OSError, said: str
) -> None:
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == "datapackage.json":
            raise failure
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(DataError, match=rf"datapackage\.json cannot be read: {said}$"):
        funnel.load_release(published.root)


def test_a_release_estimates_from_itself(published: ReleaseFolder) -> None:
    released = funnel.load_release(published.root)
    found = released.shares("relationship", within="sex")
    assert found.given == ("sex",)
    assert found.to_dict() == estimate_release(published, "relationship", within="sex").to_dict()
    with pytest.raises(funnel.SpecError, match="no value of 'sex' stands for a number"):
        released.mean("sex")


def test_versions_of_a_series_are_compared_as_their_promises_say(copy: ReleaseFolder) -> None:
    second = ReleaseFolder(copy.root.parent / "1.1.0")
    copied(copy, second.root)
    changed(second, version="1.1.0")
    trend = funnel.load_release(copy.root).trend([second.root], "sex")
    assert (trend.versions, trend.same_people) == (("1.0.0", "1.1.0"), False)
    assert trend.whole.values == pytest.approx(0)
    assert (trend.whole.errors > 0).all()
    # Another series, or one about the same people, may have answers that depend on these.
    changed(second, name="elsewhere")
    other = funnel.load_release(copy.root).trend([second.root], "sex")
    assert (other.versions[1], other.same_people) == ("elsewhere 1.1.0", True)
    assert (other.whole.errors > trend.whole.errors).all()
    changed(second, name=json.loads(copy.package.read_bytes())["name"])
    assert not funnel.load_release(copy.root).trend([second.root], "sex").same_people
    package = json.loads(second.package.read_bytes())
    package["funnel:privacy"]["people"] = "same"
    second.package.write_bytes(dump(package))
    assert funnel.load_release(copy.root).trend([second.root], "sex").same_people


def changed(folder: ReleaseFolder, **to: str) -> None:
    folder.package.write_bytes(dump({**json.loads(folder.package.read_bytes()), **to}))


def test_a_data_package_that_tells_no_intervals_is_refused(copy: ReleaseFolder) -> None:
    changed(copy, resources="none")
    with pytest.raises(DataError, match=r"data package of 1\.0\.0 cannot be read"):
        estimate_numbers_of(copy, "sex")


def test_what_asks_for_plain_counts_is_refused_where_values_are_sets(published: ReleaseFolder) -> None:
    released = funnel.load_release(published.root)
    asked = (
        lambda: released.odds("relationship", "sex"),
        lambda: released.variance_ratio([1.0] * 1000),
        lambda: released.chi_square_ratio("relationship", "sex"),
        released.unchanged,
    )
    for ask in asked:
        with pytest.raises(SpecError, match="not 'invariant'"):
            ask()


def test_a_release_is_verified_and_a_change_or_another_key_is_not(copy: ReleaseFolder) -> None:
    shutil.rmtree(copy.internal)
    released = funnel.load_release(copy.root)
    key = json.loads((copy.root / "signature.json").read_bytes())["public_key"]
    assert {check.name for check in released.verify(public_key=key) if check.passed} > {"signature", "guarantee"}
    with pytest.raises(funnel.LeakageExceeded, match="signature"):
        released.verify(public_key="00" * 32)
    (copy.root / "README.md").write_text("Trust me.")
    with pytest.raises(funnel.LeakageExceeded, match=r"README\.md"):
        released.verify()


def test_numbers_are_drawn_only_where_values_stand_for_some(published: ReleaseFolder) -> None:
    with pytest.raises(DataError, match="stand for no numbers"):
        funnel.load_release(published.root).draw_numbers("sex")


def test_a_release_is_regressed_by_its_records_and_noisy_counts(published: ReleaseFolder) -> None:
    """A regression on nothing has the odds of the share that is estimated; an error of the changes alone is less."""
    release = funnel.load_release(published.root)
    column = release.protocol.inputs.columns[0]
    shares = release.shares(column)
    value = shares.cells[0][0]

    def regress(sampling: bool) -> Regression:
        return release.regress(f"{column} ~ 1", family="logistic", event=value, sampling=sampling)

    found = regress(True)
    share = float(shares.frequencies[0])
    assert 1 / (1 + math.exp(-found.coefficients[0])) == pytest.approx(share, abs=0.02)
    assert regress(False).errors[0] < found.errors[0]
    assert found.records == release.table().num_rows
