"""Count protection: the ways in which published counts are protected, each with its rules and its sentences."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeVar

T = TypeVar("T")
ProtectionName = Literal["none", "threshold", "noise"]

_INSTEAD = 'protection = "noise" in [frequencies] protects those of few columns.'


@dataclass(frozen=True)
class CountProtection:
    """One way to protect published counts.

    Attributes
    ----------
    name : str
        As specs and documents write it.
    meaning : str
        What it means for public documents, as the data package states it.
    sentence : str
        The same as a sentence of the documentation, with a place for ``meaning``.
    warning : str
        What the publisher is told of counts that are exact; empty of others.
    settings : tuple of str
        The settings of ``[frequencies]`` that only this way reads.
    is_noisy : bool
        Whether published counts have noise: then no public figure but those of the published records and of their
        number follows from exact counts, values are learned under noise, and a rule of disclosure control that noisy
        counts break is reported, and never refuses a release.
    groups_values : bool
        Whether values are grouped until no published count is small.
    about : str
        What stands before a number of records that is shown.
    """

    name: ProtectionName
    meaning: str
    sentence: str = "The frequencies behind it are {meaning}."
    warning: str = ""
    settings: tuple[str, ...] = ()
    is_noisy: bool = False
    groups_values: bool = False
    about: str = ""

    def exact(self, figure: T) -> T | None:
        """A figure of exact counts, as far as it may be public: None under noise, which it would take off."""
        return None if self.is_noisy else figure

    def of_noise(self, figure: T) -> T | None:
        """A figure that there is under noise alone."""
        return figure if self.is_noisy else None


_NONE = CountProtection(
    name="none",
    meaning="not protected: all public documents are made from the exact counts, and only rounded",
    warning=(
        "FREQUENCIES ARE NOT PROTECTED: nothing but rounding protects the exact counts that all public files are "
        f"made from; single people can be read from these. {_INSTEAD}"
    ),
)
_THRESHOLD = CountProtection(
    name="threshold",
    meaning="rare combinations are grouped; the counts of the others are exact, and only rounded",
    sentence="Of the frequencies behind it, {meaning}.",
    warning=(
        "FREQUENCIES ARE GROUPED, BUT EXACT: rare combinations were grouped before anything else, and all "
        "public files are made from the exact counts of the groups; two versions that differ by one person can "
        f"give that person away. {_INSTEAD}"
    ),
    settings=("threshold",),
    groups_values=True,
)
_NOISE = CountProtection(
    name="noise",
    meaning=(
        "differentially private: but for the published records, what is counted in them, and their number, all public "
        "documents are made from noisy counts, and never from the exact ones"
    ),
    settings=("epsilon", "beta", "delta", "max_epsilon"),
    is_noisy=True,
    about="about ",
)

PROTECTIONS: Final = MappingProxyType({one.name: one for one in (_NONE, _THRESHOLD, _NOISE)})
"""Every way by its name."""
