"""Finished groups: the folder of a coming version whose columns are published in groups, and what it is judged by."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from funnel.audit.grouped.draws import Cells
from funnel.audit.grouped.estimates import Estimates
from funnel.audit.grouped.explained import (
    explained_complaints,
    purpose_complaints,
    tried_complaints,
    worth_complaints,
    worth_limits,
)
from funnel.audit.grouped.figures import channel_complaints, finding_complaints, read_channels
from funnel.audit.grouped.law import PublishedLaw
from funnel.audit.grouped.rows import Rows
from funnel.pipeline.expectations import claims, grouped_claims, public_files
from funnel.pipeline.expectations.claims import Claim, claim, same
from funnel.pipeline.expectations.disclosure_claims import CLAIMS as DISCLOSURE
from funnel.pipeline.expectations.disclosure_claims import disclosure_claims, given_prefixes_claim
from funnel.pipeline.expectations.finished_version import FinishedVersion, compact, digest_and_size, json_in, spread
from funnel.pipeline.expectations.grouped_answers import CLAIMS as KEY_CLAIMS
from funnel.pipeline.expectations.grouped_answers import grouped_answers
from funnel.pipeline.expectations.judging import judge
from funnel.pipeline.expectations.number_claims import number_claims
from funnel.pipeline.expectations.table_evidence import ROWS
from funnel.pipeline.expectations.weighted_claims import class_weights
from funnel.recount import Recount, first_csv_difference, recount, recount_published
from funnel.recount.drawn_numbers import ToldNumbers, declared_numbers
from funnel.recount.grouped import RecordLevel, follow
from funnel.recount.grouped_handouts import grouped_handouts_again
from funnel.recount.grouped_robust import Stated, in_population
from funnel.recount.grouped_text import GroupedText
from funnel.recount.rows import connect, parquet_cells
from funnel.recount.source import source_columns
from funnel.recount.variance import plain_intervals, plain_numbers
from funnel.release.grouped_draws import GroupedDraws
from funnel.release.grouped_proof import GroupedProof
from funnel.release.verdict import Verdict
from funnel.release.words import WordsDocument
from funnel.sampling.keyed import DERIVATION

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom.base import ReleaseExpectation

CSV_CLAIMS = ("rows",)
READER_CLAIMS = ("records",)
FILE_CLAIMS = ("columns", "categories", "metadata", "values", "rows")
SOURCE_CLAIMS = (
    "digest",
    "records",
    "records left out",
    "secret",
    "published",
    "groups",
    "bound",
    "csv",
    "order of rows",
    "record key",
)
RECOUNT_CLAIMS = ("counts",)
CHANNEL_CLAIMS = ("channels",)
_COUNT = "funnel:count"


@dataclass(frozen=True, eq=False)
class FinishedGroups(FinishedVersion):
    """A finished folder of groups, table by table: what is claimed of it and whether that holds."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Published columns: those that the text names, or all that are not kept back."""
        return self.said.publish or self.spec.publish

    @property
    def drawn(self) -> tuple[str, ...]:
        """Published columns of which the text asks for a number within every interval, in order."""
        numbers = self.said.section("numbers")
        return tuple(column for column in self.columns if numbers.get(column, {}).get("draw") is not None)

    @property
    def choice(self) -> str:
        """What the text leaves open: nothing, which columns are a group, or their order too."""
        if self.said.publishes_all:
            return "auto"
        return "order" if self.said.groups is None else "given"

    @cached_property
    def recount(self) -> Recount:
        """Counts of (secret, record), from the source itself."""
        return recount(self.settled, wide=True)

    @cached_property
    def text(self) -> GroupedText:
        """The protocol as its file says it."""
        return GroupedText.parse(self.folder.protocol.read_bytes())

    @cached_property
    def law(self) -> PublishedLaw:
        """Everything that the people of the source can be published as."""
        order = [self.recount.published_columns.index(column) for column in self.text.columns]
        counts = {(s, tuple(x[j] for j in order)): count for (s, x), count in self.recount.counts.items()}
        followed = follow(self.text, self.said.promise, counts)
        if self.said.promise.laws is not None:
            followed = in_population(followed, counts, self._stated)
        return PublishedLaw.following(followed)

    @property
    def _stated(self) -> Stated:
        """What the maker says of its proof; who proves is what the name of the series says."""
        return Stated.of(GroupedProof.read(self.folder.proof).model_dump(), str(self.said.settings["name"]))

    @cached_property
    def released(self) -> Rows:
        """The rows of the file, in their order."""
        return Rows.read(self.folder.data, self.text.columns)

    @cached_property
    def source(self) -> Rows:
        """The records in the order of the source."""
        columns = dict.fromkeys([*self.said.secret, *self.text.columns])
        return Rows.read(Path(self.snapshot.data.path), [*columns])

    @cached_property
    def draws(self) -> tuple[Cells, str]:
        """The stored draws, and the probe."""
        stored = GroupedDraws.read(self.folder)
        return Cells(stored.secret.symbols, stored.cells, stored.records), stored.probe

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.groups_suite import declare_groups

        said = self.said
        return declare_groups(said.csv, said.keyed, said.shuffled, said.guarantee, bool(self.drawn))

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables to judge."""
        makers = {
            "public_files": self._files,
            "csv": self._csv,
            "drawn_numbers": self._drawn_numbers,
            "second_reader": self._second_reader,
            "source": self._source,
            "keys": self._keys,
            "recount": self._recount,
            "disclosure": self._disclosure,
            "grouped_file": self._file,
            "grouped_form": self._form,
            "grouped_table": lambda: grouped_claims.table_claims(self.law, self.released.counted),
            "grouped_draws": self._draws,
            "grouped_order": self._order,
            "grouped_words": self._words,
            "plain_level": self._level,
            "protocol_figures": self._figures,
            "channels": self._channels,
            "package": self._package,
            "handouts": self._handouts,
            "report": self._report,
        }
        return claims.table(makers[name]()).assign(**{ROWS: len(self.released)})

    @property
    def _declared_files(self) -> frozenset[str]:
        declared = public_files.declared_files(self.said.csv, drawn=bool(self.drawn))
        return declared - {public_files.ESTIMATOR} | {public_files.CHANNELS}

    def _files(self) -> list[Claim]:
        return public_files.files_claims(self.folder.root, self._declared_files)

    def _csv(self) -> list[Claim]:
        row = first_csv_difference(self.folder.csv, self.folder.data, self.text.columns)
        return [claim("rows", row is None, f"differ from those of the parquet file, first in row {row}")]

    @cached_property
    def _told_numbers(self) -> list[ToldNumbers]:
        """The columns of numbers that the text of the spec asks for."""
        return declared_numbers(self.settled, self.text, self.drawn)

    def _drawn_numbers(self) -> list[Claim]:
        behind = {column: self.text.behind(column) for column in self.columns}
        return number_claims(self.folder, self.said.csv, self._told_numbers, behind, json_in(self.folder.package))

    def _second_reader(self) -> list[Claim]:
        counts = recount_published(self.folder.data, self.text.columns)
        return [claim("records", counts == self.released.counted, "are not those that the first reader finds")]

    def _source(self) -> list[Claim]:
        said, spec, found = self.said, self.spec, self.recount
        # Nobody asked for a list: what is published are all columns of the source that are not kept back.
        meant = tuple(name for name in source_columns(spec) if name not in said.kept_back)
        named = spec.publish == (meant if said.publishes_all else said.publish)
        of_spec = spec.groups.of if isinstance(spec.groups.of, tuple) else None
        return [
            claim("digest", self.snapshot.source_sha256 == found.sha256, "of the snapshot is not that of the source"),
            same("records", self.snapshot.rows, found.rows),
            same("records left out", self.snapshot.dropped, found.dropped),
            same("secret", spec.secret, said.secret),
            claim("published", named, "columns are not those that the spec asks for"),
            same("groups", (of_spec, spec.groups.people), (said.groups, said.expected_people)),
            claim("bound", said.guarantee == self.handed_on, "that the run was for is not the one of the spec"),
            same("csv", spec.output.csv, said.csv),
            same("order of rows", spec.output.shuffle, said.shuffled),
            same("record key", spec.record_key is not None, said.keyed),
        ]

    def _keys(self) -> list[Claim]:
        if self.key is None:
            return [Claim(name, "cannot be derived: the run hands on no release secret") for name in KEY_CLAIMS]
        known = self.derivation == DERIVATION
        return grouped_answers(
            self.spec, self.snapshot, self.key, self.text, self.released, self.source, self.draws[0] if known else None
        )

    def _recount(self) -> list[Claim]:
        columns = [*self.said.secret, *self.text.columns]
        stored: dict[tuple[str | None, ...], int] = {}
        with tempfile.TemporaryDirectory(prefix="funnel-recount-") as folder, connect(Path(folder)) as database:
            for cells, number in parquet_cells(database, self.folder.counted, "records.parquet", [*columns, _COUNT]):
                stored[cells[:-1]] = stored.get(cells[:-1], 0) + int(cells[-1] or 0) * number
        order = [self.recount.published_columns.index(column) for column in self.text.columns]
        counted: dict[tuple[str | None, ...], int] = {
            (*s, *(x[j] for j in order)): count for (s, x), count in self.recount.counts.items()
        }
        wrong = sum(stored.get(cell, 0) != counted.get(cell, 0) for cell in {*stored, *counted})
        return [claim("counts", not wrong, f"differ from those of the source in {wrong:,} cells")]

    def _disclosure(self) -> list[Claim]:
        """The rules, for the secret and each group by itself, and for what channels are made from."""
        found = recounted_groups(self.recount, self.text)
        of_groups = [disclosure_claims(counts, self.said) for counts in found]
        by_itself = [claims.all_of(name, (one[place] for one in of_groups)) for place, name in enumerate(DISCLOSURE)]
        return [*by_itself, given_prefixes_claim(self.law.followed, self.said)]

    def _file(self) -> list[Claim]:
        from funnel.alphabet import Alphabet
        from funnel.pipeline.expectations.rereading import reread

        texts = self.text.texts
        found = reread(self.folder.data, Alphabet(self.text.columns, (tuple(some[0] for some in texts.values()),)))
        names = tuple(column.name for column in found.columns)
        kinds = all(column.is_category for column in found.columns)
        other = [column for column, some in texts.items() if list(found.categories.get(column, ())) != list(some)]
        nulls = sum(column.nulls for column in found.columns)
        rows = found.rows == found.footer_rows == self.recount.rows
        return [
            claim(
                "columns", names == self.columns and not {*names} & {*self.said.secret}, "are not the published ones"
            ),
            claim(
                "categories", kinds and not other, f"are not those of the protocol, in {', '.join(other) or 'types'}"
            ),
            claim("metadata", not found.metadata, "came along from the source"),
            claim("values", not nulls, f"are missing in {nulls:,} cells"),
            claim("rows", rows, f"are {found.rows:,}, and the source has {self.recount.rows:,}"),
        ]

    def _form(self) -> list[Claim]:
        return grouped_claims.form_claims(self.law, self.columns, self.said, self.choice)

    def _draws(self) -> list[Claim]:
        cells, probe = self.draws
        order = [self.recount.published_columns.index(column) for column in self.text.columns]
        counts = {(s, tuple(x[j] for j in order)): count for (s, x), count in self.recount.counts.items()}
        return grouped_claims.draw_claims(self.law, cells, probe, counts, self.released.counted)

    def _order(self) -> list[Claim]:
        return grouped_claims.order_claims(self.law, self.released, self.source, self.said, self.draws[0])

    def _words(self) -> list[Claim]:
        words = WordsDocument.read(self.folder.words).statistics
        # Rows that are taken over have the words of the version that they are of.
        others = [] if self.taken_over else [one for one in self.earlier if one.words.exists()]
        earlier = [WordsDocument.read(one.words).statistics for one in others]
        expected = {"draw": self.recount.rows * len(self.text.stages)}
        if self.said.shuffled:
            expected["order"] = self.recount.rows
        return grouped_claims.word_claims(words, earlier, expected)

    @cached_property
    def released_level(self) -> RecordLevel:
        """Of all records that are published, each judged once."""
        return self.law.followed.level_of(self.released.counted)

    def _level(self) -> list[Claim]:
        found = json_in(self.folder.findings)
        wrong = finding_complaints(
            found,
            self.law,
            str(self.said.guarantee),
            self.recount.rows,
            self.recount.dropped,
            len(self.released.counted),
            self.said.expected_people,
        )
        return grouped_claims.level_claims(self.law, self.released_level, [*wrong, *self._purpose(found)], self.said)

    def _purpose(self, found: dict[str, Any]) -> Iterator[str]:
        """What the findings say of what the release was made for."""
        yield from purpose_complaints(found, self.said.utility)
        yield from explained_complaints(found["explained"], self.law, self._meant, rounded=False)
        if found["worth"] is not None:
            yield from worth_complaints(found["worth"], worth_limits(self._estimates))
        yield from tried_complaints(found, self.said.promise.laws is not None)

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(read_channels(self.folder.channels), self.text, self.recount.rows)

    @cached_property
    def _meant(self) -> dict[str, dict[str, Fraction | None]]:
        """What values of columns of numbers stand for, where the text of the spec asks for variance."""
        if self.said.utility != "variance":
            return {}
        apart = {*self.said.secret, self.said.settings.get("weight")}
        numbers = self.said.section("numbers")
        values = {column: stage.values[j] for stage in self.text.stages for j, column in enumerate(stage.columns)}
        return {
            column: dict(zip(values[column], plain_numbers(self.settled, column, values[column]), strict=True))
            for column in self.columns
            if column in numbers and column not in apart
        }

    def _figures(self) -> list[Claim]:
        text = self.folder.protocol.read_bytes()
        canonical = text == compact(self.text.content)
        return grouped_claims.figure_claims(self.text.content, canonical, self.law, self.said)

    def _channels(self) -> list[Claim]:
        wrong = channel_complaints(self.folder.channels, self.law, self.said.expected_people)
        return [grouped_claims.of("channels", wrong)]

    def _package(self) -> list[Claim]:
        from funnel.pipeline.expectations.grouped_package_claims import grouped_package_claims

        declared = self._declared_files - {public_files.PACKAGE}
        files = {name: digest_and_size(self.folder.root / name) for name in declared}
        text = self.folder.package.read_bytes()
        content = json_in(self.folder.package)
        intervals = {column: plain_intervals(self.settled, column) for column in self.said.section("numbers")}
        return grouped_package_claims(
            content, text == spread(content), self.version, files, self.law, self.said, intervals, self._told_numbers
        )

    def _handouts(self) -> list[Claim]:
        again = grouped_handouts_again(json_in(self.folder.package), read_channels(self.folder.channels), self.previous)
        return [
            claim(
                name,
                (self.folder.root / name).read_bytes() == content,
                "is not what follows from datapackage.json and channels.parquet",
            )
            for name, content in again.items()
        ]

    def _report(self) -> list[Claim]:
        from funnel.pipeline.expectations.grouped_report_claims import grouped_report_claims

        content = json_in(self.folder.numbers)
        checks = [(one.configuration.type, str(one.description)) for one in self.declared()]
        return grouped_report_claims(
            content,
            self.folder.numbers.read_bytes() == spread(content),
            self.folder.report.read_text(encoding="utf-8"),
            self.folder.numbers,
            self.version,
            json_in(self.folder.package)["created"],
            self.law,
            self.said,
            checks,
            self._estimates,
            class_weights(self.settled, self.said),
            self._meant,
        )


def judge_groups(finished: FinishedGroups) -> Verdict:
    """Judge a finished folder of groups; see `funnel.pipeline.expectations.judge`."""
    return judge(finished)


def recounted_groups(
    found: Recount, text: GroupedText
) -> Iterator[Mapping[tuple[tuple[str, ...], tuple[str, ...]], int]]:
    """Counts of the secret and the combinations of each group."""
    for stage in text.stages:
        places = [found.published_columns.index(column) for column in stage.columns]
        counts: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        for (s, x), count in found.counts.items():
            cell = s, tuple(x[j] for j in places)
            counts[cell] = counts.get(cell, 0) + count
        yield counts
