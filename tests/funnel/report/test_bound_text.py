"""What a page says of the bound itself."""

from __future__ import annotations

import pytest

from funnel import parse_guarantee
from funnel.report.page import bound


@pytest.mark.parametrize(
    ("guarantee", "text"),
    [
        ("lip:1.0", "ε\u00a0=\u00a01"),
        ("rlip:1.0,0.05", "ε\u00a0=\u00a01, α\u00a0=\u00a00.05"),
        ("rlip:1.0,0.05 & srlip:1.0", "rlip:1.0,0.05 & srlip:1.0"),
    ],
)
def test_the_bound_is_its_numbers_and_several_are_as_in_a_spec(guarantee: str, text: str) -> None:
    assert bound(parse_guarantee(guarantee)) == text
