"""Which records are held out: by their number alone, in any batches, about as many as asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from funnel.source.held_out import held_out, those_that_choose


def test_the_first_records_are_those_that_the_page_names() -> None:
    # First eight bytes of SHA-256 of "funnel held out 0", "… 1", …, as docs/columns.md has them.
    assert np.flatnonzero(held_out(0, 20, 0.3)).tolist() == FIRST
    assert not held_out(0, 1000, 0.0).any()


FIRST = [4, 13, 17]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_about_a_share_is_held_out_and_more_of_a_larger_one(share: float) -> None:
    found = held_out(0, 20_000, share)
    assert abs(found.mean() - share) < 0.02
    assert (held_out(0, 20_000, share + 0.05) >= found).all()
    # Neither odd and even numbers nor halves of the source differ.
    assert abs(found[::2].mean() - found[1::2].mean()) < 0.03
    assert abs(found[:10_000].mean() - found[10_000:].mean()) < 0.03


def test_batches_do_not_matter() -> None:
    random = np.random.default_rng(5)
    table = pa.table({"x": np.arange(5000)})
    cuts = np.sort(random.choice(5000, size=7, replace=False))
    batches = [table.slice(a, b - a).to_batches()[0] for a, b in zip([0, *cuts], [*cuts, 5000], strict=True) if b > a]
    kept = pa.Table.from_batches(list(those_that_choose(batches, 0.3)))["x"].to_numpy()
    assert kept.tolist() == np.flatnonzero(~held_out(0, 5000, 0.3)).tolist()
