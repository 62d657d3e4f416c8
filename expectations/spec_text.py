"""SpecText: what the text of a spec says, read again from the text itself and not taken from what was handed on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from funnel.recount.promise import Promise, declared_promise, read_settings
from funnel.settings.protection_settings import FrequencySettings

# How many columns observers may know at once.
_AT_ONCE = {"single": 1, "pairs": 2}


@dataclass(frozen=True)
class SpecText:
    """What the text of a spec says.

    Attributes
    ----------
    promise : Promise
        The declared bound, its numbers as the decimals that were written.
    settings : mapping
        All that it says, as TOML has it.
    class_column : str or None
        The column of classes, where records are counted and drawn by their class.
    """

    promise: Promise
    settings: Mapping[str, Any]
    class_column: str | None = None

    @classmethod
    def of(cls, text: str) -> SpecText:
        """Of the text of a spec; settings that never were a file are JSON.

        Raises
        ------
        SpecError
            If it is neither, or declares no guarantee.
        """
        return cls(declared_promise(text), read_settings(text, float))

    @property
    def secret(self) -> tuple[str, ...]:
        """Secret columns."""
        return tuple(self.settings["secret"])

    @property
    def publish(self) -> tuple[str, ...]:
        """What the protocol is about, in order: the published columns, or the class of a record in their place."""
        named = self._named
        if self.class_column is None:
            return named
        return (*(column for column in named if column in self.secret), *self.known, self.class_column)

    @property
    def at_once(self) -> int:
        """How many columns observers may know at once, whichever they are; 0 where these are named."""
        known = self.section("groups").get("known", ())
        return _AT_ONCE[known] if isinstance(known, str) else 0

    @property
    def known(self) -> tuple[str, ...]:
        """The columns that observers are said to know."""
        return () if self.at_once else tuple(self.section("groups").get("known", ()))

    @property
    def released(self) -> tuple[str, ...]:
        """The columns of the published records, in order."""
        return self._named if self.class_column is None else (*self._named, self.class_column)

    @property
    def whole(self) -> tuple[str, ...]:
        """The columns of a whole record, but for the secret's."""
        return tuple(column for column in self._named if column not in self.secret)

    @property
    def _named(self) -> tuple[str, ...]:
        """The columns that it names; none where all columns are meant that are not kept back."""
        named = self.settings["publish"]
        if isinstance(named, str):
            return ()
        return tuple(column for one in named for column in ([one] if isinstance(one, str) else one))

    @property
    def min_records(self) -> int:
        """How many records a class has, at least."""
        return int(self.section("groups").get("min_records", 200))

    @property
    def held_out(self) -> Fraction:
        """The share of the records that do not choose the classes."""
        return Fraction(self.section("groups").get("held_out", 0))

    @property
    def finds_bins(self) -> bool:
        """Whether bins of a column are to be found in the source."""
        return any(isinstance(one, dict) and one.get("bins") == "auto" for one in self.section("recode").values())

    @property
    def inputs(self) -> tuple[str, ...]:
        """Those of them that are not secret."""
        return tuple(column for column in self.publish if column not in self.secret)

    @property
    def publishes_all(self) -> bool:
        """Whether all columns are published that are not kept back."""
        return self.settings["publish"] == "auto" or bool(self.section("groups").get("auto", False))

    def publishing(self, columns: Iterable[str]) -> SpecText:
        """The same, naming those of these columns that are not kept back."""
        named = [column for column in columns if column not in self.kept_back]
        return replace(self, settings={**self.settings, "publish": named})

    @property
    def mechanism(self) -> str:
        """The mechanism that it asks for."""
        named = self.settings.get("mechanism", "auto")
        return str(named if isinstance(named, str) else named.get("name", "auto"))

    @property
    def weights(self) -> str:
        """What values, or classes of records, count that an invariant protocol leaves as they are."""
        if self.class_column is not None and (self.at_once or self.utility == "estimation"):
            return "share"
        return str(self.section("mechanism").get("weights", "root"))

    @property
    def utility(self) -> str:
        """What a protocol is chosen by."""
        return str(self.settings.get("utility", "information"))

    @property
    def kept_back(self) -> frozenset[str]:
        """Columns that are never published."""
        key, unit = self.settings.get("record_key") or [], self.settings.get("unit") or []
        named = [*([key] if isinstance(key, str) else key), *([unit] if isinstance(unit, str) else unit)]
        return frozenset((*self.secret, *named, *self.section("groups").get("exclude", [])))

    def section(self, name: str) -> Mapping[str, Any]:
        """A section of it; empty where there is none or it is written in short."""
        found = self.settings.get(name)
        return found if isinstance(found, dict) else {}

    @property
    def drawn(self) -> tuple[str, ...]:
        """Published columns of which a number is drawn within every interval, in order."""
        numbers = self.section("numbers")
        return tuple(column for column in self.publish if numbers.get(column, {}).get("draw") is not None)

    @property
    def csv(self) -> bool:
        """Whether a csv is asked for."""
        return bool(self.section("output").get("csv", False))

    @property
    def keyed(self) -> bool:
        """Whether records have keys."""
        return self.settings.get("record_key") is not None or bool(self.unit)

    @property
    def unit(self) -> list[str]:
        """Columns that say whose a record is, where people may have several."""
        found = self.settings.get("unit", []) if self.people == "same" else []
        return [found] if isinstance(found, str) else list(found)

    @property
    def people(self) -> str | None:
        """Who the people of successive versions are said to be."""
        found = self.section("history").get("people")
        return None if found is None else str(found)

    @property
    def robust(self) -> bool:
        """Whether the bound over versions is to hold under every set of tables that noise, or a sample, leaves open."""
        asked = bool(self.section("history").get("robust", False))
        return self.people == "same" and (asked or self.promise.distributions is not None)

    @property
    def observers(self) -> list[str] | None:
        """For whom everything published about a person is to be bounded; None where that is not said."""
        found = self.section("history").get("observers")
        return None if found is None else list(map(str, found))

    @property
    def secrets(self) -> str | None:
        """Of which versions secrets are to be bounded; None where that is not said."""
        found = self.section("history").get("secrets")
        return None if found is None else str(found)

    @property
    def reserve(self) -> float:
        """The share of the budget that is used while frequencies may still move."""
        return float(self.section("history").get("budget_fraction", 1.0))

    @property
    def shuffled(self) -> bool:
        """Whether rows come in random order."""
        return bool(self.section("output").get("shuffle", True))

    @property
    def frequencies(self) -> FrequencySettings:
        """How the frequencies are to be protected."""
        return FrequencySettings.model_validate(dict(self.section("frequencies")))

    @property
    def has_noise(self) -> bool:
        """Whether by noise."""
        return self.frequencies.protection == "noise"

    @property
    def threshold(self) -> int | None:
        """The smallest count that may be published, where values are grouped for one."""
        asked = self.frequencies
        return asked.threshold if asked.protection == "threshold" else None

    @property
    def alpha(self) -> float:
        """Significance of the confidence set."""
        return float(self.section("confidence").get("alpha", 0.05))
