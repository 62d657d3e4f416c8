"""A protocol read from its file, with its level and its use on counts made anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import funnel
from funnel import DataError
from funnel.progress import quiet
from funnel.recount.ratios import plain_information
from funnel.recount.released import ReleasedProtocol
from funnel.recount.source import recount
from funnel.source.counting import count_joint
from funnel.spec import ReleaseSpec

ROWS = {("ill", "old", "f"): 30, ("ill", "old", "m"): 4, ("ill", "young", "f"): 9, ("well", "old", "f"): 12}
ROWS |= {("well", "old", "m"): 31, ("well", "young", "f"): 17, ("well", "young", "m"): 60}


@pytest.fixture
def spec(tmp_path: Path) -> ReleaseSpec:
    lines = [",".join(row) for row, number in ROWS.items() for _ in range(number)]
    (tmp_path / "t.csv").write_text("\n".join(["health,age,sex", *lines]) + "\n")
    said = {"name": "x", "title": "x", "secret": ["health"], "publish": ["age", "sex"], "source": {"path": "t.csv"}}
    return ReleaseSpec.of(
        {**said, "guarantee": "lip:0.5", "metadata": {"licence": "CC0-1.0"}, "frequencies": {"protection": "none"}},
        folder=tmp_path,
    )


@pytest.mark.parametrize("text", ["lip:0.5", "ldp:0.8", "srlip:0.5", "rldp:1.5,0.05,chi2", "mi:0.02"])
@pytest.mark.parametrize("reads_secret", [False, True])
def test_level_and_information(spec: ReleaseSpec, text: str, reads_secret: bool) -> None:
    joint = count_joint(spec, quiet)
    guarantee = funnel.parse_guarantee(text)
    reading = {"rldp": "independent-reporting", "srlip": "optimal-with-secret"}.get(
        guarantee.name, "conditional-reporting"
    )
    protocol = funnel.fit(reading if reads_secret else "grr", joint, guarantee)
    assert (len(protocol.inputs.columns) == 3) is reads_secret
    released = ReleasedProtocol.parse(protocol.to_json())
    counted = recount(spec)
    level = released.level(text, counted)
    assert level.holds is guarantee.holds(joint, protocol) is True
    assert level.nats == pytest.approx(guarantee.level(joint, protocol).value, rel=1e-7)
    assert plain_information(released.channel(counted)).utility == pytest.approx(
        funnel.measures.mutual_information(joint, protocol), abs=1e-12
    )


def test_an_input_that_is_not_known_is_drawn_from_the_marginal(spec: ReleaseSpec) -> None:
    joint = count_joint(spec, quiet)
    fewer = funnel.Joint.from_counts(
        joint.counts[:, :3], joint.secret.symbols, funnel.Alphabet(("age", "sex"), joint.inputs.symbols[:3])
    )
    protocol = funnel.fit("grr", fewer, funnel.LIP(0.5))
    released = ReleasedProtocol.parse(protocol.to_json())
    ours = released.level("lip:0.5", recount(spec))
    assert ours.nats == pytest.approx(funnel.LIP(0.5).level(joint, protocol).value, rel=1e-12)


def test_other_columns_are_refused(spec: ReleaseSpec) -> None:
    joint = funnel.Joint.from_counts([[1, 2], [2, 1]])
    released = ReleasedProtocol.parse(funnel.fit("grr", joint, funnel.LIP(0.5)).to_json())
    with pytest.raises(DataError, match="reads the columns"):
        released.level("lip:0.5", recount(spec))


def _changes() -> list[Any]:
    def of(**changes: Any) -> Any:
        return lambda said: said.update(changes)

    def weight(value: Any) -> Any:
        return lambda said: said["weights"][0].__setitem__(0, value)

    return [
        of(weights=[]),
        of(weights=[["1"]]),
        of(marginal=["1"]),
        of(denominator="0"),
        of(inputs={"columns": ["x"], "symbols": [["a"], ["a"]]}),
        of(inputs={"columns": ["x"], "symbols": [["a"], ["b", "c"]]}),
        of(inputs={"columns": [], "symbols": [[], []]}),
        of(outputs=None),
        weight(1),
        weight("-1"),
        weight("1_0"),
        weight("٣"),
        weight(None),
        lambda said: said["marginal"].__setitem__(0, "0"),
        lambda said: said.pop("marginal"),
    ]


@pytest.mark.parametrize("change", _changes())
def test_what_is_no_protocol_is_refused(change: Any) -> None:
    said = funnel.fit("grr", funnel.Joint.from_counts([[1, 2], [2, 1]]), funnel.LIP(0.5)).to_dict()
    change(said)
    with pytest.raises(DataError):
        ReleasedProtocol.parse(json.dumps(said))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "[" * 100_000])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        ReleasedProtocol.parse(text)
