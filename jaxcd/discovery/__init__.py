"""Searches: graphs and a decider's answers in, graphs out; never data, never a statistic."""

from jaxcd.discovery.constraint import ColliderRule, pc
from jaxcd.discovery.orientation import ConflictRule
from jaxcd.discovery.result import DiscoveryResult, LevelRecord

__all__ = ["ColliderRule", "ConflictRule", "DiscoveryResult", "LevelRecord", "pc"]
