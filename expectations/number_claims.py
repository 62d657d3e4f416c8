"""Numbers drawn within intervals, held against what the published records and the declared intervals make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from funnel.audit.check import State
from funnel.audit.drawn_numbers import Behind, check_drawn_numbers
from funnel.pipeline.expectations.claims import Claim, claim
from funnel.recount.drawn_numbers import ToldNumbers, first_difference
from funnel.release.layout import ReleaseFolder

CLAIMS = ("numbers", "bytes")


def number_claims(
    folder: ReleaseFolder, csv: bool, told: Sequence[ToldNumbers], behind: Behind, package: Mapping[str, Any]
) -> list[Claim]:
    """What holds of the tables of numbers.

    Parameters
    ----------
    folder : ReleaseFolder
    csv : bool
        Whether there is a csv.
    told : sequence of ToldNumbers
        What the text of the spec and the published weights say of them.
    behind : mapping of column to mapping of text to values
        As of `check_drawn_numbers`.
    package : JSON object
        The data package.
    """
    wrong = first_difference(folder.data, folder.drawn, folder.drawn_csv if csv else None, [*behind], told)
    # To the byte, as nothing else can be hidden in the file then; as everybody will see it.
    failed = [one.detail for one in check_drawn_numbers(folder, behind, dict(package)) if one.state is State.FAILED]
    return [claim("numbers", wrong is None, wrong or ""), claim("bytes", not failed, "; ".join(failed))]
