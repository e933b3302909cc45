r"""PCD as its paper has it: not private, kept to compare with.

PC in its original order over the skeleton search of :mod:`jaxcd.discovery.constraint.skeleton`.  A
candidate is answered from the permutation p-value p of RCIT and a bound B >= p on what p could be
on a neighbouring data set: B < alpha keeps the edge as it is; otherwise the candidate separates
where p + Lap(4 (B - p) / epsilon) >= alpha, and epsilon is added to a running total.

**Why it is not private** (PRIVACY.md D4, F1, G).  Between a data set on which an edge is kept
without noise, so that its removal is impossible, and one far from it on which the removal is
possible, there are two neighbours of which one has probability 0 and the other does not: no finite
epsilon holds.  (With secret permutations the zero is positive, and still no useful epsilon holds.)
Moreover the scale of the noise is a local sensitivity, itself revealing, and 0 where B = p; the
statistic's bound is too small for the replaced record; the bandwidths are read off the data; and
the total counts only the noisy answers, a number that depends on the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxcd.checks import check_flag, check_key, is_number, is_whole
from jaxcd.citests import Query, check_alpha
from jaxcd.data import Dataset
from jaxcd.decisions import DecisionRun, Frontier
from jaxcd.discovery import ConflictRule, DiscoveryResult, LevelRecord
from jaxcd.discovery.constraint.orientation import apply_meek_rules, orient_colliders
from jaxcd.discovery.constraint.skeleton import search_skeleton
from jaxcd.errors import OptionError
from jaxcd.graphs import MixedGraph
from jaxcd.privacy import PrivacyCost, Relation
from jaxcd.privacy.claims import GuaranteeClaim, claiming
from jaxcd.published.pcd_rcit import PublishedColumns, PublishedRCIT
from jaxcd.published.rounds import require_whole_rows

__all__ = ["pcd", "pcd_sweep"]

_REASON = (
    "published method, kept for comparison: where its bound B is below alpha the edge is kept "
    "without noise, so that neighbouring "
    "data sets differ by a removal of probability 0, where no epsilon holds; the noise has the "
    "scale of a local sensitivity; "
    "the bound on the statistic's sensitivity fails for the replaced record; the bandwidths are "
    "read off the data; the running "
    "total counts noisy answers only, a number that depends on the data; the noise is simulated"
)


class PCDRun(DecisionRun):
    """Algorithm 1's answers, one candidate after the other.

    Args:
        columns: the prepared test.
        alpha: the level.
        epsilon: of each noisy answer.
        stream: of the noise, one draw a noisy answer.
    """

    def __init__(
        self,
        columns: PublishedColumns,
        *,
        alpha: float,
        epsilon: float,
        stream: np.random.Generator,
    ) -> None:
        self._columns = columns
        self.alpha = alpha
        self.epsilon = epsilon
        self._stream = stream
        self.n_tests = 0
        self.n_noisy = 0

    @property
    def total(self) -> float:
        """The running total: epsilon for each noisy answer."""
        return self.n_noisy * self.epsilon

    def answer(self, frontier: Frontier) -> None:
        while questions := frontier.peek(1):
            x, y, candidates = questions[0]
            separating = next(
                (given for given in candidates if self.separates(Query.of(x, y, given))), None
            )
            if separating is None:
                frontier.keep()
            else:
                frontier.separate(separating)

    def separates(self, query: Query) -> bool:
        """One answer; a query that comes up again (the original order asks both ends) has new
        noise, and is paid for again.
        """
        evidence = self._columns.evidence(query)
        self.n_tests += 1
        if not evidence.is_noisy(self.alpha):
            return False
        self.n_noisy += 1
        return (
            evidence.pvalue + self._stream.laplace(0, evidence.noise_scale(self.epsilon))
            >= self.alpha
        )


@claiming(
    GuaranteeClaim(
        "the paper's running epsilon",
        proof="it keeps edges without noise on one of two neighbouring data sets, so no epsilon "
        "holds; see jaxcd.published.pcd",
        proven=False,
        assumptions="-",
    )
)
def pcd(
    data: Dataset,
    *,
    epsilon: float,
    alpha: float = 0.05,
    key: jax.Array,
    max_level: int | None = None,
    n_permutations: int = 100,
    penalty: float = 1.0,
    bandwidth: float | None = None,
    ridge: float | None = None,
    stable: bool = False,
) -> DiscoveryResult:
    r"""PCD as published: PC with RCIT, and Laplace noise on those p-values that one record is taken
    to be able to move past alpha.

    A candidate separates where B >= alpha and p + Lap(4 (B - p) / epsilon) >= alpha; the formulas,
    and which of them are the paper's and which reconstructed, are in
    :mod:`jaxcd.published.pcd_bounds` and :mod:`jaxcd.published.pcd_rcit`.  That the order of the
    search is PC's original one is a reconstruction.

    Args:
        data: numeric (or ordinal) columns, at least 4 rows.
        epsilon: positive, of each noisy answer.
        alpha: the level, 0 < alpha < 1.
        key: a typed key: permutations and noise.
        max_level: the largest conditioning set, or None; with the paper's penalty few edges go, so
            on many variables a limit is needed.
        n_permutations: k.
        penalty: lambda > 0 of (lambda / 2) |w|^2 + mean squared error.
        bandwidth: of the residuals' kernels, for columns in [-1, 1]; None for the median heuristic.
        ridge: as in :class:`PublishedRCIT`; 1.0 is the reading K + I of lambda = 1.
        stable: the stable order.

    Returns:
        The result; ``cost`` holds the running total that the paper claims, with ``proven`` False
        and the reason; ``info`` the number of tests and of noisy answers.

    Raises:
        OptionError: an argument does not fit.
        DomainError: an argument does not fit.

    Guarantee:
        None (module docstring; PRIVACY.md F1, G).  :class:`jaxcd.StratifiedRanks` under any proved
        mechanism is what holds.

    Source:
        Zhang et al. 2023, Algorithm 1.
    """
    return pcd_sweep(
        data,
        epsilons=(epsilon,),
        alpha=alpha,
        key=key,
        max_level=max_level,
        n_permutations=n_permutations,
        penalty=penalty,
        bandwidth=bandwidth,
        ridge=ridge,
        stable=stable,
    )[0]


def pcd_sweep(
    data: Dataset,
    *,
    epsilons: Sequence[float],
    alpha: float = 0.05,
    key: jax.Array,
    max_level: int | None = None,
    n_permutations: int = 100,
    penalty: float = 1.0,
    bandwidth: float | None = None,
    ridge: float | None = None,
    stable: bool = False,
) -> tuple[DiscoveryResult, ...]:
    """PCD at several prices of an answer: what :func:`pcd` gives for each of them, with every test
    computed once.

    A test's statistic, p and B know nothing of epsilon, so that eight prices cost little more than
    one.

    Args:
        data: as for :func:`pcd`, and so are the other arguments.
        epsilons: prices, each positive.
        alpha: the level.
        key: a typed key: permutations, and the noise, which starts anew at each price.
        max_level: the largest conditioning set, or None.
        n_permutations: k.
        penalty: lambda.
        bandwidth: of the residuals' kernels.
        ridge: of the regression.
        stable: the stable order.

    Returns:
        One result a price, in their order.

    Raises:
        OptionError: an argument does not fit.
        DomainError: an argument does not fit.

    Guarantee:
        None, as for :func:`pcd`.

    Source:
        Zhang et al. 2023, Algorithm 1.
    """
    check_alpha(alpha)
    for epsilon in epsilons:
        if not is_number(epsilon, 0, ends="(]"):
            raise OptionError(
                f"epsilon = {epsilon!r} is not a price; give a positive number for each noisy "
                "answer, such as 1.0"
            )
    if max_level is not None and not is_whole(max_level, 0):
        raise OptionError(
            f"max_level = {max_level!r} is not a level; use a whole number from 0, or None for no "
            "limit"
        )
    check_flag("stable", stable)
    check_key(key)
    test = PublishedRCIT(
        n_permutations=n_permutations, penalty=penalty, bandwidth=bandwidth, ridge=ridge
    )
    data = require_whole_rows(data, "pcd")
    permutation_key, noise_key = jax.random.split(key)
    columns = test.prepare(data, key=permutation_key)
    words = np.asarray(jax.random.key_data(noise_key)).ravel().tolist()
    found = []
    for epsilon in epsilons:
        stream = np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))
        run = PCDRun(columns, alpha=alpha, epsilon=epsilon, stream=stream)
        found.append(_search(data, columns, run, repr(test), max_level=max_level, stable=stable))
    return tuple(found)


def _search(
    data: Dataset,
    columns: PublishedColumns,
    run: PCDRun,
    test: str,
    *,
    max_level: int | None,
    stable: bool,
) -> DiscoveryResult:
    """The search of one price, its orientation and its running total."""
    names = data.names
    levels: list[LevelRecord] = []
    skeleton = search_skeleton(
        run,
        len(names),
        admissible=lambda x, y, given: True,
        max_level=max_level,
        stable=stable,
        report=lambda *record: levels.append(LevelRecord(*record)),
    )
    sets = {
        frozenset((names[x], names[y])): tuple(names[v] for v in given)
        for (x, y), given in skeleton.separating_sets.items()
    }
    graph = MixedGraph(names, 3 * skeleton.adjacency.astype("int8"))
    graph = orient_colliders(graph, separating_sets=sets, rule=ConflictRule.UNDIRECTED)
    cost = PrivacyCost(run.total, 0.0, Relation.REPLACE_ONE, False, _REASON)
    info: dict[str, Any] = {
        "algorithm": "pcd",
        "test": test,
        "n_samples": data.n_samples,
        "n_variables": len(names),
        "n_tests": run.n_tests,
        "n_distinct_tests": columns.n_evaluated,
        "n_noisy": run.n_noisy,
        "total_epsilon": cost.epsilon,
        "epsilon_per_answer": run.epsilon,
        "alpha": run.alpha,
        "secure_noise": False,
        "levels": tuple(levels),
        "stable": stable,
        "max_level": max_level,
    }
    return DiscoveryResult(apply_meek_rules(graph), sets, cost, cost, False, info)
