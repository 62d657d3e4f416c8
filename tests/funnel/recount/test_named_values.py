"""Named values: the second computation names what a release names, and nothing that other noise would."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from funnel.errors import DataError
from funnel.frequencies.noise import NoiseSecret
from funnel.frequencies.selection import Looks, Share
from funnel.readers.formats import open_source
from funnel.recount.grouping import LEARNING, learned_columns, share_of
from funnel.recount.named_values import named_values
from funnel.recount.noise import NoiseMaterial
from funnel.recount.source import Recount, recount
from funnel.source.learning import learn_codings
from funnel.spec import ReleaseSpec
from tests.projects import spec_of

MATERIAL = NoiseMaterial(hashlib.sha256(b"a secret").hexdigest(), "test", hashlib.sha256(b"a source").hexdigest())
OTHERS = NoiseMaterial(hashlib.sha256(b"another").hexdigest(), "test", MATERIAL.source)
# Thresholds of some ten records, near which most values are.
NOISE = {"protection": "noise", "epsilon": 8.0, "delta": 0.05}
COLUMNS = ("s", "x", "y")
CASES: list[dict[str, Any]] = [
    {},
    {"recode": {"x": {"minimum_count": 12}, "s": {"minimum_count": 9}}},
    {"recode": {"x": {"groups": {"early": ["a", "b"], "rest": ["Other", "c"]}}}},
    {"recode": {"x": {"groups": {"none": ["(missing)", "d"]}, "minimum_count": 15}}},
    {"categories": {"s": ["d", "a", "never"], "x": ["e", "b", "a"]}, "recode": {"s": {"minimum_count": 14}}},
    {"categories": {"s": ["a", "b", "(missing)", "Other"]}, "recode": {"s": {"minimum_count": 18}}},
    {"recode": {"y": {"bins": [3, 6]}, "s": {"groups": {"late": ["g", "h"]}}}},
    {"secret": ["y"], "publish": ["s", "x"], "recode": {"y": {"bins": [3, 6], "minimum_count": 40}}},
    {"secret": ["y"], "publish": ["s", "x"], "recode": {"y": {"bins": [3, 6], "groups": {"?": ["(missing)"]}}}},
    {"source": {"on_missing": "drop"}, "recode": {"x": {"minimum_count": 20, "other": "rest"}}},
]


def spec_with(folder: Path, seed: int, changes: dict[str, Any]) -> ReleaseSpec:
    random = np.random.default_rng(seed)

    def drawn(values: str) -> list[str | None]:
        shares = random.dirichlet(np.full(len(values) + 1, 0.6))
        return [None if k == len(values) else values[k] for k in random.choice(len(shares), 160, p=shares)]

    numbers = [None if value is None else int(value) for value in drawn("123456789")]
    table = {"s": drawn("abcdefgh"), "x": drawn("abcdefghij"), "y": pa.array(numbers, pa.int64())}
    pq.write_table(pa.table(table), folder / "people.parquet")
    settings: dict[str, Any] = {"publish": ["x", "y"], "frequencies": NOISE, **changes}
    return spec_of("people.parquet", folder, **settings)


def named_by(material: NoiseMaterial, spec: ReleaseSpec, counted: Recount) -> dict[str, frozenset[str]]:
    return {
        column: named_values(spec, column, counted.values[column], counted.missing[column], material)
        for column in learned_columns(spec)
    }


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_names_of_a_release_are_found(case: int, tmp_path: Path) -> None:
    compared = differing = 0
    for seed in range(12):
        spec = spec_with(tmp_path, 100 * case + seed, CASES[case])
        try:
            made = learn_codings(spec, open_source(spec), secret=NoiseSecret(MATERIAL.root, MATERIAL.source))
        except DataError:
            # Too few records for any name, by the noise of this seed.
            continue
        counted = recount(spec, made.labels)
        found = {column: frozenset(made[column].labels) for column in learned_columns(spec)}
        assert named_by(MATERIAL, spec, counted) == found
        differing += named_by(OTHERS, spec, counted) != found
        compared += 1
    assert compared >= 4, compared
    # Values are so near to the threshold that other noise names others.
    assert differing >= compared / 2, (differing, compared)


def test_noise_of_a_count_is_what_it_is_defined_as() -> None:
    counts = {str(k): 7 * k for k in range(400)}
    for epsilon in (0.003, 0.25, 40.0):
        share = share_of(epsilon, 1, LEARNING)
        drawn = Looks("x", NoiseSecret(MATERIAL.root, MATERIAL.source)).with_noise("values", counts, share)
        assert MATERIAL.of_values("values", share, "x", counts) == drawn
        assert MATERIAL.of_values("rest", share, "x", counts) != drawn or epsilon > 4
        assert MATERIAL.of_values("values", share, "y", counts) != drawn or epsilon > 4


@pytest.mark.parametrize("delta", [0.4, 1e-3, 1e-9, 1e-90])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 9.0])
def test_a_value_at_the_threshold_is_named_and_one_below_is_not(
    delta: float, epsilon: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(NoiseMaterial, "of_values", lambda self, kind, epsilon, column, counts: dict(counts))
    spec = spec_of("x.csv", tmp_path, frequencies={**NOISE, "epsilon": epsilon, "delta": delta})
    # Of two columns that are learned; the values of x, which is not secret, by one look.
    share = Share(share_of(epsilon, 2, LEARNING), share_of(delta, 2))
    sizes = {"at": share.threshold, "below": share.threshold - 1}
    assert named_values(spec, "x", sizes, 0, MATERIAL) == {"at", "Other", "(missing)"}
