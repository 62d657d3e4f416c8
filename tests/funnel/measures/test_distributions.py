"""Joint distributions with the output, for protocols that read the secret and for those that do not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from funnel import Joint, Protocol, SpecError, measures
from tests.funnel.measures.channels import channels, full_distribution


@settings(max_examples=50)
@given(channels())
def test_every_distribution_is_a_marginal_of_the_full_one(channel: tuple[Joint, Protocol]) -> None:
    joint, protocol = channel
    distribution = full_distribution(joint, protocol)
    assert measures.counted_distribution(joint, protocol, "inputs") == pytest.approx(distribution.sum(axis=0))
    assert measures.counted_distribution(joint, protocol, "secret") == pytest.approx(distribution.sum(axis=1))
    assert measures.counted_distribution(joint, protocol, "secret and inputs") == pytest.approx(
        distribution.reshape(-1, distribution.shape[2])
    )


@settings(max_examples=50)
@given(channels())
def test_unknown_columns_to_count_are_refused(channel: tuple[Joint, Protocol]) -> None:
    for measure in (measures.mutual_information, measures.guess_accuracy):
        with pytest.raises(SpecError, match="counts must be one of 'inputs', 'secret'"):
            measure(*channel, counts="outputs")  # type: ignore[arg-type]
