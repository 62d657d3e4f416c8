"""The map of the project in docs/architecture.md, made of the first lines of its packages and modules.

``python scripts/architecture_map.py`` writes it anew; a test compares it.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
FOLDERS = ("funnel", "flows", "tasks", "expectations", "ledger", "reproduce/funnel_papers")
BEGIN, END = "<!-- map: python scripts/architecture_map.py -->\n", "<!-- end of map -->"


def first_line(module: Path) -> str:
    """What a module is, in the first line of its docstring."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    line = text.partition("\n")[0]
    if not line.endswith((".", "?")):
        raise ValueError(f"{module}: the first line of the docstring must be a sentence that says what the module is")
    return line.removesuffix(".")


def packages(folder: str) -> list[Path]:
    """A folder and the packages below it, as folders."""
    return sorted(path.parent for path in (ROOT / folder).rglob("__init__.py") if "pipeline" not in path.parts)


def modules(package: Path) -> list[Path]:
    """The modules of a package."""
    return sorted(path for path in package.glob("*.py") if path.name != "__init__.py")


def overview() -> str:
    """A line for every package, and for every module that is in none."""
    lines = ["| | |", "| --- | --- |"]
    for folder in FOLDERS:
        for package in packages(folder):
            lines.append(f"| **`{package.relative_to(ROOT)}/`** | {first_line(package / '__init__.py')} |")
            if package == ROOT / "funnel":
                lines += [f"| `funnel/{path.name}` | {first_line(path)} |" for path in modules(package)]
    return "\n".join([*lines, ""])


def listing() -> str:
    """Every module of every package, for the site."""
    lines = ["# Modules", "", "Every package with its modules, each by the first line of its file.", ""]
    for folder in FOLDERS:
        for package in packages(folder):
            lines += [f"## {package.relative_to(ROOT)}", "", f"{first_line(package / '__init__.py')}.", ""]
            lines += [f"- `{path.name}`: {first_line(path)}" for path in modules(package)]
            lines += [""]
    return "\n".join(lines)


def with_map(page: str) -> str:
    """The page with the map as the code is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{overview()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_map(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
