r"""What a permutation test of bounded sensitivity offers beyond its margin: the statistics that the
margin is made of.

With k permutations fixed in advance (they do not depend on the data) the margin is T_0 - T_(r),
T_(r) the r-th largest permuted statistic, r = floor(alpha (k + 1)).  Its stated sensitivity must be
a bound on Delta_0 + Delta_pi, Delta_0 of T_0 and Delta_pi of each T_s alone: an order statistic
moves by no more than what it is taken of, also after anything that does not depend on the data was
added to each of them.  Deciders that bring their own null (:mod:`jaxcd.decisions.noisy_rank`) rest
on that.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxcd.citests.base import CITest, PreparedTest, Query
from jaxcd.errors import OptionError

__all__ = ["PermutationTest", "PreparedPermutationTest", "critical_rank"]


def critical_rank(alpha: float, n_permutations: int) -> int:
    """r = floor(alpha (k + 1)): p = (1 + #{T_s >= T_0}) / (k + 1) is at most alpha iff T_0 >
    T_(r).

    Args:
        alpha: level of the test, 0 < alpha < 1.
        n_permutations: k, from 1.

    Returns:
        r, from 1.

    Raises:
        OptionError: there are too few permutations for the level.

    Example:
        >>> from jaxcd.citests import critical_rank
        >>> critical_rank(0.05, 99)
        5
    """
    rank = math.floor(alpha * (n_permutations + 1) + 1e-9)
    if rank < 1:
        raise OptionError(
            f"alpha = {alpha!r} is below 1 / (n_permutations + 1); use more permutations"
        )
    return rank


class PreparedPermutationTest(PreparedTest):
    """A prepared test with a permutation null."""

    @abc.abstractmethod
    def permuted_statistics(self, bucket: Any, queries: Sequence[Query]) -> np.ndarray:
        """T_0, T_1, ..., T_k in the margin's units: float64 (n_queries, 1 + k); at most
        ``batch_size(bucket)`` of one bucket.
        """


class PermutationTest(CITest):
    """Configuration of a test with a permutation null."""

    @property
    @abc.abstractmethod
    def n_null_statistics(self) -> int:
        """k (public); 0 where the configured null is not one of permutations."""
