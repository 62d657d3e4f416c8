"""Joint laws with the output, for protocols that read the secret and for those that do not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from funnel import Joint, Protocol, SpecError, measures
from tests.funnel.measures.channels import channels, full_law


@settings(max_examples=50)
@given(channels())
def test_every_law_is_a_marginal_of_the_full_one(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    law = full_law(joint, protocol)
    assert measures.counted_distribution(joint, protocol, "inputs") == pytest.approx(law.sum(axis=0))
    assert measures.counted_distribution(joint, protocol, "secret") == pytest.approx(law.sum(axis=1))
    assert measures.counted_distribution(joint, protocol, "secret and inputs") == pytest.approx(
        law.reshape(-1, law.shape[2])
    )


@settings(max_examples=50)
@given(channels())
def test_unknown_columns_to_count_are_refused(channel: tuple[Joint, Protocol]) -> None:
    for measure in (measures.mutual_information, measures.guess_accuracy):
        with pytest.raises(SpecError, match="counts must be one of 'inputs', 'secret'"):
            measure(*channel, counts="outputs")  # type: ignore[arg-type]
