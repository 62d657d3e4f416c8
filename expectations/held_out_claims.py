"""What is stated of records that are held out, and whether the others alone chose the classes of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from funnel.alphabet import Alphabet
from funnel.disclosure.threshold import class_rules
from funnel.donors.growing import grown
from funnel.joint import Joint
from funnel.pipeline.expectations.claims import Claim, claim
from funnel.pipeline.expectations.finished_folder import FinishedFolder
from funnel.recount.classes import PlainClasses
from funnel.recount.part_beliefs import class_of
from funnel.release.classes_document import classes_document
from funnel.release.documents import JointDocument, PartsDocument

Record = tuple[str, ...]
Counts = Mapping[tuple[Record, Record], int]


def held_out_claims(finished: FinishedFolder, classes: PlainClasses) -> list[Claim]:
    """The stored counts of held-out records are those of the source, and classes are those that the others choose."""
    path, held_out = finished.folder.parts, finished.held_out
    stored = PartsDocument.read(path) if path.is_file() else None
    if held_out is None or stored is None or stored.held_out is None:
        no_counts = stored is None or stored.held_out is None
        return [claim("held out", held_out is None and no_counts, "is not what the spec says of records")]
    names = [symbol[-1] for symbol in stored.classes.symbols]
    secrets = JointDocument.read(finished.folder.joint).secret.symbols
    rows = [dict(zip(names, row, strict=True)) for row in stored.held_out]
    alike = dict(zip(map(tuple, secrets), rows, strict=True)) == finished.recount.held_out
    return [
        claim("held out", alike, "are other records than those whose numbers say so"),
        claim("chosen", _is_chosen_by_others(finished, classes, held_out), "by other records than those not held out"),
    ]


def _is_chosen_by_others(finished: FinishedFolder, classes: PlainClasses, held_out: Counts) -> bool:
    """Whether the classes put together the same records as those that the records that are not held out choose.

    Which records chose is what is judged: so the classes are grown from their counts by the very code that grows them
    for a release. That a class is what its questions say, and the bound that it is within, are judged without it.
    """
    # Bins that are found in the source are found from all records, with their secrets.
    if finished.spec_text.finds_bins:
        return False
    spec = finished.settled.whole
    others = Counter(finished.whole_counts.counts)
    others.subtract(held_out)
    order = {name: coding.labels for name, coding in finished.snapshot.read_codings().items()}
    joint = _joint(+others, spec.secret, spec.inputs, order)
    found = PlainClasses.parse(classes_document(grown(joint, spec.groups.min_records, class_rules(spec))).to_bytes())
    pairs = {(class_of((classes.of(record),)), found.of(record)) for record in finished.whole_counts.inputs}
    return len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})


def _joint(counts: Counts, secret: Record, inputs: Record, order: Mapping[str, tuple[str, ...]]) -> Joint:
    """Counts over what occurs, in the order of the values of columns, so that sums are rounded as they were."""
    rank = {column: {value: place for place, value in enumerate(order[column])} for column in (*secret, *inputs)}

    def ordered(symbols: set[Record], columns: Record) -> tuple[Record, ...]:
        return tuple(
            sorted(symbols, key=lambda one: [rank[name][text] for name, text in zip(columns, one, strict=True)])
        )

    secrets, records = ordered({s for s, _ in counts}, secret), ordered({x for _, x in counts}, inputs)
    table = [[counts.get((s, x), 0) for x in records] for s in secrets]
    return Joint.from_counts(table, Alphabet(secret, secrets), Alphabet(inputs, records))
