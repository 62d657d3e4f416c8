"""ALIP: the experiments of "Asymmetric local information privacy and the watchdog mechanism", figures 1 to 13."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from funnel_papers.distributions import Distribution
from funnel_papers.errata import ALIP_ERRATA
from funnel_papers.experiment import (
    Claim,
    Curve,
    Experiment,
    Judged,
    Panel,
    Paper,
    Point,
    Results,
    Size,
    holds,
    number,
)
from funnel_papers.measuring import frontier, lift_range, line_label, trade_off

_GRID = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
_PAPER_GRID = tuple(k / 4 for k in range(1, 33))
_LARGE = (1.0, 2.0, 4.0, 8.0)
_BINS = tuple(-12 + 0.25 * k for k in range(56))
_SECONDS = 10.0
# λ of ε_l; LDP has no share.
_SHARES = (0.35, 0.5, 0.65)
_ADULT = Distribution("adult", columns=("relationship", "occupation"), without=("relationship", "Other-relative"))
_UTILITY, _MIN, _MAX = "kept", "min-lift leakage", "max-lift leakage"
_TITLES = {
    _UTILITY: ("(a) Share kept", "I(X;Y) / H(X)"),
    _MIN: ("(b) Min-lift leakage", "|ln min Ψ(y)| (nats)"),
    _MAX: ("(c) Max-lift leakage", "ln max Λ(y) (nats)"),
}


_CASE = "distributions"
_MERGING, _RESPONSE = "subset-merging", "subset-random-response"


@dataclass(frozen=True)
class _RandomDistributions:
    """The random distributions of a figure: their secrets and inputs, and their number by default and in the paper.

    ``many`` are those of lines that take no optimum, where they are more.
    """

    secrets: int = 5
    inputs: int = 17
    distributions: tuple[int, int] = (10, 100)
    many: tuple[int, int] | None = None

    def subjects(self, size: Size, optimal: bool) -> dict[str, Distribution]:
        """The distributions that a line is measured of."""
        number = size.of(*(self.distributions if self.many is None or optimal else self.many))
        return {f"distribution {i}": Distribution("uniform", (self.secrets, self.inputs), i) for i in range(number)}

    def __str__(self) -> str:
        few, all_few = self.distributions
        if self.many is None:
            return f"{few} distributions; {all_few:,} with --full"
        many, all_many = self.many
        return f"{many} distributions ({few} for the optimum); {all_many:,} ({all_few:,}) with --full"


_FEW = _RandomDistributions()
# The paper has a thousand distributions of the watchdog.
_MANY = _RandomDistributions(many=(100, 1000))


@dataclass(frozen=True)
class _Line:
    """One line of a figure: a mechanism under a notion with λ, and of the α-lift its order."""

    title: str
    mechanism: str
    notion: str
    share: float = 0.5
    order: int = 2

    def label(self, what: str) -> str:
        """Of the results."""
        return f"{line_label(self.mechanism, self.notion, self.share, self.order)}: {what}"

    def points(self, distribution: Distribution, subject: str, ats: Sequence[int | None] = (None,)) -> list[Point]:
        """What is measured of one distribution."""
        settings: dict[str, Any] = {"guarantee": self.notion, "share": self.share}
        if self.mechanism == "optimal":
            return [Point(_CASE, subject, frontier, distribution, settings | {"seconds": _SECONDS}, at) for at in ats]
        settings |= {"mechanism": self.mechanism, "order": self.order}
        return [Point(_CASE, subject, trade_off, distribution, settings, at) for at in ats]


def _lines(mechanism: str, ldp: bool = True) -> tuple[_Line, ...]:
    """LDP, where the figure has it, and ALIP with every λ."""
    first = (_Line("ε-LDP", mechanism, "ldp"),) if ldp else ()
    return (*first, *(_Line(f"ALIP, λ = {share:g}", mechanism, "alip", share) for share in _SHARES))


def _bounds(lines: Sequence[_Line]) -> tuple[_Line, ...]:
    """The optima of the notions of some lines that have one: LDP and ALIP."""
    notions = {(line.notion, line.share): line for line in lines if line.notion in ("ldp", "alip")}
    return tuple(_Line(f"no protocol above, {line.title}", "optimal", *notion) for notion, line in notions.items())


def _figure(
    name: str,
    title: str,
    about: str,
    lines: tuple[_Line, ...],
    tops: tuple[_Line, ...],
    distributions: _RandomDistributions | None,
    claims: tuple[Claim, ...] = (),
    grid: tuple[float, ...] | None = None,
) -> Experiment:
    """One figure with three panels: share kept, and both leakages, by the budget of LDP.

    ``distributions`` are None for Adult; ``tops`` are the bounds that are drawn.
    """
    bounds = _bounds(lines)

    def xs(size: Size) -> Sequence[float]:
        if grid is not None:
            return grid
        return _PAPER_GRID if size.full else _GRID

    def points(size: Size) -> Sequence[Point]:
        ats: Sequence[int | None] = (None,) if grid is None else range(len(grid))
        found = []
        for line in (*lines, *bounds):
            of = (
                {"Adult": _ADULT}
                if distributions is None
                else distributions.subjects(size, line.mechanism == "optimal")
            )
            found += [point for subject, one in of.items() for point in line.points(one, subject, ats)]
        # Lines that are optima themselves are measured once.
        return list({(p.subject, p.measure, p.at, str(p.settings)): p for p in found}.values())

    def drawn(what: str) -> tuple[Curve, ...]:
        curves = [
            Curve(line.label(what), line.title, "optimum" if line.mechanism == "optimal" else "paper") for line in lines
        ]
        above = [Curve(top.label("bound"), top.title, "bound") for top in tops] if what == _UTILITY else []
        return (*above, *curves)

    x_title = "ε of LDP (nats)"
    return Experiment(
        name=name,
        title=title,
        about=about,
        distributions="Adult" if distributions is None else str(distributions),
        xs=xs,
        points=points,
        panels=tuple(Panel(_CASE, short, drawn(what), x_title, long) for what, (short, long) in _TITLES.items()),
        orders=(
            *(
                (line.label(_UTILITY), _Line("", "optimal", line.notion, line.share).label("bound"))
                for line in lines
                if line.notion in ("ldp", "alip")
            ),
            *((bound.label("kept"), bound.label("bound")) for bound in bounds),
        ),
        rising=tuple(bound.label("bound") for bound in bounds),
        claims=(*claims, *_within(lines)),
    )


def _within(lines: Sequence[_Line]) -> tuple[Claim, ...]:
    """Whether leakages stay within the budgets of ALIP."""
    alip = [line for line in lines if line.notion == "alip"]

    def found(results: Results) -> list[bool]:
        checks = []
        for line in alip:
            for what, part in ((_MIN, line.share), (_MAX, 1 - line.share)):
                for subject_line in results.cases[_CASE].get(line.label(what), {}).values():
                    pairs = zip(results.xs, subject_line, strict=True)
                    checks += [value <= part * x + 1e-6 for x, value in pairs if value is not None]
        return checks

    return (Claim("panels b and c", "max-lift and min-lift stay within ε_u and ε_l", holds(found, "always")),)


def _printed(where: str, line: _Line, epsilon: float, value: float, within: float = 0.01) -> Claim:
    said = f"{line.mechanism} under {line.title}: share kept at ε = {epsilon:g}"
    return Claim(where, said, number(value, lambda results: results.at(_CASE, line.label(_UTILITY), epsilon), within))


def _never_less(where: str, said: str, high: _Line, lows: Sequence[_Line], low_x: float = 0.0) -> Claim:
    """In how many cases one line keeps at least what others keep, at budgets above one."""

    def found(results: Results) -> list[bool]:
        return [
            one <= two + 1e-4
            for low in lows
            for _, x, one, two in results.pairs(_CASE, low.label(_UTILITY), high.label(_UTILITY))
            if x > low_x
        ]

    return Claim(where, said, holds(found, "always"))


def _in_the_mean(where: str, said: str, high: _Line, low: _Line, low_x: float = 0.0) -> Claim:
    """At which budgets above one a line keeps no less than another in the mean over distributions."""

    def judge(results: Results) -> Judged:
        gains = results.mean(_CASE, high.label(_UTILITY)) - results.mean(_CASE, low.label(_UTILITY))
        budgets = [(x, gain) for x, gain in zip(results.xs, gains, strict=True) if x > low_x]
        less = [(x, gain) for x, gain in budgets if gain < -1e-4]
        if not less:
            return Judged("always", f"at all {len(budgets)} budgets", True)
        where_not = ", ".join(f"{x:g}" for x, _ in less)
        most = max(-gain for _, gain in less)
        return Judged("always", f"not at ε = {where_not}, where it keeps up to {most:.2g} less", False)

    return Claim(where, said, judge)


def _half(lines: Sequence[_Line], share: float = 0.5) -> _Line:
    return next(line for line in lines if line.notion == "alip" and line.share == share)


def _pair(numbers: tuple[str, str], make: Callable[[str, bool], Experiment]) -> tuple[Experiment, ...]:
    """The same figure for random distributions and for Adult."""
    return tuple(make(number, adult) for number, adult in zip(numbers, (False, True), strict=True))


def _of(adult: bool) -> str:
    return "Adult: S = relationship (5), X = occupation (15)" if adult else "random distributions, |S| = 5, |X| = 17"


_SETUP = (
    "Budgets by λ: ε_l = λ ε, ε_u = (1 - λ) ε, for ε of LDP from 0.25 to 8. Random distributions have cells "
    "uniform in [0, 1], "
    "normalised; Adult is without relationship = Other-relative, and keeps unknown occupations. "
)


def _watchdog(name: str, adult: bool) -> Experiment:
    lines = _lines("watchdog")
    values = (0.28, 0.73) if adult else (0.17, 0.52)
    return _figure(
        name,
        f"Watchdog with complete merging, {_of(adult)}",
        _SETUP + "Where the merged symbol would break the bound, further symbols are merged.",
        lines,
        (*_bounds(lines)[:1], _Line("no protocol above, ALIP, λ = 0.5", "optimal", "alip")),
        None if adult else _MANY,
        (
            _printed("4.2", _half(lines), 1.0, values[0]),
            _printed("3.1.3", _half(lines), 2.0, values[1]),
            _never_less("3.1.3", "LDP keeps at least what ALIP keeps, all ε and λ (Prop. 2)", lines[0], lines[1:]),
            _in_the_mean("3.1.3", "λ = 0.65 keeps more than λ = 0.5 for ε > 1", lines[3], lines[2], 1.0),
            _in_the_mean("3.1.3", "λ = 0.35 keeps less than λ = 0.5", lines[2], lines[1]),
        ),
    )


def _aorr(name: str, adult: bool) -> Experiment:
    lines = tuple(
        _Line(line.title.replace("ALIP", "AORR"), "optimal", "alip", line.share) for line in _lines("", False)
    )
    return _figure(
        name,
        f"AORR, {_of(adult)}",
        _SETUP + "AORR is the optimum itself; what no protocol exceeds is less than 1e-4 nats above it.",
        lines,
        (_Line("no protocol above, λ = 0.5", "optimal", "alip"),),
        None if adult else _FEW,
        (
            _printed("3.1.3", lines[1], 2.0, 0.96 if adult else 0.94),
            _in_the_mean("3.1.3", "λ = 0.65 keeps more than λ = 0.5 for ε > 1", lines[2], lines[1], 1.0),
        ),
    )


def _subset(name: str, adult: bool) -> Experiment:
    lines = _lines(_MERGING)
    watched = _Line("watchdog, λ = 0.5", "watchdog", "alip")
    gain = 160 if adult else 320

    def enhanced(results: Results) -> Judged:
        merged, complete = (results.at(_CASE, line.label(_UTILITY), 1.0) for line in (_half(lines), watched))
        if not len(merged):
            return Judged(f"almost {gain} %", "not measured", None)
        found = 100 * (float(merged.mean()) / float(complete.mean()) - 1)
        # Of shares that are printed to two digits, the smaller one about a fifth.
        return Judged(f"almost {gain} %", f"{found:.0f} %", abs(found - gain) <= 10)

    return _figure(
        name,
        f"Subset merging, {_of(adult)}",
        _SETUP + "Algorithm 1, read as the errata below say. The watchdog of figure "
        f"{'3' if adult else '2'} is drawn beside it.",
        (*lines, watched),
        (*_bounds(lines)[:1], _Line("no protocol above, ALIP, λ = 0.5", "optimal", "alip")),
        None if adult else _MANY,
        (
            _printed("4.2", _half(lines), 1.0, 0.73),
            Claim("4.2", "enhancement over complete merging at ε = 1, λ = 0.5", enhanced),
        ),
    )


def _response(name: str, adult: bool) -> Experiment:
    share = 0.65
    lines = (
        _Line("AORR", "optimal", "alip", share),
        _Line("SRR (algorithm 2)", _RESPONSE, "alip", share),
        _Line("subset merging (algorithm 1)", _MERGING, "alip", share),
    )

    def close(results: Results) -> Judged:
        gaps = results.mean(_CASE, lines[0].label(_UTILITY)) - results.mean(_CASE, lines[1].label(_UTILITY))
        below = results.mean(_CASE, lines[1].label(_UTILITY)) - results.mean(_CASE, lines[2].label(_UTILITY))
        said = f"in the mean at most {gaps.max():.3f} below AORR, and up to {below.max():.3f} above merging"
        return Judged("very close to AORR", said, bool(gaps.max() < below.max()))

    return _figure(
        name,
        f"Subset random response, {_of(adult)}",
        _SETUP + "λ = 0.65. SRR is the optimum inside every merged subset.",
        lines,
        (_Line("no protocol above, λ = 0.65", "optimal", "alip", share),),
        None if adult else _FEW,
        (
            _never_less("5.2", "SRR keeps more than subset merging", lines[1], lines[2:]),
            _never_less("5.2", "AORR keeps more than SRR", lines[0], lines[1:2]),
            Claim("5.2", "SRR is very close to AORR", close),
        ),
    )


def _large() -> Experiment:
    lines = (
        _Line("SRR (algorithm 2)", _RESPONSE, "alip"),
        _Line("subset merging (algorithm 1)", _MERGING, "alip"),
        _Line("best found by the optimiser", "optimal", "alip"),
    )
    return _figure(
        "10",
        "Large alphabets: SRR against subset merging, |S| = 15, |X| = 200",
        "λ = 0.5. The paper has no optimum here. The optimiser has 10 seconds of work for each distribution and "
        "ε: what "
        "it found, "
        "and what no protocol exceeds, are drawn, and the truth is between them.",
        lines,
        (_Line("no protocol above", "optimal", "alip"),),
        _RandomDistributions(15, 200, (1, 20)),
        (_never_less("5.2", "SRR keeps more than subset merging", lines[0], lines[1:2]),),
        grid=_LARGE,
    )


def _averages(name: str, adult: bool) -> Experiment:
    lines = (
        _Line("ALIP, λ = 0.5", _MERGING, "alip"),
        _Line("l1-privacy, λ = 0.5", _MERGING, "l1"),
        _Line("χ²-privacy, λ = 0.5", _MERGING, "chi2"),
        _Line("l1-privacy, λ = 0.65", _MERGING, "l1", 0.65),
        _Line("χ²-privacy, λ = 0.65", _MERGING, "chi2", 0.65),
    )
    return _figure(
        name,
        f"Average lifts, {_of(adult)}",
        _SETUP
        + "Subset merging. What no protocol exceeds is of ALIP alone: the inverse lifts are no convex condition, "
        "so that there is no certificate for the others, which may lie above it.",
        lines,
        (_Line("no ALIP protocol above, λ = 0.5", "optimal", "alip"),),
        None if adult else _MANY,
        tuple(
            _in_the_mean("6.2", f"{line.title} keeps more than ALIP for all ε", line, lines[0]) for line in lines[1:3]
        )
        + tuple(
            _in_the_mean("6.2", f"{after.title} keeps more than λ = 0.5 for ε > 1", after, before, 1.0)
            for before, after in zip(lines[1:3], lines[3:], strict=True)
        ),
    )


def _alpha() -> Experiment:
    orders = (2, 10, 100)
    lines = (
        _Line("ALIP, λ = 0.5", _MERGING, "alip"),
        *(_Line(f"α-lift, α = {order}", _MERGING, "alpha", 0.5, order) for order in orders),
    )

    def nearer(results: Results) -> Judged:
        means = [float(results.mean(_CASE, line.label(_UTILITY)).mean()) for line in lines]
        gaps = [abs(value - means[0]) for value in means[1:]]
        said = ", ".join(f"α = {order}: {value:.3f}" for order, value in zip(orders, means[1:], strict=True))
        agrees = gaps == sorted(gaps, reverse=True) and means[1] == max(means)
        return Judged("α = 2 highest, closer to ALIP as α grows", f"{said}; ALIP {means[0]:.3f} (mean over ε)", agrees)

    return _figure(
        "13",
        "α-lift, random distributions, |S| = 5, |X| = 17",
        _SETUP + "Subset merging, λ = 0.5. There is no certificate for the α-lift, which relaxes ALIP.",
        lines,
        (_Line("no ALIP protocol above, λ = 0.5", "optimal", "alip"),),
        _MANY,
        (Claim("6.2", "tunable by α", nearer),),
    )


def _lifts_figure() -> Experiment:
    def extreme(label: str, printed: float, largest: bool) -> Claim:
        def judge(results: Results) -> Judged:
            values = results.at(_CASE, label, _BINS[0])
            found = float(values.max() if largest else values.min())
            # The extreme of some distributions is inside that of more: it can only be told to be beyond.
            beyond = found > printed + 0.05 if largest else found < printed - 0.05
            return Judged(f"{printed:g}", f"{found:.2f} in {len(values)} distributions", None if not beyond else False)

        return Claim("3, figure 1", label, judge)

    def rare(results: Results) -> Judged:
        found = float(results.at(_CASE, "share of |ln Ψ| > 6", _BINS[0]).mean())
        return Judged("near zero", f"{found:.2%}", found < 0.01)

    curves = (
        Curve("density of ln Ψ", "ln Ψ(x), least lift", "paper"),
        Curve("density of ln Λ", "ln Λ(x), largest lift", "ours"),
    )
    return Experiment(
        name="1",
        title="How far the lifts of symbols reach, |S| = 5, |X| = 17",
        about="Cells uniform in [0, 1], normalised. Nothing is released here, so that there is no optimum to draw.",
        distributions="1,000 distributions, as many as the scan of the paper can be read to say",
        xs=lambda size: _BINS,
        points=lambda size: [
            Point(_CASE, f"distribution {i}", lift_range, Distribution("uniform", (5, 17), i))
            for i in range(size.of(1000, 1000))
        ],
        panels=(Panel(_CASE, "", curves, "ln of a lift (nats), bins of 0.25", "density (1/nat)"),),
        claims=(
            extreme("least ln Ψ", -12.0, False),
            extreme("greatest ln Ψ", -0.06, True),
            extreme("least ln Λ", 0.02, False),
            extreme("greatest ln Λ", 1.64, True),
            Claim("3", "probability of |ln Ψ| > 6", rare),
        ),
    )


_FIGURES = (
    _lifts_figure(),
    *_pair(("2", "3"), _watchdog),
    *_pair(("4", "5"), _aorr),
    *_pair(("6", "7"), _subset),
    *_pair(("8", "9"), _response),
    _large(),
    *_pair(("11", "12"), _averages),
    _alpha(),
)

ALIP_PAPER = Paper(
    name="alip",
    title="Asymmetric local information privacy: the watchdog mechanism and optimal random response",
    about=(
        "Entropy 25 (2023), 679. The paper has no tables; its figures 1 to 13 are all here, with the panel of "
        "processing times of figure 8 left out: they are of another machine. Curves are means over distributions."
    ),
    experiments=_FIGURES,
    errata=ALIP_ERRATA,
)
