"""All mutants, in the order of the way."""

from __future__ import annotations

from tests.sabotage.any_column import ANY_COLUMNS
from tests.sabotage.donating import DONATING
from tests.sabotage.drawing import DRAWING
from tests.sabotage.following import FOLLOWING
from tests.sabotage.holding_out import HOLDING_OUT
from tests.sabotage.planning import PLANNING
from tests.sabotage.protecting import PROTECTING
from tests.sabotage.publishing import PUBLISHING
from tests.sabotage.reading import READING

CLASSES = {
    "reading and counting": READING,
    "protection of frequencies": PROTECTING,
    "protocols": PLANNING,
    "drawing": DRAWING,
    "observers of any columns": ANY_COLUMNS,
    "bounds for a population": HOLDING_OUT,
    "versions and units": FOLLOWING,
    "whole records over versions": DONATING,
    "documents and publication": PUBLISHING,
}
"""By what is sabotaged."""

MUTANTS = [mutant for mutants in CLASSES.values() for mutant in mutants]
