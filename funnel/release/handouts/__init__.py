"""Handouts: what a release says of itself to people and to portals, made of its two public documents and nothing else.

README.md, CITATION.cff and dcat.jsonld, and where csv is asked for protocol.csv and estimator.csv, are functions of
``datapackage.json`` and ``protocol.json``, so they tell nobody anything that is not public already, and whoever has
those two can make them again. `funnel.recount` does, or judges them, by code of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from funnel.release.handouts.catalogue import catalogue
from funnel.release.handouts.channel_tables import channel_table, estimator_table
from funnel.release.handouts.citation import citation
from funnel.release.handouts.readme import CHANNEL, ESTIMATOR, has_csv, readme
from funnel.release.published_values import published_values

__all__ = ["HANDOUTS", "documentation"]

HANDOUTS = ("CITATION.cff", "README.md", "dcat.jsonld")
"""Those of every release."""


def documentation(
    package: Mapping[str, Any], protocol: Mapping[str, Any], previous: str | None = None
) -> dict[str, bytes]:
    """The handouts of a release.

    Parameters
    ----------
    package, protocol : JSON object
        Content of ``datapackage.json`` and of ``protocol.json``.
    previous : str, optional
        The version before this one that is there.

    Returns
    -------
    dict of str to bytes
        By path in the release: those of `HANDOUTS`; where the records are there as csv also ``protocol.csv``, and
        ``estimator.csv`` where estimates take weights.
    """
    told = {
        "CITATION.cff": citation(package).encode(),
        "README.md": readme(package, protocol).encode(),
        "dcat.jsonld": catalogue(package, previous),
    }
    if has_csv(package):
        told[CHANNEL] = channel_table(protocol).encode()
        if published_values(protocol["mechanism"]).estimator:
            told[ESTIMATOR] = estimator_table(protocol).encode()
    return told
