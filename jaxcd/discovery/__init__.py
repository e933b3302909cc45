"""Searches: graphs and a decider's answers in, graphs out; never data, never a statistic."""

from jaxcd.discovery.colliders import ColliderRule
from jaxcd.discovery.confidence import decision_confidence, edge_confidence
from jaxcd.discovery.edge_shares import EdgeConfidence, PairConfidence
from jaxcd.discovery.equivalence_search import EquivalenceSearch, equivalence_search
from jaxcd.discovery.fci import fci
from jaxcd.discovery.ges import GreedySearch, ges, greedy_equivalence_search
from jaxcd.discovery.mmhc import mmhc
from jaxcd.discovery.order_mcmc import OrderPosterior, StructurePrior, order_mcmc
from jaxcd.discovery.ordering_search import OrderingResult, ordering_search
from jaxcd.discovery.orientation import ConflictRule
from jaxcd.discovery.pag import OrientedPag, dag_to_pag, mag_to_pag, orient_pag
from jaxcd.discovery.pc import pc
from jaxcd.discovery.released import (
    pc_features,
    pc_second_moments,
    score_graph,
    search_features,
    search_histogram,
    search_marginals,
    search_release,
    search_second_moments,
)
from jaxcd.discovery.result import DiscoveryResult, LevelRecord, SearchPass
from jaxcd.discovery.score_doors import exact_search
from jaxcd.discovery.tree import tree_pc

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
    "StructurePrior",
    "dag_to_pag",
    "decision_confidence",
    "edge_confidence",
    "equivalence_search",
    "exact_search",
    "fci",
    "ges",
    "greedy_equivalence_search",
    "mag_to_pag",
    "mmhc",
    "order_mcmc",
    "ordering_search",
    "orient_pag",
    "pc",
    "pc_features",
    "pc_second_moments",
    "score_graph",
    "search_features",
    "search_histogram",
    "search_marginals",
    "search_release",
    "search_second_moments",
    "tree_pc",
]
