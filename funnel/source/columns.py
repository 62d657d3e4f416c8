"""Columns: which ones ``publish = "auto"`` means, as the source has them."""

from __future__ import annotations

from funnel.errors import SpecError
from funnel.readers.formats import open_source
from funnel.spec import ReleaseSpec
from funnel.wording import did_you_mean


def resolved_columns(spec: ReleaseSpec) -> ReleaseSpec:
    """A spec that names its published columns, where it says "auto": all of the source that are not kept back.

    These are the columns, in the order of the source, that are not secret, record key or unit, nor in ``[groups]
    exclude``. Any other spec is returned as it is.

    Raises
    ------
    SpecError
        If there are none, one cannot be published, or a column to leave out is not in the source.
    DataError
        As `funnel.readers.formats.open_source`.
    """
    if not spec.groups.auto or spec.publish:
        return spec
    names = open_source(spec.reading).names
    for column in spec.groups.exclude:
        if column not in names:
            raise SpecError(
                f"[groups] exclude names {column!r}, which the source does not have" + did_you_mean(column, names)
            )
    kept_back = {*spec.secret, *(spec.record_key or ()), *(spec.unit or ()), *spec.groups.exclude}
    columns = tuple(name for name in names if name not in kept_back)
    for number, name in enumerate(names, 1):
        if name in columns and not (name.strip() and name.isprintable()):
            raise SpecError(
                f'publish = "auto" would publish column {number} of the source, whose name '
                f"{'is empty' if not name.strip() else 'is not one line of text'}, as that of an index of rows is; "
                "rename it or take it out of the source, or list the columns in publish"
            )
    if not columns:
        raise SpecError('publish = "auto" leaves no column: all of the source are secret, keys, or left out')
    return spec.publishing(columns)
