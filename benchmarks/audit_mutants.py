"""Which check notices which mutant of a release, as a table: with evidence, on the public copy, by the key."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from funnel.audit.recheck import Told  # noqa: E402
from funnel.errors import DataError  # noqa: E402
from funnel.release.layout import ReleaseFolder  # noqa: E402
from funnel.release.signature import SignatureDocument  # noqa: E402
from tests.audits import recheck  # noqa: E402
from tests.copies import copied  # noqa: E402
from tests.funnel.audit.forging import Forger  # noqa: E402
from tests.funnel.audit.mutants import MUTANTS, Mutant  # noqa: E402
from tests.funnel.audit.test_mutants import CONTACT, CSV  # noqa: E402
from tests.projects import SPEC, make_project  # noqa: E402
from tests.releases import make_release  # noqa: E402

TABLE = ROOT / "benchmarks" / "results" / "audit-mutants.md"


def noticed(folder: ReleaseFolder, told: Told) -> list[str]:
    """Checks that do not pass; none are counted that do not pass for an honest copy either."""
    try:
        return [check.name for check in recheck(folder, told) if not check.passed and check.name != "kept record"]
    except DataError:
        return ["cannot be read"]


def row(mutant: Mutant, original: ReleaseFolder, place: Path) -> tuple[str, list[str], list[str] | None]:
    """Name of a mutant, what notices it with evidence, and on the public copy; None if that is the honest one."""
    folder = copied(original, place / "1.0.0")
    mutant.apply(Forger(folder))
    if mutant.covered and not mutant.internal:
        Forger(folder).cover()
    with_audit = noticed(folder, Told())
    if mutant.internal:
        return mutant.name, with_audit, None
    # Under another name, as a reader keeps it.
    folder = ReleaseFolder(folder.root.rename(place / "copy"))
    return mutant.name, with_audit, noticed(folder, Told(public=True))


def main() -> None:
    """Write the table."""
    with tempfile.TemporaryDirectory() as folder:
        original = make_release(make_project(Path(folder) / "project", SPEC.replace("[history]", CONTACT) + CSV))
        key = SignatureDocument.read(original.signature).public_key
        assert noticed(original, Told(key=key)) == []
        rows = []
        for number, mutant in enumerate(MUTANTS):
            (place := Path(folder) / str(number)).mkdir()
            rows.append(row(mutant, original, place))
    whys = {mutant.name: mutant.why for mutant in MUTANTS}
    public = [found for _, _, found in rows if found is not None]
    lines = [
        "# Mutants of a published release",
        "",
        "Made by `python benchmarks/audit_mutants.py` from a release of 3,000 records with its csv. Each is one "
        "change by a forger who makes all digests and sizes fit and signs again with a key of their own. With the "
        "publisher's key (`funnel audit --public-key`) every change of a public file is noticed by the check "
        "*signature*, those too that nothing else can tell.",
        "",
        f"With internal evidence {sum(bool(found) for _, found, _ in rows)} of {len(rows)} are noticed without any "
        f"key, on the public copy {sum(map(bool, public))} of {len(public)}.",
        "",
        "| mutant | noticed with evidence by | noticed on the public copy by | why not |",
        "|---|---|---|---|",
    ]
    for name, internal, shown in rows:
        seen = "(only evidence is changed)" if shown is None else ", ".join(shown) or "—"
        why = whys[name] if not internal or shown == [] else ""
        lines.append(f"| {name} | {', '.join(internal) or '—'} | {seen} | {why} |")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(lines[4])


if __name__ == "__main__":
    main()
