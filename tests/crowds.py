"""Crowds: made-up tables of people of many columns, of whom almost everybody is the only one of their kind."""

from __future__ import annotations

import numpy as np
import pandas as pd

# Columns to publish with their numbers of values, as they are in a questionnaire.
EIGHT = {
    "age": 8,
    "region": 6,
    "occupation": 7,
    "education": 5,
    "household": 4,
    "sex": 2,
    "status": 3,
    "origin": 3,
}
DISEASES = {"cancer": 0.06, "diabetes": 0.14, "asthma": 0.2, "none": 0.6}
EIGHT_SPEC = """
name = "crowd"
title = "A thousand people"
secret = ["disease"]
publish = ["age", "region", "occupation", "education", "household", "sex", "status", "origin"]
guarantee = "lip:1.0"

[source]
path = "people.parquet"

[frequencies]
protection = "none"

[metadata]
licence = "CC-BY-4.0"

[history]
people = "different"
"""


def eight_columns(people: int = 1000, seed: int = 15) -> pd.DataFrame:
    """A table of people with a disease and eight columns, the columns independent and of uneven values.

    With 1,000 people nine of ten published combinations are of one person, so that an observer who knows the columns of
    a person and the exact frequencies knows the disease.

    Parameters
    ----------
    people : int
    seed : int

    Returns
    -------
    pandas.DataFrame
        Texts; the column ``disease`` and the eight of `EIGHT`.
    """
    rng = np.random.default_rng(seed)
    table = {"disease": rng.choice(list(DISEASES), people, p=list(DISEASES.values()))}
    for column, values in EIGHT.items():
        shares = 1 / np.arange(1, values + 1)
        table[column] = rng.choice([f"{column} {k}" for k in range(1, values + 1)], people, p=shares / shares.sum())
    return pd.DataFrame(table)
