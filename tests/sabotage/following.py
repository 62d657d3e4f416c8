"""Sabotage of draws given everything published before: distributions, bounds, decisions, and the register."""

from __future__ import annotations

from tests.sabotage.mutant import TOOLS, Mutant
from tests.sabotage.scenes import KNOWN_UNITS, NOISY_RIGHT_YEAR, RIGHT_YEAR, SECOND_YEAR, THIRD_YEAR, UNITS

CAUGHT = "register"
TOLD = "distribution"

FOLLOWING = [
    Mutant(
        "answers forgotten in the distribution",
        "what was published before is not taken into account",
        "funnel.history.distributions",
        "values = (by_cell * rows[:, None, None, :]).reshape(len(these), by_cell.shape[1], c * a)",
        "values = (by_cell * np.ones_like(rows)[:, None, None, :]).reshape(len(these), by_cell.shape[1], c * a)",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "the reserve used up",
        "nothing is left for frequencies to move by",
        "funnel.history.following",
        "joint, inner = observed.joint, inner_bound(declared, reserve)",
        "joint, inner, reserve = observed.joint, declared, 1.0",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "every history draws from one channel",
        "rows that are proven for other histories",
        "funnel.history.prove",
        "return described(status, library, drawn_from)",
        "return described(status, library, drawn_from * 0)",
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
        "everybody was unexpected",
        "the internal report says that no history was predicted",
        "funnel.history.fitting",
        "return Fitted(step, predicted, int(silent), int(status.people[~known].sum()))",
        "return Fitted(step, predicted, int(silent), int(status.people.sum()))",
        CAUGHT,
        THIRD_YEAR,
    ),
    Mutant(
        "level halved over histories",
        "a level below the true one",
        "funnel.pipeline.tasks.found_history",
        "        level=found.level.value,",
        "        level=found.level.value / 2,",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "the register not judged",
        "nobody looks at what all versions tell together",
        "funnel.pipeline.tasks.validate",
        "prepared=None if run.register is None or entry is None else",
        "prepared=None if entry is None or entry else",
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
                CAUGHT,
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
        "funnel.release.public.rounding",
        "round(max(1, math.ceil(share / step)) * step, 12)",
        "round(3 * step, 12)",
        "report and counts",
        SECOND_YEAR,
    ),
    *(
        Mutant(name, breaks, module, old, new, caught, THIRD_YEAR)
        for name, breaks, module, old, new, caught in (
            (
                "changes counted three times",
                "one person moves tables by more than the noise is for",
                "funnel.history.changes",
                "np.add.at(stayed, (was_secret[same], was[same]), changes.records[same])",
                "np.add.at(stayed, (was_secret[same], was[same]), 3 * changes.records[same])",
                CAUGHT,
            ),
            (
                "a person in the tables of two versions",
                "one person moves tables by more than the noise is for",
                "funnel.register.look_up",
                "moved[ordinal].add(change[latest[there] == ordinal])",
                "moved[ordinal].add(change[latest[there] >= ordinal])",
                CAUGHT,
            ),
            (
                "noise on changes of a tenth of the scale",
                "tables that cost ten times what is told",
                "funnel.frequencies.moves",
                "draw_noise(sum(sizes), epsilon, TABLES, key)",
                "draw_noise(sum(sizes), 10 * epsilon, TABLES, key)",
                CAUGHT,
            ),
            (
                "no noise on those who left",
                "exact counts of people who changed",
                "funnel.frequencies.moves",
                "moves.left + of_left.reshape(moves.left.shape)",
                "moves.left + 0 * of_left.reshape(moves.left.shape)",
                CAUGHT,
            ),
            (
                "real people in the effective channel",
                "shares of people by history, which no noise protects",
                "funnel.pipeline.tasks.follow",
                "fitted(terms.decide(register.past, expected_now), ",
                f"fitted(terms.decide(register.past, {TOOLS}.where_expected(people.observed, expected_now)), ",
                CAUGHT,
            ),
            (
                "changes of another version",
                "distributions of histories by what became of others",
                "funnel.register.chapters",
                "enumerate(zip(changes.since, distributions, strict=True))",
                "enumerate(zip(changes.since[::-1], distributions, strict=True))",
                CAUGHT,
            ),
            (
                "expected people are all there again",
                "an effective channel of people who are not in the version",
                "funnel.history.expected",
                "there[here] = share * expected.people[here]",
                "there[here] = expected.people[here]",
                CAUGHT,
            ),
            (
                "changes of one secret for those of another",
                "distributions of histories by what became of others",
                "funnel.frequencies.moves",
                "    return np.stack(rows)",
                "    return np.stack(rows[::-1])",
                CAUGHT,
            ),
            (
                "inputs of one secret for those of another",
                "distributions of histories by what others have now",
                "funnel.frequencies.moves",
                "return np.stack([shares(row if row.any() else everybody, INPUT_PARTS) for row in joint.counts])",
                "return np.stack([shares(row if row.any() else everybody, INPUT_PARTS) for row in joint.counts[::-1]])",
                CAUGHT,
            ),
        )
    ),
    *(
        Mutant(name, breaks, module, old, new, caught, RIGHT_YEAR)
        for name, breaks, caught, module, old, new in (
            (
                "answers of exact counts not put right",
                "a table that is right only if everybody changes as all do",
                CAUGHT,
                "funnel.pipeline.tasks.follow",
                "right=frequencies.noise is None,",
                "right=False,",
            ),
            (
                "answers put right at ease",
                "a table that is a dozen records off on average",
                CAUGHT,
                "funnel.history.corrected",
                "(np.abs(published - wanted) <= off).all()",
                "(np.abs(published - wanted) <= 100 * off).all()",
            ),
            (
                "answers put right for other counts",
                "a table that is right for other values",
                "corrected.right_on_average",
                "funnel.history.corrected",
                "@ counts, counts * DENOMINATOR, DENOMINATOR",
                "@ counts, (counts + np.arange(counts.size) * 10) * DENOMINATOR, DENOMINATOR",
            ),
            (
                "exact channel of values as they are",
                "weights that tell how many people have which history",
                CAUGHT,
                "funnel.pipeline.tasks.follow",
                "if effective.is_invariant and frequencies.noise is not None:",
                "if effective.is_invariant:",
            ),
        )
    ),
    *(
        Mutant(
            f"{what} {numbers}",
            breaks,
            "funnel.frequencies.averages",
            "draw_noise(len(exact), epsilon, length, key)",
            new,
            CAUGHT,
            scene,
        )
        for numbers, scene in (("means", NOISY_RIGHT_YEAR), ("departures", THIRD_YEAR))
        for what, breaks, new in (
            (
                "noise of half the scale on",
                "numbers that cost twice what is told",
                "draw_noise(len(exact), 2 * epsilon, length, key)",
            ),
            (
                "noise in whole records on",
                "what every number is beyond whole records",
                "draw_noise(len(exact), epsilon, length, key) // (1 << 20) * (1 << 20)",
            ),
            (
                "noise that could be chosen on",
                "whatever who draws it likes to tell",
                "draw_noise(len(exact), epsilon, length)",
            ),
            (
                "noise on all but the first of the",
                "one exact number",
                "[0, *draw_noise(len(exact), epsilon, length, key)[1:]]",
            ),
            ("the same noise on all", "exact differences", "draw_noise(1, epsilon, length, key)"),
        )
    ),
    Mutant(
        "what a person adds to departures is not shortened",
        "more of who moves much than the noise hides",
        "funnel.history.departures",
        "np.where(whole > length,",
        "np.where(whole > 1 << 40,",
        CAUGHT,
        THIRD_YEAR,
    ),
    Mutant(
        "the second observer is not told of",
        "nobody learns what who knows changes by who changed before concludes",
        "funnel.pipeline.tasks.found_history",
        "for one in found.by_observer",
        "for one in found.by_observer[:1]",
        CAUGHT,
        SECOND_YEAR,
    ),
    Mutant(
        "rows of a person in the order of the source",
        "which row of a person is the first one is known to who knows the source",
        "funnel.sampling.unit_order",
        'return encrypted_words(keys, word_key(record_key, "order of the rows of a unit"))',
        "return number",
        CAUGHT,
        UNITS,
    ),
    Mutant(
        "rows bounded for who knows a column of the same row alone",
        "more than the bound for who knows a column of another row of a person",
        "funnel.history.waves",
        "one_by_one = own or isinstance(declared, SRLIP | RSRLIP)",
        "one_by_one = own",
        CAUGHT,
        KNOWN_UNITS,
    ),
    Mutant(
        "what is known of a row to come left out",
        "more than the bound for who knows a column of a later row of a person",
        "funnel.history.distributions",
        "secrets *= np.tile(inside, len(joint.secret))[:, None]",
        "secrets *= 1.0",
        CAUGHT,
        KNOWN_UNITS,
    ),
    Mutant(
        "how common secrets are in a later row taken from the first",
        "a bound against another prior than that of people with the known column in that row",
        "funnel.history.history_status",
        "_priors(past, before, joint, changes, members.changes, row)",
        "_priors(past, before, joint, changes, members.changes, 0)",
        CAUGHT,
        KNOWN_UNITS,
    ),
    Mutant(
        "no noise on how many rows people have",
        "exact counts of people by the number of their rows",
        "funnel.frequencies.unit_tables",
        "noisy = (one + noise.reshape(one.shape) for one, noise in",
        "noisy = (one + (one is not self.sizes) * noise.reshape(one.shape) for one, noise in",
        CAUGHT,
        UNITS,
    ),
]
