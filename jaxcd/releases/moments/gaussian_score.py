r"""BIC of jointly normal columns on a release of their correlations.

local(v, P) = -(N / 2) log Var(v | P) - (penalty / 2) log(N) |P|, with Var(v | P) from the released
correlations and N their *effective* number of rows: noise that is nearly that of a sample only
makes the sample smaller.  It is score-equivalent (log Var(v | P) is a difference of log
determinants), and becomes the BIC of the data as tilt and noise vanish.

Source:
    Schwarz 1978; Geiger and Heckerman 1994 for normal networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from jaxcd.checks import check_count, check_number
from jaxcd.releases.base import Release, check_kind
from jaxcd.scores.base import BatchedScore, log_rows, strongest
from jaxcd.scores.gaussian_data import log_conditional_variances

__all__ = ["GaussianScore"]


@final
class GaussianScore(BatchedScore):
    """BIC of normal columns on a release; post-processing, free.

    Args:
        release: second moments, or tetrachoric correlations.
        max_parents: the largest number of parents a search should try.
        n_candidates: the possible parents of a node are that many others with the largest partial
            correlations given all the rest, among those that were measured with it: under
            faithfulness those not zero are its Markov blanket.
        penalty: times the BIC's, positive; 1.5 to 6 do alike, 1 adds edges where noise dominates.

    Raises:
        OptionError: an option is out of its range.
    """

    def __init__(
        self,
        release: Release,
        *,
        max_parents: int = 6,
        n_candidates: int = 14,
        penalty: float = 2.0,
    ) -> None:
        moments: Any = check_kind(release, "second-moments", "tetrachoric")
        penalty = check_number("penalty", penalty, 0, ends="(]", cure="2 is usual, 1 is the BIC's")
        check_count("n_candidates", n_candidates, minimum=1, cure="14 is usual")
        super().__init__(moments.names, max_parents=max_parents)
        self._penalty, self._n_candidates = penalty, n_candidates
        self._release = moments
        rows = moments.effective_samples
        self._half_rows, self._price = (
            rows / 2,
            penalty / 2 * log_rows(rows, reduced=rows < moments.n_samples),
        )
        precision = np.linalg.inv(moments.correlation)
        scale = np.sqrt(np.diag(precision))
        strength = np.abs(precision) / scale / scale[:, None]
        possible = moments.joinable & ~np.eye(len(strength), dtype=bool)
        found = strongest(np.where(possible, strength, -1.0), n_candidates)
        self._candidates = tuple(
            tuple(u for u in some if possible[v, u]) for v, some in enumerate(found)
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The options, for a result's info."""
        return {
            "penalty": self._penalty,
            "max_parents": self.max_parents,
            "n_candidates": self._n_candidates,
            "effective_samples": self._release.effective_samples,
        }

    def candidates(self, node: int) -> tuple[int, ...]:
        """The possible parents of a node, sorted; public."""
        return self._candidates[node]

    def locals(self, node: int, families: Sequence[tuple[int, ...]]) -> np.ndarray:
        """The scores of many parent sets of one node, float64 (len(families),)."""
        sizes = np.array([len(family) for family in families])
        variances = log_conditional_variances(self._release.correlation, node, families)
        found: np.ndarray = -self._half_rows * variances - self._price * sizes
        return found
