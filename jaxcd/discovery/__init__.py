"""Searches: graphs and a decider's answers in, graphs out; never data, never a statistic."""

from jaxcd.discovery.colliders import ColliderRule
from jaxcd.discovery.fci import fci
from jaxcd.discovery.orientation import ConflictRule
from jaxcd.discovery.pag import OrientedPag, dag_to_pag, mag_to_pag, orient_pag
from jaxcd.discovery.pc import pc
from jaxcd.discovery.result import DiscoveryResult, LevelRecord, SearchPass
from jaxcd.discovery.tree import tree_pc

__all__ = [
    "ColliderRule",
    "ConflictRule",
    "DiscoveryResult",
    "LevelRecord",
    "OrientedPag",
    "SearchPass",
    "dag_to_pag",
    "fci",
    "mag_to_pag",
    "orient_pag",
    "pc",
    "tree_pc",
]
