"""Learned: which values of a source have names, where that was learned under noise: once, and never again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from funnel.alphabet import Alphabet
from funnel.frequencies.noise import NoiseSecret
from funnel.progress import Progress
from funnel.readers.formats import Source
from funnel.release.cache import Cache
from funnel.release.document import dump
from funnel.release.earlier import Earlier
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.secret import noise_root
from funnel.sampling.keyed import RecordKey
from funnel.sampling.unit_order import first_rows
from funnel.source.coding import Codings
from funnel.source.counting import recoded
from funnel.source.fitting import require_few_set_aside
from funnel.source.learning import learn_codings
from funnel.source.naming import columns_to_learn
from funnel.spec import ReleaseSpec

_FILE = "values.json"


def learned_codings(
    spec: ReleaseSpec,
    source: Source,
    source_sha256: str,
    workspace: Path,
    progress: Progress,
    record_key: RecordKey | None = None,
) -> Codings:
    """The codings of a source; names that have to be learned under noise are those that were learned before.

    Parameters
    ----------
    spec : ReleaseSpec
    source : Source
    source_sha256 : str
        Digest of it.
    workspace : Path
        Private folder of the series, where what is learned is kept.
    progress : callable
    record_key : RecordKey, optional
        Needed where units may have several rows: names are then learned from the first one of each, since one unit more
        or less must not change more than one row.

    Raises
    ------
    DataError
        If the source does not fit the spec.
    """
    key = values_digest(spec, source_sha256, record_key)
    if key is None:
        return recoded(spec, source, progress)
    cache = Cache(workspace / "values")
    found = cache.find(key)
    if found is not None:
        codings = learn_codings(spec, source, progress, known=json.loads(found[_FILE]))
        require_few_set_aside(spec, codings)
        return codings
    naming = None
    if spec.follows_units:
        if record_key is None:
            raise ValueError("units that are followed have record keys")
        progress("looking up units", 0, None)
        naming = first_rows(source.batches(record_key.columns), record_key, spec.source.missing)
    secret = NoiseSecret(noise_root(workspace, spec.name), source_sha256)
    codings = learn_codings(spec, source, progress, naming=naming, secret=secret)
    cache.keep(key, {_FILE: dump(codings.labels)})
    # After they are kept: another run does not pay for them again.
    require_few_set_aside(spec, codings)
    return codings


def values_digest(spec: ReleaseSpec, source_sha256: str, record_key: RecordKey | None = None) -> str | None:
    """SHA-256 (hex) of what learned names are learned from, and how; None where none are."""
    if not columns_to_learn(spec):
        return None
    # Which row of a unit is its first depends on the secret.
    units = [record_key.fingerprint, record_key.series] if spec.follows_units and record_key is not None else []
    return hashlib.sha256(json.dumps([source_sha256, spec.coding_digest, *units]).encode()).hexdigest()


def recall_values(earlier: Iterable[Earlier], workspace: Path) -> None:
    """Note in the workspace what earlier versions published of learned names, where that was lost.

    Parameters
    ----------
    earlier : iterable of Earlier
    workspace : Path
        Private folder of the series.
    """
    cache = Cache(workspace / "values")
    for one in earlier:
        frequencies = one.record.frequencies
        if one.folder is None or frequencies.values is None:
            continue
        if cache.find(frequencies.values) is None:
            document = FrequenciesDocument.read(one.folder.frequencies)
            labels = {**_labels(document.secret.alphabet()), **_labels(document.inputs.alphabet())}
            cache.keep(frequencies.values, {_FILE: dump(labels)})


def _labels(alphabet: Alphabet) -> Mapping[str, list[str]]:
    """The values of each column in order, of an alphabet that is the product of these."""
    return {
        column: list(dict.fromkeys(symbol[j] for symbol in alphabet.symbols))
        for j, column in enumerate(alphabet.columns)
    }
