"""Sabotage of the protocol: its optimum, its proof, its grid, its marginal, and what is said of it."""

from __future__ import annotations

from tests.sabotage.mutant import TOOLS, Mutant
from tests.sabotage.scenes import CLASSED, COUNTED, EXCHANGED_PROTOCOL, OTHER_BOUND

PLANNING = [
    Mutant(
        "a certificate of classes told of all protocols",
        "that no protocol at all keeps more records, where that is proven of those alone that read classes",
        "funnel.planning",
        'of: Literal["classes", "unchanged"] = "classes" if CLASS_COLUMN in joint.inputs.columns else "unchanged"',
        'of: Literal["classes", "unchanged"] = "unchanged"',
        "report and counts",
        CLASSED,
    ),
    Mutant(
        "flow passes twice the bound",
        "a protocol of twice the bound",
        "funnel.pipeline.tasks.optimise",
        "bound = of_budget_fraction(declared, _reserve(spec))",
        "bound = declared.with_budget(2.0)",
        "leakage",
        COUNTED,
    ),
    Mutant(
        "identity instead of the optimum",
        "true values; the level is infinite",
        "funnel.pipeline.tasks.optimise",
        "coarsened(joint, bound, chosen.protocol, useful)",
        f"{TOOLS}.identity(joint, chosen.protocol)",
        "step.guarded",
        COUNTED,
    ),
    Mutant(
        "grid without proof",
        "a protocol that breaks the bound by rounding",
        "funnel.pipeline.tasks.optimise",
        "coarsened(joint, bound, chosen.protocol, useful)",
        f"{TOOLS}.rounded(chosen.protocol)",
        "leakage",
        COUNTED,
    ),
    Mutant(
        "columns of the grid that do not sum up",
        "numbers that are no probabilities",
        "funnel.release.inside",
        "missing = round(2**bits - float(steps[:, x].sum()))",
        "missing = 0",
        "protocol.__post_init__",
        COUNTED,
    ),
    Mutant(
        "the marginal turned",
        "records outside the alphabet draw from a distribution that is not the marginal",
        "funnel.release.coarse",
        "coarse = replace(protocol, weights=weights, marginal=marginal)",
        "coarse = replace(protocol, weights=weights, marginal=marginal[::-1].copy())",
        "distribution",
        COUNTED,
    ),
    Mutant(
        "two inputs exchanged",
        "the protocol is for other values than it says",
        "funnel.pipeline.tasks.optimise",
        "coarsened(joint, bound, chosen.protocol, useful)",
        "(lambda p: replace(p, weights=p.weights[:, ::-1].copy()))(coarsened(joint, bound, chosen.protocol, useful))",
        "step.guarded",
        COUNTED,
    ),
    Mutant(
        "level halved",
        "the published level is half the true one",
        "funnel.guarantees.exact",
        "return Level(math.inf if witness.ratio is None else log_above(witness.ratio), witness)",
        "return Level(math.inf if witness.ratio is None else log_above(witness.ratio) / 2, witness)",
        "findings",
        COUNTED,
    ),
    Mutant(
        "protocol of another bound",
        "rows of a weaker bound than the one declared",
        "funnel.pipeline.tasks.optimise",
        "found = cache.find(key)",
        f"found = cache.find({TOOLS}.key_of(cache))",
        "leakage",
        OTHER_BOUND,
    ),
    Mutant(
        "protocol of the cache is not checked",
        "true values, by a protocol that somebody made",
        "funnel.release.cache",
        "return files if whole else None",
        "return files",
        "leakage",
        EXCHANGED_PROTOCOL,
    ),
]
