"""Replicate weights: which columns are some, by their names, and why no such column is published."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

# Names of replicate weights in surveys, before their number: ACS, CPS, PISA, DHS, balanced replication, jackknife.
_NAMED = re.compile(
    r"((^|[^a-z])(rep(l|lic|licate)?s?[_. -]*(w|wts?|wgt|weights?)|brr|fay|jkw?|jack(knife)?|bootstrap|bsw)"
    r"|boot[_. -]*(w|wts?|wgt|weights?)|repwt[a-z]*|p?wgtp|fsturwt|fstr)[_. -]*(w|wts?|wgt|weights?)?[_. -]*$",
    re.IGNORECASE,
)
# Any weights, where there are too many of them to be those of waves.
_ANY = re.compile(r"(weight|wgt|wt)s?[_. -]*$", re.IGNORECASE)
# But what a body or a thing weighs, at many visits.
_OF_A_BODY = re.compile("body|birth|fat|lean|dry|kg", re.IGNORECASE)
_FEWEST, _FEWEST_OF_ANY = 2, 10


def replicate_weights(names: Iterable[str]) -> tuple[str, ...]:
    """The columns, in their order, that are named and numbered as replicate weights of a survey are.

    Parameters
    ----------
    names : iterable of str

    Examples
    --------
    >>> replicate_weights(["age", "PWGTP", "PWGTP1", "PWGTP2", "weight 1"])
    ('PWGTP1', 'PWGTP2')
    """
    columns = list(names)
    numbered = defaultdict(list)
    for name in columns:
        if found := re.fullmatch(r"(.*?\D)(\d{1,4})", name):
            numbered[found[1]].append(name)
    replicates = {
        name
        for stem, of_stem in numbered.items()
        if (len(of_stem) >= _FEWEST and _NAMED.search(stem))
        or (len(of_stem) >= _FEWEST_OF_ANY and _ANY.search(stem) and not _OF_A_BODY.search(stem))
        for name in of_stem
    }
    return tuple(name for name in columns if name in replicates)


def why_refused(columns: tuple[str, ...]) -> str:
    """Why such columns are not published, and what to do."""
    shown = columns[0] if len(columns) == 1 else f"{columns[0]} to {columns[-1]}"
    return (
        f"secret or publish names {len(columns):,} replicate weights of a survey, {shown}: together they tell the "
        "sampling unit of a record, and join it to every other file that has them; take them out, with publish = "
        '"auto" by [groups] exclude (or rename them, if they are what bodies or things weigh), publish classes of the '
        "weight itself (weight = COLUMN), and state the design effect in the description: funnel estimate --weighted "
        "--sampling --design-effect takes it"
    )
