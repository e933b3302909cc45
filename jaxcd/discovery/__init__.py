"""Searches: graphs and a decider's answers in, graphs out; never data, never a statistic."""

from jaxcd.discovery.colliders import ColliderRule
from jaxcd.discovery.equivalence_search import EquivalenceSearch, equivalence_search
from jaxcd.discovery.exact_search import exact_search
from jaxcd.discovery.fci import fci
from jaxcd.discovery.orientation import ConflictRule
from jaxcd.discovery.pag import OrientedPag, dag_to_pag, mag_to_pag, orient_pag
from jaxcd.discovery.pc import pc
from jaxcd.discovery.released import histogram_score, score_graph, search_histogram
from jaxcd.discovery.result import DiscoveryResult, LevelRecord, SearchPass
from jaxcd.discovery.tree import tree_pc

__all__ = [
    "ColliderRule",
    "ConflictRule",
    "DiscoveryResult",
    "EquivalenceSearch",
    "LevelRecord",
    "OrientedPag",
    "SearchPass",
    "dag_to_pag",
    "equivalence_search",
    "exact_search",
    "fci",
    "histogram_score",
    "mag_to_pag",
    "orient_pag",
    "pc",
    "score_graph",
    "search_histogram",
    "tree_pc",
]
