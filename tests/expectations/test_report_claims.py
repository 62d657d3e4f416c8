"""What a report tells is about values that occur, and what it tells of them is what follows from the counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from funnel.alphabet import Alphabet
from funnel.joint import Joint
from funnel.pipeline.expectations import report_claims
from funnel.pipeline.expectations.claims import Claim
from funnel.protocol import DENOMINATOR, Protocol
from funnel.release.public.rounding import lift_step, to_multiple
from tests.expectations.test_distributions import distributions_of

# Nobody of the first secret has the second input, and inputs are published as they are.
JOINT = Joint.from_counts(
    [[4000, 0], [2000, 4000]], Alphabet(("s",), (("a",), ("b",))), Alphabet(("x",), (("u",), ("v",)))
)
LAWS = distributions_of(
    JOINT,
    Protocol(
        np.array([[DENOMINATOR, 0], [0, DENOMINATOR]], dtype=np.uint64),
        np.array([DENOMINATOR // 2] * 2, dtype=np.uint64),
        JOINT.inputs,
        JOINT.inputs,
    ),
)


def failures(claims: Any) -> dict[str, str]:
    found: list[Claim] = list(claims)
    return {one.name: one.failure for one in found if one.failure is not None}


def strongest(secret: str, output: str, lift: float | None) -> dict[str, Any]:
    return {"lifts": {"table": None, "strongest": [{"secret": secret, "output": output, "cell": {"lift": lift}}]}}


@pytest.mark.parametrize("off", [0.5, 0.9, 1.0, 1.4])
@pytest.mark.parametrize("expected", [21.0, 39.0, 55.0, 99.0, 210.0, 4000.0])
@pytest.mark.parametrize("exact", [1e-3, 0.04, 0.24, 0.26, 0.727, 0.97, 1.3, 2.6])
def test_a_lift_that_is_told_to_the_step_of_public_frequencies_is_close(
    off: float, expected: float, exact: float
) -> None:
    step = lift_step(exact, off * expected)
    told = max(step, to_multiple(exact, step))
    distributions: Any = SimpleNamespace(output_masses=[int(expected)], whole=1, secrets={("a",): 1})
    assert abs(told - exact) <= report_claims._coarseness(exact, distributions, ("a",), 0)


@pytest.mark.parametrize(
    ("secret", "output", "lift", "failure"),
    [
        # 4000/6000 by 4000/10000; 2000/6000 by 6000/10000.
        ("a", "u", 1.67, None),
        ("b", "u", 0.56, None),
        ("a", "u", 1.5, "is told as 1.5, which it is not"),
        ("a", "u", 1.6667, "is told as 1.6667, which it is not"),
        ("a", "u", None, None),
        # What is ruled out is told as it is, and to no step.
        ("a", "v", 0.0, None),
        ("a", "v", 0.01, "is told as 0.01, which it is not"),
        ("c", "u", 1.0, "is about nothing that occurs"),
        ("a", "w", 1.0, "is about nothing that occurs"),
        ("c", "u", None, "is about nothing that occurs"),
    ],
)
def test_a_lift_is_the_one_of_its_place(secret: str, output: str, lift: float | None, failure: str | None) -> None:
    found = failures(report_claims._lifts(strongest(secret, output, lift), LAWS))
    assert found == ({} if failure is None else {f"lift of {secret!r} given {output!r}": failure})


def test_a_table_of_lifts_is_about_all_that_occurs() -> None:
    cells = [{"lift": None}, {"lift": None}]
    table = {"secrets": ["a", "b"], "rows": [{"output": "u", "cells": cells}, {"output": "v", "cells": cells}]}

    def found(table: dict[str, Any]) -> dict[str, str]:
        return failures(report_claims._lifts({"lifts": {"table": table, "strongest": []}}, LAWS))

    assert found(table) == {}
    assert found({**table, "rows": table["rows"][:1]}) == {"table": "is not about all outputs"}
    assert "is not about the secrets that occur" in found({**table, "secrets": ["a", "c"]})["table"]
    wrong = {**table, "rows": [{"output": "u", "cells": [{"lift": 1.0}, {"lift": None}]}, table["rows"][1]]}
    assert found(wrong) == {"lift of 'a' given 'u'": "is told as 1.0, which it is not"}


def test_shares_are_of_values_that_occur() -> None:
    def found(secrets: list[Any], inputs: list[Any] | None) -> dict[str, str]:
        return failures(
            report_claims._frequencies(
                {
                    "beliefs": {"rows": [{"label": label, "prior": share} for label, share in secrets]},
                    "accuracy": None
                    if inputs is None
                    else {"rows": [{"label": label, "share": share} for label, share in inputs]},
                    "heat": {"outputs": ["u"], "inputs": ["u", "v"], "shares": [[1.0, 0.0]]},
                },
                LAWS,
            )
        )

    assert found([("a", 0.4), ("b", 0.6)], [("u", 0.6), ("v", 0.4)]) == {}
    assert found([("a", 0.4)], None) == {}
    assert found([("c", 0.4)], None) == {"secret 'c'": "does not occur"}
    assert found([], [("w", 0.6)]) == {"input 'w'": "does not occur"}
    assert set(found([("a", 0.5)], [("u", 0.5)])) == {"share of secret 'a'", "share of input 'u'"}


def report_of(version: str, share: float, alone: float | None, kept: list[dict[str, Any]]) -> dict[str, Any]:
    history = None if alone is None else {"share_alone": alone}
    return {"version": version, "figures": {"share": share, "history": history}, "kept": kept}


def test_what_versions_keep_is_what_each_of_them_tells() -> None:
    rows = [{"version": f"1.{i}.0", "share": 0.9 - i / 10, "share_alone": 0.95} for i in range(3)]
    before = [report_of(row["version"], row["share"], 0.95, rows[: i + 1]) for i, row in enumerate(rows[:2])]
    this = report_of("1.2.0", 0.7, 0.95, rows)
    assert failures(report_claims._kept(this, before)) == {}
    # Those that were withdrawn, or stood alone, are not told of.
    assert failures(report_claims._kept({**this, "kept": rows[1:]}, before)) == {}
    assert failures(report_claims._kept(this, None)) == {}
    other = [rows[0], {**rows[1], "share": 0.81}, rows[2]]
    assert failures(report_claims._kept({**this, "kept": other}, before)) == {
        "kept by earlier versions": "is not what 1.1.0 tells of itself"
    }
    assert "kept by earlier versions" in failures(report_claims._kept(this, before[:1]))
    for wrong in (rows[:2], [*rows[:2], {**rows[2], "share_alone": 1.0}], []):
        assert "kept by this version" in failures(report_claims._kept({**this, "kept": wrong}, before))
    assert failures(report_claims._kept(report_of("1.0.0", 0.9, None, []), ())) == {}
    assert failures(report_claims._kept(report_of("1.0.0", 0.9, None, rows), ())).keys() == {"kept by versions"}


@pytest.mark.parametrize(
    ("stated", "left", "holds"),
    [(0.473, 0.4731, True), (1.0, 0.4731, False), (None, 0.4731, False), (None, 1.0, True), (0.473, None, True)],
)
def test_what_grouping_left_is_counted_again(stated: float | None, left: float | None, holds: bool) -> None:
    finished: Any = SimpleNamespace(grouping_kept=left, distributions=LAWS)
    assert (failures(report_claims._grouping({"grouping_kept": stated}, finished)) == {}) is holds
