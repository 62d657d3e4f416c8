"""Joint: labelled counts of (secret, input) and every probability derived from them."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from funnel.alphabet import Alphabet, product
from funnel.bounds import Bounds, spread
from funnel.class_parts import ClassParts
from funnel.combinations import count_combinations
from funnel.errors import DataError, SpecError
from funnel.tables import read_batches

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Exact sums of counts times 32-bit halves of the weights must fit 64 bits.
MAX_ROWS = 2**31
# A table of counts beyond this size means that a column was named which is no category, such as a record number.
MAX_CELLS = 2**24
BATCH_ROWS = 1 << 17


def freeze(holder: object, *names: str) -> None:
    """Make fields of a frozen dataclass arrays of 64-bit whole numbers of its own, which nobody can change."""
    for name in names:
        numbers = np.array(getattr(holder, name), dtype=np.int64)
        numbers.setflags(write=False)
        object.__setattr__(holder, name, numbers)


@dataclass(frozen=True, eq=False)
class Joint:
    """The empirical joint distribution p(S, X) of a secret S and an input X, as integer counts (METHOD section 1).

    Parameters
    ----------
    counts : ndarray of int64, shape (c, a)
        ``counts[s, x]`` records have secret ``s`` and input ``x``; read-only.
    secret : Alphabet
        The c values of the secret.
    inputs : Alphabet
        The a values of the input.
    bounds : Bounds, optional
        What the true counts may be, where ``counts`` are noisy ones: a distribution that is known up to noise.
        Guarantees then hold for every table within the bounds, and the counts are one of them.
    parts : ClassParts, optional
        Where inputs, after a secret that is read, are parts of classes: probabilities are what counts of classes say.

    Raises
    ------
    SpecError
        If shapes, bounds or parts do not fit the counts, or a count is negative or not an integer.
    DataError
        If there is no record at all.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]], secret=["ill", "well"])
    >>> joint.n, joint.p_secret.tolist(), round(joint.entropy, 4)
    (100, [0.4, 0.6], 0.673)
    """

    counts: IntArray
    secret: Alphabet
    inputs: Alphabet
    bounds: Bounds | None = None
    parts: ClassParts | None = None

    def __post_init__(self) -> None:
        counts = _checked_counts(self.counts)
        if counts.shape != (len(self.secret), len(self.inputs)):
            raise SpecError(
                f"counts of shape {counts.shape} do not fit {len(self.secret)} secrets and {len(self.inputs)} inputs"
            )
        if self.bounds is not None and not self.bounds.hold(counts):
            raise SpecError("the counts of a joint distribution must be within its own bounds")
        if self.parts is not None:
            self.parts.require_fit(counts, self.bounds is None)
        object.__setattr__(self, "counts", counts)
        freeze(self, "counts")

    def __repr__(self) -> str:
        known = "" if self.bounds is None else ", known up to noise"
        return f"<Joint of {self.n:,} records{known}: {self.secret.described} by {self.inputs.described}>"

    @classmethod
    def from_counts(
        cls,
        counts: npt.ArrayLike,
        secret: Alphabet | Iterable[object] | None = None,
        inputs: Alphabet | Iterable[object] | None = None,
    ) -> Joint:
        """Joint from a (c, a) table of integer counts; alphabets are optional labels.

        Raises
        ------
        SpecError
            If counts are not a non-negative integer matrix or labels do not fit it.
        DataError
            If all counts are zero.
        """
        table = _checked_counts(counts)
        c, a = table.shape
        return cls(table, Alphabet.of(secret, c, "S"), Alphabet.of(inputs, a, "X"))

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame | pa.Table | str | os.PathLike[str],
        secret: Sequence[str],
        inputs: Sequence[str],
    ) -> Joint:
        """Count the joint distribution of columns of a pandas or pyarrow table or of a parquet file.

        Values are compared as text. Symbols are the combinations that occur, ordered by the dictionary of
        dictionary-typed columns and naturally (numbers by value) otherwise. Files are streamed in bounded memory.

        Parameters
        ----------
        table : pandas.DataFrame, pyarrow.Table or path of a parquet file
        secret, inputs : sequence of str
            Column names. Where inputs name the secret's columns too, a protocol reads (and may publish) secret and
            inputs: the joint distribution is that of `with_secret` over the others, the secret's columns first.

        Raises
        ------
        SpecError
            If no column is named, one is named twice, or inputs have some of the secret's columns but not all, or these
            alone.
        DataError
            If a column is missing, holds nulls, or there is no row.
        """
        columns = dict.fromkeys(_names(secret) + _names(inputs))
        return cls.from_batches(read_batches(table, list(columns), BATCH_ROWS), secret, inputs)

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[pa.RecordBatch],
        secret: Sequence[str],
        inputs: Sequence[str],
        order: Mapping[str, Sequence[str]] | None = None,
    ) -> Joint:
        """`from_table` for a stream of record batches that hold at least the named columns.

        Parameters
        ----------
        order : mapping of column to sequence of str, optional
            The values of a column in the order its symbols shall have.

        Raises
        ------
        SpecError, DataError
            As `from_table`; also if a value is missing from its column's order.
        """
        secret_columns, input_columns = _names(secret), _names(inputs)
        reads_secret = _reads_secret(secret_columns, input_columns)
        if reads_secret:
            input_columns = tuple(column for column in input_columns if column not in secret_columns)
        columns = secret_columns + input_columns
        counted, ranks = count_combinations(batches, columns)
        found = cls._in_order(counted, ranks, secret_columns, input_columns, order)
        return found.with_secret() if reads_secret else found

    @classmethod
    def from_parts(cls, parts: Iterable[Joint], order: Mapping[str, Sequence[str]]) -> Joint:
        """The joint distribution of all records that the parts were counted from, such as partitions of a table.

        Parameters
        ----------
        parts : iterable of Joint
            Over the same columns, at least one.
        order : mapping of column to sequence of str
            The values of every column in the order its symbols shall have.

        Raises
        ------
        DataError
            If there is no part, or parts are over different columns.
        SpecError
            If a part is known up to noise only.
        """
        counted: Counter[tuple[str, ...]] = Counter()
        columns: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        for part in parts:
            if (part.secret.columns, part.inputs.columns) != (columns or (part.secret.columns, part.inputs.columns)):
                raise DataError("counts over different columns cannot be added up")
            if part.bounds is not None:
                raise SpecError("noisy counts are those of a whole table; count all parts first")
            columns = part.secret.columns, part.inputs.columns
            for s, x in zip(*np.nonzero(part.counts), strict=True):
                counted[part.secret.symbols[s] + part.inputs.symbols[x]] += int(part.counts[s, x])
        if columns is None:
            raise DataError("there are no counts to add up")
        names = columns[0] + columns[1]
        seen: dict[str, dict[str, int]] = {
            column: dict.fromkeys((symbol[j] for symbol in counted), 0) for j, column in enumerate(names)
        }
        return cls._in_order(counted, seen, *columns, order)

    @classmethod
    def _in_order(
        cls,
        counted: Counter[tuple[str, ...]],
        ranks: dict[str, dict[str, int]],
        secret_columns: tuple[str, ...],
        input_columns: tuple[str, ...],
        order: Mapping[str, Sequence[str]] | None,
    ) -> Joint:
        for column, values in (order or {}).items():
            if column in ranks:
                if unknown := ranks[column].keys() - set(values):
                    raise DataError(f"column {column!r} holds {len(unknown)} values that its order does not list")
                ranks[column] = {value: rank for rank, value in enumerate(values)}
        if not counted:
            names = ", ".join(secret_columns + input_columns)
            raise DataError(f"the table has no rows, so the joint distribution of {names} cannot be estimated")
        width = len(secret_columns)

        def ordered(symbols: set[tuple[str, ...]], columns: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
            return tuple(sorted(symbols, key=lambda t: tuple(ranks[col][v] for col, v in zip(columns, t, strict=True))))

        secret = Alphabet(secret_columns, ordered({t[:width] for t in counted}, secret_columns))
        inputs = Alphabet(input_columns, ordered({t[width:] for t in counted}, input_columns))
        if len(secret) * len(inputs) > MAX_CELLS:
            raise DataError(
                f"{len(secret):,} values of {', '.join(secret_columns)} by {len(inputs):,} values of "
                f"{', '.join(input_columns)} are too many to count; group rare values or name fewer columns"
            )
        counts = np.zeros((len(secret), len(inputs)), dtype=np.int64)
        for symbol, count in counted.items():
            counts[secret.index(symbol[:width]), inputs.index(symbol[width:])] = count
        return cls(counts, secret, inputs)

    @property
    def as_published(self) -> Joint:
        """The same counts without bounds: the distribution of an observer who takes them for the true ones."""
        return self if self.bounds is None else Joint(self.counts, self.secret, self.inputs)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of counts, bounds and labels."""
        digest = hashlib.sha256()
        bounds = self.bounds
        tables = [self.counts] if bounds is None else [self.counts, bounds.lower, bounds.upper, bounds.totals]
        for table in tables:
            digest.update(repr(table.shape).encode() + np.ascontiguousarray(table).tobytes())
        names_of = [[alphabet.columns, alphabet.symbols] for alphabet in (self.secret, self.inputs)]
        digest.update(json.dumps([*names_of, *([] if self.parts is None else self.parts.content)]).encode())
        return digest.hexdigest()

    @cached_property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    @cached_property
    def by_class(self) -> Joint:
        """Counts of secrets and classes, where inputs are parts of classes; itself where there are none."""
        return self if self.parts is None else Joint(self.parts.counted(self.counts), self.secret, self.parts.classes)

    @cached_property
    def believed(self) -> npt.NDArray[np.object_]:
        """Joint probabilities (c, a) as whole numbers in proportion: counts, or what those of classes say of parts."""
        return self.counts.astype(object) if self.parts is None else self.parts.believed(self.counts)

    @cached_property
    def p(self) -> FloatArray:
        """Joint probabilities, shape (c, a), summing to 1."""
        table = self.counts if self.parts is None else self.believed
        return np.asarray(table / table.sum(), dtype=np.float64)

    @cached_property
    def p_secret(self) -> FloatArray:
        """Prior of the secret, shape (c,)."""
        return np.asarray(self.counts.sum(axis=1) / self.n)

    @cached_property
    def p_input(self) -> FloatArray:
        """Distribution of the input, shape (a,)."""
        return np.asarray(self.counts.sum(axis=0) / self.n if self.parts is None else self.p.sum(axis=0))

    @cached_property
    def input_given_secret(self) -> FloatArray:
        """p(x|s), shape (c, a); rows of secrets that never occur are zero."""
        totals = self.counts.sum(axis=1, keepdims=True)
        joint = self.counts if self.parts is None else self.p * self.n
        return np.asarray(np.divide(joint, totals, out=np.zeros(self.counts.shape), where=totals > 0))

    @cached_property
    def secret_given_input(self) -> FloatArray:
        """p(s|x), shape (c, a); columns of inputs that never occur are zero."""
        table = self.counts if self.parts is None else self.p
        totals = table.sum(axis=0, keepdims=True)
        return np.asarray(np.divide(table, totals, out=np.zeros(table.shape), where=totals > 0))

    @cached_property
    def entropy(self) -> float:
        """H(X) in nats: what a release could tell about the input at most."""
        p = self.p_input[self.p_input > 0]
        return max(0.0, float(-(p * np.log(p)).sum()))

    @cached_property
    def occurring(self) -> Joint:
        """The same records over the inputs that occur, without bounds; itself where all do, or are parts of classes."""
        seen = np.asarray(self.counts.any(axis=0))
        if seen.all() or self.parts is not None:
            return self.as_published
        symbols = tuple(symbol for symbol, there in zip(self.inputs.symbols, seen, strict=True) if there)
        return Joint(self.counts[:, seen], self.secret, Alphabet(self.inputs.columns, symbols))

    def with_secret(self) -> Joint:
        """The same records as seen by a protocol that reads (secret, input): shape (c, c·a), zero off the diagonal."""
        bounds = None if self.bounds is None else self.bounds.with_secret()
        return Joint(spread(self.counts), self.secret, product(self.secret, self.inputs), bounds, self.parts)

    def over_published(self, columns: tuple[str, ...]) -> Joint:
        """The joint distribution over some published columns: with the secret, where that is among them."""
        return self.with_secret() if columns == self.secret.columns + self.inputs.columns else self

    def read_by(self, columns: tuple[str, ...]) -> Joint:
        """The joint distribution over what a protocol with these input columns reads: the input, or secret and input.

        Raises
        ------
        DataError
            If the columns are neither.
        """
        if columns == self.inputs.columns:
            return self
        if columns == self.secret.columns + self.inputs.columns:
            return self.with_secret()
        raise DataError(
            f"the protocol reads {list(columns)} but the joint distribution is over secret {list(self.secret.columns)} "
            f"and inputs {list(self.inputs.columns)}; fit a protocol to this joint distribution"
        )


def _names(columns: Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _reads_secret(secret: tuple[str, ...], inputs: tuple[str, ...]) -> bool:
    """Whether inputs name the secret's columns too."""
    if not secret or not inputs:
        raise SpecError("name at least one secret column and one input column")
    for columns in (secret, inputs):
        if len(set(columns)) != len(columns):
            raise SpecError(f"a column is named twice among secret {list(secret)} and inputs {list(inputs)}")
    common = set(secret) & set(inputs)
    if not common:
        return False
    if common != set(secret):
        raise SpecError(
            f"the inputs {list(inputs)} have some columns of the secret {list(secret)} but not all; "
            "name all of them or none"
        )
    if len(inputs) == len(secret):
        raise SpecError(f"the inputs {list(inputs)} are the secret alone; name at least one other column")
    return True


def _checked_counts(counts: npt.ArrayLike) -> IntArray:
    try:
        table = np.array(counts)
    except ValueError as error:
        raise SpecError("counts must be a rectangular (secrets × inputs) table of whole numbers") from error
    if table.ndim != 2 or 0 in table.shape:
        raise SpecError(f"counts must have shape (secrets, inputs) with at least one of each, not {table.shape}")
    if table.dtype.kind not in "iuf" or not (np.isfinite(table) & (table == np.floor(table))).all():
        raise SpecError("counts must be whole numbers; scale probabilities to counts first")
    if (table < 0).any():
        raise SpecError("counts must not be negative")
    # Summed as Python integers: the sum of counts near 2^63 must not wrap around.
    total = sum(int(value) for value in table.ravel())
    if total == 0:
        raise DataError("all counts are zero, so the joint distribution cannot be estimated")
    if total >= MAX_ROWS:
        raise DataError(f"{total:,} records are more than the {MAX_ROWS - 1:,} that exact arithmetic is laid out for")
    return table.astype(np.int64)
