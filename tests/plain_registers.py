"""Small registers, made by code of their own: people who change, rows for every history, and the files of all of it."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

WHOLE = 2**63
SECRETS, VALUES = 2, 3
TYPES = {
    "forgotten.parquet": {"high": pa.uint64(), "low": pa.uint64()},
    "people.parquet": {
        "high": pa.uint64(),
        "low": pa.uint64(),
        "cell": pa.int32(),
        "changed": pa.int8(),
        "node": pa.int64(),
    },
    "nodes.parquet": {"parent": pa.int64(), "output": pa.int32()},
    "changes.parquet": {
        "version": pa.int32(),
        "before": pa.int32(),
        "after": pa.int32(),
        "changed_before": pa.int8(),
        "changed_after": pa.int8(),
        "records": pa.int64(),
    },
    "channels.parquet": {"channel": pa.int32(), "input": pa.int32(), "output": pa.int32(), "weight": pa.uint64()},
    "followed.parquet": {"node": pa.int64(), "channel": pa.int32()},
    "effective.parquet": {"input": pa.int32(), "output": pa.int32(), "weight": pa.uint64()},
}

Distribution = dict[int, Fraction]
Weights = tuple[tuple[int, ...], ...]
Wave = Mapping[int, tuple[int, int]]
"""Secret and input of every person."""


@dataclass
class Made:
    """One version while it is made.

    Attributes
    ----------
    wave : Wave
    name : str
    people : dict
        The node of everybody after it.
    parents, outputs : list of int
        Of its nodes.
    first : int
    channels : list of Weights
    followed : dict
        The channel of every history.
    distributions : dict
        P(s, x | h) by history, up to a factor.
    changes : dict
        By earlier version, counts of (cell there, cell here).
    changed : dict
        Whether everybody in it ever had other values, in it or before.
    states : dict
        By earlier version, counts of (cell there, cell here, changed till there, changed till here).
    """

    wave: Wave
    name: str
    first: int
    people: dict[int, int] = field(default_factory=dict)
    parents: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    channels: list[Weights] = field(default_factory=list)
    followed: dict[int, int] = field(default_factory=dict)
    distributions: dict[int, Distribution] = field(default_factory=dict)
    changes: dict[int, Counter[tuple[int, int]]] = field(default_factory=dict)
    changed: dict[int, bool] = field(default_factory=dict)
    states: dict[int, Counter[tuple[int, int, bool, bool]]] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[int]:
        """Records by cell."""
        return Counter(cell(*now) for now in self.wave.values())


def cell(s: int, x: int) -> int:
    """The number of a secret and an input."""
    return s * VALUES + x


def waves(people: int, versions: int, seed: int, moving: float = 0.3) -> list[Wave]:
    """People of some versions: some change, some come, some leave and come back."""
    chance = random.Random(seed)
    now: dict[int, tuple[int, int]] = {}
    found = []
    for version in range(versions):
        for person in range(people + version * people // 10):
            if person not in now or chance.random() < moving:
                s = now[person][0] if person in now and chance.random() < 0.7 else int(chance.random() < 0.4)
                now[person] = (s, min(VALUES - 1, int(chance.expovariate(1.2) + s * chance.random())))
        found.append({person: now[person] for person in now if chance.random() < 0.85})
    return found


class History:
    """Makes a register from waves, one version after the other.

    Parameters
    ----------
    epsilon : float
        Of the bound that its rows keep.
    kind : str
        Of the bound: "lip" or "ldp".
    seed : int
        Of the draws.
    """

    def __init__(self, epsilon: float = 1.0, kind: str = "lip", seed: int = 7) -> None:
        self.epsilon, self.kind = epsilon, kind
        self.made: list[Made] = []
        self._chance = random.Random(seed)

    @property
    def guarantee(self) -> str:
        """The bound as text."""
        return f"{self.kind}:{self.epsilon}"

    def last_node(self, person: int, before: int) -> int:
        """The history of a person before a version."""
        return next((made.people[person] for made in reversed(self.made[:before]) if person in made.people), 0)

    def place(self, node: int) -> tuple[int | None, int, int]:
        """Version, parent and output of a node."""
        for number, made in enumerate(self.made):
            if made.first <= node < made.first + len(made.parents):
                return number, made.parents[node - made.first], made.outputs[node - made.first]
        return None, 0, 0

    def distribution(self, node: int, version: int) -> Distribution:
        """P(s, x | h) before a version, by the definition: METHOD section 9."""
        made, last = self.made[version], self.place(node)
        if last[0] is None:
            return {one: Fraction(count) for one, count in made.counts.items()}
        earlier = self.made[last[0]]
        before = self.distribution(last[1], last[0])
        rows = earlier.channels[earlier.followed[last[1]]]
        alpha = {one: share * rows[last[2]][one % VALUES] for one, share in before.items()}
        changes = made.changes[last[0]]
        shared = {after // VALUES for _, after in changes}
        unseen = {one: count for one, count in made.counts.items() if one // VALUES in shared}
        found: Distribution = {}
        for one, share in alpha.items():
            row = {after: count for (first, after), count in changes.items() if first == one} or unseen
            for after, count in row.items():
                found[after] = found.get(after, Fraction()) + share * Fraction(count, sum(row.values()))
        return {one: share for one, share in found.items() if share}

    def prior(self, node: int, version: int) -> dict[int, Fraction]:
        """The distribution of the secret that a history is compared with."""
        last, made = self.place(node)[0], self.made[version]
        people: Counter[int] = Counter()
        for (_, after), count in ({} if last is None else made.changes[last]).items():
            people[after // VALUES] += count
        for one, count in made.counts.items() if last is None else ():
            people[one // VALUES] += count
        return {s: Fraction(count, sum(people.values())) for s, count in people.items()}

    def level(
        self, distribution: Distribution, prior: Mapping[int, Fraction], row: Sequence[int] | None = None
    ) -> float:
        """What an observer learns of the secret from a history, and an output where a row of weights is given."""
        masses = {s: Fraction() for s in prior}
        for one, share in distribution.items():
            masses[one // VALUES] += share * (1 if row is None else row[one % VALUES])
        whole = sum(masses.values())
        if not whole:
            return 0.0
        lifts = [math.log(mass / whole / prior[s]) if mass else -math.inf for s, mass in masses.items()]
        return max(lifts) - min(lifts) if self.kind == "ldp" else max(map(abs, lifts))

    def publish(
        self, wave: Wave, rows: Callable[[Made, int, Distribution, Mapping[int, Fraction]], Weights] | None = None
    ) -> Made:
        """Publish one version more; by default with rows that keep the bound for every history."""
        number = len(self.made)
        first = 1 if not self.made else self.made[-1].first + len(self.made[-1].parents)
        made = Made(wave, f"panel/1.{number}.0", first)
        self.made.append(made)
        known = [one.wave for one in self.made]
        made.changed = {p: len({other[p] for other in known if p in other}) > 1 for p in wave}
        for earlier, other in enumerate(self.made[:-1]):
            both = [p for p in wave if p in other.wave]
            made.changes[earlier] = Counter((cell(*other.wave[p]), cell(*wave[p])) for p in both)
            made.states[earlier] = Counter(
                (cell(*other.wave[p]), cell(*wave[p]), other.changed[p], made.changed[p]) for p in both
            )
        nodes: dict[tuple[int, int], int] = {}
        for person in sorted(wave):
            before = self.last_node(person, number)
            if before not in made.followed:
                distribution, prior = self.distribution(before, number), self.prior(before, number)
                made.distributions[before] = distribution
                weights = (rows or self.bounded)(made, before, distribution, prior)
                if weights not in made.channels:
                    made.channels.append(weights)
                made.followed[before] = made.channels.index(weights)
            y = self._drawn(made.channels[made.followed[before]], wave[person][1])
            if (before, y) not in nodes:
                nodes[before, y] = first + len(made.parents)
                made.parents.append(before)
                made.outputs.append(y)
            made.people[person] = nodes[before, y]
        made.changes = {v: table for v, table in made.changes.items() if table}
        return made

    def bounded(self, made: Made, node: int, distribution: Distribution, prior: Mapping[int, Fraction]) -> Weights:
        """Rows that tell as much as the bound lets them, or nothing."""
        low, high = 0, 1 << 16
        if not self._kept(rows_of(low), distribution, prior):
            return silent()
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._kept(rows_of(middle), distribution, prior) else (low, middle)
        return rows_of(low)

    def _kept(self, rows: Weights, distribution: Distribution, prior: Mapping[int, Fraction]) -> bool:
        return max(self.level(distribution, prior, row) for row in rows) <= self.epsilon * (1 - 1e-9)

    def _drawn(self, weights: Weights, x: int) -> int:
        word, y = self._chance.randrange(WHOLE), 0
        while word >= weights[y][x]:
            word -= weights[y][x]
            y += 1
        return y

    def write(self, register: Path, prepared: bool = False) -> Path | None:
        """Write all versions below a folder; the last one as prepared and not yet one of the register, if asked for.

        Returns
        -------
        Path or None
            The folder of the prepared entry.
        """
        register.mkdir(parents=True, exist_ok=True)
        previous, head, coming = None, [], None
        for number, made in enumerate(self.made):
            version = made.name.partition("/")[2]
            name = f"{number:04d}-panel-{version}"
            last = prepared and number == len(self.made) - 1
            folder = register / (f".coming-{name}" if last else name)
            folder.mkdir()
            previous = write_entry(folder, number, made, self.guarantee, previous)
            people = digest(folder / "people.parquet")
            head.append({"folder": name, "entry": previous, "people": people, "missing": 0})
            coming = folder if last else None
            place = folder if last else register
            (place / "head.json").write_text(json.dumps({"entries": head, "forgotten": None, "earlier": []}))
        return coming


def silent() -> Weights:
    """Rows that always give the first output."""
    return tuple(tuple(WHOLE if y == 0 else 0 for _ in range(VALUES)) for y in range(VALUES))


def rows_of(part: int) -> Weights:
    """Rows that give the value itself with ``part`` of 2^16, and else any one."""
    own = part * (WHOLE >> 16)
    other = (WHOLE - own) // VALUES
    kept = WHOLE - (VALUES - 1) * other
    return tuple(tuple(kept if x == y else other for x in range(VALUES)) for y in range(VALUES))


def telling() -> Weights:
    """Rows that give every value as it is."""
    return tuple(tuple(WHOLE if x == y else 0 for x in range(VALUES)) for y in range(VALUES))


def effective(made: Made) -> list[list[int]]:
    """The channel that somebody sees who cannot tell histories apart, as whole numbers that sum to 2^63."""
    found = [[0] * VALUES for _ in range(VALUES)]
    for x in range(VALUES):
        here = [p for p, now in made.wave.items() if now[1] == x]
        sums = [Fraction()] * VALUES
        for person in here:
            rows = made.channels[made.followed[made.parents[made.people[person] - made.first]]]
            for y in range(VALUES):
                sums[y] += Fraction(rows[y][x], len(here))
        if not here:
            sums = [Fraction(WHOLE), Fraction(), Fraction()]
        for y in range(VALUES):
            found[y][x] = math.floor(sums[y])
        found[max(range(VALUES), key=lambda y: sums[y])][x] += WHOLE - sum(found[y][x] for y in range(VALUES))
    return found


def person_digest(person: int) -> tuple[int, int]:
    """128 bits of a person."""
    text = hashlib.blake2b(str(person).encode(), digest_size=16).digest()
    return int.from_bytes(text[:8], "little"), int.from_bytes(text[8:], "little")


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_table(path: Path, rows: Sequence[Sequence[int]]) -> None:
    """One of the tables of an entry."""
    kinds = TYPES[path.name]
    columns = [pa.array([row[k] for row in rows], kind) for k, kind in enumerate(kinds.values())]
    pq.write_table(pa.table(columns, names=list(kinds)), path)


def write_entry(folder: Path, number: int, made: Made, guarantee: str, previous: str | None) -> str:
    """The files of one version; the digest of its ``entry.json``."""
    people = sorted(
        (*person_digest(p), cell(*made.wave[p]), int(made.changed[p]), node) for p, node in made.people.items()
    )
    write_table(folder / "people.parquet", people)
    write_table(folder / "nodes.parquet", list(zip(made.parents, made.outputs, strict=True)))
    changes = sorted(
        (v, *map(int, state), count) for v, table in made.states.items() if table for state, count in table.items()
    )
    write_table(folder / "changes.parquet", changes)
    channels = [
        (k, x, y, weights[y][x])
        for k, weights in enumerate(made.channels)
        for x in range(VALUES)
        for y in range(VALUES)
        if weights[y][x]
    ]
    write_table(folder / "channels.parquet", channels)
    write_table(folder / "followed.parquet", sorted(made.followed.items()))
    table = effective(made)
    write_table(
        folder / "effective.parquet",
        [(x, y, table[y][x]) for x in range(VALUES) for y in range(VALUES) if table[y][x]],
    )
    series, _, version = made.name.partition("/")
    said: dict[str, Any] = {
        "schema": "funnel/register-entry/1",
        "ordinal": number,
        "series": series,
        "version": version,
        "name": made.name,
        "secret": {"columns": ["secret"], "symbols": [[f"s{s}"] for s in range(SECRETS)]},
        "inputs": {"columns": ["value"], "symbols": [[f"x{x}"] for x in range(VALUES)]},
        "outputs": {"columns": ["value"], "symbols": [[f"y{y}"] for y in range(VALUES)]},
        "guarantee": guarantee,
        "observers": ["transitions"],
        "secrets": "current",
        "reserve": 1.0,
        "mechanism": "optimal",
        "channel": "0" * 64,
        "key_columns": ["id"],
        "key_kinds": ["number"],
        "fingerprint": "0" * 32,
        "counts": [[made.counts[cell(s, x)] for x in range(VALUES)] for s in range(SECRETS)],
        "first": made.first,
        "previous": previous,
    }
    seal(folder, said)
    return digest(folder / "entry.json")


def seal(folder: Path, said: dict[str, Any]) -> None:
    """Write ``entry.json`` with the digests of its tables as they are."""
    tables = [name for name in TYPES if name not in ("people.parquet", "forgotten.parquet")]
    said["files"] = {name: digest(folder / name) for name in tables}
    (folder / "entry.json").write_text(json.dumps(said))
