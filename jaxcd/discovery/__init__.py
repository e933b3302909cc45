"""Searches: graphs and a decider's answers in, graphs out; never data, never a statistic."""

from jaxcd.discovery.constraint import ColliderRule, pc
from jaxcd.discovery.orientation import ConflictRule
from jaxcd.discovery.result import DiscoveryResult, LevelRecord
from jaxcd.discovery.tree import tree_pc

__all__ = ["ColliderRule", "ConflictRule", "DiscoveryResult", "LevelRecord", "pc", "tree_pc"]
