"""Unprepared tables: real ones, and synthetic ones shaped as offices and clinics have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Case:
    """A table, and what a person says of it on the command line of ``funnel init``."""

    name: str
    table: Callable[[], pd.DataFrame]
    options: tuple[str, ...]
    suffix: str = "csv"


def _adult() -> pd.DataFrame:
    return pd.read_parquet(_ROOT / "data" / "adult.parquet")


def shared(name: str) -> Callable[[], pd.DataFrame]:
    """A real table that is not in the project, from the folder that FUNNEL_TABLES names."""
    import os

    return lambda: pd.read_parquet(Path(os.environ.get("FUNNEL_TABLES", ".")) / name)


def visits(people: int = 4_000, seed: int = 1) -> pd.DataFrame:
    """Visits of patients: several rows of a person, who is chronically ill or not; each visit has a diagnosis."""
    rng = np.random.default_rng(seed)
    age, sex, ill = rng.integers(1, 95, people), rng.integers(0, 2, people), rng.random(people)
    chronic = np.where(ill < 0.05 + 0.004 * age, "yes", "no")
    count = 1 + rng.poisson(1.5, people)
    who = np.repeat(np.arange(people), count)
    ward = np.where(age[who] < 16, "children", rng.choice(["surgery", "internal", "outpatient", "emergency"], len(who)))
    diagnosis = rng.choice(["J06", "I10", "E11", "M54", "F32"], len(who), p=[0.4, 0.25, 0.15, 0.15, 0.05])
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, len(who)), unit="D")
    return pd.DataFrame(
        {
            "patient": 100_000 + who,
            "day": day.strftime("%d.%m.%Y"),
            "ward": ward,
            "age": age[who],
            "sex": np.where(sex[who] == 0, "f", "m"),
            "chronic": chronic[who],
            "diagnosis": diagnosis,
            "no_of_tests": rng.poisson(2, len(who)),
        }
    )


def panel(people: int = 3_000, waves: int = 3, seed: int = 2) -> pd.DataFrame:
    """A panel: the same people in every wave, whose work changes."""
    rng = np.random.default_rng(seed)
    born, region = rng.integers(1940, 2000, people), rng.choice(["north", "east", "south", "west"], people)
    works = rng.random(people) < 0.6
    found = []
    for wave in range(waves):
        works = np.where(rng.random(people) < 0.1, ~works, works)
        found.append(
            pd.DataFrame(
                {
                    "pid": np.arange(people) + 1,
                    "year": 2020 + wave,
                    "born": born,
                    "region": region,
                    "children": rng.poisson(1.1, people),
                    "unemployed": (~works).astype(int),
                    "satisfaction": np.clip(rng.normal(6 + works, 2, people).round(), 0, 10).astype(int),
                }
            )
        )
    return pd.concat(found, ignore_index=True)


def survey(people: int = 6_000, seed: int = 3) -> pd.DataFrame:
    """A survey with counts, ages and regions, the last of many and partly rare ones."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, people)
    region = [f"R{int(k):02}" for k in np.minimum(rng.geometric(0.12, people), 38)]
    doctor = rng.poisson(np.where(age > 60, 5, 2))
    party = rng.choice(["A", "B", "C", "D", "E", "none"], people, p=[0.3, 0.28, 0.2, 0.15, 0.01, 0.06])
    party = np.where((age < 30) & (rng.random(people) < 0.4), "C", party)
    return pd.DataFrame(
        {
            "interview": [f"i-{k:06}" for k in rng.permutation(people)],
            "age": age,
            "age_group": pd.cut(
                age, [17, 29, 39, 49, 59, 69, 120], labels=["18-29", "30-39", "40-49", "50-59", "60-69", "70+"]
            ),
            "region": region,
            "number_of_children": rng.poisson(1.3, people),
            "visits_to_doctor": doctor,
            "smoker": (rng.random(people) < 0.25).astype(int),
            "party": party,
            "weight": rng.lognormal(0, 0.4, people).round(4),
        }
    )


def missing(people: int = 5_000, seed: int = 4) -> pd.DataFrame:
    """Missing values in every column, written in several ways, the sensitive one among them."""
    rng = np.random.default_rng(seed)
    income = rng.lognormal(10, 0.6, people).round(-2)
    education = rng.choice(["primary", "secondary", "tertiary"], people, p=[0.2, 0.5, 0.3])
    return pd.DataFrame(
        {
            "sex": rng.choice(["female", "male", "n/a"], people, p=[0.51, 0.48, 0.01]),
            "education": np.where(rng.random(people) < 0.07, "NA", education),
            "income": np.where(rng.random(people) < 0.12, "", income.astype(int).astype(str)),
            "disabled": np.where(rng.random(people) < 0.004, "?", rng.choice(["no", "yes"], people, p=[0.9, 0.1])),
            "remarks": [f"case {k} seen" if k % 3 else "" for k in range(people)],
        }
    )


def small(people: int = 400, seed: int = 5) -> pd.DataFrame:
    """A small table: four hundred people of a club."""
    rng = np.random.default_rng(seed)
    age = rng.integers(16, 80, people)
    return pd.DataFrame(
        {
            "member": rng.permutation(people) + 1,
            "age": age,
            "section": rng.choice(["football", "tennis", "chess"], people, p=[0.5, 0.3, 0.2]),
            "religion": rng.choice(
                ["none", "protestant", "catholic", "muslim", "jewish"], people, p=[0.4, 0.3, 0.2, 0.08, 0.02]
            ),
        }
    )


def codes(people: int = 20_000, seed: int = 6) -> pd.DataFrame:
    """Codes with leading zeros, and a secret with rare values, of which some have a handful of people."""
    rng = np.random.default_rng(seed)
    postcodes = [f"{k:05}" for k in rng.integers(1_000, 99_999, 60)]
    shares = [0.7, 0.12, 0.1, 0.07, 0.0095, 0.0003, 0.0002]
    return pd.DataFrame(
        {
            "postcode": rng.choice(postcodes, people, p=rng.dirichlet(np.ones(60))),
            "occupation_code": rng.choice([f"{k:03}" for k in range(7, 907, 30)], people),
            "born": rng.integers(1940, 2006, people),
            "benefit": rng.choice(["none", "housing", "old age", "work", "health", "other", "war"], people, p=shares),
        }
    )


CASES = (
    Case("adult, 3 columns", _adult, ("--secret", "income", "--publish", "education,sex,age"), "parquet"),
    Case("adult, race", _adult, ("--secret", "race", "--publish", "education,sex,occupation"), "parquet"),
    Case("adult, secret published", _adult, ("--secret", "income", "--publish", "income,education,sex"), "parquet"),
    Case("adult, all columns", _adult, ("--secret", "income", "--publish", "all"), "parquet"),
    Case("visits, chronic", visits, ("--secret", "chronic", "--publish", "ward,age,sex", "--unit", "patient")),
    Case("visits, diagnosis", visits, ("--secret", "diagnosis", "--publish", "ward,age,sex")),
    Case("panel, unemployed", panel, ("--secret", "unemployed", "--publish", "born,region,children", "--unit", "pid")),
    Case("survey, party", survey, ("--secret", "party", "--publish", "age_group,region,number_of_children")),
    Case("survey, key", survey, ("--secret", "smoker", "--publish", "age,region", "--key", "interview")),
    Case("survey, key, many columns", survey, ("--secret", "smoker", "--publish", "all", "--key", "interview")),
    Case("codes", codes, ("--secret", "benefit", "--publish", "postcode,born")),
    Case("missing values", missing, ("--secret", "disabled", "--publish", "sex,education,income")),
    Case("missing, all columns", missing, ("--secret", "disabled", "--publish", "all")),
    Case("small club", small, ("--secret", "religion", "--publish", "age,section")),
)
"""Every case, the real tables that are in the project first."""

SHARED = (
    Case(
        "census income, 3 columns",
        shared("census_income_kdd.parquet"),
        ("--secret", "citizenship", "--publish", "education,sex,age"),
        "parquet",
    ),
    Case(
        "census income, 10 columns",
        shared("census_income_kdd.parquet"),
        (
            *("--secret", "income", "--publish"),
            "age,class-of-worker,education,marital-stat,race,sex,major-occupation-code,citizenship,tax-filer-stat,year",
        ),
        "parquet",
    ),
    Case(
        "health panel",
        shared("health_panel.parquet"),
        ("--secret", "outwork", "--publish", "age,kids,edlevel,female", "--unit", "id"),
        "parquet",
    ),
)
"""Cases about real tables that are not in the project."""
