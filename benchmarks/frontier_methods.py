"""The methods of :mod:`benchmarks.frontier`: what they run on, and under which kind of guarantee.

Every method that is proved runs at totals that are fixed in advance: pure epsilon, (epsilon, 1e-6),
or both where a mechanism can use either.  The published ones run over epsilon a round (a visit of
EM-PC), and report a total afterwards that is not proved.

Without privacy: PC, and the best graph by BIC.  Up to 20 discrete columns that is the best of all
graphs of at most 3 parents a node; above, the best that a search over orderings finds among the
sparse candidates of Friedman, Nachman, Pe'er 1999: at most 10 for each node, chosen anew by what
they add to the parents found so far.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np

import jaxcd
from benchmarks import priv_pc
from benchmarks.searches import DELTA, Run, by_release, by_tests, pc_moments
from benchmarks.sources import (
    BUILT_IN,
    FROM_FILE,
    GAUSSIAN,
    Source,
    gaussian_source,
    load_networks,
    network_source,
)
from jaxcd.discovery import exact_search, ordering_search
from jaxcd.graphs import dag_to_cpdag
from jaxcd.privacy import PrivacyCost
from jaxcd.scores import BICScore, LocalScore

MOST_HISTOGRAM_CELLS = 4_096

_MOST_EXACT = 20

_N_CANDIDATES = 10

_N_CHOICES = 3


class Regime(enum.Enum):
    """What a total epsilon means, if there is one."""

    NO_DATA = "no data"
    NO_PRIVACY = "no privacy"
    PURE = "pure"
    APPROXIMATE = "approximate"
    EX_POST = "ex post"

    @property
    def is_private(self) -> bool:
        """Whether there is a price to vary."""
        return self not in (Regime.NO_DATA, Regime.NO_PRIVACY)


@dataclass(frozen=True)
class Case:
    """A source of data.  n_cells: of the joint domain; None where the columns are numeric."""

    name: str
    n_samples: int
    n_columns: int
    n_cells: int | None
    source: Source


@dataclass(frozen=True)
class Method:
    """A line of a picture.  reference: whether it is one of the two runs without privacy that the
    others are compared with.

    refuses: why it cannot run on a case, or None where it can.
    """

    label: str
    regime: Regime
    run: Run
    refuses: Callable[[Case], str | None] = lambda case: None
    reference: bool = False


def cases(names: Sequence[str] | None, data: Any, rows: Sequence[int]) -> list[Case]:
    """The named networks (also BIF files) and Gaussian models, or all, each at every number of
    rows; the sizes outside.
    """
    chosen = names if names is not None else [*BUILT_IN, *FROM_FILE, *GAUSSIAN]
    discrete = [name for name in chosen if name not in GAUSSIAN]
    loaded = load_networks(None if names is None else discrete, data) if discrete else {}
    found = []
    for n in rows:
        for name, network in loaded.items():
            cells = math.prod(k or 1 for k in network.domain.cardinalities)
            found.append(Case(name, n, len(network.names), cells, network_source(network, n)))
        for name in chosen:
            if name in GAUSSIAN:
                found.append(
                    Case(name, n, GAUSSIAN[name], None, gaussian_source(GAUSSIAN[name], n))
                )
    return found


def _guess(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
    """All edges, undirected: what may be said without any data, and what a search keeps that cannot
    pay.
    """
    d = len(data.names)
    graph = jaxcd.MixedGraph(data.names, np.where(np.eye(d, dtype=bool), 0, 3))
    free = PrivacyCost(0.0, 0.0, jaxcd.privacy.Relation.REPLACE_ONE, True, "reads no data")
    return jaxcd.DiscoveryResult(graph, {}, free, free, False)


@final
class _Candidates(LocalScore):
    """A score with fewer candidates."""

    def __init__(self, score: BICScore, candidates: Sequence[tuple[int, ...]]) -> None:
        self._score, self._candidates = score, tuple(candidates)

    @property
    def names(self) -> tuple[str, ...]:
        return self._score.names

    @property
    def max_parents(self) -> int:
        return self._score.max_parents

    def candidates(self, node: int) -> tuple[int, ...]:
        return self._candidates[node]

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        return self._score.local(node, parents)


def best_by_bic(data: jaxcd.Dataset) -> np.ndarray:
    """A DAG of high BIC, bool (d, d): the best of all up to 20 columns, else the best found among
    sparse candidates.
    """
    score, d = BICScore.of_data(data), len(data.names)
    if d <= _MOST_EXACT:
        return exact_search(score)
    best = np.zeros((d, d), dtype=bool)
    top = -math.inf
    for _ in range(_N_CHOICES):
        found = ordering_search(
            _Candidates(score, [_candidates(score, best, node) for node in range(d)])
        )
        if not found.score > top:
            break
        best, top = found.adjacency, found.score
    return best


def _candidates(score: BICScore, adjacency: np.ndarray, node: int) -> tuple[int, ...]:
    """The neighbours of a node, its parents first, and after them the others that would add most to
    its parents.
    """
    parents = tuple(np.flatnonzero(adjacency[:, node]).tolist())
    kept = [*parents, *np.flatnonzero(adjacency[node]).tolist()]
    others = [other for other in score.candidates(node) if other not in kept]
    gains = {other: score.local(node, tuple(sorted((*parents, other)))) for other in others}
    return tuple(sorted([*kept, *sorted(others, key=lambda other: -gains[other])][:_N_CANDIDATES]))


def _bic(data: jaxcd.Dataset, epsilon: float | None, key: jax.Array) -> jaxcd.DiscoveryResult:
    best = best_by_bic(data)
    graph = dag_to_cpdag(jaxcd.MixedGraph.from_arcs(data.names, best))
    nothing = PrivacyCost(
        math.inf, 0.0, jaxcd.privacy.Relation.REPLACE_ONE, False, "no privacy was asked for"
    )
    return jaxcd.DiscoveryResult(graph, {}, nothing, nothing, False)


def _small(case: Case) -> str | None:
    if case.n_cells is not None and case.n_cells > MOST_HISTOGRAM_CELLS:
        return (
            f"the joint domain has {case.n_cells:,} cells, more than the "
            f"{MOST_HISTOGRAM_CELLS:,} that a histogram takes"
        )
    return None


_NO_DATA = Method("complete graph", Regime.NO_DATA, _guess)

DISCRETE: tuple[Method, ...] = (
    _NO_DATA,
    Method("best BIC", Regime.NO_PRIVACY, _bic, reference=True),
    *(
        Method(
            method.label, Regime.NO_PRIVACY, method.run, reference=method.label == "PC, ChiSquare"
        )
        for method in priv_pc.NON_PRIVATE
    ),
    *(Method(method.label, Regime.EX_POST, method.run) for method in priv_pc.PUBLISHED),
    *(
        Method(f"{decider.name}, {test.name}", regime, priv_pc.private(decider, test, delta=delta))
        for regime, delta in ((Regime.PURE, 0.0), (Regime.APPROXIMATE, DELTA))
        for decider, test in priv_pc.MECHANISMS
        # Gaussian noise has no pure form.
        if regime is not Regime.PURE or not isinstance(decider, jaxcd.LevelwiseGaussian)
    ),
    Method(
        "tree-guided PC, CovarianceNorm",
        Regime.APPROXIMATE,
        by_tests(jaxcd.CovarianceNorm(), jaxcd.tree_pc),
    ),
    # A histogram has no use for a delta.
    Method("Histogram", Regime.PURE, by_release(jaxcd.Histogram(), 0.0), _small),
    Method("Marginals", Regime.PURE, by_release(jaxcd.Marginals(), 0.0)),
    Method("Marginals", Regime.APPROXIMATE, by_release(jaxcd.Marginals())),
    Method("LogLinear", Regime.APPROXIMATE, by_release(jaxcd.LogLinear())),
)

_MOMENTS = jaxcd.SecondMoments()
_RANKS = jaxcd.StratifiedRanks()
#: the level of pc_moments
_FISHER = by_tests(jaxcd.FisherZ(), decider=jaxcd.Threshold(alpha=0.01))
NUMERIC: tuple[Method, ...] = (
    _NO_DATA,
    Method("best Gaussian score", Regime.NO_PRIVACY, by_release(_MOMENTS), reference=True),
    Method("PC, FisherZ", Regime.NO_PRIVACY, _FISHER, reference=True),
    Method("SecondMoments, search", Regime.APPROXIMATE, by_release(_MOMENTS)),
    Method("SecondMoments, PC", Regime.APPROXIMATE, by_release(_MOMENTS, search=pc_moments)),
    Method(
        "LevelwiseGaussian, StratifiedRanks",
        Regime.APPROXIMATE,
        priv_pc.private(jaxcd.LevelwiseGaussian(), _RANKS),
    ),
    Method("tree-guided PC, StratifiedRanks", Regime.APPROXIMATE, by_tests(_RANKS, jaxcd.tree_pc)),
)


def methods_of(case: Case, wanted: Sequence[str] | None) -> list[Method]:
    """The methods of a case whose labels hold one of the words, in any case; those without privacy
    always.
    """
    every = DISCRETE if case.n_cells is not None else NUMERIC
    return [
        method
        for method in every
        if wanted is None
        or not method.regime.is_private
        or any(word.lower() in method.label.lower() for word in wanted)
    ]
