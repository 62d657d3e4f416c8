"""Names of outputs, as a reader of protocol.json judges them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from funnel import Alphabet, Joint, Protocol
from funnel.audit.labels import check_labels
from funnel.guarantees import LIP
from funnel.naming import name_outputs
from funnel.protocol import DENOMINATOR
from funnel.release.protocol_document import protocol_document
from tests.public import UNPROTECTED, public_of


@pytest.mark.parametrize(("name", "holds"), [(None, True), ("no", False), ("others", False)])
def test_an_output_that_nobody_can_get_has_no_name(name: str | None, holds: bool) -> None:
    inputs = Alphabet(("kids",), (("no",), ("yes",)))
    weights = np.array([[DENOMINATOR, 0], [0, DENOMINATOR], [0, 0]], dtype=np.uint64)
    outputs = name_outputs(weights, inputs, ("kids",))
    assert outputs.symbols == (("no",), ("yes",), ("",))
    if name is not None:
        outputs = Alphabet(("kids",), (("maybe",), ("yes",), (name,)))
    joint = Joint.from_counts([[300, 280], [290, 310]], ["in", "out"], inputs)
    marginal = np.array([1 << 62, 1 << 62, 0], dtype=np.uint64)
    protocol = Protocol(weights, marginal, inputs, outputs, "optimal", "lip:1.0")
    document = protocol_document(protocol, LIP(1.0), public_of(joint, protocol, LIP(1.0)), UNPROTECTED)
    check = check_labels(SimpleNamespace(document=document))
    assert ("output 3 has a name" not in (check.detail or "")) is holds
    assert check.failed is not holds
