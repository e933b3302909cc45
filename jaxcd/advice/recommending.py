"""Which method for which data and budget, from public facts alone: the domain, the number of rows,
the budget.

The rules stand on comparisons of mean arc F1 against the true CPDAG.  They are in
``recommended.json`` beside this module, each with the result file that it comes from;
``python -m benchmarks.recommending_table`` writes it out of the committed results of
``benchmarks.frontier``, ``benchmarks.mixed`` and its own.  It also holds the limits from which on a
recommendation warns, and says that these were chosen by hand.

1. Discrete columns, at most 4,096 cells together (8,192 with those of missing cells): a joint
   histogram.  One record moves it by 2 whatever the number of columns is, and its score knows the
   noise of every cell.
2. Discrete columns, more cells: marginals.  They share their noise among all pairs, and are
   searched by a score rather than one test after the other.
3. Numeric columns whose relations are declared to be linear, delta > 0: second moments; where noise
   on chosen pairs of signs hides less than nine tenths of what it hides in them (from about 85
   columns on), tetrachoric correlations.
4. Other numeric columns, alone or beside levels, delta > 0: covariances of features; where their
   noise hides more than .85 of the rows over the root of the number of columns (.27 of 10, .09 of
   100), tables of numeric columns cut at quantiles; and where these hide much as well, and all
   columns are numeric, tetrachoric correlations.
5. Numeric beside nominal columns, no privacy: covariances of features.
6. No privacy: PC.
7. Where columns may be hidden (``latent=True``): the same release, and GFCI on it; FCI where 6
   chose tests.  On nine cases of four networks with 100,000 rows (``benchmarks.priv_fci``, epsilon
   1, 4 and 16) GFCI on a histogram found more marks of the true PAG than FCI on it and than FCI by
   private tests in eight; it misses edges that the score is too weak to see (Cancer without its
   middle).  Where the domain declares interventions FCI on the release: a score reads them as if
   nothing were hidden.

A recommendation warns where less than about half of the arcs were found in the runs from which the
limits were chosen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from statistics import fmean, median

from jaxcd.advice.choosing import (
    MOST_KNOWN_CELLS,
    Algorithm,
    Choice,
    choose,
    kind_of_release,
    n_cells,
    n_known_cells,
    nominal_beside_numeric,
)
from jaxcd.advice.planning import check_facts, plan, plan_release, resolution_words
from jaxcd.checks import check_flag, shown_count
from jaxcd.data import Domain, Numeric
from jaxcd.data.interventions import Interventions
from jaxcd.errors import DataError, OptionError
from jaxcd.privacy import NO_PRIVACY, Budget, NoPrivacy, Unit
from jaxcd.privacy.budget import counted_words, delta_warning
from jaxcd.releases import (
    Discretised,
    Features,
    Histogram,
    LogLinear,
    Marginals,
    Plan,
    ReleaseKind,
    SecondMoments,
    Tetrachoric,
)
from jaxcd.scores.level_margin import CHANCE_FIT, FULL_LEVELS, counted_levels, mean_and_margin

__all__ = ["Alternative", "Recommendation", "recommend"]


@dataclass(frozen=True)
class Alternative:
    """A method that was not chosen, and the reason against it."""

    title: str
    reason: str

    def __str__(self) -> str:
        return f"{self.title}: {self.reason}"


@dataclass(frozen=True)
class Recommendation:
    """What to run, and why; ``print`` shows all of it.

    Args:
        choice: algorithm, kind of release, or test and decider.
        reasons: sentences with the numbers that decided.
        alternatives: what was considered besides.
        warning: where this budget is too small for so many rows to find much, else None.
        delta_warning: where delta is not below 1 / n_samples, else None.
        budget: what it is for; :attr:`call` spells it out where its accounting was chosen.
    """

    choice: Choice = field(repr=False)
    reasons: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    warning: str | None
    delta_warning: str | None = None
    budget: Budget | NoPrivacy = field(default=NO_PRIVACY, repr=False)

    @property
    def title(self) -> str:
        """The method in a few words."""
        return self.choice.title

    @property
    def kind(self) -> ReleaseKind | None:
        """The release to buy with :func:`jaxcd.release`; None for a search by tests."""
        return self.choice.kind

    def __str__(self) -> str:
        lines = [
            f"Recommended: {self.title}",
            f"  {self.call}",
            *(f"  - {reason}" for reason in self.reasons),
        ]
        lines += [f"Warning: {words}" for words in (self.warning, self.delta_warning) if words]
        lines += ["Considered:"] if self.alternatives else []
        return "\n".join([*lines, *(f"  - {alternative}" for alternative in self.alternatives)])

    @property
    def call(self) -> str:
        """The call that runs it."""
        budget = f"budget={_in_call(self.budget)}"
        if self.kind is not None:
            bought = f"jaxcd.release(data, jaxcd.{type(self.kind).__name__}(), {budget})"
            if self.choice.algorithm is Algorithm.FCI:
                return f'jaxcd.search({bought}, algorithm="fci")'
            search = "gfci" if self.choice.algorithm.finds_pag else "search"
            return f"jaxcd.{search}({bought})"
        test = f"jaxcd.{type(self.choice.test).__name__}()"
        if self.choice.tree is not None:
            return f"jaxcd.tree_pc(data, test={test}, {budget}, key=key)"
        decider = f"jaxcd.{type(self.choice.decider).__name__}()"
        search = "fci" if self.choice.algorithm.finds_pag else "pc"
        return f"jaxcd.{search}(data, test={test}, decider={decider}, {budget}, key=key)"


def _in_call(budget: Budget | NoPrivacy) -> str:
    if isinstance(budget, NoPrivacy) or budget.accounting is None:
        return "budget"
    rows = budget.max_rows_per_person
    person = "" if rows == 1 else f", max_rows_per_person={rows}"
    person += ", unit='person'" if budget.unit is Unit.PERSON else ""
    return (
        f"jaxcd.Budget({budget.epsilon!r}, {budget.delta!r}{person}, "
        f"accounting=jaxcd.privacy.{budget.accounting})"
    )


def recommend(
    domain: Domain | str | Path,
    n_samples: int,
    *,
    budget: Budget | NoPrivacy,
    linear: bool = False,
    latent: bool = False,
) -> Recommendation:
    """Which method suits a domain, a number of rows and a budget, and why.

    The rules and their evidence are in the docstring of :mod:`jaxcd.advice.recommending`.  Nothing
    is read but the arguments, so that nothing is spent.

    Args:
        domain: the declared domain, or the path of its file.
        n_samples: the public number of rows, at least 1.
        budget: the total, or NO_PRIVACY.
        linear: whether the relations among numeric columns may be taken as linear; knowledge, never
            a look at the data.
        latent: whether columns may have common causes that are not in the data; then the graph is a
            PAG.

    Returns:
        The method, its reasons with numbers, and the alternatives; ``print`` shows all of it.

    Raises:
        OptionError: an argument is not of its kind, or ``linear`` where a column has levels.
        DomainError: there are numeric columns and the budget has no delta.
        DataError: there are numeric columns and no more rows than features.

    Example:
        >>> import jaxcd
        >>> domain = jaxcd.networks.load("asia").domain
        >>> print(jaxcd.recommend(domain, 10_000, budget=jaxcd.Budget(1.0)).reasons[0])
        8 columns have 256 cells together, at most 4,096: one record changes two of them by 1.
    """
    domain = check_facts(domain, n_samples)
    if not isinstance(budget, (Budget, NoPrivacy)):
        raise OptionError(
            f"budget = {budget!r} is not a budget; use jaxcd.Budget(epsilon=1.0, delta=1e-6), or "
            "jaxcd.NO_PRIVACY"
        )
    if not isinstance(linear, bool):
        raise OptionError(
            f"linear = {linear!r} is not True or False; say True if relations among numeric "
            "columns are linear"
        )
    for name, column in domain.columns.items():
        if linear and not isinstance(column, Numeric):
            raise OptionError(
                "linear=True: it is for tables whose columns are all numeric, and "
                f"{name!r} has levels; leave it out"
            )
    check_flag("latent", latent)
    found = _recommended(domain, n_samples, budget, linear)
    return _with_latent(found, domain, budget) if latent else found


def _recommended(
    domain: Domain, n_samples: int, budget: Budget | NoPrivacy, linear: bool
) -> Recommendation:
    """Where nothing is hidden."""
    mixed = nominal_beside_numeric(domain) is not None
    if isinstance(budget, NoPrivacy):
        no_noise = "No privacy is asked for, so that no noise has to be planned."
        if mixed:
            if _too_few_rows(domain, n_samples):
                none = Alternative(Features.title, "there are more features than rows")
                return _release(Discretised(), (no_noise, _IN_QUANTILES), (none,), None)
            return _release(Features(), (no_noise, _TAKES_BOTH), (_no_tests(domain),), None)
        return _tests(choose(domain, budget=budget), (no_noise,), ())
    # Tests on rows have no place for a number that is missing; features have one for it.
    holes = any(
        column.missing is not None for column in domain.columns.values() if not column.is_discrete
    )
    all_linear = linear and all(isinstance(each, Numeric) for each in domain.columns.values())
    if domain.is_discrete:
        found = _discrete(domain, n_samples, budget)
    elif budget.delta > 0 and (mixed or holes or (budget.unit is Unit.PERSON and not all_linear)):
        found = _of_any_shape(domain, n_samples, budget, ())
    elif budget.unit is Unit.PERSON:
        if mixed or holes:
            raise OptionError(
                "budget: where people have several rows, numeric columns beside others or with "
                "missing cells need Gaussian noise; give the budget a delta such as 1e-6"
            )
        found = _linear_by_person(domain, n_samples, budget)
    else:
        found = _numeric(domain, n_samples, budget, linear)
    words = delta_warning(budget.epsilon, budget.delta, n_samples, unit=budget.unit)
    return replace(found, delta_warning=words, budget=budget)


def _with_latent(
    found: Recommendation, domain: Domain, budget: Budget | NoPrivacy
) -> Recommendation:
    """The same where columns may be hidden."""
    hidden = "Columns may be hidden, so that the graph is a PAG."
    if found.kind is None:
        choice = choose(domain, budget=budget, algorithm=Algorithm.FCI)
        kept = found.reasons if isinstance(budget, NoPrivacy) else ()
        fresh = _tests(choice, (*kept, hidden), (), found.warning)
    elif columns := Interventions.of(domain).columns:
        why = (
            f"{columns[0]!r} declares an intervention: FCI reads it as a column of which it is "
            "known what does not cause it, and asks the release, which can be asked again."
        )
        score = Alternative(
            f"{found.title}; from there a PAG (GFCI)",
            f"its score reads {columns[0]!r} as if nothing were hidden",
        )
        fresh = _release(
            found.kind,
            (*found.reasons, hidden, why),
            (*found.alternatives, score),
            found.warning,
            Algorithm.FCI,
        )
    else:
        tests = Alternative("FCI by tests", "on most networks it found fewer marks of the true PAG")
        more = "GFCI weighs edges by the score, and tests only what a hidden cause may have joined."
        fresh = _release(
            found.kind,
            (*found.reasons, hidden, more),
            (*found.alternatives, tests),
            found.warning,
            Algorithm.GFCI,
        )
    return replace(fresh, delta_warning=found.delta_warning, budget=found.budget)


_FILE = files("jaxcd.advice").joinpath("recommended.json")
_LIMITS = json.loads(_FILE.read_text("utf-8"))["limits"]
# From this share of the rows on that noise hides, or below so many rows times epsilon, less than
# about half of the arcs were found.
_HIDDEN: Mapping[str, float] = _LIMITS["hidden_share"]
_LEAST_COUNT = _LIMITS["least_rows_times_epsilon"]
# Where the first round of Marginals hides this share, and more, of the average count in a table of
# two columns, LogLinear found more arcs or more of the skeleton (Sachs, Child and Alarm with 1,000
# to 100,000 rows; random networks of 4 to 35 columns of 2 to 60 levels with 20,000 and 100,000), by
# the most columns: many that depend on each other need larger cliques than a model can have.
_MODEL_NOISE: list[tuple[int, float]] = _LIMITS["model_noise"]

# Tetrachoric correlations found more than second moments where they hid less than this share of
# what those hid (random linear Gaussian models, 6 to 200 columns, 1,000 to 100,000 rows).
_SIGNS_OVER_MOMENTS: float = _LIMITS["signs_over_moments"]
# Where fewer pairs for each column can be chosen, less than about half of the arcs were found.
_LEAST_CHOSEN: float = _LIMITS["least_chosen"]
# Where an edge between two columns must explain more nats a row than this to pay for its numbers,
# less than about half of the skeleton was found (random tables of 2 to 10 columns of 5 to 40
# levels, 500 to 20,000 rows, epsilon 4 and 16): at .16 to .21 .02 to .50, at .11 to .15 .30 to .97.
_MOST_NATS: float = _LIMITS["most_nats_of_an_edge"]


def _discrete(domain: Domain, n_samples: int, budget: Budget) -> Recommendation:
    found = _by_cells(domain, n_samples, budget)
    # More budget and other releases hardly help here, so that it goes before what asks for more.
    warning = _many_levels(domain, n_samples, counted_words(budget.unit))
    if warning is None:
        return found
    choice = replace(found.choice, reasons=_said(found.title, found.reasons, warning))
    return replace(found, choice=choice, warning=warning)


def _many_levels(domain: Domain, n_samples: int, counted: str) -> str | None:
    """A warning where the score's price of an edge is more than most edges are worth: the median
    over pairs of columns of what their numbers cost, without noise.
    """
    known = [
        cardinality - (column.missing is not None)
        for column, cardinality in zip(domain.columns.values(), domain.cardinalities, strict=True)
        if cardinality
    ]
    levels = [k for k in known if k > 1]
    paid = counted_levels(levels, FULL_LEVELS)
    columns = [(k - 1, c - 1) for k, c in zip(levels, paid, strict=True)]
    mean, margin = mean_and_margin(math.log(n_samples) / 2, CHANCE_FIT)
    pairs = list(combinations(columns, 2))
    prices = [mean * a * b + margin * c * d for (a, c), (b, d) in pairs]
    numbers = median(a * b for (a, _), (b, _) in pairs) if pairs else 0
    if not pairs or median(prices) / n_samples <= _MOST_NATS:
        return None
    return (
        f"the columns have so many levels that an edge takes {numbers:,.0f} numbers, too many for "
        f"{n_samples:,} {counted}: expect to miss half of the graph or more; merge levels, or "
        "search the release by tests as well (pc)"
    )


def _cells_of_a_pair(domain: Domain) -> float:
    """The mean number of cells of two columns, all of which have levels."""
    levels = [k for k in domain.cardinalities if k is not None]
    return fmean(a * b for a, b in combinations(levels, 2))


def _by_cells(domain: Domain, n_samples: int, budget: Budget) -> Recommendation:
    cells, known = n_cells(domain), n_known_cells(domain)
    kind = kind_of_release(domain)
    private = _private_searches(domain, n_samples, budget)
    counted = counted_words(budget.unit)
    if kind == Histogram():
        and_codes = f", and {cells:,} with those of missing cells" if cells > known else ""
        planned = plan_release(domain, n_samples, kind=kind, budget=budget)
        by_person = budget.unit is Unit.PERSON
        one = "person changes them by 2 in all" if by_person else "record changes two of them by 1"
        reasons = [
            f"{domain.n_columns} columns have {known:,} cells together, at most "
            f"{MOST_KNOWN_CELLS:,}{and_codes}: one {one}.",
            f"A cell has {n_samples / cells:,.3g} {counted} on average and noise of "
            f"{planned.noise:.3g}, which the score allows for.",
        ]
        if budget.delta > 0:
            reasons.append("It needs no delta: the release is private with epsilon alone.")
        pairs = Alternative(
            Marginals.title,
            "its noise grows with the number of columns, and where a histogram fits it mostly "
            "found less",
        )
        return _release(kind, tuple(reasons), (pairs, *private), _few_rows(n_samples, budget))
    limit = MOST_KNOWN_CELLS if known > MOST_KNOWN_CELLS else Histogram().max_cells
    joint = Alternative(
        Histogram.title,
        f"{domain.n_columns} columns have {shown_count(cells)} cells together, too many for noise "
        "on each",
    )
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    reasons = [
        f"{domain.n_columns} columns have {shown_count(cells)} cells together, more than "
        f"{limit:,}: tables of few columns each.",
        planned.words,
    ]
    least = next((share for most, share in _MODEL_NOISE if domain.n_columns <= most), math.inf)
    noise = planned.smallest_share * _cells_of_a_pair(domain)
    if noise >= least:
        measured = Alternative(
            kind.title,
            f"it found more where its noise hides less than {least:.1%} of the average count in "
            f"a table of two columns; here it is {noise:.1%}",
        )
        reasons.append(
            "With so much noise a model of the pairs that are clearly dependent finds more than "
            "tables of more columns."
        )
        kind = LogLinear()
        hidden = plan_release(domain, n_samples, kind=kind, budget=budget).smallest_share
        return _release(
            kind, tuple(reasons), (measured, joint, *private), _noisy(LogLinear, hidden, counted)
        )
    warning = _noisy(Marginals, planned.smallest_share, counted)
    n_chosen = Marginals().n_selected(domain, n_samples, budget=budget)
    warning = warning or _few_chosen(n_chosen, domain.n_columns, counted)
    return _release(kind, tuple(reasons), (joint, *private), warning)


def _numeric(domain: Domain, n_samples: int, budget: Budget, linear: bool) -> Recommendation:
    # refuses what no private search takes
    choice = choose(domain, budget=budget, algorithm=Algorithm.TREE)
    share = _smallest_share(domain, n_samples, choice, budget)
    seen = _seen_from(share)
    all_numeric = all(isinstance(column, Numeric) for column in domain.columns.values())
    if linear and all_numeric:
        kind = SecondMoments()
        planned = plan_release(domain, n_samples, kind=kind, budget=budget)
        tree = Alternative(
            choice.title, f"it takes relations of any shape, which costs precision: it {seen}"
        )
        if (signs := _by_signs(domain, n_samples, budget, planned, tree)) is not None:
            return signs
        return _of_moments(planned, budget, tree)
    tree = Alternative(choice.title, f"it {seen}, and found less on most random models")
    found = _of_any_shape(domain, n_samples, budget, (tree,))
    if all_numeric and found.warning is not None:
        monotone = (
            "All columns are numeric: signs about their medians show relations of any monotone "
            "shape.",
        )
        signs = _of_signs(domain, n_samples, budget, monotone, (tree,))
        return found if signs.warning is not None else signs
    return found


def _linear_by_person(domain: Domain, n_samples: int, budget: Budget) -> Recommendation:
    """Numeric columns where a person may have several rows: no search by tests is private then."""
    kind = SecondMoments()
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    tests = Alternative("searches by tests", _ROWS_ONLY)
    if (signs := _by_signs(domain, n_samples, budget, planned, tests)) is not None:
        return signs
    return _of_moments(planned, budget, tests)


def _of_moments(planned: Plan, budget: Budget, other: Alternative) -> Recommendation:
    warning = _noisy(SecondMoments, planned.smallest_share, counted_words(budget.unit))
    return _release(SecondMoments(), (_LINEAR, planned.words), (other,), warning)


def _by_signs(
    domain: Domain, n_samples: int, budget: Budget, moments: Plan, other: Alternative
) -> Recommendation | None:
    """Tetrachoric correlations in the place of second moments, where they hide clearly less."""
    kind = Tetrachoric()
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    if not kind.n_selected(domain, n_samples, budget=budget):
        return None
    if planned.smallest_share >= _SIGNS_OVER_MOMENTS * moments.smallest_share:
        return None
    why = Alternative(
        SecondMoments.title,
        f"with noise on all pairs they hide what is below {moments.smallest_share:.2%} of the "
        f"{counted_words(budget.unit)}",
    )
    return _of_signs(domain, n_samples, budget, (_LINEAR,), (why, other))


def _of_signs(
    domain: Domain,
    n_samples: int,
    budget: Budget,
    reasons: tuple[str, ...],
    others: tuple[Alternative, ...],
) -> Recommendation:
    kind, p = Tetrachoric(), domain.n_columns
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    n_pairs, n_chosen = math.comb(p, 2), kind.n_selected(domain, n_samples, budget=budget)
    chosen = (f"Of {n_pairs:,} pairs of columns {n_chosen:,} are chosen, and share the noise.",)
    why = (*reasons, *(chosen if n_chosen else ()), planned.words)
    return _release(kind, why, others, _few_chosen(n_chosen, p, counted_words(budget.unit)))


def _few_chosen(n_chosen: int, n_columns: int, counted: str) -> str | None:
    """A warning where so few pairs can be chosen that little is found; of 0 all are measured."""
    if not 0 < n_chosen < _LEAST_CHOSEN * n_columns:
        return None
    needed = _LEAST_CHOSEN * n_columns
    return (
        f"this budget can measure {n_chosen:,} of {math.comb(n_columns, 2):,} pairs of columns; "
        f"with fewer than {math.ceil(needed):,} expect to miss half of the graph or more; "
        f"{math.sqrt(needed / n_chosen):.1f} times the {counted} would do"
    )


_LINEAR = "All columns are numeric, and their relations were declared to be linear."
_ROWS_ONLY = "none of them has a proved bound for a person with several rows"
_ANY_SHAPE = (
    "There are numeric columns: features of their ranks show relations of any shape that are sums "
    "of functions of single columns."
)
_TAKES_BOTH = (
    "There are numeric beside nominal columns: features of ranks and of levels go "
    "together in one table of covariances."
)


# Where features hide more than this over the root of the number of columns, as a share of the rows,
# tables of quantiles found more: the spectrum of the noise on a matrix grows with that root
# (benchmarks.mixed, and random mixed models of 10 to 150 columns with 2,000 to 50,000 rows).
_FEATURES_SEE: float = _LIMITS["features_over_tables"]
_ROWS_ONLY_IN_SUMS = (
    "Numbers that may be missing, and people with several rows, have a place in sums over rows, "
    "such as covariances of features, and none in tests on rows."
)


_IN_QUANTILES = "Numeric columns are cut at quantiles, and go into tables."


def _too_few_rows(domain: Domain, n_samples: int) -> bool:
    """Whether there are no more rows than features."""
    try:
        Features().check(domain, n_samples)
    except DataError:
        return True
    return False


def _of_any_shape(
    domain: Domain, n_samples: int, budget: Budget, others: tuple[Alternative, ...]
) -> Recommendation:
    """Numeric columns, alone or beside levels: features, or where their noise hides much tables of
    quantiles.
    """
    kind, counted = Features(), counted_words(budget.unit)
    if _too_few_rows(domain, n_samples):
        none = Alternative(Features.title, f"there are more features than {counted}")
        return _in_quantiles(domain, n_samples, budget, (none, *others))
    if nominal_beside_numeric(domain) is not None:
        reason = _TAKES_BOTH
    else:
        reason = _ROWS_ONLY_IN_SUMS if not others else _ANY_SHAPE
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    # More features are chosen where there is less noise, so that the noise on a correlation of the
    # chosen ones says less.
    hidden = plan_release(
        domain, n_samples, kind=replace(kind, n_features=2), budget=budget
    ).smallest_share
    most = _FEATURES_SEE / math.sqrt(domain.n_columns)
    if hidden > most:
        why = (
            f"their noise hides what is below {hidden:.1%} of the {counted}, and of "
            f"{domain.n_columns} columns tables found more from {most:.0%} on"
        )
        features = Alternative(Features.title, why)
        return _in_quantiles(domain, n_samples, budget, (features, *others))
    tables = Alternative(
        Discretised.title,
        "conditioning on a bin is less than conditioning on the number: they found less where "
        f"features hide less than {most:.0%} of the {counted}, but where children are functions of "
        "weighted sums of their parents",
    )
    reasons = (reason, planned.words, *resolution_words(domain, kind.step))
    return _release(kind, reasons, (tables, *others), None)


def _in_quantiles(
    domain: Domain, n_samples: int, budget: Budget, others: tuple[Alternative, ...]
) -> Recommendation:
    """Tables of numeric columns cut at quantiles."""
    kind = Discretised().chosen(domain, n_samples, budget=budget)
    planned = plan_release(domain, n_samples, kind=kind, budget=budget)
    reasons = (
        f"Numeric columns are cut at quantiles that the budget buys, into {kind.bins} bins each, "
        "and go into tables.",
        planned.words,
        *resolution_words(domain, kind.step),
    )
    in_levels = kind.in_levels(domain)
    n_chosen = Marginals().n_selected(in_levels, n_samples, budget=budget)
    counted = counted_words(budget.unit)
    warning = _few_chosen(n_chosen, domain.n_columns, counted)
    warning = warning or _noisy(Discretised, planned.smallest_share, counted)
    return _release(Discretised(), reasons, others, warning)


def _no_tests(domain: Domain) -> Alternative:
    numeric = next(name for name in domain.names if not domain[name].is_discrete)
    return Alternative(
        Marginals.title,
        f"they count levels: column {numeric!r} and its like would have to be declared ordinal "
        "with public bins, or cut at quantiles (jaxcd.Discretised), which found less",
    )


def _private_searches(domain: Domain, n_samples: int, budget: Budget) -> tuple[Alternative, ...]:
    """The searches by tests, with what they would see."""
    if budget.unit is Unit.PERSON:
        return (Alternative("searches by tests", _ROWS_ONLY),)
    searches = []
    if budget.delta > 0:
        searches.append(choose(domain, budget=budget, algorithm=Algorithm.TREE))
    searches.append(choose(domain, budget=budget))
    seen = [
        (choice.title, _smallest_share(domain, n_samples, choice, budget)) for choice in searches
    ]
    return tuple(
        Alternative(title, f"it {_seen_from(share)}, one test after the other")
        for title, share in seen
    )


def _seen_from(share: float) -> str:
    if share >= 1:
        return "sees nothing in so few rows"
    return f"sees dependences from {share:.2%} of the rows on"


def _smallest_share(domain: Domain, n_samples: int, choice: Choice, budget: Budget) -> float:
    assert choice.test is not None
    planned = plan(
        domain, n_samples, test=choice.test, budget=budget, decider=choice.decider, tree=choice.tree
    )
    return planned.smallest_share


def _few_rows(n_samples: int, budget: Budget) -> str | None:
    most, counted = budget.max_rows_per_person, counted_words(budget.unit)
    count = n_samples * budget.epsilon / most
    if count >= _LEAST_COUNT:
        return None
    shared = f" / {most} (rows of a person)" if most > 1 else ""
    return (
        f"{counted} times epsilon{shared} are {count:,.0f}, and below {_LEAST_COUNT:,} half of "
        "the graph or more can be missed where levels are rare or effects weak; "
        f"for {n_samples:,} {counted} that is epsilon = {most * _LEAST_COUNT / n_samples:.2g}"
    )


def _noisy(method: type, share: float, counted: str) -> str | None:
    hidden = _HIDDEN[method.__name__]
    if share <= hidden:
        return None
    return (
        f"this budget hides what is below {share:.1%} of the {counted}, and above "
        f"{hidden:.0%} expect to miss half of the graph or "
        f"more; {share / hidden:.1f} times the {counted}, or so much larger an epsilon, would "
        "do"
    )


def _release(
    kind: ReleaseKind,
    reasons: tuple[str, ...],
    alternatives: tuple[Alternative, ...],
    warning: str | None,
    algorithm: Algorithm = Algorithm.RELEASE,
) -> Recommendation:
    choice = Choice(None, None, (), algorithm, kind)
    said = _said(choice.title, reasons, warning)
    return Recommendation(replace(choice, reasons=said), reasons, alternatives, warning)


def _tests(
    choice: Choice,
    reasons: tuple[str, ...],
    alternatives: tuple[Alternative, ...],
    warning: str | None = None,
) -> Recommendation:
    said = (*_said(choice.title, reasons, warning), *choice.reasons)
    return Recommendation(replace(choice, reasons=said), reasons, alternatives, warning)


def _said(title: str, reasons: tuple[str, ...], warning: str | None) -> tuple[str, ...]:
    """What a run says about its choice: each with a label, as the reasons of :func:`choose`
    have.
    """
    lines = (f"chosen: {title}", *(f"because: {reason}" for reason in reasons))
    return (*lines, f"warning: {warning}") if warning else lines
