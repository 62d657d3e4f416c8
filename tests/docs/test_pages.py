"""Every command and every block of code of the pages is run, and prints what the page shows."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import Reader, agree, blocks_of, commands_in

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    if page.parent.name != "decisions"
)
TUTORIAL = "docs/tutorial.md"
QUESTIONS = "docs/questions.md"
# Read in a clone of the project; all others in a folder of their own.
IN_THE_PROJECT = ("README.md", "CONTRIBUTING.md", TUTORIAL)
# Begin where the tutorial ends, and say so.
AFTER_THE_TUTORIAL = (
    "docs/analyses.md",
    "docs/formats.md",
    "docs/ledger.md",
    "docs/operations.md",
    "docs/validation.md",
    "docs/guides/data-user.md",
    "docs/guides/officer.md",
    "docs/guides/steward.md",
)
# Likewise, where the three questions are answered.
AFTER_THE_QUESTIONS = ("docs/estimation.md",)
# Make releases of their own, so that what they show was drawn.
DRAWN = (QUESTIONS,)
# What no test types, by how it begins, and why.
LEFT_OUT = {
    "make ": "makes the environment in which the tests run, or runs the tests",
    "git ": "changes the clone",
    "pip install": "changes the environment; scripts/check-installs.sh does it in a clean one",
    "prefect ": "a server that does not end; tests/flows/test_server.py has one",
    "sudo ": "changes the machine",
    "funnel watch": "does not end; tests/flows/test_watch.py",
    "funnel forget": "asks for a register; tests/flows/test_forget.py has one",
    "pg_dump": "asks a server that is not there; tests/ledger has one",
    "funnel share releases/people s3:": "asks a store that is not there; tests/funnel/release/test_sharing.py has one",
    "FUNNEL_CKAN_TOKEN": "asks a portal that is not there; tests/funnel/release/test_sharing.py has one",
    "FUNNEL_DATAVERSE_TOKEN": "asks a Dataverse that is not there; tests/funnel/release/test_dataverse.py has one",
}


@pytest.fixture(scope="module", autouse=True)
def seeded() -> Iterator[None]:
    """The same noise on the frequencies in every run, since protocols hang on it; records are drawn as ever."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("funnel.frequencies.noise.fresh_key", lambda: hashlib.sha256(b"pages").digest())
        patch.setattr("funnel.release.secret.fresh_text", lambda: hashlib.sha256(b"pages").hexdigest())
        yield


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of somebody who has read the tutorial."""
    home = tmp_path_factory.mktemp("home")
    Reader(ROOT, home, LEFT_OUT, drawn=True).read(ROOT / TUTORIAL)
    return home


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of somebody who has read the three questions."""
    home = tmp_path_factory.mktemp("home")
    at_home(QUESTIONS, home).read(ROOT / QUESTIONS)
    return home


def at_home(page: str, home: Path) -> Reader:
    """Somebody with the data of the project in a folder of their own."""
    for name in ("adult.parquet", "adult-education.toml"):
        shutil.copy(ROOT / "data" / name, home)
    return Reader(home, home, LEFT_OUT, drawn=page in DRAWN)


def reader_of(page: str, home: Path, request: pytest.FixtureRequest) -> Reader:
    """Somebody who begins to read a page."""
    if page in IN_THE_PROJECT:
        return Reader(ROOT, home, LEFT_OUT)
    if page in AFTER_THE_TUTORIAL:
        shutil.copytree(request.getfixturevalue("tutorial") / "adult", home / "adult", symlinks=True)
        return Reader(home / "adult", home, LEFT_OUT, drawn=True)
    if page in AFTER_THE_QUESTIONS:
        shutil.copytree(request.getfixturevalue("questions"), home, symlinks=True, dirs_exist_ok=True)
        return Reader(home, home, LEFT_OUT, drawn=True)
    return at_home(page, home)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if page in (TUTORIAL, QUESTIONS):
        request.getfixturevalue({TUTORIAL: "tutorial", QUESTIONS: "questions"}[page])
    else:
        reader_of(page, tmp_path, request).read(ROOT / page)


def test_what_is_left_out_is_on_a_page() -> None:
    """So that the list stays as short as it is."""
    typed = [
        command
        for page in PAGES
        for block in blocks_of(ROOT / page)
        if block.language == "console"
        for command, _ in commands_in(block.text)
    ]
    for beginning in LEFT_OUT:
        assert any(command.startswith(beginning) for command in typed), beginning
    assert len(typed) > 3 * sum(command.startswith(tuple(LEFT_OUT)) for command in typed)


@pytest.mark.parametrize("page", PAGES)
def test_commands_stand_in_blocks_with_a_language(page: str) -> None:
    """What is only indented would be run by nobody."""
    text = (ROOT / page).read_text(encoding="utf-8")
    around = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    # An indented line is code where it does not go on with a list.
    assert re.search(r"^(?![ \-*\d|])[^\n]+\n\n {4,}\S", around, flags=re.MULTILINE) is None
    assert all(block.language for block in blocks_of(ROOT / page))


def test_pages_after_others_say_so() -> None:
    for others, before in ((AFTER_THE_TUTORIAL, "the tutorial"), (AFTER_THE_QUESTIONS, "three questions")):
        for page in others:
            said = " ".join((ROOT / page).read_text(encoding="utf-8").lower().split())
            assert f"in the folder that [{before}](" in said, page


def test_what_is_shown_is_compared() -> None:
    """So that a page that says something else is noticed; but mechanisms that keep as much may change places."""
    plan = "mechanism  of H(X)  time (s)\nbest  92.2%  1.5\nfirst  51.0%  0.1\nsecond  51.0%  0.1\n"
    assert agree("mechanism  of H(X)  time (s)\nbest  92.0%  9.5\nsecond  51.0%  0\nfirst  51.0%  0\n", plan)
    assert not agree("mechanism  of H(X)  time (s)\nfirst  51.0%  0\nsecond  51.0%  0\nbest  92.0%  9.5\n", plan)
    printed = "   1.2 s  counting\nkept 92.4% of it\nRelease: /tmp/x/1.0.0\nmade: twice\n"
    assert agree("kept 92.2% of  it\nRelease: …/1.0.0\nmade: twice\n", printed)
    assert agree("…\nmade: twice\n", printed)
    for wrong in (
        "kept 52.2% of it\nRelease: …/1.0.0\nmade: twice\n",
        "kept 92.2% of all\nRelease: …/1.0.0\nmade: twice\n",
        "kept 92.2% of it\nRelease: …/1.0.1\nmade: twice\n",
        "kept 92.2% of it\nmade: twice\n",
        "kept 92.2% of it\n…\nmade: once\n",
    ):
        assert not agree(wrong, printed), wrong


@pytest.mark.parametrize(
    "block",
    [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\n1 / 0\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ funnel plan nothing.toml\n```\n",
        '```toml\nguarantee = "lap:1.0"\n```\n',
        "```json\n{\n```\n",
        "```perl\n1\n```\n",
    ],
)
def test_a_block_that_does_not_do_what_it_says_fails(block: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(block, encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md, line 1: "):
        Reader(tmp_path, tmp_path, {}).read(page)
