"""The other columns of a source as attackers may know them: counted against secret and input, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from funnel.alphabet import Alphabet
from funnel.donors.record_classes import RecordClasses
from funnel.errors import DataError
from funnel.joint import IntArray, Joint
from funnel.readers.formats import open_source
from funnel.sampling.key_column import KEY_COLUMN
from funnel.source.coding import Codings, coded_batches
from funnel.spec import ReleaseSpec

CodeArray = npt.NDArray[np.int64]

# More different values than this are put into classes where they are numbers, and left out where they are not.
MOST_VALUES = 100
CLASSES = 20
# Counts of all columns together: 256 MB.
_MOST_CELLS = 1 << 25
# Records that a classifier learns from and is tried on.
SAMPLE = 20_000


@dataclass(frozen=True, eq=False)
class SideColumn:
    """One column of the source beside the secret and published ones.

    Attributes
    ----------
    name : str
    counts : ndarray of int64, shape (c, a, k), or None
        Records by secret, input and value or class; None where the column was left out.
    values : int
        How many values or classes, missing values being one.
    classes : bool
        Whether numbers were put into classes.
    reason : str or None
        Why it was left out.
    """

    name: str
    counts: IntArray | None
    values: int
    classes: bool
    reason: str | None


@dataclass(frozen=True, eq=False)
class SideKnowledge:
    """All that attackers may know besides.

    Attributes
    ----------
    columns : tuple of SideColumn
        In the order of the source.
    sample : ndarray of int64, shape (m, 2 + k)
        Secret, input and the codes of the columns that were not left out, of the first records.
    sampled : tuple of str
        Names of these k columns.
    """

    columns: tuple[SideColumn, ...]
    sample: CodeArray
    sampled: tuple[str, ...]


def read_side_columns(
    spec: ReleaseSpec, joint: Joint, codings: Codings, classes: RecordClasses | None = None
) -> SideKnowledge:
    """Read the source once more and count all its other columns, in one streaming pass.

    A column of more than 100 values is put into about 20 classes, if its values are numbers: the most common number,
    and others of about as many records each, by the limits found in the first batch. Else it is left out: of a column
    of names nearly every value is one person.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Counts of (secret, input) of the same source, shape (c, a).
    codings : Codings
        Of the secret and published columns.
    classes : RecordClasses, optional
        Of whole records, where these are the inputs.

    Raises
    ------
    DataError
        If the source is no longer the one that was counted.
    """
    spec = spec.whole
    # A record key is a name of each person.
    needed = (*spec.columns, *(spec.record_key or ()))
    others = _readable(spec, needed)
    wide = codings.settled(spec).model_copy(update={"record_key": others})
    source = open_source(wide.reading)
    cells = joint.counts.size
    room = max(1, _MOST_CELLS // max(1, cells * max(1, len(others))))
    counters = [_Counter(name, cells, min(MOST_VALUES, room)) for name in others]
    kept = np.zeros(cells, dtype=np.int64)
    sample: list[CodeArray] = []
    sampled = 0
    for batch in coded_batches(wide, source, codings, key_column=_as_struct(others)):
        places = _places(batch, spec, joint, classes)
        kept += np.bincount(places, minlength=cells)
        side = batch.column(KEY_COLUMN)
        codes = [counter.count(side.field(i), places) for i, counter in enumerate(counters)]
        if sampled < SAMPLE:
            rows = np.column_stack([places, *codes])[: SAMPLE - sampled]
            sample.append(rows)
            sampled += len(rows)
    if not np.array_equal(kept.reshape(joint.counts.shape), joint.counts):
        raise DataError(f"the source {source.address} changed while the release was made; run the release again")
    return _gathered(counters, np.concatenate(sample), joint)


def _gathered(counters: Sequence[_Counter], sample: CodeArray, joint: Joint) -> SideKnowledge:
    shape = joint.counts.shape
    used = [i for i, counter in enumerate(counters) if counter.reason is None]
    secret, inputs = np.divmod(sample[:, 0], shape[1])
    return SideKnowledge(
        tuple(counter.column(shape) for counter in counters),
        np.column_stack([secret, inputs, *(sample[:, 1 + i] for i in used)]),
        tuple(counters[i].name for i in used),
    )


def _readable(spec: ReleaseSpec, needed: Sequence[str]) -> tuple[str, ...]:
    """The other columns that can be read as they are; one whose files disagree about its type cannot."""
    names = open_source(spec).names
    others = tuple(name for name in names if name not in needed and names.count(name) == 1)
    try:
        open_source(spec.model_copy(update={"record_key": others}).reading)
    except DataError:
        return tuple(name for name in others if _opens(spec.model_copy(update={"record_key": (name,)}).reading))
    return others


def _opens(spec: ReleaseSpec) -> bool:
    try:
        open_source(spec)
    except DataError:
        return False
    return True


def _as_struct(names: Sequence[str]) -> Callable[[pa.RecordBatch], pa.Array]:
    """Several columns as one, which goes with the codes of its records."""

    def column(batch: pa.RecordBatch) -> pa.Array:
        if not names:
            return pa.nulls(batch.num_rows)
        return pa.StructArray.from_arrays([batch.column(name) for name in names], names=list(names))

    return column


def _places(batch: pa.RecordBatch, spec: ReleaseSpec, joint: Joint, classes: RecordClasses | None) -> CodeArray:
    """Position of each record in the flat table of (secret, input)."""
    secret = _symbols(batch, spec.secret, joint.secret)
    inputs = _symbols(batch, spec.inputs, joint.inputs) if classes is None else _classes(batch, classes)
    if (secret < 0).any() or (inputs < 0).any():
        raise DataError("the source changed while the release was made; run the release again")
    return secret * len(joint.inputs) + inputs


def _symbols(batch: pa.RecordBatch, columns: Sequence[str], alphabet: Alphabet) -> CodeArray:
    different, where = _different(batch, columns)
    return np.array([alphabet.get(symbol) for symbol in different], dtype=np.int64)[where]


def _classes(batch: pa.RecordBatch, classes: RecordClasses) -> CodeArray:
    different, where = _different(batch, classes.columns)
    return classes.of_records(Alphabet(classes.columns, tuple(different)))[where]


def _different(batch: pa.RecordBatch, columns: Sequence[str]) -> tuple[list[tuple[str, ...]], CodeArray]:
    """The different symbols of some rows, and which of them each has."""
    arrays = [batch.column(name) for name in columns]
    codes = np.column_stack([array.indices.fill_null(len(array.dictionary)).to_numpy() for array in arrays])
    _, first, where = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    texts = [array.take(pa.array(first)).cast(pa.string()).to_pylist() for array in arrays]
    return list(zip(*texts, strict=True)), where.reshape(-1)


@dataclass
class _Counter:
    """Counts one column as it streams by; gives up where it has too many values."""

    name: str
    cells: int
    most: int
    reason: str | None = None
    edges: npt.NDArray[np.float64] | None = None
    known: dict[object, int] = field(default_factory=dict)
    counts: IntArray | None = None

    def count(self, values: pa.Array, places: CodeArray) -> CodeArray:
        """Count a batch; the codes of its values, 0 where the column is left out."""
        if self.reason is not None:
            return np.zeros(len(places), dtype=np.int64)
        codes = self._classes(values) if self.edges is not None else self._codes(values)
        if self.reason is not None or codes is None:
            self.counts = None
            return np.zeros(len(places), dtype=np.int64)
        k = self.k
        if self.counts is None:
            self.counts = np.zeros((self.cells, k), dtype=np.int64)
        elif self.counts.shape[1] < k:
            self.counts = np.pad(self.counts, ((0, 0), (0, k - self.counts.shape[1])))
        self.counts += np.bincount(places * k + codes, minlength=self.cells * k).reshape(self.cells, k)
        return codes

    @property
    def k(self) -> int:
        """Values or classes so far."""
        return len(self.known) if self.edges is None else len(self.edges) + 2

    def _codes(self, values: pa.Array) -> CodeArray | None:
        try:
            coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            self.reason = f"a column of type {values.type} has no categories"
            return None
        labels = [None, *coded.dictionary.to_pylist()] if len(coded.dictionary) <= 100 * self.most else []
        new = [label for label in dict.fromkeys(labels) if label not in self.known]
        if not labels or len(self.known) + len(new) > self.most:
            if self.counts is None and self._learn(values):
                return self._classes(values)
            self.reason = f"it has more than {self.most:,} values, which are no numbers or come late"
            return None
        for label in new:
            self.known[label] = len(self.known)
        translate = np.array([self.known[label] for label in labels], dtype=np.int64)
        return np.asarray(translate[np.asarray(coded.indices.fill_null(-1)) + 1])

    def _learn(self, values: pa.Array) -> bool:
        """Find limits of classes; whether the values are numbers."""
        numbers = _numbers(values)
        if numbers is None or self.most < CLASSES + 2:
            return False
        there = numbers[~np.isnan(numbers)]
        # The most common number, often a zero, is a class of its own, and does not eat up the others.
        different, times = np.unique(there, return_counts=True)
        common = different[times.argmax()]
        others = there[there != common]
        shares = np.linspace(0, 1, CLASSES)[1:-1]
        self.edges = np.unique([common, np.nextafter(common, np.inf), *np.quantile(others, shares)])
        return True

    def _classes(self, values: pa.Array) -> CodeArray | None:
        numbers = _numbers(values)
        if numbers is None or self.edges is None:
            self.reason = "some of its many values are no numbers"
            return None
        codes = np.searchsorted(self.edges, numbers, side="right") + 1
        return np.asarray(np.where(np.isnan(numbers), 0, codes), dtype=np.int64)

    def column(self, shape: tuple[int, ...]) -> SideColumn:
        """What came of it."""
        if self.counts is None:
            return SideColumn(self.name, None, 0, False, self.reason or "it holds nothing")
        counts = self.counts[:, self.counts.any(axis=0)]
        return SideColumn(self.name, counts.reshape(*shape, -1), counts.shape[1], self.edges is not None, None)


def _numbers(values: pa.Array) -> npt.NDArray[np.float64] | None:
    """Numbers of a column, nan for missing ones and empty texts; None where it has others."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = pc.if_else(pc.equal(values, ""), pa.scalar(None, values.type), values)
        return np.asarray(pc.fill_null(values.cast(pa.float64()), float("nan")).to_numpy(zero_copy_only=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None
