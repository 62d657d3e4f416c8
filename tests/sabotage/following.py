"""Sabotage of what is drawn given everything published before: laws, bounds, decisions, and what the register keeps."""

from __future__ import annotations

from tests.sabotage.mutant import TOOLS, Mutant
from tests.sabotage.scenes import SECOND_YEAR

CAUGHT = "expect_histories_to_meet_bound"
TOLD = "expect_protocol_figures_to_follow_recount"

FOLLOWING = [
    Mutant(
        "answers forgotten in the law",
        "what was published before is not taken into account",
        "funnel.history.law",
        "values = laws.values[places] * rows[:, None, :]",
        "values = laws.values[places] * np.ones_like(rows)[:, None, :]",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "the reserve used up",
        "nothing is left for frequencies to move by",
        "funnel.history.following",
        "declared.with_budget(declared.budget * reserve * (1 - _INSIDE))",
        "declared.with_budget(declared.budget / reserve * (1 - _INSIDE))",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "every history draws from one channel",
        "rows that are proven for other histories",
        "funnel.history.prove",
        "return _described(standing, allowed, guarantee, library, drawn_from)",
        "return _described(standing, allowed, guarantee, library, drawn_from * 0)",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "one word for all histories",
        "two decisions about the same person have the same word",
        "funnel.history.decisions",
        "return blake2b(history + channel, digest_size=DIGEST_BYTES, person=_DECISION).digest()",
        "return blake2b(channel, digest_size=DIGEST_BYTES, person=_DECISION).digest()",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "histories of other people",
        "the register says of people what was published about others",
        "funnel.register.following",
        'rows["node"] = nodes[kept] * b + outputs[kept]',
        'rows["node"] = nodes[kept][::-1] * b + outputs[kept]',
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "level halved over histories",
        "a level below the true one",
        "funnel.pipeline.tasks.follow",
        "        level=found.level.value,",
        "        level=found.level.value / 2,",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "the register not judged",
        "nobody looks at what all versions tell together",
        "funnel.pipeline.flows.way",
        "places = (None, None) if entry is None or register is None else (register.root, entry.folder)",
        "places = (None, None)",
        CAUGHT,
        SECOND_YEAR,
    ),
    *(
        Mutant(
            name,
            "readers compute with another channel than records were drawn by",
            "funnel.pipeline.tasks.follow",
            "    rounded = rounded_channel(joint, found.guarantee, effective)",
            f"    rounded = {instead}",
            caught,
            SECOND_YEAR,
        )
        for name, caught, instead in (
            ("the target told instead of the effective channel", CAUGHT, "found.target"),
            ("the effective channel to the last unit", CAUGHT, "effective"),
            (
                "two inputs of the effective channel swapped",
                CAUGHT,
                f"{TOOLS}.turned(rounded_channel(joint, found.guarantee, effective))",
            ),
            (
                "the effective channel of the version before",
                TOLD,
                f"{TOOLS}.weighted(effective, found.past.chapters[-1].channel.weights)",
            ),
            (
                "the effective channel optimised anew",
                TOLD,
                f"{TOOLS}.coarsened(joint, found.guarantee, effective)",
            ),
        )
    ),
    Mutant(
        "a target that tells all",
        "this version alone is said to have kept everything",
        "funnel.pipeline.tasks.follow",
        "    drawing = drawing_protocol(found)",
        f"    drawing, protocol = drawing_protocol(found), {TOOLS}.identical(protocol)",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "a smaller share of people outside",
        "more people are outside the bound than is said",
        "funnel.release.public.findings",
        "        steps = max(1, math.ceil(history.outside / (history.units or laws.n) / laws.step))",
        "        steps = 3",
        "expect_report_to_follow_recount",
        SECOND_YEAR,
    ),
]
