"""Design: the matrix of a regression over the values of a release, from a formula."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from funnel.alphabet import Alphabet
from funnel.errors import SpecError
from funnel.estimation.number_categories import Categories, StandFor
from funnel.joint import FloatArray
from funnel.readers.cells import number_in
from funnel.wording import listed

# A share that a fit gives to what never occurs.
_NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Design:
    """A regression over a values.

    Attributes
    ----------
    terms : tuple of str
        Names of the p coefficients.
    matrix : ndarray, shape (a, p)
        Zero for values that are left out.
    y : ndarray, shape (a,)
        The outcome.
    """

    terms: tuple[str, ...]
    matrix: FloatArray
    y: FloatArray


def design_of(
    values: Alphabet,
    shares: FloatArray,
    formula: str,
    logistic: bool,
    event: str | Collection[str] | None,
    numbers: Mapping[str, StandFor],
) -> Design:
    """The design of a formula.

    Parameters
    ----------
    values : Alphabet
    shares : ndarray, shape (a,)
        Categories without a share are left out.
    formula : str
        Wilkinson's notation, as R and formulaic read it, with the outcome to the left of ``~``.
    logistic : bool
        Whether the outcome is whether a record has the event.
    event : str or collection of str, optional
        The values of the outcome that are the event.
    numbers : mapping of column to what its values stand for
        Columns whose values are all numbers, by this or as they are written, are numbers; others are categories.

    Raises
    ------
    SpecError
        If the formula cannot be read, names no column, or formulaic is not installed.

    Notes
    -----
    Records whose outcome or regressor stands for no number are left out, as usual regressions leave missing ones out.
    """
    outcome, right = _split(formula, values)
    frame, used = _frame(values, shares, right, numbers)
    place = values.columns.index(outcome)
    labels = [symbol[place] for symbol in values.symbols]
    if logistic:
        y = _events(labels, shares, outcome, event)
    else:
        if event is not None:
            raise SpecError('an event is of a logistic regression; ask for family="logistic", or take event out')
        y = _numbers(labels, outcome, numbers.get(outcome))
    used &= np.isfinite(y)
    if not used.any():
        raise SpecError(f"no record has a number for {outcome} and every term; give what values stand for as numbers")
    terms, rows = _matrix(frame[used], right, values)
    matrix = np.zeros((len(labels), len(terms)))
    matrix[used] = rows
    return Design(terms, matrix, np.where(used, y, 0.0))


def _split(formula: str, values: Alphabet) -> tuple[str, str]:
    """The outcome, and the right side with names that are no identifiers in backticks."""
    left, tilde, right = formula.partition("~")
    outcome = left.strip().strip("`")
    if not tilde or not right.strip():
        raise SpecError(f'{formula!r} is no formula; write OUTCOME ~ TERM + TERM, such as "y ~ x + z"')
    if outcome not in values.columns:
        raise SpecError(f"the outcome {outcome!r} is none of the columns {listed(values.columns)}")
    odd = sorted((name for name in values.columns if not name.isidentifier()), key=len, reverse=True)
    if odd:
        # Of names that overlap the longest is meant.
        known = "|".join(map(re.escape, odd))
        right = re.sub(rf"`[^`]*`|(?<![\w-])(?:{known})(?![\w-])", lambda m: _quoted(m[0]), right)
    return outcome, right.strip()


def _quoted(name: str) -> str:
    return name if name.startswith("`") else f"`{name}`"


def _frame(values: Alphabet, shares: FloatArray, right: str, numbers: Mapping[str, StandFor]) -> tuple[Any, Any]:
    """The values as a data frame, (a, columns), and which of them can be used, (a,)."""
    import pandas as pd

    used = np.ones(len(values), dtype=np.bool_)
    columns: dict[str, Any] = {}
    for place, column in enumerate(values.columns):
        if not re.search(rf"(?<!\w){re.escape(column)}(?!\w)", right):
            continue
        labels = [symbol[place] for symbol in values.symbols]
        # A value that no record has would have no coefficient; a combination that none has only has no weight.
        there = {label for label, share in zip(labels, shares.tolist(), strict=True) if share > _NOTHING}
        used &= np.array([label in there for label in labels])
        columns[column] = labels
        if column in numbers or all(number_in(label) is not None for label in labels):
            columns[column] = _numbers(labels, column, numbers.get(column))
            used &= np.isfinite(columns[column])
    return pd.DataFrame(columns, index=range(len(values))), used


def _numbers(labels: list[str], column: str, stand_for: StandFor | None) -> FloatArray:
    """The number of each label, the middle of an interval; nan where it has none."""
    known = None if stand_for is None else {label: one for label, one in stand_for.items() if label in set(labels)}
    found = Categories.of(labels, column, known)
    return np.where(found.category >= 0, found.middles[found.category], np.nan)


def _events(labels: list[str], shares: FloatArray, outcome: str, event: str | Collection[str] | None) -> FloatArray:
    there = sorted({label for label, share in zip(labels, shares, strict=True) if share > _NOTHING})
    chosen = {event} if isinstance(event, str) else set(event or ())
    if not chosen or not chosen <= set(labels):
        raise SpecError(
            f"a logistic regression needs the event: values of {outcome}, one or more of {listed(there)}, as event="
        )
    if not chosen & set(there) or set(there) <= chosen:
        raise SpecError(f"all records have the event, or none: event= has to be some of {listed(there)}")
    return np.array([float(label in chosen) for label in labels])


def _matrix(frame: Any, right: str, values: Alphabet) -> tuple[tuple[str, ...], FloatArray]:
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
    except ImportError as error:
        raise SpecError('to read formulas install the extra: pip install "funnel[formulas]"') from error
    try:
        matrix = Formula(right).get_model_matrix(frame, na_action="raise")
    except (FormulaicError, NameError, ValueError, TypeError, KeyError) as error:
        raise SpecError(
            f"the terms {right!r} cannot be read ({str(error).splitlines()[0][:120]}); they are of the columns "
            f"{listed(values.columns)}"
        ) from error
    return tuple(map(str, matrix.columns)), np.asarray(matrix, dtype=np.float64)
