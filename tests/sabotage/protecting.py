"""Sabotage of the protection of frequencies: noise, values, limits, and what is made from which counts."""

from __future__ import annotations

from tests.sabotage.mutant import TOOLS, Mutant
from tests.sabotage.scenes import PROTECTED, PROTECTED_AGAIN, PROTECTED_NAMES

PROTECTING = [
    Mutant(
        "noise is not drawn",
        "exact counts, said to be noisy",
        "funnel.frequencies.public_counts",
        "noisy = wide.counts + draw_noise(",
        "noisy = wide.counts + 0 * draw_noise(",
        "noisy counts",
        PROTECTED,
    ),
    Mutant(
        "noise of a third of the scale",
        "counts that cost three times what is told",
        "funnel.frequencies.public_counts",
        "draw_noise(wide.counts.size, noise.epsilon, key=key)",
        "draw_noise(wide.counts.size, 3 * noise.epsilon, key=key)",
        "noisy counts",
        PROTECTED,
    ),
    Mutant(
        "every second noise cancels the one before",
        "exact sums of neighbours",
        "funnel.frequencies.public_counts",
        "noisy = wide.counts + draw_noise(",
        f"noisy = wide.counts + {TOOLS}.cancelling_noise(",
        "noisy counts",
        PROTECTED,
    ),
    *(
        Mutant(
            what,
            hurts,
            "funnel.frequencies.public_counts",
            "noisy = wide.counts + draw_noise(wide.counts.size, noise.epsilon, key=key).reshape(wide.counts.shape)",
            f"noisy = {TOOLS}.{how}(wide.counts, draw_noise(wide.counts.size, noise.epsilon, key=key))",
            "noisy counts",
            PROTECTED,
        )
        for what, hurts, how in (
            ("noise is always even", "the parity of every count", "evenly"),
            ("one small count has no noise", "one exact count", "bar_one"),
            ("noise that is fresh, and so could be chosen", "whatever who draws it likes to tell", "anew"),
        )
    ),
    Mutant(
        "what a source has spent is forgotten",
        "a loss of one version, where two were published about the same people",
        "funnel.release.protected",
        "return [one for one in records if one.origin.is_of_people(context.source, context.snapshot)]",
        "return []",
        "noisy counts",
        PROTECTED_AGAIN,
    ),
    Mutant(
        "limits of counts half as wide",
        "a bound that does not hold for tables that the noise leaves possible",
        "funnel.frequencies.limits",
        "return cell_limit(noise.scale, ",
        "return cell_limit(noise.scale / 2, ",
        "protected frequencies",
        PROTECTED,
    ),
    Mutant(
        "everything from exact counts",
        "prior, posteriors, lifts and figures of the exact counts",
        "funnel.pipeline.tasks.audit",
        "Audited.of(frequencies,",
        f"Audited.of({TOOLS}.exact(frequencies, counted),",
        "report and counts",
        PROTECTED,
    ),
    Mutant(
        "counts of what occurs alone",
        "which combinations of values anybody has",
        "funnel.source.counting",
        "joint = widened(counted, codings.labels, impossible=spec.impossible) if",
        "joint = counted if",
        "noisy counts",
        PROTECTED,
    ),
    Mutant(
        "every value that occurs is named",
        "values that one person alone has",
        "funnel.frequencies.selection",
        "if count >= least",
        "if count > -10**9",
        "noisy counts",
        PROTECTED,
    ),
    *(
        Mutant(
            what,
            hurts,
            "funnel.frequencies.selection",
            old,
            new,
            "noisy counts",
            PROTECTED_NAMES,
        )
        for what, hurts, old, new in (
            (
                "noise that names values has a key that everybody knows",
                "how many records exactly have every value with a name, and every one without",
                "epsilon, key=key)",
                "epsilon, key=bytes(32))",
            ),
            (
                "values are named by fresh noise, and so by chosen one",
                "whatever who draws it likes to tell",
                "epsilon, key=key)",
                "epsilon)",
            ),
        )
    ),
]
