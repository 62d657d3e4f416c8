"""The methods that are compared, and which of them can be run here."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.comparison import other_methods as other
from benchmarks.comparison.command import by_command
from benchmarks.comparison.releases import Release, attribute, truth
from benchmarks.comparison.tables import Trial

# What is imported of a package, and what that needs.
_MODULES = {"anjana": ("anjana.anonymity",), "opendp": ("opendp.extras.mbi", "mbi", "polars")}


@dataclass(frozen=True)
class Method:
    """A way to release a table.

    Attributes
    ----------
    name : str
    kind : str
        What the picture groups it with.
    epsilon : float or None
        The proven bound on the odds of two secrets of one person, for an attacker who knows all other columns.
    make : callable
    needs : str or None
        A package that it needs, with the version if it is there.
    corrected : bool
        Whether tables are estimated with the channel and not counted.
    slow : bool
        Whether a release takes a minute of processor time or more.
    """

    name: str
    kind: str
    epsilon: float | None
    make: Callable[[Trial, np.random.Generator], Release]
    needs: str | None = None
    corrected: bool = False
    slow: bool = False

    @property
    def absent(self) -> str | None:
        """Why it cannot be run."""
        try:
            for module in _MODULES.get(self.needs or "", ()):
                importlib.import_module(module)
        except ImportError as error:
            return str(error)
        return None


def version(package: str) -> str | None:
    """That of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def methods() -> Iterator[Method]:
    """All methods of the comparison."""
    k = f"{other.K}-anonymity"
    yield Method("truth", "truth", None, truth)
    yield Method(f"{k}, 2-diversity", "k-anonymity", None, partial(other.k_anonymous, 2, None), "anjana")
    yield Method(f"{k}, 0.3-closeness", "k-anonymity", None, partial(other.k_anonymous, None, 0.3), "anjana")
    yield Method("PRAM, all columns", "PRAM", None, other.pram_all)
    for epsilon in (0.5, 1.0, 2.0):
        yield Method(f"PRAM, secret, ε = {epsilon:g}", "PRAM", epsilon, partial(other.pram_secret, epsilon))
    corrected = "randomised response, ε = 1, corrected"
    yield Method(corrected, "PRAM", 1.0, partial(other.response, 1.0), corrected=True)
    yield Method("CART", "synthetic", None, other.cart)
    for name in ("MST", "AIM"):
        for epsilon in (1.0, 10.0):
            make = partial(other.private, name, epsilon)
            yield Method(f"{name}, ε = {epsilon:g}", "synthetic", None, make, "opendp", slow=name == "AIM")
    for epsilon in (0.5, 1.0, 2.0):
        yield Method(f"funnel, attribute:{epsilon:g}", "funnel", epsilon, partial(attribute, epsilon))
    yield Method("funnel, attribute:1, known", "funnel", 1.0, partial(attribute, 1.0, with_known=True))
    yield Method("funnel, attribute:1, noise", "funnel", 1.0, partial(attribute, 1.0, noise=True))
    yield Method("funnel, rattribute:1,0.05", "funnel", 1.0, partial(attribute, 1.0, robust=True))
    yield Method("funnel init, as it stands", "funnel", 1.0, by_command)


def timed(method: Method, trial: Trial, random: np.random.Generator) -> tuple[Release, float]:
    """A release, and the seconds of processor time that it took, those of commands too."""
    began = sum(os.times()[:4])
    release = method.make(trial, random)
    return release, sum(os.times()[:4]) - began
