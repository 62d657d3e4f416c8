"""Protocol: a sanitisation channel as exact integer weights, with its alphabets, digest and serialisation."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

from funnel.alphabet import Alphabet
from funnel.errors import DataError, SpecError
from funnel.sparse_weights import Places, SparseWeights

FloatArray = npt.NDArray[np.float64]
WeightArray = npt.NDArray[np.uint64]

# Words are 63 bits, so that a full column (weight 2^63) still fits an unsigned 64-bit integer.
WORD_BITS = 63
DENOMINATOR = 2**WORD_BITS
# Weights as a table; and without the zeros, as wide tables have them: see `is_sparse`.
FORMAT: Final = "funnel-protocol/1"
SPARSE_FORMAT: Final = "funnel-protocol/2"
#: The mechanism whose outputs are its inputs, with the same distribution.
INVARIANT: Final = "invariant"


@dataclass(frozen=True, eq=False)
class Protocol:
    """The channel Q(y|x) = weights[y, x] / 2^63 that is proven and drawn, to the last bit.

    Parameters
    ----------
    weights : ndarray of uint64, shape (b, a)
        Integer weights; every column sums to exactly 2^63. Of a sparse protocol (`of_sparse`) the table is made when
        it is asked for, and refused where it would not fit memory; `sparse` is always there.
    marginal : ndarray of uint64, shape (b,)
        Weights, summing to 2^63, of a record whose input is outside the alphabet (METHOD section 8).
    inputs : Alphabet
        The a symbols the protocol reads: published columns, or secret columns followed by published columns.
    outputs : Alphabet
        The b released symbols, one text per published column.
    mechanism : str
        Name of the family that made it.
    guarantee : str
        The bound it was made for, such as ``"lip:1.0"``.
    format : str
        How it is written, which its digest is of: as a table, or without its zeros.

    Raises
    ------
    SpecError
        If shapes do not fit or a column does not sum to 2^63.

    Examples
    --------
    >>> import funnel
    >>> joint = funnel.Joint.from_counts([[30, 10], [10, 50]])
    >>> protocol = funnel.fit("grr", joint, funnel.LIP(0.5))
    >>> int(protocol.weights[:, 0].sum()) == protocol.denominator == 2**63
    True
    """

    weights: WeightArray
    marginal: WeightArray
    inputs: Alphabet
    outputs: Alphabet
    mechanism: str = ""
    guarantee: str = ""
    format: str = FORMAT

    def __post_init__(self) -> None:
        given: WeightArray | SparseWeights = self.weights
        if isinstance(given, SparseWeights):
            # The table is then made by `__getattr__`, if anybody asks for it.
            object.__delattr__(self, "weights")
            object.__setattr__(self, "sparse", given)
        else:
            object.__setattr__(self, "weights", _frozen("weights", given))
        object.__setattr__(self, "marginal", _frozen("marginal", self.marginal))
        b, a = len(self.outputs), len(self.inputs)
        shape = given.shape
        if shape != (b, a) or self.marginal.shape != (b,):
            raise SpecError(f"protocol weights of shape {shape} do not fit {b} outputs and {a} inputs")
        if isinstance(given, SparseWeights):
            largest, sums = given.values.max(initial=0), given.sums_by_input() + exact_sums(self.marginal[:, None])
        else:
            columns = np.column_stack([given, self.marginal])
            largest, sums = columns.max(), exact_sums(columns)
        # Bounding every entry keeps the exact sum of the 32-bit halves from wrapping around.
        if max(int(largest), int(self.marginal.max())) > DENOMINATOR or any(total != DENOMINATOR for total in sums):
            raise SpecError("every column of protocol weights must sum to exactly 2^63")
        if self.format not in (FORMAT, SPARSE_FORMAT):
            raise SpecError(f"a protocol is of format {FORMAT} or {SPARSE_FORMAT}, not {self.format}")

    def __repr__(self) -> str:
        made = " for ".join(name for name in (self.mechanism, self.guarantee) if name)
        return f"<Protocol{made and f' {made}'}: {self.inputs.described} published as {self.outputs.described}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> WeightArray:
            # Only what is not there: the table of sparse weights, which is kept once it was made.
            if name != "weights" or "sparse" not in self.__dict__:
                raise AttributeError(f"a protocol has no {name!r}")
            table = self.sparse.table()
            table.setflags(write=False)
            object.__setattr__(self, "weights", table)
            return table

    @classmethod
    def of_sparse(
        cls,
        weights: SparseWeights,
        marginal: WeightArray,
        inputs: Alphabet,
        outputs: Alphabet,
        mechanism: str = "",
        guarantee: str = "",
    ) -> Protocol:
        """A protocol from weights without their zeros, for tables too wide for all b · a entries; written so as well.

        Raises
        ------
        SpecError
            As the constructor.
        """
        return cls(cast(WeightArray, weights), marginal, inputs, outputs, mechanism, guarantee, SPARSE_FORMAT)

    def named(self, mechanism: str | None = None, guarantee: str | None = None) -> Protocol:
        """The same channel as one of another mechanism, or for another text of its bound."""
        weights = self.sparse if self.is_sparse else self.weights
        return Protocol(
            cast(WeightArray, weights),
            self.marginal,
            self.inputs,
            self.outputs,
            self.mechanism if mechanism is None else mechanism,
            self.guarantee if guarantee is None else guarantee,
            self.format,
        )

    @cached_property
    def sparse(self) -> SparseWeights:
        """The weights that are not zero, output by output."""
        return SparseWeights.of(self.weights)

    @cached_property
    def _by_input(self) -> SparseWeights:
        return self.sparse.transposed

    def conditional(self, x: int) -> tuple[Places, WeightArray]:
        """The outputs that an input can become, rising, and their weights; x = a for records outside the alphabet."""
        if x == len(self.inputs):
            seen = np.flatnonzero(self.marginal)
            return seen, self.marginal[seen]
        return self._by_input.row(x)

    @property
    def is_sparse(self) -> bool:
        """Whether it is written without its zeros: made for a wide table."""
        return self.format == SPARSE_FORMAT

    @property
    def is_invariant(self) -> bool:
        """Whether published records are counted like true ones: outputs are the inputs, with the same distribution."""
        return self.mechanism == INVARIANT and self.outputs == self.inputs

    @property
    def denominator(self) -> int:
        """What every column of weights sums to: 2^63."""
        return int(DENOMINATOR)

    @cached_property
    def matrix(self) -> FloatArray:
        """Q as floats, shape (b, a), columns summing to 1 up to rounding: for utilities and plots, never for proofs."""
        return self.weights.astype(np.float64) / float(DENOMINATOR)

    @property
    def size(self) -> tuple[int, int]:
        """(b, a): number of outputs and inputs."""
        return len(self.outputs), len(self.inputs)

    def weights_for(self, alphabet: Alphabet) -> WeightArray:
        """Weights for the symbols of another alphabet, shape (b, len(alphabet)).

        A symbol this protocol does not know draws from the marginal, exactly as its records would.

        Raises
        ------
        DataError
            If the alphabet is over other columns.
        """
        if alphabet == self.inputs:
            return self.weights
        if alphabet.columns != self.inputs.columns:
            raise DataError(
                f"the protocol reads {list(self.inputs.columns)}, not {list(alphabet.columns)}; "
                "fit a protocol to these columns"
            )
        extended = np.column_stack([self.weights, self.marginal])
        return extended[:, [self.inputs.get(symbol) for symbol in alphabet.symbols]]

    def sparse_for(self, alphabet: Alphabet) -> SparseWeights:
        """`weights_for`, without the zeros.

        Raises
        ------
        DataError
            If the alphabet is over other columns.
        """
        if alphabet == self.inputs:
            return self.sparse
        if alphabet.columns != self.inputs.columns:
            return SparseWeights.of(self.weights_for(alphabet))
        places = np.array([self.inputs.get(symbol) for symbol in alphabet.symbols])
        known, new = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        where = np.full(len(self.inputs), -1)
        where[places[known]] = known
        kept = where[self.sparse.inputs] >= 0
        b = len(self.outputs)
        return SparseWeights.of_entries(
            np.concatenate([self.sparse.outputs[kept], np.repeat(np.arange(b), len(new))]),
            np.concatenate([where[self.sparse.inputs[kept]], np.tile(new, b)]),
            np.concatenate([self.sparse.values[kept], np.repeat(self.marginal, len(new))]),
            (b, len(alphabet)),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the channel: alphabets, weights and marginal."""
        content = {key: value for key, value in self._content().items() if key not in ("mechanism", "guarantee")}
        text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _content(self) -> dict[str, Any]:
        # Weights are decimal texts: JSON readers that parse numbers as doubles would round them.
        return {
            "format": self.format,
            "mechanism": self.mechanism,
            "guarantee": self.guarantee,
            "denominator": str(DENOMINATOR),
            "inputs": {"columns": list(self.inputs.columns), "symbols": [list(s) for s in self.inputs.symbols]},
            "outputs": {"columns": list(self.outputs.columns), "symbols": [list(s) for s in self.outputs.symbols]},
            "weights": self.written_weights(),
            "marginal": [str(weight) for weight in self.marginal.tolist()],
        }

    def written_weights(self, without_zeros: bool | None = None) -> list[list[str]] | list[dict[str, str]]:
        """The weights of every output as decimal texts: of all inputs, or without zeros by the positions of its inputs.

        By default as the digest is of: without zeros if sparse.
        """
        if not (self.is_sparse if without_zeros is None else without_zeros):
            return [[str(weight) for weight in row] for row in self.weights.tolist()]
        sparse = self.sparse
        inputs, values = sparse.inputs.tolist(), sparse.values.tolist()
        return [
            {str(x): str(weight) for x, weight in zip(inputs[start:end], values[start:end], strict=True)}
            for start, end in itertools.pairwise(sparse.starts.tolist())
        ]

    def to_dict(self) -> dict[str, Any]:
        """The protocol as JSON-ready values, with its digest."""
        return {**self._content(), "digest": self.digest}

    def to_json(self) -> str:
        """The protocol as JSON text; `from_json` reads it back to the same digest."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Protocol:
        """Read a protocol, on its own or as the ``protocol.json`` of a release, as `from_dict` does.

        Raises
        ------
        DataError
            If the text is not a protocol or has been altered.
        """
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _unreadable(error) from error
        return cls.from_dict(content)

    @classmethod
    def from_dict(cls, content: Any) -> Protocol:
        """Read a protocol from JSON values, verifying its sums and its digest.

        Further keys beside the protocol's own are allowed. The guarantee is a text, or the block of a release that
        says which was declared.

        Raises
        ------
        DataError
            If it is not a protocol or has been altered.
        """
        try:
            form = content["format"]
            if form not in (FORMAT, SPARSE_FORMAT) or int(content["denominator"]) != DENOMINATOR:
                raise DataError(f"the protocol is not of format {FORMAT} or {SPARSE_FORMAT} with denominator 2^63")
            guarantee, inputs = content["guarantee"], _alphabet(content["inputs"])
            written = content["weights"]
            weights = _written_weights(written, len(inputs))
            if form == FORMAT and isinstance(weights, SparseWeights):
                # A table whose zeros are not written.
                weights = weights.table()
            protocol = cls(
                cast(WeightArray, weights),
                _integers(content["marginal"]),
                inputs,
                _alphabet(content["outputs"]),
                str(content["mechanism"]),
                str(guarantee["declared"] if isinstance(guarantee, dict) else guarantee),
                form,
            )
            declared = content["digest"]
        except (ValueError, KeyError, TypeError, OverflowError, SpecError) as error:
            raise _unreadable(error) from error
        if declared != protocol.digest:
            raise DataError("the protocol does not match its own digest: it has been altered or damaged")
        return protocol


def exact_sums(columns: WeightArray) -> list[int]:
    """Exact sums of the columns of uint64 values, through their 32-bit halves; shape (m, k) to k Python integers."""
    low = (columns & np.uint64(0xFFFFFFFF)).sum(axis=0, dtype=np.uint64).tolist()
    high = (columns >> np.uint64(32)).sum(axis=0, dtype=np.uint64).tolist()
    return [(int(h) << 32) + int(lo) for h, lo in zip(high, low, strict=True)]


def _integers(values: Any) -> WeightArray:
    return np.array([[int(v) for v in row] if isinstance(row, list) else int(row) for row in values], dtype=np.uint64)


def _written_weights(rows: Any, width: int) -> WeightArray | SparseWeights:
    return _entries(rows, width) if all(isinstance(row, dict) for row in rows) else _integers(rows)


def _entries(rows: Any, width: int) -> SparseWeights:
    sizes = [len(row) for row in rows]
    values = np.array([int(weight) for row in rows for weight in row.values()], dtype=np.uint64)
    if not values.all():
        raise ValueError("a sparse protocol leaves zeros out")
    inputs = [int(x) for row in rows for x in row]
    return SparseWeights.of_entries(np.repeat(np.arange(len(sizes)), sizes), inputs, values, (len(sizes), width))


def _frozen(name: str, given: object) -> WeightArray:
    array = np.array(given)
    if array.dtype != np.uint64:
        raise SpecError(f"protocol {name} must be unsigned 64-bit integers, not {array.dtype}")
    array.setflags(write=False)
    return array


def _alphabet(content: dict[str, Any]) -> Alphabet:
    return Alphabet(tuple(content["columns"]), tuple(tuple(symbol) for symbol in content["symbols"]))


def _unreadable(error: Exception) -> DataError:
    return DataError(f"this is not a readable protocol ({type(error).__name__}); take it from a release")
