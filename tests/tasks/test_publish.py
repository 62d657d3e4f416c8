"""What is refused is not published, and what is published says how many draws about the same people came before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from funnel.errors import ReleaseRefused
from funnel.pipeline.flows.way import go
from funnel.pipeline.tasks import describe as module
from funnel.release.layout import versions
from funnel.release.verdict import Judgement, Verdict
from funnel.spec import ReleaseSpec
from tests.projects import SPEC, make_project

PLAIN = SPEC + '\n[mechanism]\nname = "grr"\n'
FAILED = Judgement(name="expect_b", description="B holds.", passed=False, failure="3 instead of 2")


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [(Verdict.of((FAILED,)), "expect_b: 3 instead of 2"), (Verdict.of(()), "no expectation was evaluated")],
)
def test_a_negative_verdict_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, sentence: str
) -> None:
    spec = ReleaseSpec.load(make_project(tmp_path, PLAIN))
    monkeypatch.setattr("funnel.pipeline.flows.way.validate", lambda *_: verdict)
    with pytest.raises(ReleaseRefused, match=rf"^nothing was published: .*{sentence}"):
        go(spec, False, False)
    series = tmp_path / "releases" / "people"
    assert versions(series) == []
    assert list(series.iterdir()) == []


def test_a_report_tells_of_the_draws_before_it_and_of_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that took over the rows of another is no further draw."""
    told: list[int] = []
    real = module.report_content

    def gathered(*given: Any, earlier_releases: int, **named: Any) -> Any:
        told.append(earlier_releases)
        return real(*given, earlier_releases=earlier_releases, **named)

    monkeypatch.setattr(module, "report_content", gathered)
    path = make_project(tmp_path, PLAIN)
    published = [go(ReleaseSpec.load(path), False, False)[0]]
    published.append(go(ReleaseSpec.load(path), True, False)[0])
    for title in ("Another title", "A third title"):
        path.write_text(PLAIN.replace("People of a test", title))
        published.append(go(ReleaseSpec.load(path), False, False)[0])
    assert [one["drawn"] for one in published] == [True, True, False, False]
    assert [one["version"] for one in published] == ["1.0.0", "1.0.1", "1.0.2", "1.0.3"]
    assert told == [0, 1, 2, 2]
