"""Guarantees: what is promised about every released record; one file each, read by name from a spec or a command."""

from __future__ import annotations

from collections.abc import Mapping

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
from funnel.guarantees.parsing import make_guarantee, read_guarantee, words_of
from funnel.guarantees.perfect import PerfectPrivacy
from funnel.guarantees.pml import PML, RPML
from funnel.guarantees.published import check_published_secret, protects_published_secret
from funnel.guarantees.rldp import RLDP
from funnel.guarantees.rsrlip import RSRLIP, RAttribute
from funnel.guarantees.several import Several, as_guarantee, parts_of
from funnel.guarantees.sided import over_set
from funnel.guarantees.srlip import SRLIP

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
    return ("parts",) if kind == Several.name else words_of(_KINDS[kind])


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
    return read_guarantee(text, _KINDS)


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
        return read_guarantee(str(values["parts"]), _KINDS)
    return make_guarantee(_KINDS[kind], values)


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
    "words_in",
]
