"""Draft: the text of a spec for a source that was looked at, with what people have to decide left to them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from funnel.drafting.look import Column, Look
from funnel.source.days import forms_of, written_day
from funnel.source.suggestion import round_edges
from funnel.wording import plain_number, printable, toml_key

# Categories that need no recoding, and combinations of those that are published at first.
_FEW, _COMBINATIONS, _PUBLISHED = 30, 32, 3
# Guarantees for observers of a record, the same in the population, and for observers who know some of its columns.
_RECORD, _ROBUST, _KNOWING = "lip:1.0", "rlip:1.0,0.05", "srlip:1.0"
# Candidates for the secret that are named.
_CANDIDATES = 16
# Values that fewer records have are told of as rare.
_RARE = 10
_SENSITIVE = re.compile(
    r"incom|salar|wage|earn|wealth|debt|benefit|health|disease|diagn|illness|hiv|disab|medic|drug|pregnan|relig|belief|"
    r"race|ethnic|nation|origin|marital|married|partner|sex(?!$)|orient|gender|politic|party|vote|union|crim|convict|"
    r"offen[cs]e|citizen|immigr|migra|genetic|suicid|docvis|hospvis|abuse|welfare"
)
# Days as people write them, which are no dates to a spec.
_DAY = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{2,4}")
# What outsiders often know of somebody, so that they could find their record in this table, or it in another.
_KNOWN = re.compile(
    r"(^|[^a-z])(age|birth|dob|born|sex|gender|female|male|zip|post|plz|region|state|county|city|town|municipal|province|"
    r"country|occupation|job|profession|educat\w*|marital|married|race|ethnic\w*|kids|children|household|employer)"
)
_WEIGHT = re.compile(r"weight|fnlwgt|wgt", re.IGNORECASE)


def draft_spec(look: Look, name: str) -> str:
    """The text of a spec: valid TOML that says everything but the secret, which a person has to choose.

    Parameters
    ----------
    look : Look
    name : str
        Of the source, for title and folder.
    """
    keys = [column for column in look.columns if column.unique(look.rows)]
    apart = {column.name for column in look.columns if column in keys or column.named_as_identifier}
    said = [column for column in look.columns if column.name not in apart and column.values > 1]
    weights = [column for column in said if column.kind == "number" and _WEIGHT.search(column.name)]
    free = [column for column in said if column not in weights]
    secrets = _candidates(free)
    published = _published(free, secrets)
    units = _units(look, keys, apart)
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "release"
    rows = f"the first {look.rows:,}" if look.more else f"{look.rows:,}"
    lines = [
        f"# A draft by funnel init, from {rows} records. It is yours to edit: choose the secret, then funnel plan.",
        "# It tells of the data, so keep it as private as these.",
        *_header(look),
        "",
        f'name = "{slug}"{" " * 4}# the folder of the release: lower-case letters, digits, hyphens',
        f"title = {_text(printable(name).strip() or 'Release')}",
        "",
        *_secret(secrets),
        f"publish = {_list(column.name for column in published)}" if published else "# publish = []",
        *_more(free, secrets, published),
        *_identifiers(look, keys, apart, units),
        *_weights(weights),
        *_mechanism(published, units),
        "",
        *_source(look),
        *_whole(look, free, secrets),
        *_recodings(free, published),
        *_joins(free),
        "# Who the people of a second version are; without it no second version is drawn.",
        "# [history]",
        '# people = "different"          # or "same", with a record_key: one bound holds for all versions together',
        "",
        "[output]",
        'folder = "releases"             # all in it is published, but its folders audit/',
        "",
        "[metadata]",
        'licence = "CC-BY-4.0"           # under which the release is published: choose',
        "",
    ]
    return "\n".join(lines)


def _candidates(columns: Sequence[Column]) -> list[Column]:
    """What could be the secret: by their names first, those that need no recoding before the others."""
    few = [column for column in columns if column.values <= _FEW or column.kind in ("number", "date")]
    named = [column for column in few if _SENSITIVE.search(column.name.lower())]
    found = named or [column for column in few if column.values <= _FEW] or list(columns)
    return sorted(found, key=lambda column: (column.values > _FEW, column.kind == "number" and column.values > 2))[
        :_CANDIDATES
    ]


def _published(columns: Sequence[Column], secrets: Sequence[Column]) -> list[Column]:
    """Some columns to begin with, few enough values together that a plan takes little time."""
    others = [column for column in columns if column not in secrets] or list(columns[1:])
    chosen: list[Column] = []
    size = 1
    for column in others:
        if _WEIGHT.search(column.name) or (column.values > _FEW and column.kind == "text"):
            continue
        if _is_wide(column) and not _recoding(column):
            continue
        width = 6 if _is_wide(column) else column.values + 2
        if len(chosen) < _PUBLISHED and size * width <= _COMBINATIONS:
            chosen.append(column)
            size *= width
    return chosen or list(others[:1])


def _is_wide(column: Column) -> bool:
    return column.kind in ("number", "date") and column.values > 12


def _secret(secrets: Sequence[Column]) -> list[str]:
    if not secrets:
        return ["# No column could be the secret: none has at least two values that people share."]
    names = ", ".join(_comment(column.name) for column in secrets)
    return [
        "# What must not become known about a person: only you know. Take the mark away, and name one or more columns.",
        f"# Candidates, by their names and values: {names}.",
        f"# secret = {_list([secrets[0].name])}",
        "",
        "# What is released; no column can be both. Begin with few.",
    ]


def _mechanism(published: Sequence[Column], units: Sequence[Column]) -> list[str]:
    """How the protocol is made, and the guarantee that it meets."""
    if units:
        return [
            "# An invariant release, whose tables are right on average, is not there yet for several records of one",
            "# person, so this draft asks for the protocol that keeps most information.",
            f"guarantee = {_text(_ROBUST)}    # docs/guides/steward.md has the others",
        ]
    lines = [
        "# Published values are those of the source, tables are right on average, and most records stay unchanged.",
        "# Take the line out for a unit, or versions about the same people: not there yet.",
        'mechanism = "invariant"',
        "",
    ]
    if len(published) < 2:
        return [
            *lines,
            "# The bound is for observers of the published record, in the population too, at 95 % confidence.",
            f"guarantee = {_text(_ROBUST)}    # docs/guides/steward.md has the others",
        ]
    return [
        *lines,
        "# The bound is for observers of the published record. Stronger ones change more records, and where values of",
        "# the secret are rare, noise may leave too few records for them, or the search too little time:",
        f"# guarantee = {_text(_KNOWING)}    # for observers too who know some of the published columns already",
        f"# guarantee = {_list((_ROBUST, _KNOWING))}    # both, and in the population too",
        f"guarantee = {_text(_RECORD)}    # docs/guides/steward.md has the others",
    ]


def _more(free: Sequence[Column], secrets: Sequence[Column], published: Sequence[Column]) -> list[str]:
    others = [column.name for column in free if column not in published and column not in secrets]
    return [f"# Others that could be: {', '.join(map(_comment, others))}."] if others else []


def _header(look: Look) -> list[str]:
    """A doubt about the first line of a csv file."""
    if not look.odd:
        return []
    verb = "name of a column is a number or a date" if look.odd == 1 else "names of columns are numbers or dates"
    return [f"# {look.odd:,} {verb}: if the file begins with a record, write a line of names above it."]


def _weights(weights: Sequence[Column]) -> list[str]:
    if not weights:
        return []
    names = ", ".join(_comment(column.name) for column in weights)
    return [
        f"# Named like survey weights, of which classes can be published for weighted estimates: {names}.",
        "# That takes weight, bins and [numbers] (docs/estimation.md).",
        "",
    ]


def _whole(look: Look, free: Sequence[Column], secrets: Sequence[Column]) -> list[str]:
    """How all columns are published together, where there are more than the few that are published at first."""
    if len(free) <= _PUBLISHED + 1 or not secrets:
        return []
    kept = {column.name for column in free}
    # A column that is a record key may be named here too.
    others = dict.fromkeys([*(column.name for column in look.columns if column.name not in kept), *look.left_out])
    exclude = [name for name in others if name.strip() and name.isprintable()]
    lines = ['# To publish all columns write publish = "auto", and take the marks away before the sections below.']
    if exclude:
        lines += ["# [groups]", f"# exclude = {_list(exclude)}"]
    return [*lines, ""]


def _units(look: Look, keys: Sequence[Column], apart: Iterable[str]) -> list[Column]:
    """Columns that may tell whose record it is, where a person has several."""
    repeated = set(apart) - {column.name for column in keys}
    return [column for column in look.columns if column.name in repeated and column.values > look.rows / 50]


def _identifiers(look: Look, keys: Sequence[Column], apart: Iterable[str], units: Sequence[Column]) -> list[str]:
    lines = [""]
    names = {column.name for column in keys}
    if keys:
        lines += [
            f"# Every record has another {' and '.join(_comment(column.name) for column in keys)}, so it is never "
            "published. As a record key it gives a",
            "# record the same answer in every version.",
            f"# record_key = {_list([keys[0].name])}",
        ]
    repeated = [name for name in apart if name not in names]
    if units:
        lines += [
            f"# {_comment(units[0].name)} has {units[0].values:,} values in {look.rows:,} records: if it tells whose "
            "record it is, several are of one person.",
            f"# unit = {_list([units[0].name])}",
        ]
    if repeated:
        lines.append(f"# Named like identifiers, so not published: {', '.join(map(_comment, sorted(repeated)))}.")
    alike = [column.name for column in look.columns if column.values < 2]
    if alike:
        lines.append(f"# The same in every record: {', '.join(map(_comment, alike))}.")
    for name, reason in look.left_out.items():
        lines.append(f"# Left out: {_comment(name) or '(no name)'}, since {reason}.")
    return [*lines, ""]


def _source(look: Look) -> list[str]:
    markers = sorted({"", *(mark for column in look.columns for mark in column.markers)})
    lines = ["[source]", *(f"{key} = {_value(value)}" for key, value in look.settings.items())]
    if len(markers) > 1 and "missing" not in look.settings:
        lines.append(f"missing = {_list(markers)}    # texts that mean a value is missing; nulls always do")
    missing = [f"# missing in {_comment(column.name)}: {column.missing:,}" for column in look.columns if column.missing]
    return [*lines, *missing[:40], ""]


def _recodings(free: Sequence[Column], published: Sequence[Column]) -> list[str]:
    lines = []
    for column in free:
        if column.kind in ("text", "number") and (forms := _forms(column)):
            lines += _dates(column, forms, column in published)
            continue
        if column.kind == "text" and all(_DAY.fullmatch(text.strip()) for text in column.counts):
            lines += [
                f"# {_comment(column.name)}: days, of which periods are made where they are written 2026-12-31",
                "",
            ]
            continue
        made, rare = _recoding(column), column.rarer_than(_RARE)
        note = f"# {_comment(column.name)}: {column.values:,}{'' if column.complete else ' or more'} values"
        if rare and not _is_wide(column):
            note += f", {rare:,} of them in fewer than {_RARE} records"
        if not made and not rare and column.values <= _FEW:
            continue
        lines.append(note)
        if made:
            # A column that is neither secret nor published must not have a section.
            mark = "" if column in published else "# "
            lines += [f"{mark}[recode.{toml_key(column.name)}]", f"{mark}{made}"]
        elif rare:
            lines += [f"# [recode.{toml_key(column.name)}]", f"# minimum_count = {_RARE * 5}"]
        lines.append("")
    if lines:
        lines = [
            "# Columns with many values, or rare ones. Take the marks away of those that are secret or published.",
            *lines,
        ]
    return lines


def _forms(column: Column) -> list[str]:
    """The forms in which all values of a column are days, which no number is by chance; none if they are no days."""
    forms: list[str] | None = None
    for text in column.counts:
        found = [form for form in forms_of(text) if "%d" in form]
        if column.kind == "number":
            found = [form for form in found if form == "%Y%m%d" and text.strip()[:2] in ("19", "20")]
        forms = found if forms is None else [form for form in forms if form in found]
        if not forms:
            return []
    return forms or []


def _dates(column: Column, forms: Sequence[str], is_published: bool) -> list[str]:
    """The section of a column of days; marked where only a person knows which form they have."""
    mark = "" if is_published and len(forms) == 1 else "# "
    said = [
        f"[recode.{toml_key(column.name)}]",
        f'period = "{_period(column, forms[0])}"',
        f'format = "{forms[0]}"',
        *(f'or format = "{form}": only you know which' for form in forms[1:]),
    ]
    return [f"# {_comment(column.name)}: days in another form than 2026-12-31", *(f"{mark}{one}" for one in said), ""]


def _period(column: Column, form: str) -> str:
    """A period of which the values of a column have more than one, if any."""
    years = {day.year for text in column.counts if (day := written_day(text, form)) is not None}
    return "year" if len(years) > 1 else "month"


def _recoding(column: Column) -> str:
    """The line that makes few categories of a column with many; nothing for one with few."""
    if column.kind == "date" and column.values > 12:
        days = sorted(value[:7] for value in column.counts)
        return f'period = "{"year" if days[-1][:4] != days[0][:4] else "month"}"'
    if not _is_wide(column):
        return ""
    mark = "," if column.decimal else "."
    counts = {value.strip().replace(mark, ".").lstrip("+"): count for value, count in column.counts.items()}
    edges = _edges({value: count for value, count in counts.items() if value not in ("nan", "inf", "-inf")})
    return f"bins = [{', '.join(map(plain_number, edges))}]" if edges else ""


def _edges(counts: Mapping[str, int]) -> list[float]:
    """Round numbers near the quintiles; of the other values, where most records have one and the same, the lowest."""
    most = max(counts, key=lambda value: counts[value], default="")
    rest = {value: count for value, count in counts.items() if value != most}
    if 2 * counts.get(most, 0) <= sum(counts.values()) or not rest or float(most) > min(map(float, rest)):
        return round_edges(counts)
    above = float(most) + 1
    edges = [edge for edge in round_edges(rest) if edge > above]
    return [above, *edges] if min(map(float, rest)) >= above else edges


def _joins(free: Sequence[Column]) -> list[str]:
    known = [column.name for column in free if _KNOWN.search(column.name.lower())]
    if len(known) < 2:
        return []
    return [
        "# By these columns an outsider who knows somebody, or has another table, could join records to it:",
        f"# {', '.join(map(_comment, known))}.",
        f"# Where such are published, guarantee = {_text(_KNOWING)} holds for observers who know some of them too.",
        "",
    ]


def file_name(source: str) -> str:
    """A name for what is at an address, without its endings."""
    return PurePath(source.rstrip("/")).name.split(".")[0] or "release"


def _comment(name: str) -> str:
    return printable(name)


def _text(value: str) -> str:
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in quoted)


def _escaped(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 1 << 16 else f"\\U{ord(letter):08x}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(str(key))} = {_value(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"
