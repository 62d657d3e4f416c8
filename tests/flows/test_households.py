"""Households through the whole way: every member's secret within the bound, judged by a second computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.audit.check import State
from funnel.audit.recheck import recheck
from funnel.errors import FunnelError, SpecError
from funnel.pipeline.flows.pipeline import run_release
from funnel.recount import histories
from funnel.recount.chapters import Rows
from funnel.recount.found_histories import RegisterHistories
from funnel.recount.histories import recount_histories
from funnel.recount.history_bounds import HistoryFinding, Undecided, judge_history
from funnel.recount.path_distributions import HistoryDistribution
from funnel.recount.ratios import Side
from funnel.register.register import Register
from funnel.release.layout import ReleaseFolder
from funnel.spec import ReleaseSpec
from tests.flows.test_units import SPEC as ENCOUNTERS
from tests.sabotage.patching import Patch, patched

SPEC = (
    ENCOUNTERS.replace("encounters", "households")
    .replace("Encounters", "Households")
    .replace("patient", "household")
    .replace("lip:0.5", "lip:1.0")
)

# So few values are common enough to be learned under noise that they have to be listed.
NOISE = """protection = "noise"

[categories]
ill = ["no", "yes"]
ward = ["a", "b", "c"]"""


def members(version: int, households: int = 250) -> pa.Table:
    """Up to three members, who are more often alike than not, and whose value is mostly about another one of them."""
    random = np.random.default_rng(5)
    sizes = 1 + random.binomial(2, 0.5, households)
    of = np.repeat(np.arange(households), sizes)
    usual = random.random(households) < 0.4
    if version:
        random = np.random.default_rng(6)
    ill = usual[of] ^ (random.random(len(of)) < 0.25)
    starts = np.cumsum(sizes) - sizes
    other = starts[of] + (np.arange(len(of)) - starts[of] + 1) % sizes[of]
    ward = np.where(random.random(len(of)) < 0.7, 2 * ill[other], random.integers(0, 3, len(of)))
    table = pa.table(
        {
            "household": of,
            "ill": np.array(["no", "yes"])[ill.astype(int)],
            "ward": np.array(list("abc"))[ward],
        }
    )
    return table.take(random.permutation(len(of)))


def project(folder: Path, text: str = SPEC, version: int = 0, households: int = 250) -> ReleaseSpec:
    path = folder / "spec.toml"
    path.write_text(text)
    pq.write_table(members(version, households), folder / "households.parquet")
    return ReleaseSpec.load(path)


def recounted(spec: ReleaseSpec) -> RegisterHistories:
    return recount_histories(Register.of(spec.workspace_folder, "households").root)


@dataclass(frozen=True)
class Made:
    spec: ReleaseSpec
    told: tuple[dict[str, object], ...]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("households")
    first, _ = run_release(project(folder), False, False)
    spec = project(folder, version=1)
    second, _ = run_release(spec, False, False)
    return Made(spec, (first, second))


def test_the_secret_of_every_member_is_within_the_bound_in_two_versions(made: Made) -> None:
    for version, told in enumerate(made.told):
        history = told["history"]
        assert (told["status"], told["rows"]) == ("published", members(version).num_rows)
        assert history["level"] <= 1.0
    found = recounted(made.spec)
    assert not found.complaints
    for one in found.versions:
        assert not one.broken
        assert not one.complaints
    assert [(one.secret_of, one.bounded) for one in found.versions[1].observers] == [
        (None, True),
        ("households/1.0.0", True),
    ]


def test_fractions_decide_the_same_of_every_member(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where limits on a distribution do not decide its fractions do: of the row of the household that it is about."""
    usual, asked = recounted(made.spec), set[int]()

    def undecided(
        sides: Sequence[Side],
        inner: Sequence[Side],
        distribution: HistoryDistribution,
        rows: Rows,
        shares: Sequence[int],
    ) -> HistoryFinding:
        if distribution.excess:
            asked.add(distribution.row)
            raise Undecided
        return judge_history(sides, inner, distribution, rows, shares)

    monkeypatch.setattr(histories, "judge_history", undecided)
    again = recounted(made.spec)
    assert max(asked) > 1
    for one, other in zip(usual.versions, again.versions, strict=True):
        assert (one.broken, one.moved, one.outside) == (other.broken, other.moved, other.outside)
        for told, found in zip(one.observers, other.observers, strict=True):
            assert told.level == pytest.approx(found.level, abs=1e-12)


def test_the_audit_passes(made: Made) -> None:
    for told in made.told:
        results = recheck(ReleaseFolder(Path(str(told["folder"]))))
        assert not [one for one in results if one.state is State.FAILED]


BROKEN = {
    "rows that are to come are left out": (
        "funnel.history.history_status",
        "sorted(range(members.rows), key",
        "sorted(range(begun + 1), key",
    ),
    "rows that were drawn are left out": (
        "funnel.history.history_status",
        "sorted(range(members.rows), key",
        "sorted(range(begun, members.rows), key",
    ),
    "the secrets of first rows are taken for those of all": (
        "funnel.history.history_status",
        "members.changes, row))",
        "members.changes, 0))",
    ),
    "the secret stays in what is to come": (
        "funnel.history.distributions",
        "secrets = kernel.expected(secrets)",
        "secrets = secrets",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_changed_line_is_refused(name: str, tmp_path: Path) -> None:
    # So many that it shows in whichever order members are drawn.
    spec = project(tmp_path, households=2_000)
    with patched(Patch(*BROKEN[name])), pytest.raises(FunnelError, match="histor"):
        run_release(spec, False, False)


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (('protection = "none"', NOISE), r'\[frequencies\] protection = "none"'),
        (('people = "same"', 'people = "same"\nsecrets = "current"'), r'\[history\] secrets = "all"'),
    ],
)
def test_members_are_refused_where_one_secret_of_a_unit_is_bounded(
    tmp_path: Path, change: tuple[str, str], remedy: str
) -> None:
    spec = project(tmp_path, SPEC.replace(*change))
    with pytest.raises(SpecError, match=rf"units \('household'\) have several values of the secret 'ill'.*{remedy}"):
        run_release(spec, False, False)
