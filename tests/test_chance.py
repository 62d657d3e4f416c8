"""The draws that all other tests have: of the same distribution, the same in every run."""

from __future__ import annotations

import ast
import math
import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from funnel.errors import EntropyError
from funnel.frequencies.noise import draw_noise
from funnel.release import secret
from funnel.sampling import random_words
from funnel.sampling.random_words import WordStream
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


def words() -> list[int]:
    """The first words of a stream, which may have been drawn before in this process."""
    with mock.patch.dict(random_words._KEYS_SEEN, clear=True):
        return WordStream().words(4).tolist()


def test_rows_of_a_test_are_drawn_with_the_same_words_in_every_run() -> None:
    with chance.same_draws():
        found = []
        for test in ("one", "one", "another"):
            chance.begin(test)
            # Words do not depend on how much noise there was.
            for _ in found:
                draw_noise(1, 1.0)
            found.append([words(), words()])
    assert found[0] == found[1] != found[2]
    assert found[0][0] != found[0][1]


def test_another_process_and_a_test_with_a_system_of_its_own_draw_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two workers would draw the same, and a source of entropy that fails would go unnoticed."""
    with chance.same_draws():
        chance.begin("one")
        first, secret_text = words(), secret.fresh_text()
        chance.begin("one")
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert words() != first
        assert secret.fresh_text() != secret_text
        monkeypatch.undo()
        assert words() == first
        monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
        with pytest.raises(EntropyError, match="stuck"):
            words()


def test_every_command_of_a_test_has_draws_of_its_own() -> None:
    with chance.same_draws():
        chance.begin("one")
        names = [chance.next_command(), chance.next_command()]
        chance.begin("one")
        assert [chance.next_command(), chance.next_command()] == names
    assert len({"one", *names}) == 3


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.7])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_noise_of_a_seed_is_of_the_distribution(epsilon: float, sensitivity: int) -> None:
    drawn, rate = chance.noise_of(5)(30_000, epsilon, sensitivity), epsilon / sensitivity
    for k in range(-4, 5):
        mass = math.tanh(rate / 2) * math.exp(-rate * abs(k))
        assert stats.binomtest(int(np.sum(drawn == k)), len(drawn), mass).pvalue > 1e-6
    beyond = math.exp(-8 * rate) / (1 + math.exp(-rate))
    assert stats.binomtest(int(np.sum(drawn >= 8)), len(drawn), beyond).pvalue > 1e-6


# Generators that are other ones in every run unless they have a seed, and modules whose functions have no seed.
_GENERATORS = (
    "default_rng",
    "Random",
    "RandomState",
    "PCG64",
    "PCG64DXSM",
    "Philox",
    "SFC64",
    "MT19937",
    "SeedSequence",
)
_WITHOUT_SEED = {
    "random": ("Random",),
    "numpy.random": (*_GENERATORS, "Generator"),
    "np.random": (*_GENERATORS, "Generator"),
}
# What draws by a generator of its own unless it is given one, by the names of that argument.
_NEED_SEED = {
    "rvs": ("random_state",),
    "bootstrap": ("random_state", "rng"),
    "permutation_test": ("random_state", "rng"),
    "monte_carlo_test": ("random_state", "rng"),
    "differential_evolution": ("seed", "rng"),
    "dual_annealing": ("seed", "rng"),
    "RandomForestClassifier": ("random_state",),
    "train_test_split": ("random_state",),
}
# Other numbers in every run: no seeds.
_CHANGING = (
    "urandom",
    "token_bytes",
    "token_hex",
    "randbits",
    "time",
    "time_ns",
    "perf_counter",
    "getpid",
    "uuid4",
    "hash",
)


def unseeded(source: str) -> list[str]:
    """Calls of a test that draw other numbers in every run: generators without a seed, and functions that have none."""
    tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom, ast.Call))]
    imports = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    by_name = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found = []
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute):
            of, name = ast.unparse(node.func.value), node.func.attr
            known = of != "random" or of in imports
        elif isinstance(node.func, ast.Name):
            of, name = by_name.get(node.func.id, ("", node.func.id))
            known = True
        else:
            continue
        if known and _draws(of, name, node):
            found.append(f"{of}.{name}")
    return found


def _draws(of: str, name: str, call: ast.Call) -> bool:
    """Whether the function of a module, or of whatever is named so, draws other numbers in every run."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in _GENERATORS:
        seeds = [*call.args, *given.values()]
        return not any(_is_seed(one) for one in seeds)
    if name in _NEED_SEED:
        return not any(_is_seed(given[one]) for one in _NEED_SEED[name] if one in given)
    if name == "sample" and given.keys() & {"n", "frac"}:
        # Of a table; that of a generator of the standard library has ``k``.
        return not _is_seed(given["random_state"]) if "random_state" in given else True
    if of in _WITHOUT_SEED:
        return (name[:1].islower() and name not in _WITHOUT_SEED[of]) or name == "SystemRandom"
    return of == "secrets" and name in ("randbelow", "choice", "randbits")


def _is_seed(value: ast.expr) -> bool:
    """Whether it is the same in every run: not None, and nothing of a clock or of the operating system is in it."""
    if isinstance(value, ast.Constant) and value.value is None:
        return False
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    return not any(
        (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in _CHANGING for func in calls
    )


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
        "from numpy.random import default_rng\ndefault_rng()",
        "from numpy.random import normal as drawn\ndrawn(size=3)",
        "from random import shuffle\nshuffle(rows)",
        "from random import SystemRandom\nSystemRandom().random()",
        "from secrets import choice\nchoice('ab')",
        "np.random.default_rng(None)",
        "np.random.default_rng(seed=None)",
        "np.random.default_rng(int.from_bytes(os.urandom(8)))",
        "np.random.default_rng(hash(name))",
        "import random\nrandom.Random(time.time())",
        "frame.sample(n=3)",
        "frame.sample(frac=0.5, random_state=None)",
        "stats.bootstrap((x,), np.mean)",
        "RandomForestClassifier(n_estimators=3)",
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
        "from random import Random\nRandom(3).sample(rows, 2)",
        "from numpy.random import default_rng\ndefault_rng(seed=4).choice(3)",
        "def test(choice): return choice('ab')",
        "frame.sample(n=3, random_state=5)",
        "random.sample(range(5), 2)",
        "RandomForestClassifier(n_estimators=3, random_state=0)",
        "np.random.Generator(np.random.Philox(7))",
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
