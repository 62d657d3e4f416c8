"""A whole release under every kind of guarantee, and by the mechanisms whose protocols are of another shape."""

from __future__ import annotations

import html
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from funnel import Protocol, parse_guarantee
from funnel.guarantees import names
from funnel.protocol import DENOMINATOR
from funnel.readers.source_files import file_digest
from funnel.release.layout import ReleaseFolder
from tests.audits import recheck
from tests.projects import SPEC, adult_rows, make_project
from tests.releases import make_release
from tests.schemas import validated_file

# Guarantee, mechanism, secret, published columns.
RELEASES = {
    "lip": ("lip:1.0", "optimal", "marital-status", ["relationship"]),
    "alip": ("alip:1.3,0.7", "auto", "marital-status", ["relationship"]),
    "ldp": ("ldp:1.0", "auto", "marital-status", ["relationship"]),
    "srlip": ("srlip:1.0", "optimal", "income", ["sex", "race"]),
    "pml": ("pml:1.0", "auto", "marital-status", ["relationship"]),
    "rlip": ("rlip:1.0,0.05", "optimal", "sex", ["relationship"]),
    "ralip": ("ralip:1.3,0.7,0.1", "auto", "sex", ["relationship"]),
    "rpml": ("rpml:1.0", "auto", "sex", ["relationship"]),
    "rldp": ("rldp:2.0,0.05", "optimal", "sex", ["relationship"]),
    "robust and with the secret": ("rldp:2.0,0.05,chi2", "robust-conditional-reporting", "sex", ["race"]),
    "perfect": ("perfect", "auto", "sex", ["education"]),
    "l1-lift": ("l1-lift:lower=inf,upper=0.5", "auto", "marital-status", ["relationship"]),
    "chi2-lift": ("chi2-lift:1.0,0.5", "auto", "marital-status", ["relationship"]),
    "alpha-lift": ("alpha-lift:1.0,0.5,3", "auto", "marital-status", ["relationship"]),
    "mi": ("mi:0.05", "auto", "marital-status", ["relationship"]),
    "attribute": ("attribute:1.0", "auto", "income", ["sex", "race"]),
    "rsrlip": ("rsrlip:1.5", "grr", "income", ["sex", "race"]),
    "rattribute": ("rattribute:1.5,0.05", "grr", "income", ["sex", "race"]),
    "several": ("rlip:1.0,0.05 & srlip:1.0", "auto", "income", ["sex", "race"]),
    "product": ("srlip:1.0", "side-channel-product", "income", ["sex", "race"]),
    "with the secret": ("lip:0.5", "optimal-with-secret", "sex", ["race"]),
    "sets": ("lip:1.0", "oue", "marital-status", ["race"]),
}


def released(folder: Path, case: str) -> ReleaseFolder:
    guarantee, mechanism, secret, publish = RELEASES[case]
    spec = (
        SPEC.replace('"marital-status"', f'"{secret}"')
        .replace('["relationship"]', json.dumps(publish))
        .replace("lip:1.0", guarantee)
        .replace(
            "[source]",
            f'[mechanism]\nname = "{mechanism}"\nreads_secret = {str("secret" in case).lower()}\n\n[source]',
        )
    )
    if guarantee == "perfect":
        # Of single values nothing can be told then.
        spec = spec.replace("[disclosure]", '[disclosure]\nblank = ["education"]')
    table = adult_rows(0, 2000)
    if guarantee.startswith("r"):
        # Worst cases over a confidence set take long; two races show the same.
        table = table.filter(pc.is_in(table["race"], pa.array(["Black", "White"])))
    return make_release(make_project(folder, spec, table))


def failed(release: ReleaseFolder) -> set[str]:
    return {check.name for check in recheck(release) if not check.passed}


def tamper(release: ReleaseFolder) -> None:
    """Let every value have an output of its own as far as they go, and sign that with new digests."""
    honest = Protocol.from_json(release.protocol.read_text())
    b, a = honest.size
    weights = np.zeros((b, a), dtype=np.uint64)
    weights[np.arange(a) % b, np.arange(a)] = DENOMINATOR
    altered = Protocol(weights, honest.marginal, honest.inputs, honest.outputs, honest.mechanism, honest.guarantee)
    document = json.loads(release.protocol.read_text())
    release.protocol.write_text(json.dumps(document | altered.to_dict() | {"guarantee": document["guarantee"]}))
    package = json.loads(release.package.read_text())
    package["funnel:privacy"]["protocol"]["hash"] = f"sha256:{file_digest(release.protocol)}"
    release.package.write_text(json.dumps(package))


def test_every_kind_is_here() -> None:
    assert {parse_guarantee(text).name for text, *_ in RELEASES.values()} == set(names())


@pytest.mark.parametrize("case", RELEASES)
def test_a_release_is_made_checked_and_told_from_a_forgery(case: str, tmp_path: Path) -> None:
    guarantee, mechanism, _, publish = RELEASES[case]
    bound = parse_guarantee(guarantee)
    release = released(tmp_path, case)
    documents = [release.protocol, release.joint, release.draws, release.findings, release.verdict, release.record]
    documents += [*(tmp_path / ".funnel" / "people").rglob("comparison.json")]
    named = {"protocol", "joint", "draws", "findings", "verdict", "record", "comparison"}
    assert {*map(validated_file, documents)} == named
    assert failed(release) == set()
    protocol = Protocol.from_json(release.protocol.read_text())
    assert protocol.guarantee == str(bound)
    assert protocol.mechanism == mechanism or mechanism == "auto"
    assert protocol.outputs.columns == tuple(publish)
    # More than one output, or the checks above would be about nothing; unary encoding publishes sets.
    assert protocol.size[0] > 1
    assert (("{Black, White}",) in protocol.outputs.symbols) == (case == "sets")
    assert json.loads(release.package.read_text())["funnel:privacy"]["guarantee"] == str(bound)
    report = html.unescape(release.report.read_text())
    assert str(bound) in report
    assert bound.title in report.replace("&#39;", "'")
    tamper(release)
    assert "leakage" in failed(release)
