"""Pages that are made from the code: the reference of the library, of the command and of the spec; lists of decisions.

The library's pages hold one directive for each public name, which mkdocstrings replaces by its docstring.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# Hooks are files of their own to mkdocs, and what they import is not found beside them.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))
import architecture_map
import command_page
import settings_page

import funnel

ROOT = Path(__file__).parents[2]
# The rooms of public names, in the order in which a reader needs them, and what is in each.
ROOMS = {
    "joint": "The counts of secret and published values",
    "guarantees": "What may be promised, how a promise is decided, and levels",
    "mechanisms": "How a protocol is made",
    "solver": "The best protocol there is, with its proof",
    "protocol": "Channels of integer weights",
    "alphabet": "The values of a column, or of several",
    "sampling": "Drawing records with a protocol",
    "planning": "All mechanisms side by side",
    "donors": "Wide tables, records as they are or a donor's",
    "history": "Several versions about the same people",
    "frequencies": "Noise for what is published beside the records",
    "estimation": "From released records to true frequencies",
    "analysis": "Reading what was published",
    "measures": "Information, leakage, and what protocols are chosen by",
    "errors": "What can go wrong; every error is one sentence and an exit status of the command",
}
# What `import funnel` does not list, and its page does.
OTHER_NAMES = {
    "analysis": ("release.Release",),
    "errors": funnel.errors.__all__,
    "estimation": (
        "share_estimate.Estimate",
        "expected_errors.ExpectedErrors",
        "number_estimate.NumberEstimate",
        "odds.OddsRatios",
        "share_information.ShareInformation",
        "expected_errors.TableErrors",
        "trend.Trend",
        "means.estimate_numbers",
        "odds.estimate_odds",
        "trend.estimate_trend",
        "weighted.estimate_weighted",
    ),
    "guarantees": tuple(name for name in funnel.guarantees.__all__ if name[0].isupper()),
    "measures": funnel.measures.__all__,
    "mechanisms": ("names", "mechanism", "family.Mechanism"),
    "solver": ("request.Solution",),
}


def room_of(name: str) -> str:
    """The room of a public name."""
    return funnel._HOMES[name].partition(".")[0]


def names_of(room: str) -> list[str]:
    """The public names of a room, each with the module that has it."""
    own = [f"funnel.{funnel._HOMES[name]}.{name}" for name in funnel._HOMES if room_of(name) == room]
    return own + [f"funnel.{room}.{name}" for name in OTHER_NAMES.get(room, ()) if name not in funnel._HOMES]


def library() -> dict[str, str]:
    """A page for every room, and one that lists them."""
    index = [
        "# The library",
        "",
        "Every public name, by its package. `import funnel` has the common ones, and every kind of guarantee or error.",
        "",
    ]
    pages = {}
    for room, title in ROOMS.items():
        names = names_of(room)
        short = ", ".join(f"[`{name.rpartition('.')[2]}`]({room}.md#{name})" for name in names)
        index += [f"- [{title}]({room}.md): {short}"]
        blocks = [f"::: {name}" for name in names]
        pages[f"reference/python/{room}.md"] = "\n\n".join([f"---\ntitle: {room}\n---", f"# {title}", *blocks, ""])
    return {"reference/python/index.md": "\n".join([*index, ""]), **pages}


def decisions() -> str:
    """A list of the records of decisions."""
    lines = ["# Decisions", "", "Why some things are as they are, one record each.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join([*lines, ""])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    pages = {
        "decisions/index.md": decisions(),
        "reference/command.md": command_page.page(),
        "reference/modules.md": architecture_map.listing(),
        "reference/spec.md": settings_page.page(),
        **library(),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files
