"""Finished: the folder of a coming version with its spec, which is all that a release is judged by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from funnel.audit.check import Result
from funnel.audit.context import AuditContext
from funnel.audit.handouts import previous_told
from funnel.audit.recheck import OF_WRITERS
from funnel.audit.told import Coming, Told
from funnel.pipeline.expectations import public_files
from funnel.pipeline.expectations.checks import made_checks, traits
from funnel.pipeline.expectations.claims import Claim, all_of, claim, same
from funnel.pipeline.expectations.class_claims import class_claims
from funnel.pipeline.expectations.disclosure_claims import disclosure_claims
from funnel.pipeline.expectations.finished_folder import FinishedFolder, stored_counts
from funnel.pipeline.expectations.finished_version import json_in
from funnel.pipeline.expectations.frequency_claims import Before, frequency_claims
from funnel.pipeline.expectations.keyed_answers import digests_claim, keyed_claims
from funnel.pipeline.expectations.package_claims import package_claims
from funnel.pipeline.expectations.protocol_claims import protocol_claims
from funnel.pipeline.expectations.report_claims import OverVersions, report_claims
from funnel.pipeline.expectations.weighted_claims import class_weights
from funnel.recount import ReleasedProtocol
from funnel.recount.balance import is_invariant
from funnel.recount.bins import counted_numbers, declared_cuts, is_found
from funnel.recount.frequencies import PublicFrequencies
from funnel.recount.hierarchies import hierarchy_complaints
from funnel.release.documents import JointDocument
from funnel.release.layout import ReleaseFolder
from funnel.rendering import page_renderer

if TYPE_CHECKING:
    from funnel.pipeline.expectations.custom import ReleaseExpectation


@dataclass(frozen=True, eq=False)
class Finished(FinishedFolder):
    """A finished folder, table by table: what is claimed of it and whether that holds."""

    def declared(self) -> list[ReleaseExpectation]:
        """What is expected of it."""
        from funnel.pipeline.expectations.suite import declare

        return declare(self.evidence, self._traits)

    @property
    def _traits(self) -> frozenset[str]:
        said = self.said
        asked = {
            "csv": said.csv,
            "keyed": said.keyed,
            "followed": self.is_followed,
            "noise": said.has_noise,
            "numbers": bool(said.drawn),
            "classes": self.classes is not None,
            "shuffled": said.shuffled,
        }
        return traits(self.document.protocol, {word for word, holds in asked.items() if holds})

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """What all checks of it find."""
        return tuple(made_checks(self, self._traits, self.context))

    @cached_property
    def context(self) -> AuditContext:
        """What an audit knows of it: it has no record and no signature yet."""
        entry = None if self.prepared is None else self.prepared.coming
        coming = Coming(self.folder.root, self.spec.workspace_folder, None, entry, self.taken_over)
        return AuditContext(self.folder, Told(render=page_renderer(), coming=coming))

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables to judge: the results of checks, or one of the evidence."""
        if name != "checks":
            return self.evidence.table(name)
        excused = OF_WRITERS if self.taken_over else ()
        rows = [
            (one.name, str(one.state), None if one.passed or (not one.failed and one.name in excused) else one.detail)
            for one in self.results
        ]
        return self.evidence.counted(pd.DataFrame(rows, columns=["check", "state", "failure"]))

    def claims(self, name: str) -> list[Claim]:
        """What the files state that a check of the source is about, each with whether it holds."""
        makers = {
            "declared files": self._files,
            "drawn by input": lambda: self.drawing.independence(),
            "random order": lambda: self.drawing.random_order(),
            "order of the source": lambda: self.drawing.source_order(),
            "random words": lambda: self.drawing.random_words(),
            "sampler": lambda: self.drawing.sampler(),
            "record classes": self._classes,
            "source": self._source,
            "answers by key": self._keys,
            "register": self._histories,
            "noisy counts": self._frequencies,
            "counted again": self._recount,
            "disclosure rules": self._disclosure,
            "protocol and spec": self._protocol,
            "package and spec": self._package,
            "report and counts": self._report,
        }
        return makers[name]()

    def _files(self) -> list[Claim]:
        return public_files.files_claims(self.folder.root, self._declared_files)

    @property
    def _declared_files(self) -> frozenset[str]:
        said = self.said
        return public_files.declared_files(
            said.csv, said.has_noise, bool(said.drawn), is_invariant(self.protocol), self.classes is not None
        )

    def _classes(self) -> list[Claim]:
        if self.classes is None:
            return [Claim("classes", "cannot be judged: there is no classes.json")]
        stated = json_in(self.folder.numbers).get("unchanged") or {}
        return class_claims(
            self.classes,
            self.said,
            self.whole_recount,
            self.laws.released,
            self.folder.data,
            stated,
            self.stated_categories,
            self.draws.donors,
            self.given_classes,
        )

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
            claim("text", self.folder.spec.read_bytes() == spec.text.encode(), "in audit/ is not that of the spec"),
            claim("bound", bound, "that the run was for is not the one in the text of the spec"),
            same("csv", spec.output.csv, said.csv),
            same("order of rows", spec.output.shuffle, said.shuffled),
            same("record key", spec.record_key is not None, said.keyed),
            self._bins(),
        ]

    def _keys(self) -> list[Claim]:
        if self.key is None:
            return [Claim("answers", "cannot be derived: the run hands on no release secret")]
        given = self.drawing_document is not None
        if self.followed is not None or not given:
            protocol = ReleasedProtocol.parse(self.folder.drawing.read_bytes()) if given else self.laws.released
            return keyed_claims(self.spec, self.snapshot, self.key, protocol, self.pairs, self.followed)
        # What was decided about everybody when rows that are taken over were drawn is not derived again: it was judged
        # then.
        return [digests_claim(self.spec, self.snapshot, self.key), Claim("answers")]

    def _histories(self) -> list[Claim]:
        evidence = self._history_evidence
        if evidence is None:
            return [Claim("register", "cannot be judged: no register is handed on")]
        return evidence.claims()

    def _frequencies(self) -> list[Claim]:
        public = self.frequencies
        if public is None:
            return [Claim("frequencies", "cannot be judged: no noise is declared")]
        known = [_told_before(one) for one in self.before if one.frequencies.is_file() and one.joint.is_file()]
        counted = self.recount
        if public.rows is not None:
            counted = replace(counted, counts=self._first_rows)
        return frequency_claims(
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

    def _protocol(self) -> list[Claim]:
        followed = self.drawing_document is not None
        return protocol_claims(self.protocol, self.laws, self.said, followed, self.frequencies)

    def _package(self) -> list[Claim]:
        content = json_in(self.folder.package)
        previous = previous_told(self.folder, content, [self.folder.catalogue.name])
        return [
            *package_claims(
                content,
                self.version,
                self.laws,
                self.said,
                self.versions,
                self._intervals,
                self._told_numbers,
                self.values,
            ),
            same("previous version", previous, self.previous),
        ]

    def _report(self) -> list[Claim]:
        checks = [(one.judged_name, str(one.description)) for one in self.declared()]
        numbers = json_in(self.folder.numbers)
        before = (
            [] if self.draws_before is None else [same("earlier draws", numbers["earlier_releases"], self.draws_before)]
        )
        return before + report_claims(
            numbers,
            self.protocol,
            self.laws,
            self.said,
            checks,
            OverVersions(
                self.versions,
                self._alone,
                None if self.taken_over else [json_in(one) for one in self._reports_before],
                self._outside,
            ),
            self.frequencies,
            class_weights(self.settled, self.said),
        )


def _told_before(folder: ReleaseFolder) -> Before:
    """The public frequencies of an earlier version, and what it counted."""
    public = PublicFrequencies.parse(folder.frequencies.read_bytes())
    counts = stored_counts(folder.joint if public.rows is None else folder.first_rows)
    record = json_in(folder.record) if folder.record.is_file() else {}
    return Before(public, counts, str(record.get("origin", {}).get("source", "")))
