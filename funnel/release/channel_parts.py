"""What the documents about a channel share: alphabets as parts of them, and channels that cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeVar

from pydantic import Field

from funnel.alphabet import Alphabet
from funnel.errors import FunnelError
from funnel.release.document import Part

T = TypeVar("T")


class Symbols(Part):
    """An alphabet: the names of its columns, and of every symbol one text a column."""

    columns: tuple[str, ...] = Field(min_length=1)
    symbols: tuple[tuple[str, ...], ...] = Field(min_length=1)

    @classmethod
    def of(cls, alphabet: Alphabet) -> Self:
        """Of an alphabet."""
        return cls(columns=alphabet.columns, symbols=alphabet.symbols)

    def alphabet(self) -> Alphabet:
        """The alphabet; SpecError if its columns or symbols are not distinct or do not fit."""
        return Alphabet(self.columns, self.symbols)


def built(make: Callable[[], T]) -> T:
    """What a document is of; pydantic wants a ValueError where it cannot be made."""
    try:
        return make()
    except FunnelError as error:
        raise ValueError(f"cannot be used: {error}") from error
