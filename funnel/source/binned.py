"""Binned: the bins of columns whose cut points are found in the source, before anything else is learned of it."""

from __future__ import annotations

from funnel.errors import DataError
from funnel.guarantees import parse_guarantee
from funnel.joint import Joint
from funnel.progress import Progress
from funnel.readers.cells import number_in
from funnel.readers.formats import Source
from funnel.settings.protection_settings import FrequencySettings
from funnel.settings.recode import Recode
from funnel.settings.work import LimitSettings
from funnel.source.coding import coded_batches
from funnel.source.learning import COUNTED, learn_codings
from funnel.spec import ReleaseSpec


def automatic_bins(spec: ReleaseSpec, source: Source, progress: Progress) -> dict[str, Recode]:
    """The recoding of every column whose bins are to be found, with the edges that were found.

    For each of these columns the source is read twice, with the secret; other published columns have no part in it.

    Raises
    ------
    DataError
        If the source cannot be read, a value is no number, or all are one.
    """
    found = {}
    for column in spec.automatic:
        # Imported here: choosing takes the optimiser, which few specs need to be read.
        from funnel.binning import Cells, chosen_edges

        joint = _counted(spec, source, column, progress)
        numbers = [number_in(symbol[0], spec.source.decimal) for symbol in joint.inputs.symbols]
        known = sorted((number, x) for x, number in enumerate(numbers) if number is not None)
        missing = {spec.source.missing_label} if spec.source.on_missing == "category" else set()
        if any(numbers[x] is None and symbol[0] not in missing for x, symbol in enumerate(joint.inputs.symbols)):
            raise DataError(
                f"column {column!r} has values that are not numbers, so no bins can be found for it; if they mean "
                "missing, list them in missing of [source]"
            )
        plain = tuple(int(number) if number == int(number) else number for number, _ in known)
        if len(set(plain)) < 2:
            raise DataError(f"column {column!r} has fewer than two numbers, so no bins can be found for it")
        counts = joint.counts[:, [x for _, x in known]]
        guarantee = parse_guarantee(spec.guarantee.canonical)
        edges = chosen_edges(Cells.of(plain, counts), guarantee, spec.utility == "variance", progress)
        if not edges:
            raise DataError(f"nearly all records have one number in {column!r}, so no bins can be found for it")
        found[column] = spec.recode[column].with_edges(edges)
    return found


def _counted(spec: ReleaseSpec, source: Source, column: str, progress: Progress) -> Joint:
    """Counts of the secret and of the numbers as they are."""
    alone = spec.model_copy(
        update={
            "publish": (column,),
            "recode": {name: recode for name, recode in spec.recode.items() if name in spec.secret},
            "categories": {name: values for name, values in spec.categories.items() if name in spec.secret},
            "limits": LimitSettings(max_symbols=COUNTED, max_inputs=COUNTED),
            "frequencies": FrequencySettings(protection="none"),
        }
    )
    codings = learn_codings(alone, source, progress)
    batches = coded_batches(alone, source, codings)
    return Joint.from_batches(batches, alone.secret, alone.inputs, codings.labels)
