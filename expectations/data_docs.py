"""Data Docs: what was expected and found as pages of Great Expectations, written on demand and readable offline."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from funnel.pipeline.expectations.judging import Judged, evaluate
from funnel.release.verdict import Judgement, Verdict

INDEX = "index.html"
# The pages of Great Expectations load styles and scripts from ten places; what is judged is nobody else's business.
_ELSEWHERE = re.compile(
    r"<script\b[^>]*\bsrc=[^>]*>\s*</script>|<script\b.*?</script>|<link\b[^>]*>|<img\b[^>]*>|<form\b.*?</form>",
    re.DOTALL | re.IGNORECASE,
)
_LINK = re.compile(r"""<a\b[^>]*\bhref=["']https?:[^>]*>(.*?)</a>""", re.DOTALL | re.IGNORECASE)
_FETCHED = re.compile(r"""url\(\s*["']?https?:[^)]*\)""", re.IGNORECASE)
_POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="referrer" content="no-referrer">'
)
_STYLE = (
    "<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #888;padding:.4rem;text-align:left;"
    "vertical-align:top}</style>"
)


def data_docs(evidence: Judged, folder: Path) -> Verdict:
    """Judge, and write what was expected and found as pages of Great Expectations, each expectation as a sentence.

    Parameters
    ----------
    evidence : TableEvidence, Evidence or Finished
    folder : Path
        Where the pages go, ``index.html`` first; made if it is not there. Those on a `Finished` release are internal:
        they hold exact figures.

    Returns
    -------
    Verdict
        The same as of `funnel.pipeline.expectations.judge`.

    Raises
    ------
    OSError
        If the folder cannot be written.

    Notes
    -----
    Nothing is loaded when a page is opened: scripts, styles and pictures that it would fetch from elsewhere are left
    out, and its policy forbids others.
    """
    from funnel.pipeline.expectations.engine import page

    evaluated = evaluate(evidence)
    verdict = Verdict.of(evaluated.judgements)
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for name, results in evaluated.results.items():
        told = []
        for result in results.results:
            # No page can be made of one without its configuration; the verdict says that it was lost.
            if result.expectation_config is not None:
                # Pages take it for markup, and names of columns may be anything.
                result.expectation_config.description = escape(result.expectation_config.description or "")
                told.append(result)
        results.results = told
        (folder / f"{name}.html").write_text(_alone(page(results)), encoding="utf-8")
        pages.append(name)
    (folder / INDEX).write_text(_index(verdict, pages), encoding="utf-8")
    return verdict


def _alone(page: str) -> str:
    """A page without anything that is fetched from elsewhere or runs."""
    bare = _FETCHED.sub("none", _LINK.sub(r"\1", _ELSEWHERE.sub("", page)))
    return re.sub(r"<head>", f"<head>{_POLICY}{_STYLE}", bare, count=1, flags=re.IGNORECASE)


def _index(verdict: Verdict, pages: list[str]) -> str:
    rows = "\n".join(map(_row, verdict.results))
    links = "\n".join(f'<li><a href="{page}.html">{page}</a></li>' for page in pages)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{_POLICY}<meta charset="utf-8"><title>What was judged</title>{_STYLE}'
        f"</head>\n<body><h1>What was judged</h1>\n<p>{escape(verdict.sentence())}.</p>\n"
        f"<table><tr><th>Result</th><th>Expected</th><th>Failure</th></tr>\n{rows}\n</table>\n"
        f"<h2>As Great Expectations shows it</h2>\n<ul>\n{links}\n</ul></body></html>\n"
    )


def _row(result: Judgement) -> str:
    return (
        f"<tr><td>{'Met' if result.passed else 'Not met'}</td><td>{escape(result.description)}</td>"
        f"<td>{escape(result.failure or '')}</td></tr>"
    )
