"""Histories: what everything published about the people of a register tells of them, computed a second time.

From the folder of a register and the text of a guarantee alone: counts from its people by DuckDB, distributions of
histories in whole numbers with proven limits, conditions decided on them, or in fractions where they do not decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from funnel.errors import SpecError
from funnel.recount.chapters import NEW, Chapter, Rows, Tree
from funnel.recount.donor_register import DonorRegister
from funnel.recount.expected import Attending, Expected, lost_by_version
from funnel.recount.found_histories import Decided, RegisterHistories, VersionHistories, expected_histories
from funnel.recount.history_bounds import HistoryFinding, Tally, Undecided, judge_history
from funnel.recount.left_open import Tables
from funnel.recount.movers import MOVER_STAYER, TRANSITIONS, class_complaints, told_apart
from funnel.recount.open_tables import OpenHistories
from funnel.recount.path_distributions import ExactDistributions, HistoryDistribution, PathDistributions
from funnel.recount.promise import (
    Group,
    Promise,
    has_known_columns,
    knowing,
    known_groups,
    known_sets,
    partly_known,
    promise_given,
    read_promise,
)
from funnel.recount.ratios import Side, sides_of
from funnel.recount.register_files import Entry, entry_folders, read_entries
from funnel.recount.register_moves import Noise, noise_of_tables, protected_complaints
from funnel.recount.register_people import (
    Followed,
    counted_complaints,
    followed_by,
    forgotten_complaints,
    last_histories,
    order_complaints,
    unfollowed,
    unit_complaints,
)
from funnel.recount.register_tables import FORGOTTEN, chain_complaints, file_digest, head_complaints, read_head
from funnel.recount.rounded import history_complaints
from funnel.recount.rows import connect
from funnel.recount.run_results import once
from funnel.recount.unit_donor_register import UnitDonorRegister

if TYPE_CHECKING:
    import duckdb


def recount_histories(register: Path, coming: Path | None = None, promise: Promise | None = None) -> RegisterHistories:
    """Judge what the versions of a register tell together.

    Parameters
    ----------
    register : Path
        The folder of the register.
    coming : Path, optional
        The folder of an entry that is prepared and not yet one of the register. Then it alone is judged by the bound;
        else all versions are.
    promise : Promise, optional
        What the last version promises; what its entry says, if it is left out.

    Raises
    ------
    DataError
        If a file of the register is missing, was changed or cannot be read.
    SpecError
        If the promise says nothing about everything that is published.
    PipelineError
        If DuckDB is not installed.

    Notes
    -----
    O(people) by DuckDB in bounded memory, and O(histories · changes) products of whole numbers a version.
    """
    with connect() as database:
        folders = entry_folders(register) if coming is None or register.exists() else []
        entries = read_entries(database, [*folders, *([] if coming is None else [coming])])
        # A prepared entry has the head that the register is to have.
        head = read_head(register if coming is None else coming)
        complaints = [*chain_complaints(entries), *head_complaints(head, entries)]
        if folders and coming is not None:
            complaints += head_complaints(read_head(register), entries[:-1])
        forgotten = register / FORGOTTEN
        if head.forgotten is not None:
            if file_digest(forgotten) != head.forgotten:
                complaints.append("the people who are forgotten are not those that the head of the register names")
            complaints += forgotten_complaints(database, forgotten, entries)
        missing = [one.missing for one in head.named]
        missing += [0] * (len(entries) - len(missing))
        promises = [read_promise(entry.chapter.guarantee) for entry in entries]
        if promise is not None:
            promises[-1] = promise
        tree = Tree([entry.chapter for entry in entries])
        if len({entry.classes is None for entry in entries}) > 1:
            raise SpecError("nothing is proven of versions of whole records and of others together")
        judging = _kind_of(entries)(database, tree, entries, missing, coming is not None)
        versions = once(
            lambda: tuple(judging.versions(promises)),
            lambda: (promises, missing, coming, [(one.digest, _digests(one)) for one in entries]),
        )
        return RegisterHistories(entries, versions, tuple(complaints), head.digests)


def _kind_of(entries: Sequence[Entry]) -> type[_Judging] | type[DonorRegister] | type[UnitDonorRegister]:
    """What judges a register: by whether its records are whole, and people have several rows."""
    if entries[0].classes is None:
        return _Judging
    of_units = any(entry.chapter.units is not None for entry in entries)
    return UnitDonorRegister if of_units else DonorRegister


def _digests(entry: Entry) -> list[str]:
    """Of the tables of people, of rows and of donors, whose digests an entry does not have."""
    donors = () if entry.donors is None else (entry.donors,)
    return [file_digest(path) for path in dict.fromkeys((entry.people, entry.rows, *donors))]


# What is found for an observer, and the inequalities that are asked for, of all the budget and of the reserved share.
_Judged = tuple[Decided, tuple[Side, ...], tuple[Side, ...]]


@dataclass(frozen=True)
class _Judging:
    """A register that is judged; ``coming`` where its last version is not published yet."""

    database: duckdb.DuckDBPyConnection
    tree: Tree
    entries: tuple[Entry, ...]
    missing: Sequence[int]
    coming: bool
    _opened: dict[tuple[Fraction | None, bool], OpenHistories] = field(default_factory=dict, init=False)

    def versions(self, promises: Sequence[Promise]) -> Iterator[VersionHistories]:
        """All of them, or the last one if it is coming, each with what it promises."""
        known, known_apart = self._known(promises)
        apart = iter(() if self._apart is None else PathDistributions(self._apart, known_apart).versions())
        for chapter, distributions in PathDistributions(self.tree, known).versions():
            last = chapter.ordinal == len(self.entries) - 1
            _, of_movers = next(apart, (None, iter(())))
            if last or not self.coming:
                yield self._version(self.entries[chapter.ordinal], distributions, of_movers, promises[chapter.ordinal])
            for _ in chain(distributions, of_movers):
                pass

    def _known(self, promises: Sequence[Promise]) -> tuple[dict[int, list[Group]], dict[int, list[Group]]]:
        """What observers may know of each version, where some version promises to bound them: of all inputs, and apart.

        A version with units has one secret, or several, for which no observer who knows more is bounded.
        """
        if not any(map(has_known_columns, promises)):
            return {}, {}
        known = {one.chapter.ordinal: known_groups(one.input_columns, one.chapter.inputs) for one in self.entries}
        sizes = {one.chapter.ordinal: one.chapter.a for one in self.entries}
        return known, {version: [group.twice(sizes[version]) for group in of] for version, of in known.items()}

    @cached_property
    def _exact(self) -> ExactDistributions:
        return ExactDistributions(self.tree)

    @cached_property
    def _apart(self) -> Tree | None:
        """The tree of somebody who knows who changed, of all versions that say so before one that does not."""
        chapters = [entry.chapter for entry in self.entries]
        known = next((place for place, one in enumerate(chapters) if one.classes is None), len(chapters))
        return told_apart(chapters[:known]) if known else None

    @cached_property
    def _exact_apart(self) -> ExactDistributions:
        assert self._apart is not None
        return ExactDistributions(self._apart)

    def _open(self, entry: Entry, promise: Promise) -> OpenHistories | None:
        """All that has to be within the bound of a version; None where that is for the published tables alone."""
        for_known = has_known_columns(promise)
        alpha = None if promise.distributions is None else promise.number("alpha")
        if alpha is None and entry.left_open is None:
            return None
        if alpha is None and for_known:
            raise SpecError(f"{promise.kind} cannot be judged over versions for all that noise leaves open")
        if (alpha, for_known) not in self._opened:
            tables = [self._tables(one) for one in self.entries]
            known = [partly_known(one.input_columns, one.chapter.inputs) for one in self.entries] if for_known else []
            self._opened[alpha, for_known] = OpenHistories(self.tree, tables, alpha, known)
        return self._opened[alpha, for_known]

    def _tables(self, entry: Entry) -> Tables | None:
        """Those of a version: exact ones, or what its noise leaves open; None where nothing is said of that."""
        if entry.protected:
            return None if entry.left_open is None else entry.left_open.tables
        before = self.entries[: entry.chapter.ordinal]
        alike = [(one.chapter, one.input_columns == entry.input_columns) for one in before]
        return Tables.exactly(entry.chapter, dict(enumerate(alike)), entry.second_rows)

    def _version(
        self,
        entry: Entry,
        distributions: Iterator[HistoryDistribution],
        of_movers: Iterator[HistoryDistribution],
        promise: Promise,
    ) -> VersionHistories:
        chapter, missing = entry.chapter, self.missing[entry.chapter.ordinal]
        followed = followed_by(self.database, self.tree, entry)
        before = self.entries[: chapter.ordinal]
        noise = noise_of_tables(self.database, self.tree, before, entry, followed.by_channel, missing)
        complaints = [*self._complaints(entry, followed, noise)]
        expected = self._attending(entry)
        attending = None if expected is None else expected[0]
        found = self._decided(TRANSITIONS, self._exact, entry, distributions, followed, promise, attending)
        if self._apart is not None and chapter.ordinal < len(self._apart.chapters):
            found += self._decided(MOVER_STAYER, self._exact_apart, entry, of_movers, followed, promise)
        elif MOVER_STAYER in entry.observers:
            complaints.append("is bounded for movers and stayers, whom it or a version before it does not tell apart")
        if expected is not None:
            complaints += _unexpected(self.tree, entry, *expected)
        had = self._had(entry, followed)
        # What is bounded first, as the register's makers state it.
        found.sort(key=lambda one: not one.bounded)
        return VersionHistories(
            name=chapter.name,
            promise=promise,
            histories=len(had & chapter.followed.keys()),
            people=sum(followed.people.values()),
            by_output=followed.by_output,
            by_channel=followed.by_channel,
            by_row=self._by_row(chapter, followed.people),
            missing=missing,
            complaints=tuple(complaints),
            broken=tuple(said for one in found for said in one.broken()),
            followed=len(chapter.followed),
            observers=tuple(one.figures() for one in found),
            expected=None if attending is None else expected_histories(found, attending, chapter, followed.people),
            noise=tuple(noise.values()),
        )

    def _by_row(self, chapter: Chapter, people: Mapping[int, int]) -> Mapping[tuple[int, int], int]:
        """How many drew which row of a person from which channel, by the history before it."""
        found = Counter[tuple[int, int]]()
        for node, count in people.items():
            found[self.tree.next_row(node, chapter.ordinal), chapter.followed[node]] += count
        return found

    def _had(self, entry: Entry, followed: Followed) -> set[int]:
        """Histories that somebody had; without noise, all that there are channels for. The forgotten count as new."""
        new = [NEW] if self.missing[entry.chapter.ordinal] else []
        return {*followed.people, *new} if entry.protected else set(entry.chapter.followed)

    def _decided(
        self,
        observer: str,
        exact: ExactDistributions,
        entry: Entry,
        distributions: Iterator[HistoryDistribution],
        followed: Followed,
        promise: Promise,
        attending: Attending | None = None,
    ) -> list[Decided]:
        """What an observer learns of the people of a version who knows their histories, in a tree of their own.

        First of their secret now, then of the one that they had in each version before.
        """
        tree, chapter = exact.tree, exact.tree.chapters[entry.chapter.ordinal]
        of_changes, had = observer == TRANSITIONS, self._had(entry, followed)
        # Which tables noise leaves open is about all people together.
        left_open = self._open(entry, promise) if of_changes else None
        known = of_changes or observer in entry.observers
        by_secret: dict[tuple[int | None, tuple[str, ...]], _Judged] = {}
        for secret_of in (None, *range(chapter.ordinal)):
            name = None if secret_of is None else tree.chapters[secret_of].name
            bounded = known and (secret_of is None or entry.secrets == "all")
            columns = (entry if secret_of is None else self.entries[secret_of]).input_columns
            for besides in ((), *(known_sets(columns) if has_known_columns(promise) else ())):
                asked = promise_given(promise, len(besides) == len(columns))
                sides = sides_of(asked)
                every, real, predicted = (Tally(tree, asked, sides) for _ in range(3))
                unsure = None if left_open is None or secret_of is not None or besides else 0.0
                who = knowing(observer, besides)
                decided = Decided(who, name, bounded, every, real, predicted, unsure)
                by_secret[secret_of, besides] = decided, sides, sides_of(asked, chapter.reserve)
        shares: dict[tuple[int, int | None, int, frozenset[int] | None], tuple[int, ...]] = {}
        for distribution in distributions:
            # Secrets of all rows of a person in the version are judged as one, and all values that may be known.
            whose = None if distribution.secret_of == chapter.ordinal else distribution.secret_of
            found_for = by_secret.get((whose, () if distribution.group is None else distribution.group.columns))
            version = chapter.ordinal if distribution.secret_of is None else distribution.secret_of
            inside = None if distribution.group is None else distribution.group.inside
            begun = version, tree.origin(tree.until(distribution.node, version), version), distribution.row, inside
            if begun not in shares:
                shares[begun] = tree.chapters[version].shares(*begun[1:])
            if found_for is None or not any(shares[begun]):
                continue
            judged, sides, inner = found_for
            rows = chapter.channels[chapter.followed[distribution.node]]
            if attending is not None and distribution.secret_of is None and distribution.group is None:
                attending.add(distribution, chapter)
            found = _found(sides, inner, distribution, rows, shares[begun], exact, chapter.ordinal)
            # Where people have several rows, each is counted with the first.
            is_first = distribution.node < chapter.first
            judged.every.add(distribution, found, 0)
            open_now = None if distribution.secret_of is not None or distribution.group is not None else left_open
            if open_now is not None and not open_now.holds(distribution.node, chapter, sides):
                what = "frequencies of a population" if promise.distributions is not None else "true tables"
                judged.every.fail(f"leaves the bound under {what} that are not ruled out", distribution.node)
            if distribution.node in had:
                judged.real.add(distribution, found, followed.people.get(distribution.node, 0) if is_first else 0)
            if attending is not None and distribution.node in attending.people:
                judged.predicted.add(distribution, found, attending.people[distribution.node] if is_first else 0)
                # What was within the bound before the first row is so before another one.
                if (
                    is_first
                    and open_now is not None
                    and not open_now.holds(distribution.node, chapter, sides, alone=True)
                ):
                    judged.unsure = (judged.unsure or 0.0) + attending.people[distribution.node]
        return [judged for judged, _, _ in by_secret.values()]

    def _attending(self, entry: Entry) -> tuple[Attending, Expected] | None:
        """Who is expected in a version, and who after it of those who are not; None where that is counted."""
        if not entry.protected:
            return None
        before = self.entries[: entry.chapter.ordinal]
        if before and before[-1].expected is None:
            # Nothing hides who had which history in a version without noise, nor in those before it.
            expected = Expected(
                {node: float(n) for node, n in last_histories(self.database, self.tree, before).items()}
            )
        else:
            known = before[-1].expected if before else None
            expected = Expected()
            if known is not None:
                expected = Expected(dict(known.people), lost_by_version(self.tree, known.lost))
        arrived = {} if entry.moves is None else entry.moves.arrived
        people = sum(entry.chapter.beginning)
        return expected.attending(self.tree, dict(enumerate(arrived)), people, entry.row_moves), expected

    def _complaints(self, entry: Entry, followed: Followed, noise: Noise) -> Iterator[str]:
        before, missing = self.entries[: entry.chapter.ordinal], self.missing[entry.chapter.ordinal]
        yield from order_complaints(self.database, entry)
        if entry.chapter.units is not None:
            yield from unit_complaints(self.database, self.tree, entry)
        yield from class_complaints(self.database, before, entry)
        wrong, last = unfollowed(self.database, self.tree, before, entry)
        if wrong:
            yield f"{wrong:,} people have a history that does not go on from their own"
        if followed.impossible:
            yield f"{followed.impossible:,} people have an answer that their channel never gives"
        if entry.protected:
            yield from protected_complaints(self.database, before, entry, noise, missing)
        else:
            yield from counted_complaints(self.database, before, entry, last, self.missing, self.coming)
        yield from history_complaints(entry, followed, missing, self.coming)


def _unexpected(tree: Tree, entry: Entry, attending: Attending, after: Expected) -> Iterator[str]:
    """What of a version does not follow from what is expected, once all of its distributions were seen."""
    yield from attending.complaints(entry.chapter, entry.effective)
    told = entry.expected
    if told is None or after.differs(Expected(told.people, lost_by_version(tree, told.lost))):
        yield "it expects other people to have its histories than its tables lead one to"


def _found(
    sides: Sequence[Side],
    inner: Sequence[Side],
    distribution: HistoryDistribution,
    rows: Rows,
    shares: Sequence[int],
    exact: ExactDistributions,
    version: int,
) -> HistoryFinding:
    """What an observer learns who knows a history; in fractions where limits on its distribution do not tell."""
    try:
        return judge_history(sides, inner, distribution, rows, shares)
    except Undecided:
        return judge_history(sides, inner, exact.exactly(distribution, version), rows, shares)
