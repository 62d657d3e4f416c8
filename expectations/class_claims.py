"""What classes.json and the published records state of classes, held against the records counted again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from funnel.pipeline.expectations.claims import Claim, claim, same
from funnel.pipeline.expectations.said import Said
from funnel.recount import Recount, ReleasedProtocol, recount_published
from funnel.recount.classes import PlainClasses, PublishedByClass, moves_of, published_by_class

CLAIMS = ("columns", "alphabet", "size", "classes", "records", "composition")


def class_claims(
    classes: PlainClasses, said: Said, whole: Recount, released: ReleasedProtocol, data: Path
) -> list[Claim]:
    """What holds of classes and published records.

    Parameters
    ----------
    classes : PlainClasses
    said : Said
        By class.
    whole : Recount
        Counts of the secret and of whole records, from the source itself.
    released : ReleasedProtocol
    data : Path
        The released parquet file.
    """
    true: Counter[tuple[str, ...]] = Counter()
    sizes: Counter[str] = Counter()
    for (_, record), count in whole.counts.items():
        true[record] += count
        sizes[classes.of(record)] += count
    width = len(said.released) - 1 - len(classes.columns)
    rows = published_by_class(recount_published(data, said.released), width)
    found = PublishedByClass(classes, true, rows, moves_of(released))
    misplaced, unknown = found.misplaced, found.unknown
    unlikely = list(found.unlikely()) if not width else []
    least = min(sizes[name] for name in classes.names)
    named = tuple(dict.fromkeys(x[-1] for x in released.inputs))
    return [
        same("columns", classes.columns, said.whole),
        same("alphabet", named, classes.names),
        claim("size", least >= said.min_records, f"of a class is {least:,}, below min_records in [groups]"),
        claim("classes", not misplaced, f"of {misplaced:,} records are not what their columns say"),
        claim("records", not unknown, f"{unknown:,} are nobody's"),
        claim(
            "composition",
            not unlikely,
            f"of the classes is not that of the source, for {len(unlikely):,} values, the first of {unlikely[:1]!r}",
        ),
    ]
