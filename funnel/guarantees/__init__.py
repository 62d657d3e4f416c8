"""Guarantees: what is promised about every released record; one file each, read by name from a spec or a command."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping

from funnel.errors import SpecError
from funnel.guarantees.alip import ALIP, RALIP
from funnel.guarantees.attribute import Attribute
from funnel.guarantees.base import (
    ConeGuarantee,
    Guarantee,
    Level,
    OutputGuarantee,
    PosteriorGuarantee,
    Witness,
)
from funnel.guarantees.ldp import LDP
from funnel.guarantees.lift_bounds import AlphaLift, Chi2Lift, L1Lift
from funnel.guarantees.lip import LIP, RLIP
from funnel.guarantees.mutual_information import MutualInformation
from funnel.guarantees.over_distributions import SetGuarantee
from funnel.guarantees.perfect import PerfectPrivacy
from funnel.guarantees.pml import PML, RPML
from funnel.guarantees.published import check_published_secret, protects_published_secret
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.robust_guarantee import RobustRatio
from funnel.guarantees.rsrlip import RSRLIP, RAttribute
from funnel.guarantees.several import Several, as_guarantee, parts_of
from funnel.guarantees.sided import over_set
from funnel.guarantees.srlip import SRLIP
from funnel.wording import did_you_mean

# What float() takes besides, such as 1_0 or digits of other scripts, is a slip of the pen here.
_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|nan)", re.ASCII | re.IGNORECASE)


def _make_guarantee(kind: type[Guarantee], values: Mapping[str, float | str]) -> Guarantee:
    """The guarantee of a kind with numbers and words by name; those that have a default may be left out.

    Raises
    ------
    SpecError
        If a value is of another name, missing or out of range.
    """
    for key in values:
        _check_name(kind, key)
    missing = [
        field.name
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in values
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise SpecError(f"{kind.name} lacks its {' and '.join(missing)}; write for instance {kind.example!r}")
    return kind(**values)


def _numbers_of(kind: type[Guarantee]) -> tuple[str, ...]:
    """The names of a kind's numbers and words, in order: the fields of its dataclass."""
    return tuple(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]


def _words_of(kind: type[Guarantee]) -> tuple[str, ...]:
    """The names of those that are words: fields of text."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.type == "str")  # type: ignore[arg-type]


def _check_name(kind: type[Guarantee], key: str) -> None:
    fields = _numbers_of(kind)
    if key not in fields:
        hint = did_you_mean(key, fields) or f"; write for instance {kind.example!r}"
        raise SpecError(f"{kind.name} does not take {key or repr(key)}{hint}")


def _number_of(fields: tuple[str, ...]) -> str:
    return f"{' and '.join(fields)} only" if fields else "no numbers"


def _kind(name: str) -> type[Guarantee]:
    if name not in _KINDS:
        near = difflib.get_close_matches(name, _KINDS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise SpecError(f"unknown guarantee {name!r}{hint} Known: {', '.join(_KINDS)}")
    return _KINDS[name]


_KINDS: dict[str, type[Guarantee]] = {
    kind.name: kind
    for kind in (
        LIP,
        ALIP,
        LDP,
        PML,
        SRLIP,
        Attribute,
        RLIP,
        RALIP,
        RLDP,
        RPML,
        RSRLIP,
        RAttribute,
        PerfectPrivacy,
        L1Lift,
        Chi2Lift,
        AlphaLift,
        MutualInformation,
        Several,
    )
}


def names() -> tuple[str, ...]:
    """Names of all guarantees, as a spec and the command line spell them."""
    return tuple(_KINDS)


def examples() -> tuple[str, ...]:
    """How each guarantee is written."""
    return tuple(kind.example for kind in _KINDS.values())


def words_in(kind: str) -> tuple[str, ...]:
    """The names of the settings of a guarantee that are words, not numbers."""
    return ("parts",) if kind == Several.name else _words_of(_KINDS[kind])


def parse_guarantee(text: str) -> Guarantee:
    """Read a guarantee such as ``"lip:1.0"``: its name, a colon, and its numbers.

    Several numbers are separated by commas, in order or by name: ``"alip:1.3,0.7"`` is
    ``"alip:lower=1.3,upper=0.7"``; ``inf`` leaves a side free where two sides are bounded. The set of a robust one is
    a word: ``"rldp:1.0,0.05,chi2"``. Several guarantees that all hold have ``&`` between them:
    ``"rlip:1.0,0.05 & srlip:1.0"``. ``str`` of a guarantee is read back as the same guarantee.

    Raises
    ------
    SpecError
        If there is no such guarantee (the nearest name is suggested), or its numbers are missing, too many, of
        another name, or out of range.

    Examples
    --------
    >>> import funnel
    >>> funnel.parse_guarantee("alip:1.3,0.7")
    ALIP(lower=1.3, upper=0.7)
    """
    if "&" in text:
        return Several([parse_guarantee(part) for part in text.split("&")])
    name, colon, rest = text.strip().partition(":")
    kind = _kind(name.strip().lower())
    fields = _numbers_of(kind)
    values: dict[str, float | str] = {}
    for place, part in enumerate(rest.split(",") if colon else []):
        key, equals, number = part.rpartition("=")
        key = key.strip() if equals else next(iter(fields[place:]), "")
        if not key and not equals:
            raise SpecError(f"{kind.name} takes {_number_of(fields)}, but {text!r} has more; write {kind.example!r}")
        _check_name(kind, key)
        if key in values:
            raise SpecError(f"guarantee {text!r} gives {key} twice; write {kind.example!r}")
        if key in _words_of(kind):
            values[key] = number.strip().lower()
            continue
        if not _NUMBER.fullmatch(number.strip()):
            raise SpecError(f"guarantee {text!r} needs a number after the colon, as in {kind.example!r}")
        values[key] = float(number)
    return _make_guarantee(kind, values)


def guarantee_of(kind: str, values: Mapping[str, float | str]) -> Guarantee:
    """The guarantee with a name, and numbers and words by name, as a spec's table states them.

    Raises
    ------
    KeyError
        If there is no such guarantee.
    SpecError
        If a value is of another name, missing or out of range.
    """
    if kind == Several.name and isinstance(values.get("parts"), str):
        return parse_guarantee(str(values["parts"]))
    return _make_guarantee(_KINDS[kind], values)


def robustly(guarantee: Guarantee, alpha: float) -> RobustRatio | None:
    """A guarantee over boxes of significance α whose nominal one this is; None where there is none.

    Examples
    --------
    >>> import funnel
    >>> from funnel.guarantees import robustly
    >>> str(robustly(funnel.LIP(1.0), 0.01)), robustly(funnel.MutualInformation(0.1), 0.01)
    ('rlip:1.0,0.01', None)
    """
    robust = (kind for kind in _KINDS.values() if issubclass(kind, RobustRatio) and isinstance(guarantee, kind.of))
    kind = next(robust, None)
    return None if kind is None else kind(**vars(guarantee), alpha=alpha)


__all__ = [
    "ALIP",
    "LDP",
    "LIP",
    "PML",
    "RALIP",
    "RLDP",
    "RLIP",
    "RPML",
    "RSRLIP",
    "SRLIP",
    "AlphaLift",
    "Attribute",
    "Chi2Lift",
    "ConeGuarantee",
    "Guarantee",
    "L1Lift",
    "Level",
    "MutualInformation",
    "OutputGuarantee",
    "PerfectPrivacy",
    "PosteriorGuarantee",
    "RAttribute",
    "SetGuarantee",
    "Several",
    "Witness",
    "as_guarantee",
    "check_published_secret",
    "examples",
    "guarantee_of",
    "names",
    "over_set",
    "parse_guarantee",
    "parts_of",
    "protects_published_secret",
    "robustly",
    "words_in",
]
