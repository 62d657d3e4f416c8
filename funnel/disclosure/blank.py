"""Blank columns: those that a release would tell nothing of, which it is made for only where the spec says so."""

from __future__ import annotations

from collections.abc import Sequence

from funnel.disclosure.suggest import Suggestion
from funnel.estimation.expected_errors import expected_errors
from funnel.joint import Joint
from funnel.protocol import INVARIANT, Protocol
from funnel.spec import ReleaseSpec
from funnel.wording import listed, toml_text


def blank_columns(spec: ReleaseSpec, found: Suggestion | None) -> tuple[str, ...]:
    """Published columns of which a grouping leaves one value, and the spec does not accept that."""
    if found is None:
        return ()
    grouping = found.grouping
    blank = [axis.column for axis, of in zip(grouping.table.axes, grouping.of, strict=True) if not of.any()]
    return tuple(column for column in blank if column in spec.inputs and column not in spec.disclosure.blank)


def untold_columns(spec: ReleaseSpec, joint: Joint, protocol: Protocol) -> tuple[str, ...]:
    """Published columns of which a protocol tells no share, and the spec does not accept that.

    All records have one value there, or the share of no true value can be estimated, nor that of several together.

    Parameters
    ----------
    spec : ReleaseSpec
    joint : Joint
        Counts (c, a) that the protocol was made for.
    protocol : Protocol
    """
    if protocol.is_invariant:
        # Each value is counted as it stands.
        return ()
    several = {column for column, texts in zip(joint.inputs.columns, joint.inputs.texts, strict=True) if len(texts) > 1}
    published = zip(protocol.outputs.columns, protocol.outputs.texts, strict=True)
    blank = {column for column, texts in published if len(texts) == 1}
    errors = expected_errors(joint, protocol)
    tables = () if errors is None else errors.tables
    blank |= {table.columns[0] for table in tables if len(table.columns) == 1 and table.is_untold}
    return tuple(column for column in spec.publish if column in several & blank - {*spec.disclosure.blank})


def why_blank(spec: ReleaseSpec, columns: Sequence[str]) -> str:
    """What is wrong with columns that grouping would leave one value of, and what to write instead."""
    several = "each of the columns" if len(columns) > 1 else "the column"
    why_not = spec.not_by_class
    whole = (
        f'write mechanism = "{INVARIANT}", which publishes whole records with all columns, or '
        if why_not is None
        else "write "
    )
    return (
        f"so that no combination has fewer than {spec.frequencies.threshold:,} records, all values of {several} "
        f'{listed(columns)} would be one, "any value" in every record; {whole}protection = "noise" in [frequencies], '
        f"or publish fewer columns; to publish it so, {_accepted(spec, columns)}"
    )


def why_untold(spec: ReleaseSpec, columns: Sequence[str]) -> str:
    """What is wrong with columns that a protocol tells no share of, and what to write instead."""
    instead = "" if spec.mechanism.name == INVARIANT else f', or write mechanism = "{INVARIANT}", which keeps values'
    noise = " with the noise that was drawn" if spec.frequencies.kind.is_noisy else ""
    return (
        f"under {spec.guarantee.canonical} no share of any value of {listed(columns)} could be estimated from the "
        f"records; publish fewer columns or fewer categories{instead}; to publish it so{noise}, "
        f"{_accepted(spec, columns)}"
    )


def _accepted(spec: ReleaseSpec, columns: Sequence[str]) -> str:
    accepted = ", ".join(map(toml_text, (*spec.disclosure.blank, *columns)))
    return f"write blank = [{accepted}] in [disclosure]"
