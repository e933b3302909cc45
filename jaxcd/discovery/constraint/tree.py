r"""Tree-guided private PC: four batches of questions, the first of which guides the others.

1. *Level 0.*  The contrast moments of all columns are released.  Pairs that are not dependent
   beyond noise are not adjacent; the maximum spanning forest of the others by mutual information is
   nearly all edges already, at no further cost.
2. *Grow.*  For every other dependent pair one number: its smallest margin over sets S, |S| <=
   ``grow_size``, from the forest's neighbours of both ends and the path between them.  An edge is
   added where it exceeds kappa sigma.  The empty set is among them: what was dependent by the
   release's noise alone and is opened by a collider is found out.
3. *Shrink.*  For every edge one number: its smallest margin over sets of up to ``shrink_size``
   neighbours of one end, as in PC.  A forest edge must fall further below zero than an added one.
   Dependent variables are connected, so an edge that alone connects an evidently dependent pair
   stays, and is not asked about; edges go in the order of their numbers, as long as that holds.
4. *Orient.*  An unshielded triple x - z - y is judged
   - from the release alone where x, y are independent at level 0 and a chain through z would have
     shown there: a collider;
   - as no collider where x, y are dependent and the skeleton joins them through z only: a path that
     alone explains a dependence is open;
   - and otherwise by one number that is bought.  For independent x, y it is their covariance given
     z in the one direction in which a collider would show: C_xz Cov_z^+ C_zy, which the release
     tells.  One direction has a ninth of the chance of all nine (4 x 4 levels).  For dependent x, y
     it is the smallest margin over sets with z minus that over sets without.
   Meek's rules do the rest.  The default is "no collider": noise costs arrows, and adds few.

Four batches whose sizes are known before they are asked, whatever the search finds: N numbers of a
batch have the L2 sensitivity Delta sqrt(N) (differences are halved).  As the noise vanishes and
under faithfulness the result is PC's: grow keeps every true edge, and shrink is PC on a superset of
the skeleton.

Source:
    PRIVACY.md section O, whose orientation step is refined here (it leaves undirected what the
    release cannot show, and buys a number for every dependent triple), and whose shrink step asks
    about bridges and removes them; NONLINEAR.md section 1 for the numeric form.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import jax
import networkx as nx
import numpy as np

from jaxcd.citests import CITest
from jaxcd.data import Dataset, Domain, Missing
from jaxcd.data.sources import Tabular, as_data
from jaxcd.decisions import Question, TreeGuided, TreeOptions
from jaxcd.discovery.constraint.background import (
    KnownMarks,
    known_marks,
    known_to_tests,
    oriented_as_known,
    search_space,
)
from jaxcd.discovery.constraint.orientation import ConflictRule, unshielded_triples
from jaxcd.discovery.constraint.pc import check_conflicts
from jaxcd.discovery.constraint.search import check_arguments
from jaxcd.discovery.constraint.skeleton import SearchSpace
from jaxcd.discovery.facts import facts_of_run, known_before
from jaxcd.discovery.result import DiscoveryResult
from jaxcd.discovery.score.limits import oriented_along_paths
from jaxcd.graphs import Knowledge, MixedGraph
from jaxcd.privacy import (
    Accountant,
    Budget,
    NoiseSource,
    NoPrivacy,
    PrivacyFilter,
    keeps_what_is_paid,
    open_account,
)
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.queries import Door, Session

__all__ = ["tree_pc"]

Pair = tuple[int, int]
Triple = tuple[str, str, str]


def _question(
    run: TreeGuided,
    space: SearchSpace,
    x: int,
    y: int,
    pools: Iterable[Iterable[int]],
    sizes: range,
) -> Question:
    """The subsets of the pools that may be asked, smallest first."""
    sets = dict.fromkeys(
        s
        for pool in pools
        for size in sizes
        for s in combinations(space.separators(x, y, sorted(pool)), size)
    )
    return Question(x, y, tuple(given for given in sets if run.admissible(x, y, given)))


def _grow(run: TreeGuided, space: SearchSpace, options: TreeOptions, n_variables: int) -> set[Pair]:
    """The forest, what is known, and the dependent pairs that no set around the forest
    separates.
    """
    tree = nx.Graph()
    tree.add_nodes_from(range(n_variables))
    tree.add_edges_from(run.forest)
    edges, questions = {*run.forest, *space.kept}, []
    for x, y in sorted(run.dependent - edges - space.absent):
        pool = {*tree[x], *tree[y]}
        if nx.has_path(tree, x, y):
            pool.update(nx.shortest_path(tree, x, y))
        pool -= {x, y}
        if options.filtered:
            pool = {z for z in pool if all((min(v, z), max(v, z)) in run.dependent for v in (x, y))}
        question = _question(run, space, x, y, [pool], range(options.grow_size + 1))
        if question.candidates:
            questions.append(question)
        else:
            edges.add((x, y))
    edges.update(
        (q.x, q.y) for q, is_edge in zip(questions, run.grow(questions), strict=True) if is_edge
    )
    return edges


def _shrink(
    run: TreeGuided, space: SearchSpace, options: TreeOptions, edges: set[Pair]
) -> set[Pair]:
    """The edges that no set of neighbours of one end separates, and those without which dependent
    ends would not be connected.
    """
    graph = nx.Graph(edges)
    sizes = range(options.shrink_size + 1)
    asked = sorted(edges - _needed(graph, run.evident) - space.kept)
    questions = [
        _question(run, space, x, y, [set(graph[x]) - {y}, set(graph[y]) - {x}], sizes)
        for x, y in asked
    ]
    questions = [question for question in questions if question.candidates]
    for place in run.shrink(questions):
        x, y = questions[place].x, questions[place].y
        if (x, y) not in _needed(graph, run.evident):
            graph.remove_edge(x, y)
    return {(min(edge), max(edge)) for edge in graph.edges}


def _needed(graph: nx.Graph, evident: frozenset[Pair]) -> set[Pair]:
    """The edges without which an evidently dependent pair would not be connected."""
    needed = set()
    for x, y in list(nx.bridges(graph)):
        graph.remove_edge(x, y)
        side = nx.node_connected_component(graph, x)
        graph.add_edge(x, y)
        if any((a in side) != (b in side) for a, b in evident):
            needed.add((min(x, y), max(x, y)))
    return needed


def _non_colliders(
    run: TreeGuided,
    space: SearchSpace,
    options: TreeOptions,
    skeleton: MixedGraph,
    known: KnownMarks,
) -> dict[frozenset[str], tuple[str, ...]]:
    """For each pair at the ends of unshielded triples the middles that are not colliders, as a
    separating set.  What is known to be a collider, or none, is not asked about.
    """
    index = {name: i for i, name in enumerate(skeleton.names)}
    triples = unshielded_triples(skeleton)
    network = skeleton.to_networkx().to_undirected()
    colliders = set()
    projected: list[Triple] = []
    compared: list[tuple[Triple, tuple[Question, Question]]] = []
    for triple in triples:
        a, b, c = triple
        x, z, y = index[a], index[b], index[c]
        if known.tail[x, z] or known.tail[y, z]:
            continue
        if known.arrow[x, z] and known.arrow[y, z]:
            colliders.add(triple)
            continue
        if (min(x, y), max(x, y)) not in run.dependent:
            if run.favours_collider(x, z, y):
                colliders.add(triple)
            elif run.admissible(x, y, (z,)):
                projected.append(triple)
            continue
        if not nx.has_path(network.subgraph(set(network) - {b}), a, c):
            continue  # z is on every path from x to y, one of which is open: no collider
        pools = [{index[v] for v in skeleton.neighbors(end)} - {x, y} for end in (a, c)]
        both = _question(run, space, x, y, pools, range(options.shrink_size))
        holding, lacking = (
            both._replace(candidates=tuple(s for s in both.candidates if (z in s) is holds))
            for holds in (True, False)
        )
        if holding.candidates and lacking.candidates:
            compared.append((triple, (holding, lacking)))
    shown, opened = run.opened(
        [(index[a], index[b], index[c]) for a, b, c in projected],
        [questions for _, questions in compared],
    )
    colliders |= {triple for triple, yes in zip(projected, shown, strict=True) if yes}
    colliders |= {triple for (triple, _), yes in zip(compared, opened, strict=True) if yes}
    middles: dict[frozenset[str], list[str]] = {frozenset((a, c)): [] for a, _, c in triples}
    for a, b, c in triples:
        if (a, b, c) not in colliders:
            middles[frozenset((a, c))].append(b)
    return {pair: tuple(names) for pair, names in middles.items()}


@claiming(
    GuaranteeClaim(
        "the run is (epsilon, delta)-DP of its budget, delta > 0",
        "jaxcd.decisions.measurements, jaxcd.ops.moments",
    )
)
@keeps_what_is_paid
def tree_pc(
    data: Dataset | Tabular | None,
    *,
    domain: Domain | str | Path | None = None,
    missing: Missing | str | None = None,
    test: CITest,
    budget: Budget | NoPrivacy,
    key: jax.Array | None = None,
    noise: NoiseSource | None = None,
    ledger: PrivacyFilter | None = None,
    options: TreeOptions | None = None,
    conflicts: ConflictRule = ConflictRule.UNDIRECTED,
    knowledge: Knowledge | None = None,
) -> DiscoveryResult:
    r"""PC guided by a tree: the graph in four private batches of questions.

    Level 0 buys noisy moments of all pairs, whose maximum spanning forest is nearly all edges
    already. Three more batches ask which edges to add, which to remove, and which colliders there
    are (:mod:`jaxcd.discovery.constraint.tree`).

    Args:
        data: a Dataset whose columns the test sees as codes (discrete columns, or numeric ones with
            StratifiedRanks), or a data frame or path with ``domain``.
        domain: with a frame or a path, the declared type of every column (or the path of a domain
            file); None infers one, without privacy.
        missing: how missing cells are read, a :class:`jaxcd.data.Missing` or its name: "ignore"
            leaves them out, "level" makes them a level; None: as the data say, "ignore" as a rule.
        test: a test of bounded sensitivity: CovarianceNorm, PooledCovariance, KendallTau,
            StratifiedRanks.
        budget: the total, with delta > 0, or NO_PRIVACY.
        key: as for :func:`jaxcd.pc`.
        noise: as for :func:`jaxcd.pc`.
        ledger: as for :func:`jaxcd.pc`.
        options: public constants; None for the usual ones.
        conflicts: what becomes of an edge with two arrowheads, as for :func:`jaxcd.pc`.
        knowledge: what is known before; public.  Pairs that are forbidden both ways and those with
            a required edge are not asked about, nor are triples that it decides; what is saved
            makes the other answers more precise.

    Returns:
        A DiscoveryResult; ``separating_sets`` holds, for the ends of each unshielded triple, the
        middles that are not colliders.

    Raises:
        OptionError: an argument is out of its range, or the budget has no delta.
        DomainError: the test does not take the columns, or the domain is not declared.
        PrivacyError: the budget is neither a Budget nor NO_PRIVACY.
        SensitivityError: the test has no bounded sensitivity.

    Guarantee:
        Relation: replace-one; n, the domain, the knowledge and the options are public.
        Sensitivity: that of the moments, and Delta sqrt(N) in L2 for a batch of N margins.
        Events: a ``GaussianEvent`` for the release and one for each of at most three batches,
        through the ledger's filter; candidates and batch sizes depend on released numbers and on
        what is known only, and all the rest is post-processing: the run is (epsilon, delta)-DP of
        the budget.  Proof: :mod:`jaxcd.decisions.tree_guided`.

    Example:
        >>> import jax, jaxcd
        >>> data = jaxcd.networks.load("asia").sample(100_000, key=jax.random.key(0))
        >>> run = jaxcd.tree_pc(
        ...     data,
        ...     test=jaxcd.CovarianceNorm(),
        ...     budget=jaxcd.Budget(1.0, 1e-6),
        ...     key=None,
        ...     noise=jaxcd.SimulatedNoise(jax.random.key(1)),
        ... )
        >>> print(run.graph)
        asia --- tub
        tub --> either
        smoke --- lung
        smoke --- bronc
        lung --> either
        bronc --- dysp
        either --> xray
    """
    options = options or TreeOptions()
    data = as_data(data, domain, private=isinstance(budget, Budget), missing=missing)
    check_arguments(test, budget, key, noise)
    check_conflicts(conflicts)
    session = Session(Door(data, budget), test, alpha=options.alpha, key=key)
    knowledge = known_to_tests(knowledge, session.names, session.domain, latent=False)
    accountant = open_account(
        budget,
        session.noise(noise),
        ledger=ledger,
        parts=(test, options),
        accounting=options.accounting,
        analysis="tree_pc",
        n_samples=session.n_samples,
    )
    return _searched(session, accountant, options, conflicts, test, knowledge)


def _searched(
    session: Session,
    accountant: Accountant,
    options: TreeOptions,
    conflicts: ConflictRule,
    test: CITest,
    knowledge: Knowledge | None,
) -> DiscoveryResult:
    names = session.names
    space = search_space(knowledge, names, latent=False)
    run = TreeGuided(session, accountant, options, absent=space.absent, kept=space.kept)
    edges = _shrink(run, space, options, _grow(run, space, options, session.n_variables))
    adjacency = np.zeros((len(names), len(names)), dtype=np.int8)
    for x, y in edges:
        adjacency[x, y] = adjacency[y, x] = 3
    skeleton = MixedGraph(names, adjacency)
    known = known_marks(knowledge, skeleton, latent=False)
    middles = _non_colliders(run, space, options, skeleton, known)
    found = oriented_as_known(skeleton, known, separating_sets=middles, rule=conflicts)
    graph = found.graph
    if not (found.conflicts or found.left_open):
        graph = oriented_along_paths(
            graph, skeleton, knowledge, separating_sets=middles, rule=conflicts
        )
    return DiscoveryResult(
        graph=graph,
        separating_sets=middles,
        cost=accountant.guarantee,
        spent=accountant.ledger.spent,
        exhausted=False,
        info={
            "algorithm": "tree-pc",
            "test": repr(test),
            "options": repr(options),
            **known_before(knowledge),
            **facts_of_run(
                accountant,
                domain=session.domain,
                n_samples=session.n_samples,
                n_variables=session.n_variables,
                snapshot=session.snapshot,
            ),
            "forest": tuple((names[x], names[y]) for x, y in sorted(run.forest)),
            "released_margins": tuple(run.released_margins),
        },
    )
