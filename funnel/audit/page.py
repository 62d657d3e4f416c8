"""The public report of a release: whether it stands by itself, and is what its numbers make."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from funnel.audit.arithmetic import guarantee_of, is_share_of, prior_limits, reads_published_only, share_step
from funnel.audit.check import NOTED, Found, Unchecked, check
from funnel.audit.documentation import previous_version
from funnel.audit.files import read_document, read_json, read_text
from funnel.audit.stated import guess_limits, stated_complaints, untold
from funnel.audit.told_weights import weighted_complaints, weighted_of
from funnel.recount.annex import annex_complaints
from funnel.recount.balance import is_invariant
from funnel.release.provenance import software_name
from funnel.release.public_report import Compared, Contact, Licence, PublicReport

if TYPE_CHECKING:
    from funnel.audit.context import AuditContext

Render = Callable[[bytes, bytes], Mapping[str, str]]
"""Makes the public pages, by their names, from the bytes of ``report.json`` and ``protocol.json``."""
Compare = Callable[[bytes, bytes, bytes | None], list[str]]
"""Names the parts of a report that do not follow from protocol and frequencies, if any, given as bytes."""

_OF_PERSON = (
    "a pseudo-random function of the record key, and of what was decided about records with the same history, under a "
    "release secret (AES-256), so that no answer is drawn twice"
)
_OF_RECORD = (
    "a pseudo-random function of the record key under a release secret (AES-256), so that a record keeps its answer "
    "from version to version while its values and the protocol stay the same"
)
# The sentences about random words, by whether people are the same in all versions.
_RANDOM = {
    True: (_OF_PERSON,),
    False: ("AES-256 in counter mode, keyed by the operating system for this run alone", _OF_RECORD),
}
_NOT_INSTALLED = 'to make this again install the extra: pip install "funnel[pipeline]"'

# Elements and attributes by which a page loads, runs or sends something.
_ACTIVE = frozenset(
    {"script", "iframe", "object", "embed", "form", "base", "frame", "applet"}
    | {"audio", "video", "source", "input", "button"}
)
_LOADING = frozenset({"src", "srcset", "action", "formaction", "data", "background", "poster", "ping"})
# Where addresses may lead to: out of the page only for whoever follows a link.
_LINKS, _INSIDE, _ICON = ("http://", "https://", "mailto:", "#"), ("data:", "#"), "data:,"
# The public pages lead to each other.
_PAGES = frozenset({"report.html", "annex.html"})
_POLICY = "default-src 'none'"


class _Page(HTMLParser):
    """What of a page could do something, and whether its policy forbids that."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.active: set[str] = set()
        self.guarded = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element."""
        given = [(name.rpartition(":")[2], (value or "").strip().lower()) for name, value in attrs]
        policies = [value for name, value in given if tag == "meta" and name == "http-equiv"]
        self.guarded |= bool(policies) and any(name == "content" and _POLICY in value for name, value in given)
        acts = tag in _ACTIVE or any(value != "content-security-policy" for value in policies)
        if acts or any(_acts(tag, name, value) for name, value in given):
            self.active.add(tag)


def _acts(tag: str, name: str, value: str) -> bool:
    if name in _LOADING or name.startswith("on") or "javascript:" in value.replace(" ", ""):
        return True
    if name != "href":
        return False
    if tag == "a" and value.partition("#")[0] in _PAGES:
        return False
    return value != _ICON if tag == "link" else not value.startswith(_LINKS if tag == "a" else _INSIDE)


@lru_cache(maxsize=4)
def active_parts(page: str) -> tuple[str, ...]:
    """Elements of a page that load, run or send something, and that its policy is missing which forbids that."""
    parsed = _Page(page)
    return (*sorted(parsed.active), *(() if parsed.guarded else ("no policy that forbids it",)))


def _texts(package: dict[str, Any]) -> Iterator[str]:
    """What people wrote that both the data package and the page show."""
    lists = [package.get(key) for key in ("licenses", "contributors")]
    entries = [package, *(e for one in lists if isinstance(one, list) for e in one if isinstance(e, dict))]
    for entry in entries:
        named = "roles" not in entry and entry is not package
        for key in ("title", "description", "email", *(("name",) if named else ())):
            if isinstance(entry.get(key), str):
                # A page may break long words, and lines where it likes.
                yield entry[key]


@check("report", "public", contained=True)
def check_report(known: AuditContext) -> Found:
    """The report stands by itself and is about this version."""
    folder, package, promise, rows = known.folder, known.package, known.document.guarantee, known.rows
    named = [promise.declared, known.document.mechanism, *([] if rows is None else [f"{rows:,}"])]
    columns = promise.secret + known.columns.names
    page, annex = read_text(folder.report), read_text(folder.annex)
    shown = html.unescape(page.replace("<wbr>", ""))
    for name, text in ((folder.report.name, page), (folder.annex.name, annex)):
        if active_parts(text):
            yield f"{name} runs or fetches something, or does not forbid that"
    if any(text not in shown for text in (*named, str(package.get("version")))):
        yield "report.html is about another guarantee, version, mechanism or number of records"
    if any(value not in shown for value in columns):
        yield "report.html is about other columns"
    if any(text not in shown for text in _texts(package)):
        yield "report.html has another title, description, licence or contact than datapackage.json"
    return "stands by itself, about this version"


def _chosen_by(told: PublicReport, explains: bool) -> str:
    """What a release can have been chosen by: numbers are explained only where it was variance."""
    return "variance" if explains else told.utility if told.utility == "estimation" else "information"


@check("report figures", "figures", contained=True)
def check_numbers(known: AuditContext) -> Found:
    """The figures of the report are those of the protocol and the data package."""
    folder, document, package, rows = known.folder, known.document, known.package, known.rows
    told, figures, utility, privacy = known.report, known.report.figures, document.utility, known.privacy
    catalogue = [folder.catalogue.name] if folder.catalogue.is_file() else []
    confidence, before = _object(privacy.get("confidence")), previous_version(folder, package, catalogue)
    pairs = {
        "people": (told.people, privacy.get("people")),
        "random source": (told.random_source in _RANDOM[told.people == "same"], True),
        "shuffled": (told.shuffled, privacy.get("rowOrder") == "random"),
        "licence": (_plain(told.licence), _first(package, "licenses", "name", "path")),
        "contact": (_plain(told.contact), _first(package, "contributors", "title", "email")),
        "alpha": (told.estimation.alpha, confidence.get("alpha")),
        "radius": (told.estimation.radius, confidence.get("radius")),
        "previous version": (_fits_before(told, before), True),
        "spent": (_spends_alone(told) and told.frequencies.spent != told.frequencies.epsilon, False),
        "unprotected": (_spends_alone(told) and told.frequencies.unprotected > 0, False),
        "covers versions": (bool(told.frequencies.covers_versions) and told.people != "same", False),
        "chosen mechanism": (_chosen_row(told), _chosen(told)),
        "columns that observers know at once": (told.at_once, known.columns.at_once),
        "versions": (None if figures.history is None else figures.history.versions, privacy.get("versions")),
        **{key: (getattr(told, key), package.get(key)) for key in ("name", "title", "version", "created")},
        "description": (told.description, package.get("description", "")),
        "certificate": (_certificate(told), privacy.get("certificate")),
        "guarantee": (told.guarantee, document.guarantee.declared),
        "level": (figures.level, document.guarantee.level),
        "utility": (figures.utility, utility.mutual_information_nats),
        "entropy": (figures.entropy, utility.entropy_nats),
        "share": (figures.share, utility.share),
        "explained": (figures.explained, None if utility.explained is None else utility.explained.variance_share),
        "chosen by": (told.utility, _chosen_by(told, utility.explained is not None)),
        "mechanism": (told.mechanism.name, document.mechanism),
        "channel.digest": (told.channel.digest, document.digest),
        "channel.reads": (told.channel.reads, document.inputs.columns),
        "channel.inputs": (told.channel.inputs, len(document.inputs.symbols)),
        "channel.outputs": (told.channel.outputs, len(document.outputs.symbols)),
        "secret": (told.secret.columns, document.guarantee.secret),
        "reads the secret": (told.mechanism.reads_secret, document.inputs.columns != document.prior.columns),
        "published": (told.published.columns, known.columns.names),
        "published values": (told.published.values, len(document.prior.symbols)),
        "unchanged": (told.unchanged is not None, is_invariant({"mechanism": document.mechanism})),
        "weighted": weighted_of(told.weighted, package),
        "rows of people": (list(told.unit), package["funnel:privacy"].get("rowsOf", [])),
        "holds": (figures.holds, True),
        **{
            # All their digits are in the protocol.
            f"frequencies.{key}": (getattr(told.frequencies, key) in (value, _short(value)), True)
            for key, value in document.frequencies
        },
        **({} if rows is None else {"rows": (figures.rows, rows), "source.records": (told.source.records, rows)}),
    }
    yield from _not_kept(known)
    for key, (one, other) in pairs.items():
        if one != other:
            yield f"{folder.numbers.name}: {key} is not that of the other files"
    yield from _left_out(known)
    stated = stated_complaints(told, guarantee_of(document).budget, share_step(known.public_rows))
    yield from (f"{folder.numbers.name}: {said}" for said in (*stated, *_other_complaints(known)))
    unknown = "; ".join(untold(told.content(), document.rounded))
    return f"those of the protocol and the data package; could not be checked from public files: {unknown}"


def _other_complaints(known: AuditContext) -> Iterator[str]:
    """What is wrong with guesses, with the checks that are named, and with shares by survey weights."""
    yield from _guess_complaints(known)
    yield from _judged_complaints(known)
    if known.report.weighted is not None:
        yield from weighted_complaints(known.report.weighted, known)


def _not_kept(known: AuditContext) -> Iterator[str]:
    """Compared mechanisms whose utility is not the share that is stated of what there is to know."""
    told, step = known.report, share_step(known.public_rows)
    for row in told.compared if told.utility == "information" else ():
        if not _is_kept(row, known.document.utility.entropy_nats, step):
            yield f"{known.folder.numbers.name}: compared.utility is no such share of what there is to know"


# Of the words of `Check.needs`: of what there is of every version as it is judged, and what is there only later.
_AS_JUDGED, _LATER = {"asked", "folder", "internal"}, {"signature", "published", "record", "drawing", "register"}


def _judged_complaints(known: AuditContext) -> Iterator[str]:
    """Every check of an audit that such a version had to pass is named, once; of another funnel they may be others."""
    named = [one.name for one in known.report.judged]
    if len(set(named)) < len(named):
        yield "judged names a check twice"
    if _made_elsewhere(known):
        return
    has, own = (known.has - _LATER) | _AS_JUDGED, {one.name for one in NOTED}
    expected = {one.name: one.says for one in NOTED if one.applies(has)}
    if {one.name: one.description for one in known.report.judged if one.name in own} != expected:
        yield "judged does not name the checks that such a version has to pass"
    if own.issuperset(named):
        yield "judged names no check of the source"


# Of a coming version the figures were computed a second time before.
@check("followed figures", "figures counted published", contained=True)
def check_followed(known: AuditContext) -> Found:
    """All figures of the report follow from public counts; without noise, from public shares and one another."""
    folder, compare = known.folder, known.told.figures
    if compare is None or (why := _made_elsewhere(known)):
        return Unchecked(_NOT_INSTALLED if compare is None else why)
    noisy = None if known.public is None else read_document(folder.frequencies)
    told = "the public counts" if noisy is not None else "the public shares and what it says of secrets and lifts"
    for key in compare(read_document(folder.numbers), read_document(folder.protocol), noisy):
        yield f"{folder.numbers.name}: {key} does not follow from {told}"
    return f"lifts, beliefs, errors and tables of the report follow from {told}"


@check("report page", "figures", contained=True)
def check_rendered(known: AuditContext) -> Found:
    """The page of the report is byte for byte made of its figures."""
    folder, render = known.folder, known.told.render
    if render is None or (why := _made_elsewhere(known)):
        return Unchecked(_NOT_INSTALLED if render is None else why)
    for page, text in render(read_document(folder.numbers), read_document(folder.protocol)).items():
        if read_document(folder.root / page) != text.encode():
            yield f"{page} is not what its figures make"
    return "to the byte what their figures make"


def _made_elsewhere(known: AuditContext) -> str:
    """Why a report cannot be made again here: another version of funnel made it; empty if this one did."""
    made_by = known.report.software
    return "" if made_by == software_name() else f"it was made by {made_by}, and this is {software_name()}"


@check("annex", "figures", contained=True)
def check_annex(known: AuditContext) -> Found:
    """Every figure and answer of the annex follows from the report and the protocol."""
    folder, table = known.folder, known.read_table[2]
    published = None
    if table is not None and known.columns.classes is None:
        published = dict(zip(known.document.outputs.symbols, table.counts.tolist(), strict=True))
    page, report, protocol = read_text(folder.annex), read_json(folder.numbers), read_json(folder.protocol)
    yield from (f"annex.html: {what}" for what in annex_complaints(page, report, protocol, published))
    return "its figures and answers follow from the report and the protocol"


def _left_out(known: AuditContext) -> Iterator[str]:
    """What is nothing is said to be nothing: to say so in one of two ways would be a message."""
    folder = known.folder
    if _made_elsewhere(known):
        return
    if known.report.to_bytes() != read_document(folder.numbers):
        yield f"{folder.numbers.name} leaves out a key, or tells one in another way than funnel"
    if known.public is not None and not {"changes", "rows", "means"} <= set(_object(read_json(folder.frequencies))):
        yield f"{folder.frequencies.name} leaves out a key"


def _guess_complaints(known: AuditContext) -> Iterator[str]:
    """How often guesses are right, as far as public shares tell it; of noisy counts another check computes it again."""
    document, rows, figures = known.document, known.public_rows, known.report.figures
    if known.public is not None or not reads_published_only(document):
        return
    step = share_step(rows)
    for name, limit in zip(
        ("prior_guess_accuracy", "guess_accuracy"), guess_limits(document, prior_limits(document, rows)), strict=True
    ):
        said = getattr(figures, name)
        if not limit.meets(said, float(step) / 2) or Fraction(repr(said)) % step:
            yield f"{name} is not what the public shares and the weights make"


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _plain(part: Licence | Contact) -> list[object]:
    return list(part.model_dump().values())


def _first(package: dict[str, Any], key: str, *names: str) -> list[object]:
    """What people wrote into the first of the entries under a key."""
    entries = package.get(key)
    entry = _object(entries[0]) if isinstance(entries, list) and entries else {}
    return [entry.get(name) for name in names]


def _spends_alone(told: PublicReport) -> bool:
    """Whether no version before it, and no other series, can have spent anything on the same people."""
    history = told.figures.history
    others = told.people == "same" and (history is None or history.versions > 1)
    return not others and told.change is None and told.earlier_releases == 0


def _fits_before(told: PublicReport, catalogued: str | None) -> bool:
    """Whether the version before in the catalogue can be that of the report, which may have been withdrawn."""
    change = told.change
    if change is None or change.version not in change.withdrawn:
        return catalogued == (None if change is None else change.version)
    return catalogued not in change.withdrawn


def _chosen_row(told: PublicReport) -> list[object]:
    """What is said of the mechanism that was chosen; nothing of another one may be there."""
    return [
        part
        for row in told.compared
        for part in (row.mechanism, row.level, row.reason, *_kept(told, row.utility, row.share))
    ]


def _chosen(told: PublicReport) -> list[object]:
    """The same by the figures of the release."""
    figures = told.figures
    alone = figures.share if figures.history is None else figures.history.share_alone
    return [told.mechanism.name, figures.level, None, *_kept(told, figures.utility, alone)]


def _certificate(told: PublicReport) -> dict[str, Any] | None:
    """What the data package has to say of better protocols."""
    for row in told.compared:
        if row.certificate is not None:
            return {**row.certificate.model_dump(), "share": row.share, "utility": told.utility}
    return None


def _is_kept(row: Compared, entropy: float, step: Fraction) -> bool:
    """Whether the information of a mechanism, a multiple of the step, is its share of what there is to know."""
    if row.share is None or row.utility is None:
        return row.share is row.utility
    own = step if row.utility < 10 else max(step, Fraction(1, 100))
    return Fraction(repr(row.utility)) % own == 0 and is_share_of(row.share, row.utility, entropy, float(step))


def _kept(told: PublicReport, utility: float | None, share: float | None) -> list[object]:
    """What is compared of what a mechanism keeps: by anything else than information it is another figure."""
    if told.utility != "information":
        return []
    return [share] if told.figures.history is not None else [utility, share]


def _short(value: object) -> object:
    return float(f"{value:.9g}") if isinstance(value, float) else value
