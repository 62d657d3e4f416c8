"""Every mutant of a published release is noticed by the check that is named for it, with and without evidence."""

from __future__ import annotations

import shutil

import pytest

from funnel.audit.check import State, overall
from funnel.audit.recheck import Told
from funnel.errors import DataError
from funnel.release.layout import ReleaseFolder
from funnel.release.signature import SignatureDocument
from tests.audits import recheck, verified
from tests.funnel.audit.forging import Forger
from tests.funnel.audit.mutants import MUTANTS, UNREADABLE, Mutant
from tests.projects import SPEC, make_project
from tests.releases import make_release

CONTACT = 'contact_name = "Office"\ncontact_email = "office@example.org"\n\n[history]'
CSV = "\n[output]\ncsv = true\n"


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> ReleaseFolder:
    return make_release(make_project(tmp_path_factory.mktemp("mutants"), SPEC.replace("[history]", CONTACT) + CSV))


def noticed(folder: ReleaseFolder, told: Told) -> set[str]:
    """Names of the checks that do not pass."""
    try:
        return {check.name for check in recheck(folder, told) if not check.passed}
    except DataError:
        return {UNREADABLE}


def mutated(mutant: Mutant, folder: ReleaseFolder) -> None:
    mutant.apply(Forger(folder))
    if mutant.covered and not mutant.internal:
        Forger(folder).cover()


def test_the_original_passes(honest: ReleaseFolder, copy: ReleaseFolder) -> None:
    assert overall(recheck(honest)) is State.PASSED
    # A copy elsewhere has no workspace, and so no record that was kept apart from it.
    assert noticed(copy, Told()) == {"kept record"}
    shutil.rmtree(copy.internal)
    key = SignatureDocument.read(copy.signature).public_key
    for told in (Told(public=True), Told(public=True, key=key)):
        assert overall(recheck(copy, told)) is State.PASSED
    assert noticed(copy, Told()) == {"evidence"}
    assert overall(recheck(copy)) is State.UNCHECKED


def test_a_release_that_is_only_covered_again_is_told_by_the_key_alone(copy: ReleaseFolder) -> None:
    key = SignatureDocument.read(copy.signature).public_key
    Forger(copy).cover()
    assert noticed(copy, Told()) == {"kept record"}
    shutil.rmtree(copy.internal)
    assert noticed(copy, Told(key=key, public=True)) == {"signature"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_noticed_with_the_evidence_and_on_the_public_copy(mutant: Mutant, copy: ReleaseFolder) -> None:
    """On the public copy by the files alone or by nothing, as it is said; and all by the key of the publisher."""
    key = SignatureDocument.read(copy.signature).public_key
    mutated(mutant, copy)
    if mutant.audit == UNREADABLE:
        assert noticed(copy, Told()) == {UNREADABLE}
    elif mutant.audit is not None:
        # The named check alone: what the others find is asked for on the public copy.
        assert any(not check.passed for check in verified(copy, [mutant.audit]))
    if mutant.internal:
        return
    reader = ReleaseFolder(copy.root.rename(copy.root.parent / "copy"))
    told = noticed(reader, Told(public=True, key=key))
    assert told & {"signature", UNREADABLE}
    if mutant.public == "signature":
        assert "signature" in noticed(reader, Told(public=True))
    elif mutant.public is not None:
        assert mutant.public in told
    else:
        # Nothing but the key: or this mutant belongs among those that are noticed.
        assert told == {"signature"}


def test_there_are_enough_and_those_that_nothing_tells_are_few() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert sum(bool(mutant.audit) for mutant in MUTANTS) >= 74
    assert sum(bool(mutant.public) for mutant in MUTANTS) >= 60
    untold = [mutant for mutant in MUTANTS if mutant.audit is None or (mutant.public is None and not mutant.internal)]
    assert all(mutant.why for mutant in untold)
    assert all(mutant.audit for mutant in MUTANTS if mutant.internal)
