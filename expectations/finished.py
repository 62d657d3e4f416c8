"""Finished: the folder of a coming version with its spec, which is all that a release is judged by."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from funnel.audit.check import Check
from funnel.audit.drawn_numbers import behind_texts, check_drawn_numbers
from funnel.audit.encoding import check_csv
from funnel.audit.package import check_package
from funnel.audit.page import check_numbers
from funnel.audit.released_columns import ReleasedColumns
from funnel.audit.unchanged import check_counted_unchanged
from funnel.pipeline.expectations import claims, public_files
from funnel.pipeline.expectations.claims import Claim, all_of, checked, claim, same
from funnel.pipeline.expectations.class_claims import CLAIMS as CLASS_CLAIMS
from funnel.pipeline.expectations.class_claims import class_claims
from funnel.pipeline.expectations.disclosure_claims import disclosure_claims
from funnel.pipeline.expectations.finished_folder import FinishedFolder, stored_counts
from funnel.pipeline.expectations.finished_version import digest_and_size, json_in, json_of, spread
from funnel.pipeline.expectations.frequency_claims import CLAIMS as FREQUENCY_CLAIMS
from funnel.pipeline.expectations.frequency_claims import Before, frequency_claims
from funnel.pipeline.expectations.history_claims import CLAIMS as HISTORY_CLAIMS
from funnel.pipeline.expectations.keyed_answers import CLAIMS as KEY_CLAIMS
from funnel.pipeline.expectations.keyed_answers import digests_claim, keyed_claims
from funnel.pipeline.expectations.package_claims import package_claims
from funnel.pipeline.expectations.protocol_claims import protocol_claims
from funnel.pipeline.expectations.report_claims import report_claims
from funnel.pipeline.expectations.weighted_claims import class_weights
from funnel.recount import ReleasedProtocol, recount_published
from funnel.recount.balance import is_invariant
from funnel.recount.bins import counted_numbers, declared_cuts, is_found
from funnel.recount.estimator import estimator_complaints
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.handouts import handouts_again
from funnel.recount.hierarchies import hierarchy_complaints
from funnel.recount.laws import share_step
from funnel.release.documents import JointDocument
from funnel.release.layout import ReleaseFolder

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom.base import ReleaseExpectation

# Of levels that are found twice by searches: that of rldp is known to about this.
_LEVEL = 1e-7
# Where a release is made, levels over all tables that noise leaves possible are bounded from above, block by block.
_ABOVE = 0.01


@dataclass(frozen=True, eq=False)
class Finished(FinishedFolder):
    """A finished folder, table by table: what is claimed of it and whether that holds."""

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.finished_suite import declare_finished
        from funnel.pipeline.expectations.suite import declare

        said = self.said
        finished = declare_finished(
            said.csv,
            said.keyed,
            said.guarantee,
            self.is_followed,
            said.has_noise,
            bool(said.drawn),
            self.classes is not None,
        )
        return [*declare(self.evidence), *finished]

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables to judge."""
        makers = {
            "public_files": self._files,
            "csv": self._csv,
            "second_reader": self._second_reader,
            "classes": self._classes,
            "drawn_numbers": self._drawn_numbers,
            "source": self._source,
            "keys": self._keys,
            "histories": self._histories,
            "frequencies": self._frequencies,
            "recount": self._recount,
            "disclosure": self._disclosure,
            "plain_level": self._level,
            "protocol_figures": self._protocol,
            "package": self._package,
            "handouts": self._handouts,
            "report": self._report,
        }
        if name not in makers:
            return self.evidence.table(name)
        return self.evidence.counted(claims.table(makers[name]()))

    def _files(self) -> list[Claim]:
        return public_files.files_claims(self.folder.root, self._declared_files)

    @property
    def _declared_files(self) -> frozenset[str]:
        said = self.said
        return public_files.declared_files(
            said.csv, said.has_noise, bool(said.drawn), is_invariant(self.protocol), self.classes is not None
        )

    def _csv(self) -> list[Claim]:
        return [checked("rows", check_csv(self.folder.data, self.folder.csv))]

    def _classes(self) -> list[Claim]:
        if self.classes is None:
            return [Claim(name, "cannot be judged: there is no classes.json") for name in CLASS_CLAIMS]
        stated = json_in(self.folder.numbers).get("unchanged") or {}
        return class_claims(
            self.classes,
            self.said,
            self.whole_recount,
            self.laws.released,
            self.folder.data,
            stated,
            self.stated_categories,
            share_step(self.laws.recount.rows),
            self.given_classes,
        )

    def _drawn_numbers(self) -> list[Claim]:
        # The intervals that the package tells are held to the spec where the package is.
        package = json_in(self.folder.package)
        return [checked("numbers", *check_drawn_numbers(self.folder, behind_texts(self.document), package))]

    def _second_reader(self) -> list[Claim]:
        counts = recount_published(self.folder.data, self.said.publish)
        outputs = self.document.protocol.outputs.symbols
        drawn = self.evidence.pair_counts.by_output.tolist()
        other = {y: count for y, count in zip(outputs, drawn, strict=True) if count} != counts
        return [claim("records", not other, "of an output are not as many as were drawn")]

    def _bins(self) -> Claim:
        """That bins which the text leaves to be found are those of its range, or of the numbers counted again."""
        asked = {column: one for column, one in self.said.section("recode").items() if one.get("bins") == "auto"}
        wrong = []
        for column in asked:
            made = self.settled.recode[column].edges
            if self.said.has_noise:
                numbers = self.said.section("numbers")[column]
                low, high = numbers["range"]
                right = list(map(Fraction, made)) == declared_cuts(low, high, numbers.get("whole", False))
                wrong += [] if right else [f"of {column!r} has edges that do not follow from its range"]
            else:
                counted = counted_numbers(self.spec, column)
                by_variance = self.said.settings.get("utility") == "variance"
                why = is_found(counted, made, by_variance, merged=self.said.threshold is not None)
                wrong += [] if why is None else [f"of {column!r} {why}"]
        return claim("bins", not wrong, "; ".join(wrong))

    def _source(self) -> list[Claim]:
        said, spec, found = self.said, self.spec, self.recount
        bound = said.guarantee == self.handed_on
        return [
            claim(
                "digest",
                self.snapshot.source_sha256 == found.sha256,
                "of the snapshot is not that of the source",
            ),
            same("records", self.snapshot.rows, found.rows),
            same("records left out", self.snapshot.dropped, found.dropped),
            same("secret", spec.secret, said.secret),
            same("published", spec.publish, said.publish),
            claim("bound", bound, "that the run was for is not the one in the text of the spec"),
            same("csv", spec.output.csv, said.csv),
            same("order of rows", spec.output.shuffle, said.shuffled),
            same("record key", spec.record_key is not None, said.keyed),
            self._bins(),
        ]

    def _keys(self) -> list[Claim]:
        if self.key is None:
            return [Claim(name, "cannot be derived: the run hands on no release secret") for name in KEY_CLAIMS]
        given = self.drawing_document is not None
        if self.followed is not None or not given:
            protocol = ReleasedProtocol.parse(self.folder.drawing.read_bytes()) if given else self.laws.released
            return keyed_claims(self.spec, self.snapshot, self.key, protocol, self.evidence.pair_counts, self.followed)
        # What was decided about everybody when rows that are taken over were drawn is not derived again: it was judged
        # then.
        return [digests_claim(self.spec, self.snapshot, self.key), Claim("answers")]

    def _histories(self) -> list[Claim]:
        evidence = self._history_evidence
        if evidence is None:
            return [Claim(name, "cannot be judged: no register is handed on") for name in HISTORY_CLAIMS]
        return evidence.claims()

    def _frequencies(self) -> list[Claim]:
        public = self.frequencies
        if public is None:
            return [Claim(name, "cannot be judged: no noise is declared") for name in FREQUENCY_CLAIMS]
        text = self.folder.frequencies.read_bytes()
        content = json_of(text, self.folder.frequencies)
        known = [_told_before(one) for one in self.before if one.frequencies.is_file() and one.joint.is_file()]
        counted = self.recount
        if public.rows is not None:
            counted = replace(counted, counts=self._first_rows)
        return frequency_claims(
            content,
            text == spread(content),
            public,
            counted,
            self.spec.whole,
            self.said,
            known,
            self.public_values,
            first=self.version == "1.0.0",
            material=self.noise_material,
        )

    def _recount(self) -> list[Claim]:
        stored = JointDocument.read(self.folder.joint).joint
        found = self.recount
        counts = {
            (s, x): count
            for s, row in zip(stored.secret.symbols, stored.counts.tolist(), strict=True)
            for x, count in zip(stored.inputs.symbols, row, strict=True)
            if count
        }
        wrong = sum(counts.get(cell, 0) != found.counts.get(cell, 0) for cell in {*counts, *found.counts})
        if self.frequencies is None:
            same_values = [
                set(stored.secret.symbols) == set(found.secret),
                set(stored.inputs.symbols) == set(found.inputs),
            ]
        else:
            # Exact counts may be of public values that nobody has.
            same_values = [
                set(stored.secret.symbols) <= set(found.secret),
                set(stored.inputs.symbols) <= set(found.inputs),
            ]
        return [
            claim("secret", same_values[0], "has other values than the source"),
            claim("inputs", same_values[1], "have other values than the source"),
            claim("counts", not wrong, f"differ from those of the source in {wrong:,} cells"),
            all_of("hierarchies", (claim("they", False, said) for said in hierarchy_complaints(self.spec))),
            self._drawn(),
        ]

    def _drawn(self) -> Claim:
        """That as many records drew with every (secret, input) as the source has."""
        draws, laws = self.draws, self.laws
        c, a, b = len(draws.secret.symbols), len(laws.weights), len(laws.outputs)
        secrets = {tuple(symbol): s for s, symbol in enumerate(draws.secret.symbols)}
        inputs = {symbol: x for x, symbol in enumerate(laws.weights)}
        expected: Counter[tuple[int, int]] = Counter()
        for (s, x), count in self.over_published(self.recount).counts.items():
            expected[secrets.get(s, c), inputs.get(laws.read(s, x), a)] += count
        # Given a history, what is drawn by is one of its channels and the input.
        given = self.drawing_document
        read = range(a) if given is None else [inputs.get(symbol[1:], a) for symbol in given.inputs.symbols]
        found: Counter[tuple[int, int]] = Counter()
        for cell, count in zip(draws.cells, draws.records, strict=True):
            place = cell // b % (len(read) + 1)
            found[cell // (b * (len(read) + 1)), read[place] if place < len(read) else a] += count
        if given is not None:
            for (s, symbol), count in self._forgotten.items():
                expected[secrets.get(s, c), inputs.get(symbol[1:], a)] -= count
                expected[secrets.get(s, c), a] += count
        wrong = sum(expected[cell] != found[cell] for cell in {*expected, *found})
        return claim("draws", not wrong, f"are not one for each record of the source in {wrong:,} cells")

    def _disclosure(self) -> list[Claim]:
        return disclosure_claims(self.public.counts, self.said)

    def _level(self) -> list[Claim]:
        level = self.level
        output = repr(", ".join(self.laws.outputs[level.output]))
        secret = repr(", ".join(self.public.secret[level.secret]))
        words = f"does not hold: the level is {level.nats!r} nats, at output {output} and secret {secret}"
        found = json_in(self.folder.findings)
        return [
            claim("bound", level.holds, words),
            all_of("findings", self._found(found)),
        ]

    def _found(self, found: Mapping[str, Any]) -> Iterator[Claim]:
        """That the findings state both levels: for whoever knows the exact counts, and over all that are possible."""
        yield _stated_level("level", found.get("level"), self.counted_level.nats)
        if self.frequencies is None:
            yield same("proven level", found.get("proven_level"), None)
        else:
            yield _stated_level("proven level", found.get("proven_level"), self.level.nats, _ABOVE)

    def _protocol(self) -> list[Claim]:
        canonical = self.folder.protocol.read_bytes() == self.document.to_bytes()
        return protocol_claims(
            self.protocol,
            canonical,
            self.laws,
            self.level,
            self.said,
            self.drawing_document is not None,
            self.frequencies,
        )

    def _package(self) -> list[Claim]:
        text = self.folder.package.read_bytes()
        content = json_of(text, self.folder.package)
        declared = self._declared_files - {public_files.PACKAGE}
        files = {name: digest_and_size(self.folder.root / name) for name in declared}
        columns = ReleasedColumns.of(self.folder, self.document, content)
        follows = check_package(content, self.document, columns, files, self.recount.rows, self.laws.recount.rows)
        return package_claims(
            content,
            text == spread(content),
            follows,
            self.version,
            self.laws,
            self.said,
            self.versions,
            self._intervals,
            self._told_numbers,
            self.values,
        )

    def _handouts(self) -> list[Claim]:
        package = json_in(self.folder.package)
        again = handouts_again(package, self.protocol, self.previous)
        return [
            claim(
                name,
                name not in again or (self.folder.root / name).read_bytes() == again[name],
                "is not what follows from datapackage.json and protocol.json",
            )
            for name in (*sorted(public_files.HANDOUTS), public_files.CHANNEL)
        ] + [
            all_of(
                public_files.ESTIMATOR,
                (
                    claim(public_files.ESTIMATOR, False, complaint)
                    for complaint in estimator_complaints(self.folder.estimator.read_bytes(), self.protocol)
                )
                if public_files.ESTIMATOR in self._declared_files
                else (),
            )
        ]

    def _report(self) -> list[Claim]:
        page = self.folder.report.read_text(encoding="utf-8")
        checks = [(one.configuration.type, str(one.description)) for one in self.declared()]
        path = self.folder.root / public_files.NUMBERS
        numbers = path.read_bytes()
        content, package = json_of(numbers, path), json_in(self.folder.package)
        follows = check_numbers(self.folder, self.document, self.said.released, package, self.recount.rows)
        return report_claims(
            content,
            numbers == spread(content),
            page,
            _rendered(path),
            follows,
            self.protocol,
            self.laws,
            self.said,
            checks,
            self.versions,
            self._alone,
            None if self.taken_over else [json.loads(one.read_bytes()) for one in self._reports_before],
            self._outside,
            self.frequencies,
            class_weights(self.settled, self.said),
            self._unchanged(),
        )

    def _unchanged(self) -> Check | None:
        """Whether what the report tells of unchanged records follows; None of a protocol that is not invariant."""
        if not is_invariant(self.protocol):
            return None
        published = recount_published(self.folder.data, self.said.publish)
        return check_counted_unchanged("unchanged", self.folder, self.document, self.public, published)


def _stated_level(name: str, stated: object, nats: float, above: float = _LEVEL) -> Claim:
    """That a level is the one that is found here, or above it by a relative bit."""
    if math.isinf(nats):
        # JSON has no infinity.
        return same(name, stated, None)
    close = isinstance(stated, float) and nats * (1 - _LEVEL) - _LEVEL <= stated <= nats * (1 + above) + _LEVEL
    return claim(name, close, f"is stated as {stated!r} nats, and it is {nats!r}")


def _told_before(folder: ReleaseFolder) -> Before:
    """The public frequencies of an earlier version, and what it counted."""
    public = PublicFrequencies.parse(folder.frequencies.read_bytes())
    counts = stored_counts(folder.joint if public.rows is None else folder.first_rows)
    record = json_of(folder.record.read_bytes(), folder.record) if folder.record.is_file() else {}
    return Before(public, counts, str(record.get("origin", {}).get("source", "")))


def _rendered(numbers: Path) -> str:
    """The page that is made of the figures in a file."""
    from funnel.release.public_report import PublicReport
    from funnel.report import render_public

    return str(render_public(PublicReport.read(numbers)))
