"""Invariant releases: outputs are the inputs, also with the secret among them; judged, audited, and sabotaged."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from funnel import load_release
from funnel.alphabet import Alphabet
from funnel.audit.check import State, overall
from funnel.audit.context import Told
from funnel.bounds import Bounds
from funnel.errors import ReleaseRefused
from funnel.estimation.plain_counts import PlainCounts
from funnel.estimation.plain_shares import plain_shares
from funnel.frequencies.noise import discrete_laplace_variance
from funnel.frequencies.public_counts import Frequencies, protect
from funnel.joint import Joint
from funnel.measures.utilities import INFORMATION
from funnel.pipeline.flows import pipeline
from funnel.pipeline.tasks.optimise import Optimised, optimise
from funnel.pipeline.tasks.run import Run
from funnel.protocol import Protocol
from funnel.recount.balance import TOLERANCE
from funnel.release.counted_as_usual import counted_as_usual
from funnel.release.document import dump
from funnel.release.documents import JointDocument
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.layout import ReleaseFolder
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.settings.protection_settings import FrequencySettings
from funnel.spec import ReleaseSpec
from tests.audits import recheck
from tests.funnel.audit.test_unchanged import CATEGORIES, PLAIN
from tests.projects import adult_rows, make_project, spec_of
from tests.releases import make_release

ROWS = 12_000
WITHOUT = (
    PLAIN.replace('protection = "none"', '{ protection = "noise", epsilon = 1.0 }')
    .replace("frequencies.{", "frequencies = {")
    .replace("frequencies.protection", "frequencies")
    + CATEGORIES
)
WITH = WITHOUT.replace('["sex", "race"]', '["income", "sex", "race"]').replace('"lip:1.0"', '"attribute:1.0"')


def released(folder: Path, spec: str) -> ReleaseFolder:
    return make_release(make_project(folder, spec, adult_rows(rows=ROWS)))


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return released(tmp_path_factory.mktemp("without"), WITHOUT)


@pytest.fixture(scope="module")
def with_secret(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return released(tmp_path_factory.mktemp("with"), WITH)


@pytest.fixture(params=["without", "with_secret"])
def folder(request: pytest.FixtureRequest) -> ReleaseFolder:
    found: ReleaseFolder = request.getfixturevalue(request.param)
    return found


def test_an_audit_passes_with_and_without_internal_evidence(folder: ReleaseFolder) -> None:
    for told in (None, Told(public=True)):
        checks = recheck(folder) if told is None else recheck(folder, told)
        assert overall(checks) == State.PASSED, [check for check in checks if not check.passed]
        assert "balance" in {check.name for check in checks}


def test_published_values_are_those_of_the_source(folder: ReleaseFolder) -> None:
    document = ProtocolDocument.read(folder.protocol)
    assert document.outputs == document.inputs
    table, source = pq.read_table(folder.data), adult_rows(rows=ROWS)
    assert table.column_names == list(document.outputs.columns)
    for column in table.column_names:
        allowed = {*source[column].to_pylist(), "Other", "(missing)"}
        assert set(table[column].to_pylist()) <= allowed


def test_balance_is_that_of_the_public_counts(folder: ReleaseFolder) -> None:
    protocol = ProtocolDocument.read(folder.protocol).protocol
    joint = FrequenciesDocument.read(folder.frequencies).frequencies.joint.read_by(protocol.inputs.columns)
    counts = joint.counts.sum(axis=0).astype(object)
    gained = protocol.weights_for(joint.inputs).astype(object) @ counts - protocol.denominator * counts
    assert max(abs(gained)) <= TOLERANCE * protocol.denominator * joint.n


def test_the_readme_gives_no_recipe(folder: ReleaseFolder) -> None:
    text = folder.readme.read_text()
    assert "Count, tabulate and regress as usual." in text
    assert "random changes add, as a part of the usual one; what is left of the noise is in it" in text
    assert "at most 1.41" not in text
    assert "estimator.csv" not in text
    assert not folder.estimator.exists()
    assert len(text.splitlines()) <= 20


def test_the_readme_has_r_of_each_column(folder: ReleaseFolder) -> None:
    """As `funnel.estimate` has it without what is left of the noise."""
    document = ProtocolDocument.read(folder.protocol)
    protocol, shares = document.protocol, np.array(document.prior.probabilities)
    rows = [line.strip("| ").split(" | ") for line in folder.readme.read_text().splitlines() if line[:1] == "|"]
    head, _, told = rows
    assert (head, told[0]) == (["column", *protocol.outputs.columns], "r")
    assert (document.prior.columns, document.prior.symbols) == (protocol.inputs.columns, protocol.inputs.symbols)
    expected = PlainCounts.of(protocol, np.rint(1e6 * shares).astype(np.int64))
    for column, text in zip(head[1:], told[1:], strict=True):
        found = plain_shares(expected, [column]).r
        ends = [float(end) for end in text.split(" to ")]
        # Where nobody is, and where everybody is, there is no r.
        assert (ends[0], ends[-1]) == pytest.approx((found[found > 0].min(), found.max()), abs=0.006)
        assert (len(ends) == 1) == (text.count("to") == 0)


def test_errors_of_counted_records_have_the_noise_of_the_public_counts(folder: ReleaseFolder) -> None:
    plain, _ = counted_as_usual(folder)
    protocol = ProtocolDocument.read(folder.protocol).protocol
    public = FrequenciesDocument.read(folder.frequencies).frequencies
    women = np.array([symbol[protocol.inputs.columns.index("sex")] == "Female" for symbol in protocol.inputs.symbols])
    found = plain_shares(plain, ["sex"])
    without = plain_shares(PlainCounts.of(protocol, plain.counts), ["sex"])
    # Of every value that the protocol reads, each count that it is the sum of: with the secret published, one.
    counts = 1 if "income" in protocol.inputs.columns else len(public.joint.secret)
    moved = protocol.matrix[women].sum(axis=0) - women
    variance = counts * discrete_laplace_variance(public.noise.scale) * (moved**2).sum() / ROWS**2
    place = found.cells.index(("Female",))
    assert found.errors[place] ** 2 - without.errors[place] ** 2 == pytest.approx(variance, rel=1e-9)
    assert load_release(folder.root).shares("sex").errors[place] == found.errors[place]


def test_the_report_begins_with_what_stays(folder: ReleaseFolder) -> None:
    told = PublicReport.read(folder.numbers).unchanged
    document = ProtocolDocument.read(folder.protocol)
    assert [one.column for one in told.columns] == list(document.outputs.columns)
    published = "income" in document.outputs.columns
    assert all((one.stays is not None) is published for one in told.secrets)
    assert all(one.at_most is None or one.stays <= one.at_most for one in told.secrets if one.stays is not None)
    assert all(one.share >= told.share for one in told.columns)
    page = folder.report.read_text()
    assert page.index("What stays as it is") < page.index("What one person risks")


def test_no_observer_of_columns_is_beyond_an_attribute_bound(with_secret: ReleaseFolder) -> None:
    told = PublicReport.read(with_secret.numbers).unchanged
    assert [one.known for one in told.observers] == [0, 1, 2]
    assert all((one.level, one.outside) == (1.0, 0.0) for one in told.observers)


def test_unique_records_are_counted_from_the_table(folder: ReleaseFolder) -> None:
    told = PublicReport.read(folder.numbers).unchanged
    table = pq.read_table(folder.data)
    counted = Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert told.unique == sum(count == 1 for count in counted.values())


def test_tables_are_right_on_average(with_secret: ReleaseFolder) -> None:
    """Released counts are within six standard deviations of what the exact counts of the source lead one to expect."""
    protocol = ProtocolDocument.read(with_secret.protocol).protocol
    joint = JointDocument.read(with_secret.joint).joint.read_by(protocol.inputs.columns)
    counts, channel = joint.counts.sum(axis=0), protocol.weights_for(joint.inputs) / float(protocol.denominator)
    table = pq.read_table(with_secret.data)
    counted = Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
    found = np.array([counted[symbol] for symbol in protocol.outputs.symbols])
    spread = np.sqrt((channel * (1 - channel)) @ counts)
    assert (np.abs(found - channel @ counts) <= 7 * spread + 1e-6).all()


def sabotaged(monkeypatch: pytest.MonkeyPatch, change: Callable[[Joint, Joint], Joint]) -> None:
    """Have the protocol made for other counts than the public ones."""
    counted: list[Joint] = []
    prepare = pipeline._prepare

    def remembered(run: Run) -> Any:
        counted.append(run.estimated.joint)
        return prepare(run)

    class Other:
        def __init__(self, frequencies: Frequencies) -> None:
            self.joint = change(counted[-1], frequencies.joint)

    def other(spec: ReleaseSpec, frequencies: Frequencies, workspace: Path, useful: Any) -> Optimised:
        return optimise(spec, Other(frequencies), workspace, useful)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "_prepare", remembered)
    monkeypatch.setattr(pipeline, "optimise", other)


def test_a_protocol_balanced_for_the_exact_counts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exact(counted: Joint, public: Joint) -> Joint:
        # Noise rules the exact counts out with a probability of beta: here they are not ruled out.
        known, counts, of_secret = public.bounds, counted.counts, counted.counts.sum(axis=1)
        least, most = known.totals.T
        totals = np.column_stack([np.minimum(least, of_secret), np.maximum(most, of_secret)])
        bounds = Bounds(np.minimum(known.lower, counts), np.maximum(known.upper, counts), totals, known.beta)
        return Joint(counts, counted.secret, counted.inputs, bounds)

    sabotaged(monkeypatch, exact)
    with pytest.raises(ReleaseRefused, match="do not have the distribution of the inputs under the protected counts"):
        released(tmp_path, WITHOUT)


def test_a_protocol_of_another_mechanism_in_its_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(spec: ReleaseSpec, frequencies: Frequencies, workspace: Path, useful: Any) -> Optimised:
        found = optimise(spec, frequencies, workspace, useful)
        return Optimised(found.protocol.named(mechanism="identity"), found.comparison, found.cached)

    monkeypatch.setattr(pipeline, "optimise", named)
    with pytest.raises(ReleaseRefused, match="is not the one of the spec"):
        released(tmp_path, WITHOUT)


@pytest.mark.parametrize("told", [Told(public=True), Told()])
def test_an_audit_finds_a_protocol_that_is_not_balanced(with_secret: ReleaseFolder, tmp_path: Path, told: Told) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(with_secret.root, copy)
    spoilt = ReleaseFolder(copy)
    content = json.loads(spoilt.protocol.read_bytes())
    # A thousandth of what a common value keeps goes to another one: no longer what the counts are balanced by.
    weights, y = content["weights"], str(content["outputs"]["symbols"].index(["<=50K", "Male", "White"]))
    kept, other = weights[int(y)], weights[1 if y == "0" else 0]
    moved = int(kept[y]) // 1000
    kept[y], other[y] = str(int(kept[y]) - moved), str(int(other.get(y, "0")) + moved)
    content["digest"] = digest_of(content)
    spoilt.protocol.write_bytes(dump(content))
    failed = {check.name for check in recheck(spoilt, told) if check.failed}
    assert "balance" in failed


def digest_of(content: dict[str, Any]) -> str:
    """What the digest of a changed protocol is."""
    inputs, outputs = (
        Alphabet(tuple(content[side]["columns"]), tuple(map(tuple, content[side]["symbols"])))
        for side in ("inputs", "outputs")
    )
    size = range(len(inputs))
    weights = np.array([[int(row.get(str(x), "0")) for x in size] for row in content["weights"]], dtype=np.uint64)
    marginal = np.array([int(one) for one in content["marginal"]], dtype=np.uint64)
    return Protocol(weights, marginal, inputs, outputs).digest


def test_without_noise_the_balance_is_that_of_the_source(tmp_path: Path) -> None:
    spec = WITHOUT.replace('{ protection = "noise", epsilon = 1.0 }', '{ protection = "none" }').replace(CATEGORIES, "")
    found = released(tmp_path, spec)
    assert {"balance", "exact balance"} <= {check.name for check in recheck(found) if check.passed}
    assert overall(recheck(found)) == State.PASSED


def test_weights_of_the_spec_decide_the_protocol_and_are_part_of_its_key(tmp_path: Path) -> None:
    joint = Joint.from_table(adult_rows(rows=ROWS), secret=["marital-status"], inputs=["education", "sex"])
    counted = protect(joint, FrequencySettings(protection="none"))
    found = {}
    for weights in ("root", "share", "uniform", "share"):
        spec = spec_of("people.parquet", tmp_path, mechanism={"name": "invariant", "weights": weights})
        spec = spec.model_copy(update={"secret": joint.secret.columns, "publish": joint.inputs.columns})
        made = optimise(spec, counted, tmp_path, INFORMATION)
        assert made.cached == (weights in found)
        assert found.setdefault(weights, made.protocol).digest == made.protocol.digest
    kept = {weights: float(np.diagonal(one.matrix) @ joint.p_input) for weights, one in found.items()}
    assert kept["share"] > kept["root"] > kept["uniform"]
