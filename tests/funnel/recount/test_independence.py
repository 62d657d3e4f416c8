"""What judges shares no code with what makes: the room imports errors, the spec and the storage, and itself."""

import ast
from pathlib import Path

import funnel.recount

ALLOWED = {"funnel.errors", "funnel.spec", "funnel.storage"}
LIBRARIES = {"duckdb", "flint"}
# The driver of a database, and the one library that reads Arrow and ORC files; what reads files of other programs.
OF_ONE = {("databases.py", "psycopg")}
# AES itself, as in the gate's derivation of record keys.
OF_ONE |= {("noise.py", "cryptography")}
OF_ONE |= {("arrow_files.py", name) for name in ("pandas", "pyarrow", "pyreadstat", "openpyxl")}


def _imported(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(str(node.module))
    return found


def test_nothing_that_makes_a_release_is_imported() -> None:
    import sys

    files = sorted(Path(str(funnel.recount.__file__)).parent.glob("*.py"))
    assert len(files) > 5
    for file in files:
        for name in _imported(file):
            known = name in ALLOWED or name.startswith("funnel.recount") or name.split(".")[0] in LIBRARIES
            known = known or (file.name, name.split(".")[0]) in OF_ONE
            assert known or name.split(".")[0] in sys.stdlib_module_names, f"{file.name} imports {name}"
