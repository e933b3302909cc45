"""Searches: graphs and a decider's answers in, graphs out; never data, never a statistic."""

from jaxcd.discovery.confidence import decision_confidence, edge_confidence
from jaxcd.discovery.constraint.colliders import ColliderRule
from jaxcd.discovery.constraint.fci import fci
from jaxcd.discovery.constraint.orientation import ConflictRule
from jaxcd.discovery.constraint.pag import OrientedPag, dag_to_pag, mag_to_pag, orient_pag
from jaxcd.discovery.constraint.pc import pc
from jaxcd.discovery.constraint.tree import tree_pc
from jaxcd.discovery.edge_shares import EdgeConfidence, PairConfidence
from jaxcd.discovery.greedy_fci import gfci
from jaxcd.discovery.released import (
    score_graph,
    search_features,
    search_histogram,
    search_marginals,
    search_release,
    search_second_moments,
)
from jaxcd.discovery.result import DiscoveryResult, LevelRecord, SearchPass, Step
from jaxcd.discovery.score.equivalence_search import EquivalenceSearch, equivalence_search
from jaxcd.discovery.score.ges import GreedySearch, ges, greedy_equivalence_search
from jaxcd.discovery.score.limits import oriented_by_knowledge
from jaxcd.discovery.score.mmhc import mmhc
from jaxcd.discovery.score.order_mcmc import OrderPosterior, StructurePrior, sample_orders
from jaxcd.discovery.score.ordering_search import OrderingResult, ordering_search
from jaxcd.discovery.score.scored import exact_search, order_mcmc

__all__ = [
    "ColliderRule",
    "ConflictRule",
    "DiscoveryResult",
    "EdgeConfidence",
    "EquivalenceSearch",
    "GreedySearch",
    "LevelRecord",
    "OrderPosterior",
    "OrderingResult",
    "OrientedPag",
    "PairConfidence",
    "SearchPass",
    "Step",
    "StructurePrior",
    "dag_to_pag",
    "decision_confidence",
    "edge_confidence",
    "equivalence_search",
    "exact_search",
    "fci",
    "ges",
    "gfci",
    "greedy_equivalence_search",
    "mag_to_pag",
    "mmhc",
    "order_mcmc",
    "ordering_search",
    "orient_pag",
    "oriented_by_knowledge",
    "pc",
    "sample_orders",
    "score_graph",
    "search_features",
    "search_histogram",
    "search_marginals",
    "search_release",
    "search_second_moments",
    "tree_pc",
]
