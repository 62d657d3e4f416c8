"""Said: what the text of a spec says, read again from the text itself and not taken from what was handed on."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from funnel.errors import SpecError
from funnel.frequency_settings import FrequencySettings
from funnel.guarantees import Guarantee, guarantee_of, parse_guarantee
from funnel.recount import Promise, declared_promise


@dataclass(frozen=True)
class Said:
    """What the text of a spec says.

    Attributes
    ----------
    promise : Promise
        The declared bound, its numbers as the decimals that were written.
    settings : mapping
        All that it says, as TOML has it.
    """

    promise: Promise
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, text: str) -> Said:
        """Of the text of a spec; settings that never were a file are JSON.

        Raises
        ------
        SpecError
            If it is neither, or declares no guarantee.
        """
        try:
            settings = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError):
            try:
                settings = json.loads(text)
            except (ValueError, RecursionError):
                settings = None
        if not isinstance(settings, dict):
            raise SpecError("the text of the spec is neither TOML nor JSON, so what it says cannot be judged")
        return cls(declared_promise(text), settings)

    @property
    def guarantee(self) -> Guarantee:
        """The declared bound for the code that decided it first, again from the text."""
        declared = self.settings["guarantee"]
        if isinstance(declared, str):
            return parse_guarantee(declared)
        numbers = {
            name: number if name == "set" else float(number) for name, number in declared.items() if name != "kind"
        }
        return guarantee_of(str(declared["kind"]).strip().lower(), numbers)

    @property
    def secret(self) -> tuple[str, ...]:
        """Secret columns."""
        return tuple(self.settings["secret"])

    @property
    def publish(self) -> tuple[str, ...]:
        """Published columns, in order."""
        return tuple(self.settings["publish"])

    def section(self, name: str) -> Mapping[str, Any]:
        """A section of it; empty where there is none or it is written in short."""
        found = self.settings.get(name)
        return found if isinstance(found, dict) else {}

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
    def reserve(self) -> float:
        """The share of the budget that is used while frequencies may still move."""
        return float(self.section("history").get("reserve", 1.0))

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
