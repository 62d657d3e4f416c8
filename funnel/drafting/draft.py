"""Draft: the text of a spec for a source, whole where a person answered, and else with the secret left to choose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from textwrap import wrap

from funnel.drafting.choice import Choice
from funnel.drafting.coarse import NAMED, Coarse, plain
from funnel.drafting.look import Column, Look
from funnel.drafting.periods import day_forms
from funnel.drafting.roles import FEW, Roles, is_wide
from funnel.drafting.toml_text import comment, list_of_texts, text_of_lines, text_value, value_text
from funnel.settings.replicate_weights import replicate_weights
from funnel.wording import plain_number, printable, toml_key

_WIDTH = 118
# Days as people write them, which are no dates to a spec.
_DAY = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{2,4}")


def written_spec(look: Look, roles: Roles, choice: Choice, name: str) -> str:
    """The text of a spec that is released as it stands.

    Parameters
    ----------
    look : Look
    roles : Roles
    choice : Choice
    name : str
        Of the source, for title and folder.
    """
    rows = f"the first {look.rows:,}" if look.more else f"{look.rows:,}"
    return text_of_lines(
        [
            f"# Written by funnel init from {rows} records: funnel release takes it as it stands. It is yours to edit.",
            "# It tells of the data, so keep it as private as these.",
            *([f"# {look.doubt}."] if look.doubt else []),
            "",
            *_names(name),
            *_labels(look, choice),
            "",
            f"secret = {list_of_texts(choice.secret)}{_NOTE}what must not become known about a person",
            f"publish = {list_of_texts(choice.publish)}{_NOTE}what is released",
            *_more(roles, choice),
            "",
            *_promise(choice),
            *_complete(choice.coarse),
            *_keys(choice),
            *_apart(look, roles, choice),
            *_source(look, choice),
            *_history(choice),
            *_protection(choice),
            *_values(choice.coarse),
            *_joins(roles, choice),
            *_output(),
        ]
    )


def draft_spec(look: Look, roles: Roles, choice: Choice, name: str) -> str:
    """The text of a draft: valid TOML that says everything but the secret, which a person has to choose.

    Parameters
    ----------
    look : Look
    roles : Roles
    choice : Choice
        For the first candidate for the secret.
    name : str
        Of the source, for title and folder.
    """
    rows = f"the first {look.rows:,}" if look.more else f"{look.rows:,}"
    unclear = {one.name for one in roles.free if _is_unclear(one)}
    others = [one for one in roles.free if one.name not in choice.publish or one.name in unclear]
    coarse = [one for one in choice.coarse if one.column not in unclear]
    return text_of_lines(
        [
            f"# A draft by funnel init, from {rows} records. It is yours to edit: choose the secret, then funnel plan.",
            "# With --secret and --publish funnel init writes a spec that is released as it stands.",
            "# It tells of the data, so keep it as private as these.",
            *([f"# {look.doubt}."] if look.doubt else []),
            "",
            *_names(name),
            *_labels(look, choice),
            "",
            *_candidates(roles),
            f"publish = {list_of_texts(choice.publish)}",
            *_more(roles, choice),
            "",
            *_promise(choice),
            *_complete(coarse),
            *_identifiers(look, roles),
            *_source(look, choice),
            *_protection(choice),
            *_values(coarse),
            *_others(others),
            *_joins(roles, choice),
            "# Who the people of a second version are; without it no second version is drawn.",
            "# [history]",
            '# people = "different"          # or "same", with a record_key: one bound holds for all versions together',
            "",
            *_output(),
        ]
    )


_NOTE = " " * 4 + "# "
# The part of the bound for first versions of whole records of the same people.
_OF_FIRST = 0.8


def _reason(sentence: str | None) -> list[str]:
    """A reason as lines of comment."""
    return [f"# {line}" for line in wrap(printable(sentence), _WIDTH - 2)] if sentence else []


def _names(name: str) -> list[str]:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-") or "release"
    return [
        f'name = "{slug}"{_NOTE}the folder of the release: lower-case letters, digits, hyphens',
        f"title = {text_value(printable(name).strip() or 'Release')}",
        f'metadata.licence = "CC-BY-4.0"{_NOTE}the licence that the release is published under: choose',
    ]


def _labels(look: Look, choice: Choice) -> list[str]:
    """What the file says that published columns are about."""
    return [
        f"metadata.labels.{toml_key(column.name)} = {text_value(column.label)}"
        for column in look.columns
        if column.label is not None and column.name in choice.publish
    ]


def _candidates(roles: Roles) -> list[str]:
    names = ", ".join(comment(column.name) for column in roles.secrets)
    return [
        "# What must not become known about a person: only you know. Take the mark away, and name one or more columns.",
        f"# Candidates, by their names and values: {names}.",
        f"# secret = {list_of_texts([roles.secrets[0].name])}",
        "",
        "# What is released. Begin with few; for all: funnel init SOURCE --secret COLUMN --publish all.",
    ]


def _more(roles: Roles, choice: Choice) -> list[str]:
    said = {*choice.publish, *choice.secret}
    others = [column.name for column in roles.free if column.name not in said]
    return [f"# Others that could be: {', '.join(map(comment, others[:60]))}."] if others else []


def _promise(choice: Choice) -> list[str]:
    """The guarantee and the mechanism, each with its reason."""
    guarantee = text_value(choice.guarantee[0]) if len(choice.guarantee) == 1 else list_of_texts(choice.guarantee)
    lines = [*_reason(choice.why.get("guarantee")), f"guarantee = {guarantee}"]
    if choice.invariant:
        reason = choice.why.get(
            "mechanism",
            "Published values are those of the source, tables are right on average, and most records stay unchanged.",
        )
        lines += [*_reason(reason), 'mechanism = "invariant"']
    else:
        lines += _reason(
            "Published values may stand for sets of true ones, and funnel estimate gives shares: values as they are "
            '(mechanism = "invariant") are not there yet for several rows of one person under noise.'
        )
    return [*lines, ""]


def _complete(coarse: Sequence[Coarse]) -> list[str]:
    if not (complete := [one.column for one in coarse if one.complete]):
        return []
    return [
        "# All values that these may have are listed below, or in bins, so no category is added for others or missing",
        "# values; a record that has another one is an error, or Other where that is listed.",
        f"complete = {list_of_texts(complete)}",
        "",
    ]


def _keys(choice: Choice) -> list[str]:
    lines = _reason(choice.why.get("rows"))
    if choice.unit:
        lines += [*_reason(choice.why.get("unit")), f"unit = {list_of_texts(choice.unit)}"]
    if choice.key:
        lines += [
            "# By this a person is known again; it is never published.",
            f"record_key = {list_of_texts(choice.key)}",
        ]
    return [*lines, ""]


def _identifiers(look: Look, roles: Roles) -> list[str]:
    lines = [""]
    if roles.keys:
        lines += [
            f"# Every record has another {' and '.join(comment(column.name) for column in roles.keys)}, so it is",
            "# never published. As a record key it gives a record the same answer in every version.",
            f"# record_key = {list_of_texts([roles.keys[0].name])}",
        ]
    if roles.people:
        first = roles.people[0]
        lines += [
            f"# {comment(first.name)} has {first.values:,} values in {look.rows:,} records: if it tells whose record",
            "# it is, several are of one person.",
            f"# unit = {list_of_texts([first.name])}{_NOTE}funnel init SOURCE --unit writes what goes with it",
        ]
    return [*lines, *_apart(look, roles, None)]


def _apart(look: Look, roles: Roles, choice: Choice | None) -> list[str]:
    """Columns that are not published, and why."""
    named = set() if choice is None else {*choice.key, *choice.unit, *choice.secret, *choice.publish}
    lines = []
    if identifiers := [one.name for one in roles.identifiers if one.name not in named]:
        lines.append(f"# Named like identifiers, so not published: {', '.join(map(comment, sorted(identifiers)))}.")
    if choice is not None and (keys := [one.name for one in (*roles.keys, *roles.people) if one.name not in named]):
        lines.append(f"# Not published, since they tell whose record it is: {', '.join(map(comment, keys))}")
    replicates = replicate_weights(one.name for one in roles.weights)
    if replicates:
        lines += [
            f"# {len(replicates):,} columns are named like replicate weights: {comment(replicates[0])} to "
            f"{comment(replicates[-1])}.",
            "# They tell the sampling unit of a record, so they are not published. State the design effect instead.",
        ]
    if weights := [one.name for one in roles.weights if one.name not in named and one.name not in replicates]:
        lines += [
            f"# Named like survey weights, of which classes can be published for weighted estimates: "
            f"{', '.join(map(comment, weights))}.",
            "# That takes weight, bins and [numbers] with a range.",
        ]
    if roles.alike:
        lines.append(f"# The same in every record: {', '.join(comment(one.name) for one in roles.alike)}.")
    for name, reason in look.left_out.items():
        lines.append(f"# Left out: {comment(name) or '(no name)'}, since {reason}.")
    return [*lines, ""]


def _source(look: Look, choice: Choice) -> list[str]:
    markers = sorted({"", *(mark for column in look.columns for mark in column.markers)})
    lines = ["[source]", *(f"{key} = {value_text(value)}" for key, value in look.settings.items())]
    if len(markers) > 1 and "missing" not in look.settings:
        lines.append(f"missing = {list_of_texts(markers)}{_NOTE}texts that mean a value is missing; nulls always do")
    missing = [f"# missing in {comment(column.name)}: {column.missing:,}" for column in look.columns if column.missing]
    lines += [*missing[:40], ""]
    if not (choice.wave or choice.present):
        return lines
    lines.append("[source.where]")
    if choice.wave is not None:
        column, value = choice.wave
        lines += [*_reason(choice.why.get("wave")), f"{toml_key(column)} = {list_of_texts([value])}"]
    for column in choice.present:
        why = "too few to protect" if column in choice.secret else "nobody knows whose they are"
        lines.append(f"{toml_key(column)} = {{ missing = false }}{_NOTE}records without a value are left out: {why}")
    return [*lines, ""]


def _history(choice: Choice) -> list[str]:
    if choice.people is None:
        return [
            "# Who the people of a second version are; without it no second version is drawn. If a person can be in",
            '# two versions, say so now: funnel init SOURCE --key COLUMN. If not, write people = "different".',
            "# [history]",
            '# people = "different"',
            "",
        ]
    lines = [*_reason(choice.why.get("history")), "[history]", f'people = "{choice.people}"']
    if choice.people == "same" and choice.min_records is not None:
        lines.append(
            f"budget_fraction = {_OF_FIRST}{_NOTE}of the bound, in a person's first "
            f"{'row' if choice.unit else 'version'}; later ones use the rest"
        )
    return [*lines, ""]


def _protection(choice: Choice) -> list[str]:
    if choice.noise:
        return [
            "# All that is published beside the records is made from counts with noise, in which nobody shows.",
            "[frequencies]",
            'protection = "noise"',
            "epsilon = 1.0",
            "",
        ]
    reason = _reason(choice.why.get("frequencies"))
    if choice.unit and choice.min_records is None:
        return [
            *reason,
            "[frequencies]",
            'protection = "none"',
            "",
            "# The report says which rules on exact counts are broken; without this line they stop the release.",
            "[disclosure]",
            'on_breach = "report"',
            "",
        ]
    return [
        *reason,
        "[frequencies]",
        'protection = "threshold"',
        f"threshold = {NAMED}",
        "",
        "[groups]",
        f"min_records = {choice.min_records}{_NOTE}of a class of records",
        *_known(choice),
        "",
    ]


def _held_out(choice: Choice) -> list[str]:
    """Records that do not choose the classes, so that what they say of these is a sample of the population."""
    if not choice.held_out:
        return []
    return [
        "# So much of the records, drawn by their place, takes no part in choosing the classes, and bounds what these",
        "# tell in the population (rlip). All records are published. With lip instead of rlip take this out.",
        f"held_out = {choice.held_out}",
    ]


def _known(choice: Choice) -> list[str]:
    """Columns of whole records that observers may know."""
    if not choice.known:
        return []
    if isinstance(choice.known, str):
        which = {"single": "any one", "pairs": "any one or any two"}[choice.known]
        return [
            f"# The bound srlip is for observers who know {which} of the columns of a person. Name columns instead,",
            '# such as ["sex", "age"], for observers who know any set of these; who knows others is not covered then.',
            *(
                ['# "single" is for observers of one column, and leaves more records.']
                if choice.known == "pairs"
                else []
            ),
            f"known = {text_value(choice.known)}",
            *_held_out(choice),
        ]
    return [
        "# The bound is also for observers who know any set of these columns of a person; with others named, or fewer,",
        "# more or fewer records are changed. An observer who knows another column is not covered: the report says,",
        "# column by column, for how many people such an observer changes a belief by more than the bound.",
        f"known = {list_of_texts(choice.known)}",
    ]


def _values(coarse: Sequence[Coarse]) -> list[str]:
    """[categories] and [recode] of columns."""
    lines: list[str] = []
    if listed := [one for one in coarse if one.listed]:
        lines += [
            f"# The values that at least {NAMED} records have, and all years or months of dates: hold them against the",
            "# codebook. What is listed need not be learned under noise.",
            "[categories]",
            *(f"{toml_key(one.column)} = {list_of_texts(one.written_listed)}" for one in listed),
            "",
        ]
    if any(one.recodes for one in coarse):
        lines.append("# Few categories with many records each: combinations that hardly anybody has cost most.")
    for one in coarse:
        lines += _recode(one)
    return lines


def _recode(one: Coarse, mark: str = "") -> list[str]:
    if not one.recodes:
        return []
    key, lines = toml_key(one.column), []
    if one.bins:
        lines.append(f"bins = [{', '.join(map(plain_number, one.bins))}]")
    if one.period is not None:
        lines.append(f'period = "{one.period}"')
    if one.form is not None:
        lines.append(f'format = "{one.form}"')
    if one.minimum_count is not None:
        lines.append(f"minimum_count = {one.minimum_count}")
    head = [f"[recode.{key}]", *lines, ""] if lines else []
    groups = [f"{text_value(name)} = {list_of_texts(values)}" for name, values in one.written_groups.items()]
    return [
        mark + line if line else "" for line in (*head, *([f"[recode.{key}.groups]", *groups, ""] if groups else []))
    ]


def _is_unclear(column: Column) -> bool:
    """Whether a column has days in a form that only a person can tell, or that a spec cannot say."""
    return len(day_forms(column)) > 1 or _has_odd_days(column)


def _has_odd_days(column: Column) -> bool:
    written = column.kind == "text" and all(_DAY.fullmatch(text.strip()) for text in column.counts)
    return written and not day_forms(column)


def _others(columns: Sequence[Column]) -> list[str]:
    """Sections of columns that are not published yet, to be taken when they are."""
    lines = []
    for column in columns:
        forms = day_forms(column)
        if len(forms) > 1:
            lines += [
                f"# {comment(column.name)}: days in another form than 2026-12-31",
                f"# [recode.{toml_key(column.name)}]",
                '# period = "year"',
                f'# format = "{forms[0]}"',
                *(f'# or format = "{form}": only you know which' for form in forms[1:]),
                "",
            ]
            continue
        if _has_odd_days(column):
            lines += [
                f"# {comment(column.name)}: days, of which periods are made where they are written 2026-12-31",
                "",
            ]
            continue
        made, rare = plain(column), column.rarer_than(NAMED)
        if not made.recodes and not rare and column.values <= FEW:
            continue
        note = f"# {comment(column.name)}: {column.values:,}{'' if column.complete else ' or more'} values"
        if rare and not is_wide(column):
            note += f", {rare:,} of them in fewer than {NAMED} records"
        lines += [note, *(_recode(made, "# ") or ([""]))]
    if lines:
        return [
            "# Columns with many values, or rare ones. Take the marks away of those that are secret or published.",
            *lines,
        ]
    return []


def _joins(roles: Roles, choice: Choice) -> list[str]:
    known = [column.name for column in roles.known if column.name in choice.publish]
    if len(known) < 2:
        return []
    return [
        "# By these columns an outsider who knows somebody, or has another table, could join records to it:",
        *_reason(", ".join(map(comment, known)) + "."),
        "",
    ]


def _output() -> list[str]:
    return ["[output]", f'folder = "releases"{_NOTE}all in it is published', ""]


def file_name(source: str) -> str:
    """A name for what is at an address, without its endings."""
    return PurePath(source.rstrip("/")).name.split(".")[0] or "release"
