"""FCI: from a data set, a test and a decider to a PAG, with latent and selection variables
allowed.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import jax
import networkx as nx
import numpy as np

from jaxcd.checks import check_flag
from jaxcd.citests import CITest
from jaxcd.data import Dataset, Domain, Missing
from jaxcd.data.sources import Tabular, as_data
from jaxcd.decisions import Decider
from jaxcd.discovery.constraint.background import search_space
from jaxcd.discovery.constraint.colliders import ColliderRule, named_sets
from jaxcd.discovery.constraint.orientation import collider_arrowheads, with_arrowheads
from jaxcd.discovery.constraint.pag import anterior_sets, check_max_path_length, orient_pag
from jaxcd.discovery.constraint.search import ConstraintSearch, Progress
from jaxcd.discovery.constraint.skeleton import SearchSpace, Skeleton
from jaxcd.discovery.repeating import repeatable
from jaxcd.discovery.result import DiscoveryResult
from jaxcd.errors import GraphError
from jaxcd.graphs import Mark, MixedGraph, consistent_extension, dag_to_cpdag
from jaxcd.graphs.knowledge import Knowledge
from jaxcd.graphs.possible_paths import possible_d_sep as possible_d_sep_of
from jaxcd.privacy import Budget, NoiseSource, NoPrivacy, PrivacyFilter, keeps_what_is_paid
from jaxcd.privacy.claims import PUBLIC, GuaranteeClaim, claiming
from jaxcd.releases import Release

__all__ = ["fci"]


@claiming(
    GuaranteeClaim(
        "the run, both passes of its skeleton together, is (epsilon, delta)-DP of its budget, "
        "whichever decider above it has",
        "jaxcd.discovery.constraint.fci, jaxcd.privacy.ledger",
        assumptions=PUBLIC + "; background knowledge is public",
    )
)
@repeatable
@keeps_what_is_paid
def fci(
    data: Dataset | Release | Tabular | None,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    test: CITest,
    decider: Decider,
    budget: Budget | NoPrivacy | None = None,
    key: jax.Array | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    max_level: int | None = None,
    max_path_length: int | None = None,
    stable: bool = True,
    possible_d_sep: bool = True,
    selection_bias: bool = True,
    colliders: ColliderRule = ColliderRule.SEPARATING_SET,
    knowledge: Knowledge | None = None,
    start: MixedGraph | nx.DiGraph | None = None,
    progress: Progress = False,
) -> DiscoveryResult:
    """The FCI algorithm, for data with hidden common causes: a PAG by tests.

    1. The skeleton by sets of neighbours, as in PC; from the complete graph, or from ``start``.
    2. Its colliders (R0).
    3. In the graph that results, for every edge x - y that is left, the subsets of
       Possible-D-SEP(x) and of Possible-D-SEP(y) that lie on paths between x and y and were not
       asked before, by size; Possible-D-SEP is that of the pass's start throughout.
    4. All marks are forgotten; R0 with all separating sets, then R1 to R10.

    The answer does not depend on the order of the columns (where the decider's answers do not):
    what must come first in some order is taken in the order of the names, and the rules write all
    they find at once.

    Args:
        data: a Dataset, a data frame or path with ``domain``, a release, or None with an Oracle,
            as for :func:`jaxcd.pc`.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        test: a conditional independence test.
        decider: how answers are given, as for :func:`jaxcd.pc`; it serves both passes under one
            ledger.
        budget: the total (epsilon, delta), fixed here, or NO_PRIVACY; left out with a release.
        key: a typed key for tests that draw permutations (None for the others).
        noise: None for secure noise from the operating system, or SimulatedNoise(key) for
            experiments.
        ledger: a LedgerFile (or Ledger) that every event is charged to as well.
        max_level: the largest conditioning set of both passes, from 0; None for no limit.  This is
            the *anytime* limit: with it the graph may have edges, and circles, too many, but in the
            large sample limit what its arrowheads and tails say of ancestors stays true (Spirtes
            2001).
        max_path_length: the largest number of edges of the paths that Possible-D-SEP and R4, R5, R9
            and R10 look for; a limit may leave edges and circles that a longer path would have
            removed, and with edges too many an arrowhead may be wrong.
        stable: whether answers of one level leave each other alone (in the first pass; in the
            second they always do).
        possible_d_sep: False leaves out step 3.  Then edges stay that only sets other than
            neighbours remove, and R0 and the rules that rest on such an edge may be wrong even with
            true independences: the result is the PAG if no such edge is there.
        selection_bias: False takes it that there are no selection variables, and leaves out R5 to
            R7.
        colliders: how unshielded triples (and the members of separating sets that R4 reads) are
            judged in step 4.
        knowledge: what is known before; public.  A forbidden direction or a tier writes one
            arrowhead and nothing else (the pair is asked all the same: a latent variable may join
            the two); a required edge is not asked, kept, and oriented.  Knowledge wins over the
            data: a collider that contradicts it is not written.  Separating sets hold no column of
            a tier later than both ends, those of ``start`` aside.
        start: a DAG or CPDAG over the columns whose separations hold and in which no edge is
            needless, such as the best graph by a score; public.  It may have more edges than the
            truth, inside its triangles: only edges with a third column joined to both ends are
            asked.  Pairs that it does not join count as separated by the columns anterior to either
            in its class, so that its unshielded colliders and non-colliders stand wherever their
            edges do (:func:`jaxcd.gfci`).  None for the complete graph.
        progress: True prints a line a level; a function is called with each LevelRecord.

    Returns:
        A DiscoveryResult whose graph is a PAG, without a directed cycle and without an arrowhead at
        an ancestor of the other end, whatever the answers were, unless the knowledge writes one.
        Its ``separating_sets`` hold every pair that is not adjacent.  ``info["rule_counts"]``:
        marks written by each rule;
        ``info["ambiguous_triples"]``: unshielded triples that were taken neither for colliders nor
        for non-colliders; ``info["knowledge_conflicts"]``: those on which data and knowledge
        differ.

    Raises:
        OptionError: an argument is out of its range, before anything is charged.
        GraphError: ``start`` has other names, or no DAG belongs to it.
        DomainError: the test does not take the columns, or the domain is not declared.
        PrivacyError: the decider fits no budget, or the budget is missing.
        SensitivityError: the test has no bounded sensitivity, and the run is private.

    Guarantee:
        On a release: that of the release, because everything here is post-processing of it.  On a
        Dataset: Relation: that of the budget (replace-one by default); public: n, the domain, all
        arguments.  Sensitivity and events: those of the test and the decider.  The search sees only
        the decider's answers: which sets the second pass asks for follows from released answers,
        the rules ask nothing, so graph and separating sets are post-processing of charged events,
        and the ledger's filter makes the whole, both passes, (epsilon, delta)-DP of the budget.
        ``cost.proven`` is False with simulated noise.  Proof: :mod:`jaxcd.privacy.ledger`.

    Source:
        Spirtes, Meek, Richardson 1999; Spirtes, Glymour, Scheines 2000, section 6.7; Zhang 2008;
        Spirtes 2001 (anytime); Ogarrio, Spirtes, Ramsey 2016 (a start by a score); Colombo et al.
        2012, Annals of Statistics 40 (what leaving out step 3 costs).

    Example:
        >>> import jaxcd, networkx as nx
        >>> dag = nx.DiGraph([("a", "b"), ("hidden", "b"), ("hidden", "c"), ("d", "c")])
        >>> run = jaxcd.fci(
        ...     None,
        ...     test=jaxcd.Oracle(dag, latent=("hidden",)),
        ...     decider=jaxcd.Threshold(),
        ...     budget=jaxcd.NO_PRIVACY,
        ...     key=None,
        ... )
        >>> print(run.graph)
        a o-> b
        b <-> c
        d o-> c
    """
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    check_max_path_length(max_path_length)
    for argument, value in (("possible_d_sep", possible_d_sep), ("selection_bias", selection_bias)):
        check_flag(argument, value)
    search = ConstraintSearch(
        data,
        test=test,
        decider=decider,
        budget=budget,
        key=key,
        noise=noise,
        ledger=ledger,
        max_level=max_level,
        stable=stable,
        colliders=colliders,
        knowledge=knowledge,
        latent=True,
        progress=progress,
    )
    with search.keeping():
        place = {name: i for i, name in enumerate(sorted(search.names))}
        rank = tuple(place[name] for name in search.names)
        space = search_space(search.knowledge, search.names, latent=True, rank=rank)
        if start is not None:
            space = _from_start(start, search.names, space)
        skeleton = search.skeleton(space, another_pass_follows=possible_d_sep)
        if possible_d_sep and not search.exhausted:
            pools = _pools(search.names, skeleton, max_path_length)
            search.second_pass(skeleton, pools, _on_paths_between(space, skeleton))
        circles = _circles(search.names, skeleton)
        judgement = search.judge(skeleton, circles, space)
        oriented = orient_pag(
            circles,
            separating_sets=judgement.separating_sets,
            ambiguous=judgement.ambiguous,
            selection_bias=selection_bias,
            max_path_length=max_path_length,
            knowledge=search.knowledge,
        )
        return search.result(
            oriented.graph,
            skeleton,
            algorithm="fci",
            judgement=judgement,
            conflicts=oriented.knowledge_conflicts,
            options={
                "possible_d_sep": possible_d_sep,
                "selection_bias": selection_bias,
                "max_path_length": max_path_length,
                "rule_counts": oriented.rule_counts,
            },
        )


def _from_start(
    start: MixedGraph | nx.DiGraph, names: tuple[str, ...], space: SearchSpace
) -> SearchSpace:
    """The space of a search that begins with a DAG or CPDAG: pairs that it separates, and edges
    that no test may take away.
    """
    mixed = start if isinstance(start, MixedGraph) else MixedGraph.from_dag(start)
    dag = consistent_extension(mixed)
    if dag is None:
        raise GraphError(
            "start: no DAG has these adjacencies and v-structures; give a DAG or the CPDAG of one"
        )
    cpdag = dag_to_cpdag(dag.reordered(names))
    separated = {
        pair: given for pair, given in anterior_sets(cpdag).items() if pair not in space.kept
    }
    joined = cpdag.adjacency.astype(np.int64)
    alone = np.triu(cpdag.adjacency & ~(joined @ joined > 0))
    kept = space.kept | {(int(x), int(y)) for x, y in np.argwhere(alone)}
    return replace(space, separated=separated, kept=kept)


def _circles(names: tuple[str, ...], skeleton: Skeleton) -> MixedGraph:
    return MixedGraph(names, np.where(skeleton.adjacency, np.int8(Mark.CIRCLE), np.int8(Mark.NONE)))


def _pools(
    names: tuple[str, ...], skeleton: Skeleton, max_path_length: int | None
) -> list[tuple[int, ...]]:
    """Possible-D-SEP of each column in the skeleton with its colliders.

    All colliders of the found sets count here, also those that a stricter rule or the decider would
    call into question: more colliders make larger pools, in which no separating set is missed.
    """
    circles = _circles(names, skeleton)
    heads = collider_arrowheads(circles, separating_sets=named_sets(names, skeleton))
    graph = with_arrowheads(circles, heads)
    return [possible_d_sep_of(graph, x, max_path_length=max_path_length) for x in range(len(names))]


def _on_paths_between(space: SearchSpace, skeleton: Skeleton) -> SearchSpace:
    """The space in which separating sets of the ends of an edge hold only columns on a path between
    them.

    These are the columns of the edge's biconnected component.  No separating set is missed: of a
    set Z that separates x and y let Z' be the part on paths between them.  A path that is open
    given Z' has no non-collider in Z', so none in Z, and each of its colliders has a descendant in
    Z' and so in Z: it is open given Z, too.

    Source:
        the path variant of FCI in Colombo et al. 2012.
    """
    allowed = {}
    for component in nx.biconnected_components(nx.from_numpy_array(skeleton.adjacency)):
        for x, y in combinations(sorted(component), 2):
            if skeleton.adjacency[x, y]:
                allowed[x, y] = frozenset(space.separators(x, y, component))
    return replace(space, allowed=allowed)
