"""How estimates are printed, names to the left and figures to the right, and what JSON has of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan
from typing import Any

from funnel.joint import FloatArray

# A name that is longer pushes the rest of its line to the right.
_WIDEST = 60


def table(rows: Sequence[Sequence[str]], names: int, about: str) -> str:
    """Lines of a table and a sentence.

    Parameters
    ----------
    rows : sequence of sequence of str
        The first one is the head; all of the same length.
    names : int
        So many columns from the left are names.
    about : str
        What the figures are.
    """
    widths = [min(_WIDEST, max(map(len, column))) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            text.ljust(width) if i < names else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, about])


def json_figure(value: float) -> float | None:
    """A figure as JSON has it: None where it is not known, or infinite."""
    return float(value) if isfinite(value) else None


def json_settings(estimates: object, *names: str) -> dict[str, Any]:
    """Attributes of estimates by their names, as JSON has them."""
    values = {name: getattr(estimates, name) for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def json_cells(cells: Sequence[tuple[str, ...]], **figures: FloatArray) -> list[dict[str, Any]]:
    """The values of every cell with its figures, by the names that these have."""
    named = {name: [json_figure(value) for value in column.tolist()] for name, column in figures.items()}
    return [
        {"values": list(cell), **{name: column[place] for name, column in named.items()}}
        for place, cell in enumerate(cells)
    ]


def shown(share: float, error: float, form: str = ".4f") -> tuple[str, str]:
    """A figure and its error as text, where the first is known."""
    return ("–", "not told") if isnan(share) else (f"{share:{form}}", f"{error:.4f}")


def errors_of(randomness: str, sampling: bool) -> str:
    """What errors are of, as part of a sentence: random answers or changes, and perhaps a sample."""
    if sampling:
        return f"errors are of the random {randomness} and of drawing these records from a population"
    return f"errors are of the random {randomness} alone: the estimates are about these records"
