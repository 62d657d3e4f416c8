"""What pages of docs/ link to outside docs/ is in the site too, and links between both lead to it there.

In the repository a link is a path from the file that holds it, ``../CHANGELOG.md`` for instance, so that it works where
the files are read. In the site that file is ``project/CHANGELOG.md``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# Pages of the repository that the navigation names whether or not another page does.
FIRST = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
OUTSIDE = "project/"
# Blocks and code hold no links.
_CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\(\s*)([^)\s]+)(?=[^)]*\))")


def links(text: str) -> Iterator[str]:
    """Where the links and pictures of a page lead."""
    return (found[2] for found in _LINK.finditer(_CODE.sub("", text)))


def in_repository(target: str, page: str) -> str | None:
    """The path from the top of what a link on a page leads to; None for an address and for a place on the page."""
    path = unquote(target.partition("#")[0])
    if not path or ":" in path:
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def in_site(path: str) -> str:
    """Where a file of the repository is in the site."""
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE + path


def origin(file: File) -> str:
    """Where a file of the site is in the repository."""
    return file.src_uri.removeprefix(OUTSIDE) if file.src_uri.startswith(OUTSIDE) else f"docs/{file.src_uri}"


def outside(pages: list[str]) -> list[str]:
    """Every file outside docs/ that these pages lead to, directly or by one another."""
    found: dict[str, None] = dict.fromkeys(FIRST)
    waiting = [*pages, *FIRST]
    while waiting:
        page = waiting.pop()
        for target in links((ROOT / page).read_text(encoding="utf-8")):
            path = in_repository(target, page)
            # What is not there the builder says, with the page.
            if path is None or path.startswith("docs/") or path in found or not (ROOT / path).is_file():
                continue
            found[path] = None
            if path.endswith(".md"):
                waiting.append(path)
    return list(found)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is linked."""
    for path in outside([f"docs/{file.src_uri}" for file in files.documentation_pages()]):
        files.append(File.generated(config, in_site(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let every link lead to where the site has what it means."""
    here, place = origin(page.file), posixpath.dirname(page.file.src_uri)

    def led(found: re.Match[str]) -> str:
        path = in_repository(found[2], here)
        if path is None:
            return found[0]
        target = in_site(path)
        if files.get_file_from_path(f"{target}/index.md") is not None:
            target = f"{target}/index.md"
        _, mark, anchor = found[2].partition("#")
        return found[1] + posixpath.relpath(target, place or ".") + mark + anchor

    # Between the pieces of code, which stay as they are.
    ends = [0, *(end for code in _CODE.finditer(markdown) for end in code.span()), len(markdown)]
    pieces = [markdown[start:end] for start, end in pairwise(ends)]
    return "".join(_LINK.sub(led, piece) if k % 2 == 0 else piece for k, piece in enumerate(pieces))
