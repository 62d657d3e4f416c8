"""What happens when a mutant goes the whole way: refused by what, and with which sentence; or published."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from funnel.errors import FunnelError
from funnel.pipeline import expectations
from funnel.release.verdict import Verdict
from tests.projects import tree
from tests.sabotage.mutant import Mutant
from tests.sabotage.patching import patched
from tests.sabotage.scenes import prepared, run

PUBLISHED = "nothing"


@dataclass(frozen=True)
class Outcome:
    """How a sabotaged run ended.

    Attributes
    ----------
    caught_by : tuple of str
        The expectations that failed, or the function that refused; `PUBLISHED` where the run went on to its end.
    sentence : str
        What the run said.
    touched : tuple of str
        Files of the series that are new, gone or changed.
    """

    caught_by: tuple[str, ...]
    sentence: str
    touched: tuple[str, ...]


def outcome(mutant: Mutant, folder: Path) -> Outcome:
    """Make the release of a mutant's scene with its line changed.

    Raises
    ------
    DoesNotApply
        If the line is no longer there.
    Exception
        If the run ends otherwise than by publishing or with one clear sentence.
    """
    prepared(folder, mutant.scene)
    before = _series(folder)
    caught: tuple[str, ...] = (PUBLISHED,)
    with patched(mutant.patch), _verdicts() as verdicts:
        try:
            told = run(folder, mutant.scene)
            sentence = f"{told['status']}, version {told['version']}"
        except FunnelError as error:
            sentence = str(error)
            failed = tuple(judgement.name for judgement in verdicts[-1].failed) if verdicts else ()
            caught = failed or (_refusing(error),)
    after = _series(folder)
    touched = tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))
    return Outcome(caught, sentence, touched)


@contextmanager
def _verdicts() -> Iterator[list[Verdict]]:
    """The verdicts of all judgements inside this block."""
    found: list[Verdict] = []
    judge = expectations.judge

    def heard(evidence: expectations.Evidence) -> Verdict:
        found.append(judge(evidence))
        return found[-1]

    with mock.patch.object(expectations, "judge", heard):
        yield found


def _refusing(error: FunnelError) -> str:
    """The function that raised, as ``module.function``; what only hands errors on has no name of its own."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    innermost = frames[-1]
    return f"{innermost.f_globals['__name__'].rpartition('.')[2]}.{innermost.f_code.co_name}"


def _series(folder: Path) -> dict[str, bytes]:
    releases = folder / "releases"
    return {name: content for name, content in tree(releases).items() if not name.endswith(".lock")}
