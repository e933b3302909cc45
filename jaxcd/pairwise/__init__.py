"""Cause or effect: which of two variables causes the other."""

from jaxcd.pairwise.result import Direction, PairResult

__all__ = ["Direction", "PairResult"]
