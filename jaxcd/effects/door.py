"""``jaxcd.effect``: how much one column changes another, from a release that has been paid for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax

from jaxcd.checks import a_type, check_flag, check_number, check_whole, shown_list
from jaxcd.data import Binned, Missing
from jaxcd.discovery import search_release
from jaxcd.discovery.confidence import member_adjacency
from jaxcd.effects.estimating import Estimator, estimator_of
from jaxcd.effects.families import Families, all_families, families_of
from jaxcd.effects.identification import Possibility, as_designed, as_graph, possibilities
from jaxcd.effects.result import Effect, PossibleEffect
from jaxcd.errors import GraphError, OptionError
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.privacy import Unit
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.releases import Release

__all__ = ["drawn_graphs", "effect", "estimated"]

# A graph, and whether columns may be hidden; None where its edges say so.
Read = tuple[MixedGraph, bool | None]

_OPEN = (
    "the searches left directions open, as noise is large: no graph that was drawn has a collider "
    "whose ends are not joined"
)
_RIGHT = "the graph is right, and there is no cause of two columns that it lacks"
_WITH_HIDDEN = "the graph is right, what was not measured of it included"


@claiming(
    GuaranteeClaim(
        "post-processing: reads released numbers only", assumptions="those of the release"
    )
)
def effect(
    release: Release,
    *,
    treatment: str,
    outcome: str,
    graph: Any = None,
    levels: tuple[Any, Any] | None = None,
    outcome_level: Any = None,
    level: float = 0.95,
    missing: Missing | str | None = None,
    whole_graph: bool | None = None,
    latent: bool = False,
    knowledge: Knowledge | None = None,
    n_draws: int = 20,
    seed: int = 0,
) -> Effect:
    r"""How much setting one column would change another: an estimate with an interval that counts
    sampling and privacy noise, from a release that has been paid for, at no further cost.

    For a treatment with levels a and b the effect is

        E[s(outcome) | do(treatment = b)] - E[s(outcome) | do(treatment = a)],

    with s the indicator of the second of two levels (a risk difference), or of ``outcome_level``;
    of more levels their value where they are numbers, else their place 0, 1, 2, ... in the domain.
    For numeric columns it is the change of the outcome per unit of the treatment, in linear models.

    *With a graph* the effect is identified by adjustment (:mod:`jaxcd.graphs.adjustment`), and read
    off the table of an adjustment set: the optimal set where the noise on its table is small beside
    sampling and the release measured it; otherwise the valid set with the fewest cells.  That is a
    rule on public facts.  Where a DAG or a CPDAG tells one effect, and a noisy release measured the
    tables of all families (a column with its parents) that stand between, it is computed from these
    instead (:mod:`jaxcd.effects.families`), unless the error of the other estimate is smaller to
    first order; where the release holds interactions, other tables correct them by what the DAG
    says (:mod:`jaxcd.effects.agreeing`).  That is narrower, and takes the whole DAG for right,
    which ``jaxcd.falsify`` tests; ``whole_graph=False`` takes only the adjustment set for right.
    So does the default where what stands between is known in bins, or missing and read as a level:
    bins do not separate what the column separates.
    Without noise the estimate is the adjustment formula.  Interval: :mod:`jaxcd.effects.likelihood`
    (tables), :mod:`jaxcd.releases.moments.regressions`.  ``whole_graph=True`` reads all cells of a
    noisy histogram at once, with a DAG of at most 100 parameters
    (:mod:`jaxcd.effects.whole_graph`): a second an effect, and narrower where levels are rare.
    Where noise is large its intervals cover a little less than they say.

    With a CPDAG that leaves the effect open there is one possible effect for each set of parents
    that the treatment may have; low and high are the ends of all their intervals together.  With a
    PAG that does not identify it, or of one whose adjustment sets all hold a node that is no column
    of the release, ``identified`` is False, ``possible`` has the effects in those of
    its members that do (LV-IDA; PAGs of about five columns, or few circles), and the interval is
    that of what no hidden cause can hide, E[s; b] + min s P(not b) <= E[s | do(b)] <= E[s; b] + max
    s P(not b) (Robins 1989, Manski 1990): some member always leaves the effect open.  Where the
    graph asks for tables that the release did not measure it is all that is possible.

    *Where several columns say under which conditions a row was taken*, a DAG or CPDAG without an
    edge between them does not say that they are independent, and what is held fixed allows for any
    dependence.

    *Where the domain says what was set*, rows in which the outcome was are left out, and where the
    column that says so is held fixed, those in which the treatment was.  Rows in which a column
    between the two was set count as they were taken, and make the effect smaller;
    ``assumptions`` says so where there are such.

    *Without a graph* the release's own search finds one, and again in ``n_draws`` releases drawn
    anew from the found graph with its fitted parameters.  Low and high are the ends of the
    intervals, computed on this release, over all these graphs and all members of their classes.
    **What coverage means then.**  The graph was chosen on the numbers that the effect is
    estimated from.  An interval at a graph that was chosen so has no guarantee (Gradu et al. 2022);
    the union has its level wherever the true graph, or one with the same adjustment sets, is among
    those drawn.  That is likely where edges are strong beside sampling and noise, and fails where
    the truth is not faithful, or an edge is too weak to be found in the release and so in any draw.
    Where a noisy ``LogLinear`` leaves directions open, graphs with unshielded colliders are not
    drawn; ``assumptions`` says so.  In ``benchmarks.effects``, with 100,000 rows and
    epsilon 1, .94 (Asia, pure), .99 (Sachs) and .98 (Child, both with delta 1e-6) of the effects
    are inside, of 180 to 640 in 10 data sets.

    Args:
        release: a release of a histogram, of marginals, of a log-linear model, or of second
            moments.  Features are refused: errors of their approximation are not known.
        treatment: the column that is set.
        outcome: another column.
        graph: a networkx DiGraph or a MixedGraph: a DAG, CPDAG, MAG or PAG; a sequence of them for
            the union over all; None for graphs drawn as above.  Columns of the release that the
            graph lacks are taken to be no part of the story.  Nodes that the release lacks cannot
            be held fixed: where no other set will do the effect is as open as in a PAG that does
            not identify it, and ``unmeasured`` names them.  A run (:class:`jaxcd.DiscoveryResult`)
            says itself whether its graph is a PAG.  A graph by itself is read as a PAG or MAG where
            it has a circle or ``<->``, and as a DAG or CPDAG of all causes where it has neither.
        levels: (from, to) of a treatment with more than two levels; None for the first and second
            of two.  For numeric treatments two numbers, whose difference multiplies the effect.
        outcome_level: the level whose probability is looked at.
        level: of the interval, between 0 and 1.
        missing: as for :func:`jaxcd.search`.
        whole_graph: how much of a given DAG or CPDAG is taken for right (see above): None for the
            families' tables, False for the adjustment set's by itself, as with several graphs or
            possible effects in any case, True for all cells of a noisy histogram at once, and for
            the families' tables also through bins.  Rows in one bin are then taken to be alike in
            the column, which biases the effect where they are not; ``assumptions`` says so.
        latent: whether columns may be hidden: the given graph is a PAG or MAG even if all its edges
            are ``-->``, as a PAG's may be where edges were required.
        knowledge: with ``graph=None``: what is known before; a given graph is taken as it is.
        n_draws: with ``graph=None``: how often the search is repeated, from 0.
        seed: of these draws, from 0; public.

    Returns:
        The effect; ``.estimate``, ``.low``, ``.high``, ``.identified``, ``.adjustment``,
        ``.assumptions``, ``.sentence``, ``.plot()``.

    Raises:
        OptionError: an argument is out of its range, or the release cannot answer.
        GraphError: the graph lacks a column, or is of no kind that is known.

    Source:
        Pearl 2009; Perkovic et al. 2018; Henckel, Perkovic, Maathuis 2022; Maathuis, Kalisch,
        Buehlmann 2009; Malinsky and Spirtes 2016; Robins 1989 and Manski 1990 for the bounds;
        Gradu, Zrnic, Wang, Jordan 2022, Valid inference after causal discovery; Chang, Guo,
        Malinsky 2024, Post-selection inference for causal effects after causal discovery.

    Example:
        >>> import jax, jaxcd
        >>> network = jaxcd.networks.load("asia")
        >>> data = network.sample(100_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        >>> found = jaxcd.effect(bought, treatment="smoke", outcome="dysp", graph=network.dag)
        >>> round(found.estimate, 2), found.low < 0.234 < found.high
        (0.24, True)
    """
    read = _checked(release, treatment, outcome, missing)
    if graph is not None and knowledge is not None:
        raise OptionError(
            "knowledge: a given graph is taken as it is; orient it first "
            "(jaxcd.discovery.oriented_by_knowledge(graph, knowledge)), or leave graph out"
        )
    check_flag("latent", latent)
    if whole_graph is not None:
        check_flag("whole_graph", whole_graph)
    if latent and graph is None:
        raise OptionError(
            "latent: the release's own search finds graphs without hidden causes; give a PAG, as "
            "in graph=jaxcd.gfci(release)"
        )
    check_number("level", level, 0, 1, "()", cure="0.95 is usual")
    level = float(level)
    estimator = estimator_of(read, treatment, outcome, levels=levels, outcome_level=outcome_level)
    graphs = _graphs(
        drawn_graphs(read, n_draws=n_draws, seed=seed, knowledge=knowledge)
        if graph is None
        else graph,
        latent,
    )
    graphs = tuple(
        (one if is_latent else as_designed(one, read.domain, treatment), is_latent)
        for one, is_latent in graphs
    )
    for one, _ in graphs:
        for argument, name in (("treatment", treatment), ("outcome", outcome)):
            if name not in one.names:
                raise GraphError(
                    f"graph: it has no node {name!r}, the {argument}; its names are {one.names}"
                )
    notes = (
        [_RIGHT]
        if graph is not None
        else [
            "the true graph, or one with the same adjustment sets, is among those found in "
            f"{len(graphs)} searches"
        ]
    )
    if graph is None and read.opens_directions:
        notes.append(_OPEN)
    if graph is None or len(graphs) > 1:
        whole_graph = False
    return _combined(estimator, graphs, read, level=level, whole_graph=whole_graph, notes=notes)


def drawn_graphs(
    release: Release, *, n_draws: int = 20, seed: int = 0, knowledge: Knowledge | None = None
) -> tuple[MixedGraph, ...]:
    """The graph that the release's own search finds, and those it finds in releases drawn anew from
    that graph with its fitted parameters: for :func:`jaxcd.effect`, once for many effects.

    Args:
        release: what :func:`jaxcd.release` returned.
        n_draws: how many are drawn, from 0.
        seed: of the draws, from 0; public.
        knowledge: what is known before.

    Returns:
        The found graph first; n_draws + 1 in all.

    Raises:
        OptionError: an argument is out of its range, or the release cannot be drawn again.

    Source:
        Friedman, Goldszmidt, Wyner 1999.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("cancer").sample(20_000, key=jax.random.key(0))
        >>> noise = jaxcd.SimulatedNoise(jax.random.key(1))
        >>> bought = jaxcd.release(data, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=noise)
        >>> graphs = jaxcd.effects.drawn_graphs(bought, n_draws=2)
        >>> len(graphs), graphs[0].names == bought.names
        (3, True)
    """
    check_whole("n_draws", n_draws, 0, cure="20 is usual")
    check_whole("seed", seed, 0, 2**63 - 1, cure="give one such as 0")
    first = search_release(release, knowledge=knowledge).graph
    graphs = [first]
    if n_draws:
        again = release.redraw(member_adjacency(release, first))
        for draw in range(n_draws):
            fresh = again(jax.random.fold_in(jax.random.key(seed), draw))
            graphs.append(search_release(fresh, knowledge=knowledge).graph)
    return tuple(graphs)


def _checked(release: Any, treatment: str, outcome: str, missing: Missing | str | None) -> Release:
    if not isinstance(release, Release):
        raise OptionError(
            f"release: {a_type(release)} is no release; buy one with jaxcd.release(data, "
            "...), or load one with jaxcd.Release.load(path)"
        )
    for argument, name in (("treatment", treatment), ("outcome", outcome)):
        if not isinstance(name, str) or name not in release.names:
            raise OptionError(
                f"{argument}: {name!r} is no column of the release; it has "
                f"{shown_list(release.names)}"
            )
    if treatment == outcome:
        raise OptionError(f"outcome: {outcome!r} is the treatment itself; give another column")
    read: Release = release if missing is None else release.reading(missing)
    return read


def _graphs(graph: Any, latent: bool) -> tuple[Read, ...]:
    several = graph if isinstance(graph, Sequence) and not isinstance(graph, str) else [graph]
    if not several:
        raise OptionError("graph: the sequence is empty; give a graph")
    return tuple(
        (as_graph(one), True if latent or getattr(one, "is_latent", False) else None)
        for one in several
    )


def _combined(
    estimator: Estimator,
    graphs: tuple[Read, ...],
    release: Release,
    *,
    level: float,
    whole_graph: bool | None,
    notes: list[str],
) -> Effect:
    found: dict[Any, PossibleEffect] = {}
    shares: Counter[Any] = Counter()
    identified, unknown = True, False
    unmeasured: dict[str, None] = {}
    read_off: dict[tuple[str, ...], None] = {}
    as_taken: dict[str, None] = {}
    for (one, is_latent), times in Counter(graphs).items():
        hidden = tuple(name for name in one.names if name not in release.names)
        options = possibilities(one, estimator.treatment, estimator.outcome, hidden, is_latent)
        identified = identified and len(options) == 1
        unknown = unknown or options[-1].is_open
        unmeasured.update(dict.fromkeys(name for each in options for name in each.unmeasured))
        told = [option for option in options if not option.is_open]
        by_graph = whole_graph if len(options) == 1 else False
        answers = [estimated(estimator, option, level, by_graph) for option in told]
        allowed = {key: value for key, value, _ in answers}
        read_off.update(dict.fromkeys(family for *_, read in answers for family in read))
        found.update(allowed)
        for option, (_, value, _) in zip(told, answers, strict=True):
            if option.question is not None and value.adjustment is not None:
                between = option.question.between
                as_taken.update(dict.fromkeys(estimator.set_between(between, value.adjustment)))
        for key in allowed:
            shares[key] += times
    possible = tuple(
        PossibleEffect(
            value.estimate, value.low, value.high, value.adjustment, shares[key] / len(graphs)
        )
        for key, value in sorted(found.items(), key=lambda item: -shares[item[0]])
    )
    lows, highs = [one.low for one in possible], [one.high for one in possible]
    if unknown:
        whole = estimator.bounds(level)
        lows, highs = [whole.low], [whole.high]
    only = possible[0] if len(possible) == 1 and not unknown else None
    told_by_rows = unknown or any(one.adjustment is not None for one in possible)
    return Effect(
        treatment=estimator.treatment,
        outcome=estimator.outcome,
        levels=estimator.levels,
        unit=estimator.unit,
        # one of several would be read as the effect
        estimate=math.nan if only is None else only.estimate,
        low=min(lows),
        high=max(highs),
        level=level,
        identified=identified and not unknown,
        adjustment=None if only is None else only.adjustment,
        assumptions=(
            *(_WITH_HIDDEN if unmeasured and note == _RIGHT else note for note in notes),
            *estimator.assumptions,
            *as_taken,
            *(_of_cells(release, estimator, possible, tuple(read_off)) if told_by_rows else ()),
        ),
        possible=possible,
        n_graphs=len(graphs),
        cost=release.cost,
        is_open=unknown,
        unmeasured=tuple(unmeasured),
        warnings=release.warnings,
    )


def _of_cells(
    release: Release, estimator: Estimator, possible: tuple[PossibleEffect, ...], families: Families
) -> tuple[str, ...]:
    """What is taken for granted of people, of columns that are known in bins, and of missing
    cells; ``families``: those whose tables were read.
    """
    blurred = {name: release.domain[name] for name in estimator.blurred(families)}
    held = {name: release.domain[name] for one in possible for name in one.adjustment or ()}
    binned = [name for name, column in held.items() if isinstance(column, Binned)]
    left_out = {
        name
        for name, is_left_out in zip(release.names, release.leaves_out, strict=True)
        if is_left_out
    }
    of_families = (name for family in families for name in family)
    read = dict.fromkeys([estimator.treatment, estimator.outcome, *held, *of_families])
    alike = [
        name
        for name, column in {**held, **blurred}.items()
        if column.missing is not None and name not in left_out
    ]
    counts_rows = release.domain.person is not None and release.cost.unit is Unit.ROW
    return (
        *(["each row is of another person"] if counts_rows else ()),
        *(
            f"{name} is held fixed by its bins: within a bin it is no common cause of "
            f"{estimator.treatment} and {estimator.outcome}"
            for name in binned
        ),
        *(
            f"rows in one bin of {name} are alike in {name}"
            for name, column in blurred.items()
            if isinstance(column, Binned)
        ),
        *(
            f"cells of {name} are missing completely at random: such rows are left out"
            for name in read
            if name in left_out
        ),
        *(f"rows in which {name} is missing are alike in {name}" for name in alike),
    )


def estimated(
    estimator: Estimator, option: Possibility, level: float, whole_graph: bool | None
) -> tuple[Any, PossibleEffect, Families]:
    """One possible effect, what tells it from others before it, and behind it the families of the
    graph whose tables it was read off.
    """
    if option.is_zero:
        return "zero", PossibleEffect(0.0, 0.0, 0.0, None), ()
    given = estimator.chosen(option)
    interval = None if given is None else estimator.interval(given, level)
    read: Families = ()
    if whole_graph is not False and option.dag is not None:
        families = all_families(option.dag)
        by_dag = estimator.by_graph(option.dag, level) if whole_graph else None
        if by_dag is None:
            families = families_of(option.dag, estimator.treatment, estimator.outcome)
            if whole_graph or not estimator.blurred(families):
                by_dag = estimator.by_families(option.dag, level)
            if by_dag and interval and interval.standard_error < by_dag.standard_error:
                by_dag = None
        if by_dag is not None:
            interval, read = by_dag, families
    if interval is None:
        span = estimator.span
        return "not measured", PossibleEffect(math.nan, -span, span, None), ()
    given = option.sets[0] if given is None else given
    effect = PossibleEffect(interval.estimate, interval.low, interval.high, given)
    return frozenset(given), effect, read
