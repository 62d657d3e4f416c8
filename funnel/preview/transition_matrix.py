"""Transition matrices that others made, such as those of PRAM: checked under a bound, beside the best it allows."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np

from funnel.alphabet import CLASS_COLUMN, Alphabet
from funnel.errors import FunnelError, SpecError
from funnel.guarantees import Guarantee
from funnel.joint import FloatArray, Joint
from funnel.progress import Progress
from funnel.protocol import Protocol
from funnel.rounding import protocol_from_matrix
from funnel.solver.optimum import optimal
from funnel.wording import listed

# Of the records: what more rounds could leave unchanged.
_GAP = 1e-4
_MOST_NAMED = 3
# Entries of the table of all combinations: eighty megabytes.
_LARGEST = 10_000_000


@dataclass(frozen=True)
class Better:
    """The invariant matrix that leaves most records unchanged under a bound.

    Attributes
    ----------
    guarantee : str
    own_level : bool
        Whether the bound is the level of the matrix that is checked.
    unchanged, at_most : float or None
        Its share of the records, and what no invariant matrix under the bound exceeds; None where there is none.
    reason : str or None
        Why there is none.
    """

    guarantee: str
    own_level: bool
    unchanged: float | None = None
    at_most: float | None = None
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """What it keeps."""
        under = "at the same level" if self.own_level else f"under {self.guarantee}"
        if self.unchanged is None or self.at_most is None:
            return f"{under} no invariant matrix is found: {self.reason}"
        return (
            f"{under} an invariant matrix, whose counts are right on average, leaves {self.unchanged:.1%} of the "
            f"records unchanged, and none leaves more than {self.at_most:.1%}"
        )


@dataclass(frozen=True)
class CheckedMatrix:
    """What transition matrices disclose and keep, and what another would keep instead.

    Attributes
    ----------
    file : str
    guarantee : str
        The bound that it is checked under.
    holds : bool
        Decided in exact arithmetic.
    level : float
        The smallest budget (nats) of this kind of bound that it meets; infinite if none.
    output, secret : str
        The published value that discloses most, and the value of the secret that it is about.
    other_secret : str or None
        The value that the secret is compared with, where it is one.
    known : tuple of (column, value)
        What the observer knows besides.
    upward : bool
        Whether the published value makes the secret likelier.
    factor : float or None
        By how much; None where it is infinite, or the bound is not about a ratio.
    unchanged : float
        The share of the records that it leaves unchanged.
    off : float
        By how many records a count is off, on average and at most.
    better : tuple of Better
        Under the bound, and at the level of the matrix.
    """

    file: str
    guarantee: str
    holds: bool
    level: float
    output: str
    secret: str
    other_secret: str | None
    known: tuple[tuple[str, str], ...]
    upward: bool
    factor: float | None
    unchanged: float
    off: float
    better: tuple[Better, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; an infinite level becomes None."""
        return asdict(self) | {"level": self.level if math.isfinite(self.level) else None}

    def lines(self) -> Iterator[str]:
        """What a console shows."""
        level = f"{self.level:.6g}" if math.isfinite(self.level) else "infinite"
        holds = "holds" if self.holds else "does not hold"
        likelier = "likelier" if self.upward else "less likely"
        against = "" if self.other_secret is None else f" as against {self.other_secret}"
        who = "".join(f", {column} being {value}" for column, value in self.known)
        factor = "" if self.factor is None else f" by a factor {self.factor:.4g}"
        yield (
            f"{self.file}: {self.guarantee} {holds}, the level is {level}; it is attained where {self.output} is "
            f"published, which makes {self.secret}{against} {likelier}{factor}{who}"
        )
        off = f"a count is off by up to {self.off:,.0f} records" if self.off >= 1 else "counts are right"
        yield f"{self.file}: {self.unchanged:.1%} of the records stay unchanged; {off} on average"
        for one in self.better:
            yield f"{self.file}: {one.sentence}"


def check_matrix(
    files: Sequence[Path], joint: Joint, guarantee: Guarantee, time_limit: float | None, progress: Progress
) -> CheckedMatrix:
    """Read the transition matrix of each column, and check them under a bound and beside the optimum.

    A record is changed in each column independently of the others, as PRAM does.

    Parameters
    ----------
    files : sequence of Path
        One for each published column, in their order, as `read_transitions` takes it.
    joint : Joint
        Counts of the secret and of the published values.
    guarantee : Guarantee
    time_limit : float or None
        Of each optimum, in seconds as work that is counted.
    progress : callable

    Raises
    ------
    SpecError
        If there is not one file for each column, or one is no transition matrix of the values of its column.
    """
    columns = joint.inputs.columns
    if len(files) != len(columns) or CLASS_COLUMN in columns:
        raise SpecError(
            f"a transition matrix is about one column, and the spec publishes {', '.join(columns)}; give --matrix once "
            "for each of these, in this order, or name the columns of the matrices alone in publish"
        )
    protocol = _protocol(files, joint)
    # Outputs begin with the inputs.
    channel, a = protocol.matrix, len(joint.inputs)
    worst = guarantee.level(joint, protocol)
    place, p = worst.witness, joint.p_input
    better = [_best(joint, guarantee, False, time_limit, progress)]
    if 0 < worst.value < math.inf and worst.value != guarantee.budget:
        better.append(_best(joint, guarantee.with_budget(worst.value), True, time_limit, progress))
    secrets = joint.secret.labels
    return CheckedMatrix(
        " and ".join(file.name for file in files),
        str(guarantee),
        guarantee.holds(joint, protocol),
        worst.value,
        protocol.outputs.labels[place.output],
        secrets[place.secret],
        None if place.other_secret is None else secrets[place.other_secret],
        place.given,
        place.upward,
        None if place.ratio is None else float(place.ratio),
        float(channel[:a].diagonal() @ p),
        float(np.abs(channel @ p - np.pad(p, (0, len(channel) - a))).max() * joint.n),
        tuple(better),
    )


def _protocol(files: Sequence[Path], joint: Joint) -> Protocol:
    """Over all combinations of the values of the columns: first those that the joint distribution has, in its order."""
    inputs, tables = joint.inputs, []
    for column, file, texts in zip(inputs.columns, files, zip(*inputs.symbols, strict=True), strict=True):
        values = Alphabet((column,), tuple((text,) for text in dict.fromkeys(texts)))
        tables.append((dict(zip((text for (text,) in values.symbols), count())), read_transitions(file, values)))
    combinations = math.prod(len(places) for places, _ in tables)
    if combinations * len(inputs) > _LARGEST:
        raise SpecError(
            f"the matrices make {combinations:,} combinations of values out of {len(inputs):,}; group values in "
            "[recode], or check fewer columns"
        )
    symbols = tuple(dict.fromkeys((*inputs.symbols, *product(*(places for places, _ in tables)))))
    channel = np.ones((len(symbols), len(inputs)))
    for j, (places, transitions) in enumerate(tables):
        to, origin = ([places[symbol[j]] for symbol in some] for some in (symbols, inputs.symbols))
        channel *= transitions.T[np.ix_(to, origin)]
    return protocol_from_matrix(joint, channel, outputs=Alphabet(inputs.columns, symbols))


def _best(joint: Joint, bound: Guarantee, own: bool, time_limit: float | None, progress: Progress) -> Better:
    progress(f"the best matrix under {bound}", 0, None)
    try:
        found = optimal(
            joint, bound, _GAP, time_limit=time_limit, progress=progress, utility="unchanged", weights="share"
        )
    except FunnelError as error:
        return Better(str(bound), own, reason=str(error))
    return Better(str(bound), own, found.utility, min(1.0, found.bound))


def read_transitions(file: Path, values: Alphabet) -> FloatArray:
    """A transition matrix from a csv file as ``write.csv`` of R writes a matrix with names.

    Parameters
    ----------
    file : Path
        A row for each true value, which comes first in it, and a column for each published one, in any order.
    values : Alphabet
        The values that can be published.

    Returns
    -------
    ndarray, shape (a, a)
        P(published y | true x) at row x and column y, in the order of the values.

    Raises
    ------
    SpecError
        If it cannot be read, or is not about these values.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            header, *rows = [row for row in csv.reader(opened, strict=True) if row]
        numbers = np.array([row[1:] for row in rows], dtype=np.float64).reshape(len(rows), -1)
    except OSError as error:
        raise SpecError(f"cannot read {file}: {error.strerror or type(error).__name__}; name another file") from error
    except (ValueError, csv.Error) as error:
        raise SpecError(
            f"{file} is no transition matrix: write a row for each true value that begins with its name, a column for "
            "each published value, and probabilities with a point, as write.csv of R does"
        ) from error
    columns, names = header[-numbers.shape[1] :], [row[0] for row in rows]
    for of, found in (("row", names), ("column", columns)):
        known = set(values.labels)
        if wrong := [*sorted(known - {*found}), *sorted({*found} - known)]:
            raise SpecError(
                f"the {of}s of {file} are not the {len(known)} published values of the spec, which differ by "
                f"{listed(wrong, _MOST_NAMED)}; give each published value one {of} with its name, or "
                "declare the values of the column in [categories] and complete"
            )
        if len(found) != len(known):
            raise SpecError(f"{file} names some {of} twice; give each published value one {of}")
    order = [[names.index(label) for label in values.labels], [columns.index(label) for label in values.labels]]
    return numbers[np.ix_(*order)]
