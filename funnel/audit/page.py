"""The public report of a release: whether it stands by itself, and is what its numbers make."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

from funnel.audit.check import Check, judged
from funnel.audit.files import read_document
from funnel.errors import DataError, FunnelError
from funnel.release.documents import ProtocolDocument
from funnel.release.layout import ReleaseFolder

Render = Callable[[bytes], str]
"""Makes the page from the bytes of the document of its numbers."""

# Nothing in the page runs or is fetched.
_ACTIVE = frozenset({"script", "iframe", "object", "embed", "base", "form", "input", "button", "audio", "video"})
_LINKS = ("http://", "https://", "mailto:", "#")
_INSIDE = ("data:", "#")
_POLICY = "default-src 'none'"


class _Page(HTMLParser):
    """What a page would run or fetch, and whether its policy forbids that."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.active = self.guarded = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element."""
        self.active |= tag in _ACTIVE
        given = {name: (value or "").strip() for name, value in attrs}
        if tag == "meta" and "http-equiv" in given:
            policy = given["http-equiv"].lower() == "content-security-policy"
            self.guarded |= policy and _POLICY in given.get("content", "")
            self.active |= not policy
        for name, value in given.items():
            address = name.rpartition(":")[2] in ("src", "href", "srcset", "action", "data", "poster")
            allowed = _LINKS if tag == "a" else _INSIDE
            self.active |= name.startswith("on") or (address and not value.lower().startswith(allowed))


def _texts(package: dict[str, Any]) -> Iterator[str]:
    """What people wrote that both the data package and the page show."""
    lists = [package.get(key) for key in ("licenses", "contributors")]
    entries = [package, *(e for one in lists if isinstance(one, list) for e in one if isinstance(e, dict))]
    for entry in entries:
        for key in (
            "title",
            "description",
            "email",
            *(("name",) if "roles" not in entry and entry is not package else ()),
        ):
            if isinstance(entry.get(key), str):
                # A page may break long words, and lines where it likes.
                yield entry[key]


def check_report(
    folder: ReleaseFolder,
    document: ProtocolDocument,
    package: dict[str, Any],
    rows: int | None,
    render: Render | None = None,
) -> Check:
    """Whether the report is there, needs nothing else, and is about this release.

    Parameters
    ----------
    folder : ReleaseFolder
    document : ProtocolDocument
    package : JSON object
    rows : int or None
        Records released.
    version : str
    render : callable, optional
        Makes the page again from ``report.json``; then it has to be the same to the byte.
    """
    try:
        page = read_document(folder.report).decode("utf-8")
    except (DataError, UnicodeDecodeError) as error:
        return judged("report", [str(error) if isinstance(error, DataError) else "report.html is not UTF-8"], "")
    shown = html.unescape(page.replace("<wbr>", ""))

    def complaints() -> Iterator[str]:
        parsed = _Page()
        parsed.feed(page)
        if parsed.active or not parsed.guarded:
            yield "report.html runs or fetches something, or does not forbid that"
        version = str(package.get("version"))
        wanted = [document.guarantee.declared, version, document.mechanism]
        wanted += [] if rows is None else [f"{rows:,}"]
        if any(text not in shown for text in wanted):
            yield "report.html is about another guarantee, version, mechanism or number of records"
        if any(value not in shown for value in document.guarantee.secret + document.outputs.columns):
            yield "report.html is about other columns"
        if any(text not in shown for text in _texts(package)):
            yield "report.html has another title, description, licence or contact than datapackage.json"
        if render is not None:
            try:
                if render(read_document(folder.root / "report.json")) != page:
                    yield "report.html is not what its numbers make"
            except FunnelError as error:
                yield f"report.html cannot be made again: {error}"

    return judged("report", complaints(), "stands by itself, about this version")
