"""The published JSON Schemas of all documents, one file a version; `python -m funnel.schemas` renews them."""

from __future__ import annotations

import json
from pathlib import Path

from funnel.audit.check import AuditDocument
from funnel.register.entry import RegisterEntry, RegisterHead
from funnel.release.approval import Outcome
from funnel.release.classes_document import ClassesDocument
from funnel.release.comparison import ComparisonDocument
from funnel.release.document import Document
from funnel.release.documents import DrawsDocument, JointDocument, PartsDocument, WordsDocument
from funnel.release.drawing_document import DrawingDocument
from funnel.release.findings import FindingsDocument
from funnel.release.frequencies_document import FrequenciesDocument
from funnel.release.internal_report import InternalReport
from funnel.release.privacy_block import PrivacyBlock
from funnel.release.protocol_document import ProtocolDocument
from funnel.release.public_report import PublicReport
from funnel.release.record import Record
from funnel.release.series_index import SeriesIndex
from funnel.release.signature import SignatureDocument
from funnel.release.verdict import Verdict

FOLDER = Path(__file__).parent
DOCUMENTS: tuple[type[Document], ...] = (
    AuditDocument,
    ClassesDocument,
    ComparisonDocument,
    DrawingDocument,
    DrawsDocument,
    FindingsDocument,
    FrequenciesDocument,
    InternalReport,
    JointDocument,
    Outcome,
    PartsDocument,
    PrivacyBlock,
    ProtocolDocument,
    PublicReport,
    Record,
    RegisterEntry,
    RegisterHead,
    SeriesIndex,
    SignatureDocument,
    Verdict,
    WordsDocument,
)


def schema_file(document: type[Document], folder: Path = FOLDER) -> Path:
    """Where the schema of the newest version of a document is published."""
    name, version = document.identity()
    return folder / f"{name}-{version}.json"


def schema_text(document: type[Document]) -> bytes:
    """The schema of a document, line by line, so that a change of it is seen."""
    return (json.dumps(document.json_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def renew(folder: Path = FOLDER) -> list[Path]:
    """Write the schema of every document of the code; returns the files that were others or not there before."""
    renewed = []
    for document in DOCUMENTS:
        path, text = schema_file(document, folder), schema_text(document)
        if not path.is_file() or path.read_bytes() != text:
            path.write_bytes(text)
            renewed.append(path)
    return renewed
