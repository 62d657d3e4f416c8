"""The blocks of a page, run one after the other as a reader would, and what they print held against what is shown.

By its language a block is

- ``python``: run; where a ``text`` block follows, that is what it prints, to the letter, or as on the console where it
  is about what was drawn;
- ``pycon``: prompts with their answers, to the letter;
- ``console``: a ``$`` before every command, and below it what it prints. There ``…`` stands for anything, and on a line
  of its own for any lines; numbers may differ by a fifth or by 0.005, as noise and draws are others each time; times
  are not compared;
- ``r``: run by R where there is one, as ``python`` is, with nothing known of the blocks before; with a ``title`` it is
  only a file;
- ``toml``: a spec, or settings that make one together with the least that a spec says. With a ``title`` it is the
  content of the file of that name;
- ``json``: parsed;
- ``text`` and ``ini``: shown only.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from sybil import Document
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

from funnel.cli import main
from funnel.spec import ReleaseSpec

SHOWN_ONLY = ("text", "ini")
_BLOCK = RawFencedCodeBlockLexer(re.compile(r'(?P<language>\w*)(?: title="(?P<title>[^"]+)")?[ ]*$\n', re.MULTILINE))
_NUMBER = r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?"
_PART = re.compile(rf"(?P<any>…)|(?P<number>(?<![\w.-]){_NUMBER}(?![\w-]))|(?P<space>\s+)")
# Lines that tell how far a command is, which a terminal shows as a bar.
_PROGRESS = re.compile(r"^ *\d+\.\d s  .*\n", re.MULTILINE)
# The mechanisms of a plan, of which those that keep as much may change places.
_ROWS = re.compile(r"(?<=\n)(?:[a-z]+(?:-[a-z]+)* {2,}.*\n)+")
# Whatever the shell would read, not the command.
_SHELL = re.compile(r"[|&;<>$`*~]|^\w+=")
# An argument with a variable in it.
_VARIABLE = re.compile(r'(?<= )"([^"$]*)\$([A-Z_]+)([^"$]*)"')

_LOADED = re.compile(r"library\((\w+)\)")


@dataclass(frozen=True)
class Block:
    """One block of a page: the line it begins at, its language, the file it is the content of, and its text."""

    line: int
    language: str
    title: str | None
    text: str


def blocks_of(page: Path) -> list[Block]:
    """Every block of a page, in order."""
    document = Document.parse(str(page), _BLOCK)
    found = []
    for _, region in document.regions:
        line = document.text.count("\n", 0, region.start) + 1
        found.append(Block(line, region.lexemes["language"], region.lexemes["title"], str(region.lexemes["source"])))
    return found


def commands_in(text: str) -> list[tuple[str, str]]:
    """The commands of a block of the console, each with what is shown below it."""
    found: list[tuple[str, str]] = []
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = piece.splitlines(keepends=True)
        # A command goes on after a backslash, or until its quotes are closed.
        last = 1
        while lines[last - 1].endswith("\\\n") or "".join(lines[:last]).count("'") % 2:
            last += 1
        found.append(("".join(lines[:last]).strip(), "".join(lines[last:])))
    return found


def agree(shown: str, printed: str) -> bool:
    """Whether what is printed is what is shown: texts to the letter but for white space, numbers nearly."""
    timed = "time (s)" in shown
    shown, printed = (_ROWS.sub(_sorted, text) for text in (shown, printed))
    pattern, numbers = [], []
    for line in _PROGRESS.sub("", shown).splitlines():
        if line.strip() == "…":
            pattern.append(r"(?:.*\n)*?")
            continue
        end, parts = 0, []
        for part in _PART.finditer(line.strip()):
            parts.append(re.escape(line.strip()[end : part.start()]))
            end = part.end()
            if part["any"]:
                parts.append(".*?")
            elif part["space"]:
                parts.append(r"\s+")
            elif timed and end == len(line.strip()):
                parts.append(_NUMBER)
            else:
                parts.append(f"({_NUMBER})")
                numbers.append(part["number"])
        pattern.append("".join([*parts, re.escape(line.strip()[end:])]) + r"[ ]*\n")
    lines = "".join(f"{line.strip()}\n" for line in _PROGRESS.sub("", printed).splitlines())
    found = re.fullmatch("".join(pattern), lines)
    return found is not None and all(map(_near, numbers, found.groups()))


def _sorted(rows: re.Match[str]) -> str:
    ties = groupby(rows[0].splitlines(keepends=True), key=lambda row: row.split()[1])
    return "".join(row for _, tied in ties for row in sorted(tied))


def _near(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        left, right = (float(text.replace(",", "")) for text in (one, other))
    except ValueError:
        # A version, such as 1.0.0.
        return False
    return abs(left - right) <= max(0.2 * max(abs(left), abs(right)), 0.005)


@dataclass
class Reader:
    """Somebody who types what a page shows: where they are, what they have set, and what Python knows so far."""

    folder: Path
    home: Path
    left_out: dict[str, str]
    # Whether what is shown was made by drawing.
    drawn: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    status: int = 0
    known: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})

    def read(self, page: Path) -> None:
        """Run the page.

        Raises
        ------
        AssertionError
            With the line of the first block that does not do what the page says.
        """
        blocks = blocks_of(page)
        for number, block in enumerate(blocks):
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            try:
                with contextlib.chdir(self.folder):
                    self._run(block, after.text if after is not None and after.language == "text" else None)
            except Exception as error:
                raise AssertionError(f"{page.name}, line {block.line}: {error}") from error

    def _run(self, block: Block, answer: str | None) -> None:
        if block.title is not None:
            Path(block.title).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, "page", "exec"), self.known)
            said = printed.getvalue()
            same = said == (answer or "") or (self.drawn and answer is not None and agree(answer, said))
            assert same, f"printed\n{said}"
        elif block.language == "r" and block.title is None and not _has_r_for(block.text):
            pass
        elif block.language == "r" and block.title is None:
            said = self._shell(f"Rscript -e {shlex.quote(block.text)}")
            assert self.status == 0, said
            assert answer is not None, "nothing is shown of what R prints"
            assert agree(answer, said), f"printed\n{said}"
        elif block.language == "pycon":
            self._prompts(block.text)
        elif block.language == "console":
            assert block.text.startswith("$ "), "a block of the console begins with a command"
            for command, shown in commands_in(block.text):
                with contextlib.chdir(self.folder):
                    self._type(command, shown)
        elif block.language == "toml":
            check_settings(block.text)
        elif block.language == "json":
            json.loads(block.text)
        else:
            assert block.language in (*SHOWN_ONLY, "r"), f"a block of the language {block.language!r}: is it to be run?"

    def _prompts(self, text: str) -> None:
        examples = doctest.DocTestParser().get_doctest(text, self.known, "page", "page", 0)
        failures: list[str] = []
        doctest.DocTestRunner(verbose=False).run(examples, out=failures.append, clear_globs=False)
        self.known.update(examples.globs)
        assert not failures, "".join(failures)

    def _type(self, command: str, shown: str) -> None:
        if command.startswith(tuple(self.left_out)):
            return
        if found := re.fullmatch(r"cd (\S+)", command):
            self.folder = (self.folder / found[1].replace("~", str(self.home))).resolve()
            assert self.folder.is_dir(), f"{command}: there is no such folder"
            return
        if found := re.fullmatch(r"(?:export )?([A-Z_]+)=(\$\(.*\)|\S*)", command):
            said = self._shell(f"printf %s {found[2]}")
            self.environment[found[1]] = said
            return
        told = _VARIABLE.sub(self._told, command)
        expected, printed = shown, self._funnel(told) if _is_plain(told) else self._shell(command)
        fails = re.search(r'^funnel: |^FAIL |"status": "failed"', expected, re.MULTILINE) is not None
        assert (self.status != 0) == fails, f"{command}\nended with {self.status}\n{printed}"
        assert not expected.strip() or agree(expected, printed), f"{command}\nprinted\n{printed}"

    def _told(self, argument: re.Match[str]) -> str:
        """An argument with what its variable stands for; as it is where that was never set."""
        before, name, after = argument.groups()
        known = {"PWD": str(self.folder), **self.environment}
        return shlex.quote(before + known[name] + after) if name in known else argument[0]

    def _funnel(self, command: str) -> str:
        """In this process, which has imported what a command needs."""
        done = CliRunner(env={"PREFECT_API_URL": None, **self.environment}).invoke(main, shlex.split(command)[1:])
        self.status = done.exit_code
        return done.output

    def _shell(self, command: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.status}); {command}"],
            env={**os.environ, **self.environment, "PATH": path, "HOME": str(self.home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.status = done.returncode
        return done.stdout


def _has_r_for(text: str) -> bool:
    """Whether R is here, and the packages that a block of it loads: only R itself is installed for the tests."""
    if shutil.which("Rscript") is None:
        return False
    loaded = "; ".join(f'stopifnot(requireNamespace("{name}", quietly = TRUE))' for name in _LOADED.findall(text))
    return not loaded or subprocess.run(["Rscript", "-e", loaded], capture_output=True, check=False).returncode == 0


def _is_plain(command: str) -> bool:
    return command.startswith("funnel ") and _SHELL.search(command) is None


def check_settings(text: str) -> None:
    """Settings of a page make a spec, with the least that a spec says where they do not say it.

    Raises
    ------
    SpecError
        If they do not.
    """
    settings = tomllib.loads(text)
    told = settings.get("publish", [])
    groups = [] if isinstance(told, str) else [[part] if isinstance(part, str) else part for part in told]
    published = [name for group in groups for name in group]
    least: dict[str, Any] = {
        "name": "people",
        "title": "People",
        "secret": ["disease"],
        "publish": [],
        "guarantee": "lip:1.0",
        "source": {"path": "people.parquet"},
        "metadata": {"licence": "CC-BY-4.0"},
    }
    for section, values in settings.items():
        merged = isinstance(values, dict) and isinstance(least.get(section), dict)
        least[section] = {**least[section], **values} if merged else values
    # What settings say of columns, they say of columns that are published.
    columns = [*settings.get("recode", {}), *settings.get("numbers", {}), *settings.get("categories", {})]
    others = [name for name in dict.fromkeys(columns) if name not in (*least["secret"], *published)]
    if "publish" not in settings:
        least["publish"] = others or ["education"]
    ReleaseSpec.of(least)
