"""A release with protected frequencies is judged by its public counts; whatever is spoilt in them is told."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from funnel.errors import DataError
from funnel.pipeline.expectations import Finished, judge
from funnel.pipeline.expectations.frequency_claims import Before, _named, _values
from funnel.pipeline.expectations.spec_claims import _bins
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.grouping import learned_columns, learning_cost, selected_columns
from funnel.recount.source import Recount, recount
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.copies import copied
from tests.expectations.conftest import Made
from tests.expectations.test_finished import edit, failures
from tests.projects import SPEC, make_project

MARITAL = (
    '["Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married", "Separated", '
    '"Widowed"]'
)
NOISE = 'frequencies.protection = "noise"\nfrequencies.max_epsilon = 2.0\n'
TEXT = (
    SPEC.replace('frequencies.protection = "none"\n', NOISE).replace(
        'publish = ["relationship"]', 'publish = ["relationship", "race"]'
    )
    + f'\n[limits]\nset_aside = 0.1\n\n[mechanism]\nname = "grr"\n\n[categories]\nmarital-status = {MARITAL}\n'
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    with pytest.MonkeyPatch.context() as patch:
        # Noise that rules the exact counts out, as one in a hundred does, is no release of these tests.
        patch.setattr("funnel.release.secret.fresh_text", lambda: hashlib.sha256(b"3").hexdigest())
        return Made.of(make_project(tmp_path_factory.mktemp("noisy"), TEXT))


@pytest.fixture(scope="module")
def exact(made: Made) -> np.ndarray:
    """The counts of the source, in the order of the public ones."""
    spec = ReleaseSpec.load(made.spec)
    public = PublicFrequencies.parse((made.folder / "frequencies.json").read_bytes())
    return np.array(recount(spec, public.labels).table(public.secret, public.inputs))


def _with_counts(change: Callable[[np.ndarray, np.ndarray], np.ndarray], exact: np.ndarray) -> Callable[[Any], None]:
    """Exchange the public counts; ``change`` is given the exact ones and noise of their epsilon, always the same."""

    def edited(content: Any) -> None:
        rng, success = np.random.default_rng(5), 1 - math.exp(-content["epsilon_counts"])
        noise = rng.geometric(success, exact.shape) - rng.geometric(success, exact.shape)
        content["noisy"] = change(exact, noise).tolist()

    return edited


def test_a_whole_folder_meets_everything(finished: Finished) -> None:
    verdict = judge(finished)
    assert verdict.failed == ()
    assert "noisy counts" in {result.name for result in verdict.results}
    # Most combinations are nobody's, and are among the public counts all the same.
    public = finished.frequencies
    assert public is not None
    assert finished.recount.rows != finished.public.rows
    assert public.possible.hold(finished.recount.table(public.secret, public.inputs))


def test_bins_under_noise_follow_from_the_range_that_is_declared(made: Made, tmp_path: Path) -> None:
    """Edges that were found among the numbers of people would tell of them without any noise."""
    age = '\n[recode.age]\nbins = "auto"\n\n[numbers.age]\nrange = [17, 90]\nwhole = true\n'
    spec = ReleaseSpec.load(make_project(tmp_path, TEXT.replace('"relationship", "race"', '"age"') + age))
    finished = Finished(spec, ReleaseFolder(made.folder), "1.0.0", made.snapshot)
    assert _bins(finished).failure is None
    found = spec.model_copy(update={"recode": {"age": spec.recode["age"].with_edges((20, 30, 40, 50, 60, 70, 81))}})
    wrong = _bins(replace(finished, spec=found))
    assert (wrong.name, wrong.failure) == ("bins", "of 'age' has edges that do not follow from its range")


@pytest.mark.parametrize(
    "change",
    [
        lambda n, z: n,
        lambda n, z: n + np.trunc(z / 4).astype(int),
        lambda n, z: n + 2 * z,
        lambda n, z: n + np.abs(z),
        lambda n, z: n + np.where(np.arange(z.shape[1]) % 2, 0, z),
        lambda n, z: n + z + 50 * (n == n.max()),
        lambda n, z: (n + z)[::-1],
    ],
    ids=["not drawn", "a quarter", "twice", "upwards", "on half of the cells", "one count", "of other secrets"],
)
def test_noise_that_was_not_drawn_as_it_is_said_is_found(
    finished: Finished, exact: np.ndarray, change: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> None:
    edit(finished.folder.frequencies, _with_counts(change, exact))
    assert set(failures(finished, "noisy counts")) == {"derived noise"}
    # By who lacks the secret of the series, from the exact counts.
    assert "p = " in failures(finished, "noise")["noise"]


@pytest.mark.parametrize(("s", "x"), [(0, 0), (0, -1), (-1, 0), (-1, -1)])
def test_one_count_that_is_one_off_is_not_what_the_secret_gives(finished: Finished, s: int, x: int) -> None:
    """Nor is any other noise, which is off in some count: each is compared with the one that is derived for it."""

    def edited(content: Any) -> None:
        content["noisy"][s][x] += 1

    edit(finished.folder.frequencies, edited)
    words = "of 1 counts is not what their table and the secret of the series give"
    assert failures(finished, "noisy counts") == {"derived noise": words}


def test_noise_is_not_believed_where_its_secret_is_gone_or_another_one(finished: Finished, tmp_path: Path) -> None:
    spec = finished.spec
    shutil.copytree(spec.workspace_folder, tmp_path / "work")
    output = spec.output.model_copy(update={"workspace": str(tmp_path / "work")})
    elsewhere = replace(finished, spec=spec.model_copy(update={"output": output}))
    assert failures(elsewhere, "noisy counts") == {}
    secret = tmp_path / "work" / "people" / "noise-secret"
    secret.write_text("ab" * 16 + secret.read_text(encoding="ascii")[:32], encoding="ascii")
    other = replace(elsewhere)
    assert "is not what their table" in failures(other, "noisy counts")["derived noise"]
    secret.unlink()
    gone = replace(elsewhere)
    assert "secret of the series' noise is gone" in failures(gone, "noisy counts")["derived noise"]


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        (lambda said: said.update(epsilon=2.0), "settings"),
        (lambda said: said.update(beta=0.02), "settings"),
        (lambda said: said.update(delta=0.0), "settings"),
        (lambda said: said.update(epsilon_counts=1.0), "settings"),
        (lambda said: said.update(scale=said["scale"] / 2), "protected frequencies"),
        (lambda said: said.update(cells_within=said["cells_within"] - 1), "protected frequencies"),
        (lambda said: said.update(totals_within=said["totals_within"] // 2), "protected frequencies"),
        (lambda said: said.update(spent=0.5), "spent"),
        (lambda said: said.update(spent=2.5), "spent"),
    ],
)
def test_numbers_that_are_not_those_of_the_spec_are_found(
    finished: Finished, change: Callable[[Any], None], claim: str
) -> None:
    edit(finished.folder.frequencies, change)
    assert claim in failures(finished, "noisy counts", "protected frequencies")


def test_blanks_are_found_too(finished: Finished) -> None:
    path = finished.folder.frequencies
    path.write_bytes(path.read_bytes() + b"\n")
    assert set(failures(finished, "documents")) == {"documents"}


def test_a_key_of_no_such_file_is_refused(finished: Finished) -> None:
    edit(finished.folder.frequencies, lambda said: said.update(records=3000))
    with pytest.raises(DataError, match="public frequencies cannot be read"):
        failures(finished, "noisy counts")


def test_counts_of_what_occurs_alone_are_refused(finished: Finished, exact: np.ndarray) -> None:
    def occurring(content: Any) -> None:
        kept = np.flatnonzero(exact.sum(axis=0))
        content["inputs"]["symbols"] = [content["inputs"]["symbols"][x] for x in kept]
        content["noisy"] = [[row[x] for x in kept] for row in content["noisy"]]

    edit(finished.folder.frequencies, occurring)
    assert {"values", "protected frequencies"} & set(failures(finished, "noisy counts"))


def test_records_that_no_count_is_of_are_no_evidence(finished: Finished) -> None:
    def smaller(content: Any) -> None:
        x = int(np.array(content["noisy"]).sum(axis=0).argmax())
        del content["inputs"]["symbols"][x]
        for row in content["noisy"]:
            del row[x]

    edit(finished.folder.frequencies, smaller)
    failed = {one.name: str(one.failure) for one in judge(finished).failed}
    # How many values are named under noise is not the same every time.
    for name in ("counted again", "noisy counts", "drawn by input"):
        assert re.search(r"1 of the \d+ inputs of the source are not listed", failed[name]), failed


def test_a_value_that_nobody_has_is_no_selected_one(finished: Finished) -> None:
    def renamed(content: Any) -> None:
        symbols = content["inputs"]["symbols"]
        content["inputs"]["symbols"] = [["Neighbour" if one == "Husband" else one, other] for one, other in symbols]

    edit(finished.folder.frequencies, renamed)
    assert "values" in failures(finished, "noisy counts")


def test_a_protocol_of_exact_counts_is_refused(finished: Finished) -> None:
    # The other way round: figures that follow from the counts that are held to be public do not from the others.
    cheated = replace(finished)
    cheated.__dict__["public"] = finished.recount
    assert failures(cheated, "report and counts")["figures"]


@pytest.mark.parametrize(
    ("file", "change", "table", "claim"),
    [
        ("numbers", lambda said: said["estimation"].update(records=3000), "report and counts", "figures"),
        ("numbers", lambda said: said["figures"].update(outside=0), "report and counts", "figures"),
        ("numbers", lambda said: said["source"].update(dropped="none"), "report and counts", "frequencies"),
        ("numbers", lambda said: said["frequencies"].update(spent=1.5), "report figures", "report figures"),
        (
            "numbers",
            lambda said: said["frequencies"].update(covers_noise=False),
            "report and counts",
            "frequencies",
        ),
        (
            "protocol",
            lambda said: said["frequencies"].update(spent=1.5),
            "protected frequencies",
            "protected frequencies",
        ),
        (
            "protocol",
            lambda said: said["frequencies"].update(unprotected=1),
            "protocol and spec",
            "versions without noise",
        ),
        (
            "package",
            lambda said: said["funnel:privacy"]["frequencies"].update(epsilon=0.5),
            "package",
            "package",
        ),
        ("findings", lambda said: said.update(proven_level=said["level"] / 2), "findings", "findings"),
    ],
)
def test_what_other_documents_say_of_it_is_judged(
    finished: Finished, file: str, change: Callable[[Any], None], table: str, claim: str
) -> None:
    edit(getattr(finished.folder, file), change)
    assert claim in failures(finished, table)


def test_a_bound_that_holds_for_the_public_counts_alone_is_none(finished: Finished) -> None:
    public, context = finished.frequencies, finished.context
    assert public is not None
    nominal = finished.distributions.released.level(finished.spec_text.promise, finished.public)
    assert context.level.holds
    assert nominal.nats < context.level.nats
    # A protocol that was made for the noisy counts as if they were exact keeps the bound for these, and no other.
    bound = (nominal.nats + context.level.nats) / 2
    edit(finished.folder.protocol, lambda said: said["guarantee"].update(declared=f"lip:{bound!r}"))
    assert set(failures(finished, "leakage", "protocol and spec")) == {"leakage", "guarantee"}


def test_protection_that_is_declared_and_not_there_is_missed(finished: Finished) -> None:
    finished.folder.frequencies.unlink()
    verdict = judge(finished)
    assert not verdict.passed
    assert "frequencies.json" in verdict.sentence()


def test_public_counts_where_none_are_declared_are_refused(finished: Finished) -> None:
    text = finished.spec.text.replace(NOISE, 'frequencies.protection = "none"\n')
    other = replace(finished, spec=ReleaseSpec.parse(text, finished.spec.folder / "people.toml"))
    assert failures(other, "declared files") == {"no other file": "frequencies.json is not declared"}
    assert "protection" in failures(other, "protocol and spec")


class TestVersions:
    """What earlier versions of a series have told."""

    @staticmethod
    def _before(finished: Finished, tmp_path: Path) -> ReleaseFolder:
        before = copied(finished.folder, tmp_path / "before")
        # Of a source that nobody knows to be the same.
        before.record.unlink(missing_ok=True)
        return before

    def test_the_same_counts_have_the_same_noise(self, finished: Finished, tmp_path: Path) -> None:
        before = self._before(finished, tmp_path)
        again = replace(finished, before=(before,))
        assert failures(again, "noisy counts") == {}
        edit(before.frequencies, lambda said: said["noisy"][0].reverse())
        assert "drawn again" in failures(again, "noisy counts")["noise of other versions"]

    def test_other_counts_have_other_noise(self, finished: Finished, tmp_path: Path) -> None:
        """The same noise would tell which counts have changed: it is that of another version, and not derived."""
        before = self._before(finished, tmp_path)
        before.record.write_text(json.dumps({"origin": {"source": "0" * 64}}))
        assert failures(replace(finished, before=(before,)), "noisy counts") == {}
        edit(finished.folder.frequencies, lambda said: said["noisy"][0].__setitem__(0, said["noisy"][0][0] + 7))
        assert "derived noise" in failures(replace(finished, before=(before,)), "noisy counts")

    def test_noise_on_other_values_is_not_compared(self, finished: Finished, tmp_path: Path) -> None:
        before = self._before(finished, tmp_path)

        def renamed(content: Any) -> None:
            content["inputs"]["symbols"] = [[one, f"{other} too"] for one, other in content["inputs"]["symbols"]]

        edit(before.frequencies, renamed)
        edit(before.frequencies, lambda said: said["noisy"][0].reverse())
        assert failures(replace(finished, before=(before,)), "noisy counts") == {}

    def test_what_one_source_has_spent_is_added_whoever_the_people_are_said_to_be(
        self, finished: Finished, tmp_path: Path
    ) -> None:
        before = self._before(finished, tmp_path)
        edit(before.frequencies, lambda said: said["noisy"][0].reverse())
        again = replace(finished, version="1.0.1", before=(before,))
        assert "spent" not in failures(again, "noisy counts")
        before.record.write_text(json.dumps({"origin": {"source": again.recount.sha256}}))
        assert failures(replace(again), "noisy counts")["spent"] == (
            "epsilon is 1.0, and the versions that are there have spent 2.0"
        )
        edit(finished.folder.frequencies, lambda said: said.update(spent=2.0))
        assert "spent" not in failures(replace(again), "noisy counts")

    def test_what_was_spent_before_is_added(self, finished: Finished, tmp_path: Path) -> None:
        before = self._before(finished, tmp_path)
        edit(before.frequencies, lambda said: said["noisy"][0].reverse())
        text = finished.spec.text.replace('people = "different"', 'people = "same"')
        text = text.replace("guarantee =", 'record_key = ["fnlwgt"]\nguarantee =', 1)
        same = replace(finished, spec=ReleaseSpec.parse(text, finished.spec.folder / "people.toml"), before=(before,))
        assert failures(same, "noisy counts")["spent"] == (
            "epsilon is 1.0, and the versions that are there have spent 2.0"
        )
        edit(finished.folder.frequencies, lambda said: said.update(spent=2.0))
        fresh = replace(same)
        assert "spent" not in failures(fresh, "noisy counts")


@pytest.fixture(scope="module")
def spec(made: Made) -> ReleaseSpec:
    return ReleaseSpec.load(made.spec)


class TestSelection:
    """Values that were named."""

    def test_what_is_learned_costs_a_quarter(self, spec: ReleaseSpec) -> None:
        assert learned_columns(spec) == selected_columns(spec) == ("relationship", "race")
        assert 0.2499999 < learning_cost(spec) <= 0.25

    def test_of_a_complete_column_nothing_is(self, spec: ReleaseSpec) -> None:
        names = {"relationship": ("Husband", "Wife"), "race": ("White", "Black")}
        declared = spec.model_copy(update={"categories": {**spec.categories, **names}, "complete": ("race",)})
        assert learned_columns(declared) == ()
        counted = Recount(("race",), (), (), (), {}, 0, 0, "", {})
        whole = {"race": ("White", "Black")}
        assert not [claim for claim in _values(whole, counted, declared) if claim.failure]
        more = {"race": ("White", "Black", "Other")}
        (failed,) = [claim for claim in _values(more, counted, declared) if claim.failure]
        assert "category for other or missing values" in str(failed.failure)

    def test_names_are_those_that_counts_and_secret_give_or_that_were_published(self, finished: Finished) -> None:
        counted, labels = finished.recount, labels_of(finished)
        assert wrong_names(finished, counted) is None
        values = {column: dict(counts) for column, counts in counted.values.items()}
        values["race"][labels["race"][0]] += 1
        other = replace(counted, values=values)
        # Other counts have other noise, which may name the same values: not with one that is too rare, nor one less.
        for names in (labels["race"][1:], (*labels["race"], "a neighbour")):
            wrong = str(wrong_names(finished, counted, {**labels, "race": names}))
            assert "1 names that are not what" in wrong
            assert "remove the folder values" in wrong
        gone = replace(finished)
        gone.__dict__["noise_material"] = None
        assert "secret of the series is gone" in str(wrong_names(gone, counted))
        public = finished.frequencies
        assert public is not None
        before = [Before(public, {}, counted.sha256)]
        assert wrong_names(gone, other, before=before) is None
        assert "is gone" in str(wrong_names(gone, other, before=[Before(public, {}, "0" * 64)]))


def labels_of(finished: Finished) -> Mapping[str, tuple[str, ...]]:
    assert finished.frequencies is not None
    return finished.frequencies.labels


def wrong_names(
    finished: Finished,
    counted: Recount,
    labels: Mapping[str, tuple[str, ...]] | None = None,
    before: Sequence[Before] = (),
) -> str | None:
    claims = _named(finished, labels or labels_of(finished), counted, before)
    return next((one.failure for one in claims if one.failure is not None), None)
