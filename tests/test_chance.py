"""The noise that all other tests have: of the same law, the same in every run."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from funnel.frequencies.noise import draw_noise
from funnel.release import secret
from tests import chance


def test_a_test_has_noise_of_its_own_and_the_same_in_every_run() -> None:
    with chance.same_noise():
        found = []
        for test in ("one", "one", "another"):
            chance.begin(test)
            found.append([*[draw_noise(50, epsilon, 2).tolist() for epsilon in (0.3, 0.3)], secret.fresh_text()])
    assert found[0] == found[1] != found[2]
    # Within a test no noise is that of before.
    assert found[0][0] != found[0][1]


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.7])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_noise_of_a_seed_is_of_the_law(epsilon: float, sensitivity: int) -> None:
    drawn, rate = chance.noise_of(5)(30_000, epsilon, sensitivity), epsilon / sensitivity
    for k in range(-4, 5):
        mass = math.tanh(rate / 2) * math.exp(-rate * abs(k))
        assert stats.binomtest(int(np.sum(drawn == k)), len(drawn), mass).pvalue > 1e-6
    beyond = math.exp(-8 * rate) / (1 + math.exp(-rate))
    assert stats.binomtest(int(np.sum(drawn >= 8)), len(drawn), beyond).pvalue > 1e-6


def unseeded(source: str) -> list[str]:
    """Calls of a test that draw other numbers in every run: generators without a seed, and functions that have none."""
    tree = ast.parse(source)
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of, name = ast.unparse(node.func.value), node.func.attr
        given = bool(node.args or node.keywords)
        if (
            (name in ("default_rng", "Random", "RandomState", "PCG64", "Philox") and not given)
            or (name == "rvs" and "random_state" not in {keyword.arg for keyword in node.keywords})
            or (of in ("np.random", "numpy.random") and name[:1].islower() and name != "default_rng")
            or (of == "random" and of in imports and name != "Random")
            or (of == "secrets" and name in ("randbelow", "choice", "randbits"))
        ):
            found.append(f"{of}.{name}")
    return found


@pytest.mark.parametrize(
    "offender",
    [
        "np.random.default_rng()",
        "np.random.normal(size=3)",
        "np.random.seed(3)",
        "numpy.random.default_rng().random()",
        "import random\nrandom.random()",
        "import random\nrandom.Random()",
        "stats.norm.rvs(size=3)",
        "secrets.randbelow(6)",
    ],
)
def test_an_offender_is_found(offender: str) -> None:
    assert unseeded(offender)


@pytest.mark.parametrize(
    "honest",
    [
        "np.random.default_rng(3).random()",
        "import random\nrandom.Random(3).random()",
        "stats.norm.rvs(size=3, random_state=np.random.default_rng(1))",
        "def test(random): return random.random()",
        "secrets.token_hex(6)",
    ],
)
def test_what_has_a_seed_is_none(honest: str) -> None:
    assert not unseeded(honest)


def test_no_test_draws_without_a_seed() -> None:
    """What the library itself draws is of the operating system: tests of that say how likely chance fails them."""
    folder = Path(__file__).parent
    found = {
        path.relative_to(folder).as_posix(): calls
        for path in folder.rglob("*.py")
        if (calls := unseeded(path.read_text(encoding="utf-8")))
    }
    assert found == {}
