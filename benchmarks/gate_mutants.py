"""The table of sabotages: what each line changes, and what refuses the release; made from the list of the tests.

Run ``python -m benchmarks.gate_mutants`` in the folder of the project; writes ``results/gate-mutants.md``.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from tests import chance
from tests.sabotage.every import CLASSES, MUTANTS
from tests.sabotage.observing import Outcome, outcome

RESULTS = Path(__file__).parent / "results" / "gate-mutants.md"
_LONGEST = 240


def main() -> None:
    """Run every mutant and write the table."""
    lines = [
        "# What the gate catches",
        "",
        f"{len(MUTANTS)} sabotages of the pipeline, each one changed line, tried by `tests/sabotage` on a release of",
        "3,000 records of the Adult data. Each is refused before anything is published, in one sentence. A scene other",
        "than a first release stands in brackets. Before there was this list, a review tried 65: 24 were published.",
        "",
        "| what is sabotaged | tried | refused |",
        "| --- | ---: | ---: |",
        # Written where all of them are.
        *(f"| {name} | {len(mutants)} | {len(mutants)} |" for name, mutants in CLASSES.items()),
        "",
        "| sabotage | would have published | caught by | message |",
        "| --- | --- | --- | --- |",
    ]
    # Draws of every run are the same, as in the tests: some lines do nothing where a draw happens to be right as it is.
    with tempfile.TemporaryDirectory() as work, chance.same_draws():
        for number, mutant in enumerate(MUTANTS):
            chance.begin(mutant.name)
            found = outcome(mutant, Path(work) / str(number))
            if mutant.caught_by not in found.caught_by or found.touched:
                sys.exit(f"{mutant.name} was not caught by {mutant.caught_by}: {found.sentence}")
            scene = "" if mutant.scene.name == "a first release" else f" [{mutant.scene.name}]"
            cells = (mutant.name + scene, mutant.breaks, _catchers(found), _message(found, work))
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _catchers(found: Outcome) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(found.caught_by))


def _message(found: Outcome, work: str) -> str:
    """The sentence, without the places of this machine, cut where it goes into details."""
    said = re.sub(rf"{re.escape(work)}/\d+/", "", found.sentence)
    return said if len(said) <= _LONGEST else said[:_LONGEST].rsplit(" ", 1)[0] + " …"


if __name__ == "__main__":
    main()
