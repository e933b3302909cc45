r"""Tree-guided private PC: four batches of questions, the first of which guides the others.

1. *Level 0.*  The contrast moments of all columns are released.  Pairs that are not dependent beyond noise are not adjacent; the
   maximum spanning forest of the others by mutual information is nearly all edges already, at no further cost.
2. *Grow.*  For every other dependent pair one number: its smallest margin over sets S, 1 <= |S| <= ``grow_size``, from the forest's
   neighbours of both ends and the path between them.  An edge is added where it exceeds kappa sigma.
3. *Shrink.*  For every edge one number: its smallest margin over sets of up to ``shrink_size`` neighbours of one end, as in PC.  A
   forest edge must fall further below zero than an added one.
4. *Orient.*  An unshielded triple x - z - y with x, y independent at level 0 is judged from the release; for the others one number is
   bought, the smallest margin over sets with z minus that over sets without.  Meek's rules do the rest.  The default is "no
   collider": noise costs arrows, and adds none.

Four batches whose sizes are known before they are asked, whatever the search finds: N numbers of a batch have the L2 sensitivity
Delta sqrt(N) (2 Delta sqrt(N) for differences).  As the noise vanishes and under faithfulness the result is PC's: grow keeps every true
edge, and shrink is PC on a superset of the skeleton.

Source: PRIVACY.md section O; NONLINEAR.md section 1 for the numeric form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import jax
import networkx as nx
import numpy as np

from jaxcd.citests import CITest, Query, check_alpha
from jaxcd.data import Dataset
from jaxcd.decisions import Question
from jaxcd.decisions.measurements import contrast_margins, margins_of, smallest_margins
from jaxcd.discovery.constraint import check_arguments
from jaxcd.discovery.orientation import ConflictRule, apply_meek_rules, orient_colliders, unshielded_triples
from jaxcd.discovery.result import DiscoveryResult
from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.ops import tails
from jaxcd.privacy import Accountant, Budget, Ledger, NoiseSource, NoPrivacy, split
from jaxcd.queries import Session
from jaxcd.releases import ContrastMoments, release_contrast_moments

__all__ = ["TreeOptions", "tree_pc"]

_PHASES = ("level 0: contrast moments", "grow", "shrink", "orient")


@dataclass(frozen=True)
class TreeOptions:
    """The public constants of the search.

    shares: weights of the four batches.  alpha: level of the margins.  grow_size, shrink_size: largest sets.
    filtered: whether grow takes only separators that are dependent on both ends at level 0 (fewer sets, but separators that
    block a path opened at a collider are lost).  false_edges: false edges that noise alone may add in grow, per column.
    forest_bonus: how many sigma below zero a forest edge must fall to be removed.  collider_sigmas: how many sigma above zero
    the bought contrast of a collider must be.
    """

    shares: tuple[float, float, float, float] = (0.25, 0.40, 0.15, 0.20)
    alpha: float = 0.05
    grow_size: int = 2
    shrink_size: int = 3
    filtered: bool = False
    false_edges: float = 0.1
    forest_bonus: float = 1.0
    collider_sigmas: float = 2.0

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if len(self.shares) != 4 or not all(math.isfinite(share) and share > 0 for share in self.shares):
            raise OptionError(f"shares = {self.shares!r} are not four positive weights; (0.25, 0.4, 0.15, 0.2) is usual")
        for argument in ("grow_size", "shrink_size"):
            value = getattr(self, argument)
            if isinstance(value, bool) or not isinstance(value, int) or not value >= 1:
                raise OptionError(f"{argument} = {value!r} is not a positive whole number; give one")
        for argument in ("false_edges", "forest_bonus", "collider_sigmas"):
            value = getattr(self, argument)
            if not (math.isfinite(value) and value >= 0):
                raise OptionError(f"{argument} = {value!r} is negative or not finite; give a number from 0")


Pair = tuple[int, int]


def _subsets(pools: Iterable[Iterable[int]], sizes: range) -> list[tuple[int, ...]]:
    found = dict.fromkeys(s for pool in pools for size in sizes for s in combinations(sorted(pool), size))
    return list(found)


class _TreeRun:
    """The state of one run: what has been released so far."""

    def __init__(self, session: Session, accountant: Accountant, options: TreeOptions) -> None:
        self._session = session
        self._accountant = accountant
        self._options = options
        self._prices: tuple[float, ...] = (math.inf,) * 4
        if not isinstance(accountant.ledger.budget, NoPrivacy):
            self._prices = split(accountant.ledger.remaining_rho, options.shares)
        self._moments: ContrastMoments = release_contrast_moments(
            session, accountant, rho=self._prices[0], label=_PHASES[0]
        )
        pairs = combinations(range(session.n_variables), 2)
        self._dependent = {pair for pair in pairs if self._moments.margin(*pair, alpha=options.alpha) > 0}
        self.forest = self._moments.spanning_forest(alpha=options.alpha)
        self.separating_sets: dict[Pair, tuple[int, ...]] = {}

    def _admissible(self, x: int, y: int, sets: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        return tuple(given for given in sets if self._session.admissible(Query.of(x, y, given)))

    def grow(self) -> set[Pair]:
        """The forest, and the dependent pairs that no set around it separates."""
        tree = nx.Graph()
        tree.add_nodes_from(range(self._session.n_variables))
        tree.add_edges_from(self.forest)
        edges, questions = set(self.forest), []
        for x, y in sorted(self._dependent - self.forest):
            pool = {*tree[x], *tree[y]}
            if nx.has_path(tree, x, y):
                pool.update(nx.shortest_path(tree, x, y))
            pool -= {x, y}
            if self._options.filtered:
                pool = {z for z in pool if all((min(v, z), max(v, z)) in self._dependent for v in (x, y))}
            candidates = self._admissible(x, y, _subsets([pool], range(1, self._options.grow_size + 1)))
            if candidates:
                questions.append(Question(x, y, candidates))
            else:
                edges.add((x, y))
        if questions:
            margins = margins_of(self._session, questions)
            measured = smallest_margins(self._session, self._accountant, margins, rho=self._prices[1], label=_PHASES[1])
            tail = min(0.25, self._options.false_edges * self._session.n_variables / len(questions))
            threshold = measured.sigma * tails.normal_quantile(tail)
            edges |= {(q.x, q.y) for q, value in zip(questions, measured.values, strict=True) if value > threshold}
        return edges

    def shrink(self, edges: set[Pair]) -> set[Pair]:
        """The edges that no set of neighbours of one end separates."""
        neighbors: dict[int, set[int]] = {v: set() for v in range(self._session.n_variables)}
        for x, y in edges:
            neighbors[x].add(y)
            neighbors[y].add(x)
        questions = []
        for x, y in sorted(edges):
            pools = [neighbors[x] - {y}, neighbors[y] - {x}]
            candidates = self._admissible(x, y, _subsets(pools, range(1, self._options.shrink_size + 1)))
            if candidates:
                questions.append(Question(x, y, candidates))
        if not questions:
            return edges
        margins = margins_of(self._session, questions)
        measured = smallest_margins(self._session, self._accountant, margins, rho=self._prices[2], label=_PHASES[2])
        lost = {
            (q.x, q.y)
            for q, value in zip(questions, measured.values, strict=True)
            if value < (-self._options.forest_bonus * measured.sigma if (q.x, q.y) in self.forest else 0.0)
        }
        return edges - lost

    def colliders(self, skeleton: MixedGraph, index: dict[str, int]) -> dict[frozenset[str], tuple[str, ...]]:
        """For each pair at the ends of unshielded triples the middles that are not colliders, as a separating set."""
        triples = unshielded_triples(skeleton)
        middles: dict[frozenset[str], list[str]] = {frozenset((a, c)): [] for a, _, c in triples}
        bought: list[tuple[str, str, str]] = []
        questions: list[Question] = []
        for a, b, c in triples:
            x, z, y = index[a], index[b], index[c]
            if (min(x, y), max(x, y)) not in self._dependent:
                if not self._moments.favours_collider(x, z, y):
                    middles[frozenset((a, c))].append(b)
                continue
            pools = [{index[v] for v in skeleton.neighbors(end)} - {x, y} for end in (a, c)]
            sets = self._admissible(x, y, _subsets(pools, range(self._options.shrink_size)))
            inside, outside = (tuple(s for s in sets if (z in s) is holds) for holds in (True, False))
            if inside and outside:
                bought.append((a, b, c))
                questions += [Question(x, y, inside), Question(x, y, outside)]
            else:
                middles[frozenset((a, c))].append(b)
        if bought:
            margins = margins_of(self._session, questions)
            measured = contrast_margins(
                self._session, self._accountant, margins[::2], margins[1::2], rho=self._prices[3], label=_PHASES[3]
            )
            for (a, b, c), value in zip(bought, measured.values, strict=True):
                if not value > self._options.collider_sigmas * measured.sigma:
                    middles[frozenset((a, c))].append(b)
        return {pair: tuple(names) for pair, names in middles.items()}


def tree_pc(
    data: Dataset | None,
    *,
    test: CITest,
    budget: Budget | NoPrivacy,
    key: jax.Array | None,
    noise: NoiseSource | None = None,
    options: TreeOptions | None = None,
    conflicts: ConflictRule = ConflictRule.UNDIRECTED,
) -> DiscoveryResult:
    r"""Tree-guided private PC.

    data: a Dataset whose columns the test sees as codes (discrete columns, or numeric ones with StratifiedRanks).
    test: a test of bounded sensitivity: CovarianceNorm, PooledCovariance, KendallTau, StratifiedRanks.
    budget: the total, with delta > 0, or NO_PRIVACY.  key, noise, conflicts: as for :func:`jaxcd.pc`.  options: public constants.
    Returns a DiscoveryResult; ``separating_sets`` holds, for the ends of each unshielded triple, the middles that are not colliders.

    Guarantee
    ---------
    Relation: replace-one; n, the domain and the options are public.  Events: a ``ZCDPEvent`` for the release and one for each of at
    most three batches, through the ledger's filter; candidates and batch sizes depend on released numbers only, and all the
    rest is post-processing: the run is (epsilon, delta)-DP of the budget.
    Proof: :mod:`jaxcd.ops.moments`, :mod:`jaxcd.decisions.measurements`.

    Raises OptionError, DomainError, PrivacyError or SensitivityError, before anything is charged, where arguments do not fit.
    """
    options = options or TreeOptions()
    check_arguments(test, budget, key, noise)
    session = Session(data, test, alpha=options.alpha, budget=budget, key=key)
    accountant = Accountant(Ledger(budget), noise)
    session.sensitivity()
    _ = session.view_cardinalities
    if not accountant.ledger.remaining_rho > 0:
        raise OptionError("budget: tree_pc adds Gaussian noise and needs delta > 0; give the budget a delta such as 1e-6")
    session.open(accountant)
    run = _TreeRun(session, accountant, options)
    edges = run.shrink(run.grow())
    names = session.names
    adjacency = np.zeros((len(names), len(names)), dtype=np.int8)
    for x, y in edges:
        adjacency[x, y] = adjacency[y, x] = 3
    skeleton = MixedGraph(names, adjacency)
    middles = run.colliders(skeleton, {name: i for i, name in enumerate(names)})
    graph = apply_meek_rules(orient_colliders(skeleton, separating_sets=middles, rule=conflicts))
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
            "n_samples": session.n_samples,
            "n_variables": session.n_variables,
            "budget": str(budget),
            "secure_noise": accountant.noise.secure,
            "forest": tuple((names[x], names[y]) for x, y in sorted(run.forest)),
            "ledger": tuple(accountant.ledger.to_table()),
        },
    )
