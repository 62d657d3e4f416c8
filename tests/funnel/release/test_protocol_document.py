"""The protocol as a document: what it tells of every symbol is told of every one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from funnel import LIP, Joint, fit
from funnel.errors import DataError
from funnel.release.protocol_document import ProtocolDocument, protocol_document
from tests.public import UNPROTECTED, public_of

JOINT = Joint.from_counts([[30, 20, 5], [10, 40, 7]])


def told(numbers: list[float]) -> dict[str, Any]:
    """A protocol of three symbols that was chosen by the variance of these numbers of theirs."""
    protocol = fit("grr", JOINT, LIP(0.5))
    content = protocol_document(protocol, LIP(0.5), public_of(JOINT, protocol, LIP(0.5)), UNPROTECTED).content()
    content["utility"]["explained"] = {"variance_share": 0.5, "numbers": numbers}
    return content


@pytest.mark.parametrize("numbers", [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
def test_every_symbol_has_one_number(numbers: list[float]) -> None:
    whole = told([1.0, 2.0, 3.0])
    assert ProtocolDocument.from_json(json.dumps(whole)).content() == whole
    with pytest.raises(DataError, match="does not have one number for every symbol"):
        ProtocolDocument.from_json(json.dumps(told(numbers)))
