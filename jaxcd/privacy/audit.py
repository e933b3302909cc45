"""Audits: attempts to break a claim, for tests. A bound that survives is not proved by it; one that
fails is refuted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..checks import check_count, check_share
from ..errors import OptionError


class SensitivityWitness(NamedTuple):
    """The largest change that a search found, with the data that show it.

    Attributes:
        value: the change.
        data: a data set.
        neighbour: another, which differs from it in one row.
    """

    value: float
    data: NDArray[np.int64]
    neighbour: NDArray[np.int64]


def search_sensitivity(
    statistic: Callable[[NDArray[np.int64]], float],
    *,
    levels: Sequence[int],
    n_samples: int,
    n_restarts: int,
    n_steps: int,
    rng: np.random.Generator,
) -> SensitivityWitness:
    """Search replace-one neighbours for a large change of a statistic: a lower bound on its
    sensitivity.

    Hill climbing on pairs (D, D') that differ in the first row: a step redraws one cell or one
    whole row of either, and is kept unless the change of the statistic becomes smaller. Restarts
    draw each column from a random, often very skewed, distribution, because worst cases are rarely
    balanced.

    Args:
        statistic: function of an integer array (n_samples, n_columns); a change to or from NaN
            counts as infinite.
        levels: number of levels of each column; entries are 0 ... levels - 1.
        n_samples: number of records, at least 1.
        n_restarts: number of starting points, at least 1.
        n_steps: steps from each, at least 0.
        rng: numpy generator.

    Returns:
        The best witness.

    Raises:
        OptionError: an argument is out of its range.
    """
    sizes = np.array([check_count("levels", level, minimum=1) for level in levels], dtype=np.int64)
    check_count("number of columns", len(sizes), minimum=1)
    check_count("n_samples", n_samples, minimum=1)
    check_count("n_restarts", n_restarts, minimum=1)
    check_count("n_steps", n_steps)

    best: SensitivityWitness | None = None
    for _ in range(n_restarts):
        # Row 0 of the store is the record of D', rows 1 ... n those of D; the record replaced is
        # row 1.
        store = np.column_stack([_skewed_column(int(size), n_samples + 1, rng) for size in sizes])
        value = _change(statistic, store)
        for _ in range(n_steps):
            trial = store.copy()
            row = (
                int(rng.integers(min(2, n_samples + 1)))
                if rng.random() < 0.2
                else int(rng.integers(n_samples + 1))
            )
            kind = rng.random()
            if kind < 0.5:
                column = int(rng.integers(len(sizes)))
                trial[row, column] = rng.integers(sizes[column])
            elif kind < 0.75:
                trial[row] = rng.integers(sizes)
            else:
                trial[row] = store[int(rng.integers(n_samples + 1))]
            trial_value = _change(statistic, trial)
            if trial_value >= value:
                store, value = trial, trial_value
        if best is None or value > best.value:
            best = SensitivityWitness(value, store[1:].copy(), _neighbour(store))
    assert best is not None
    return best


def _skewed_column(size: int, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    concentration = float(rng.choice([0.1, 0.5, 1.0, 10.0]))
    probabilities = rng.dirichlet(np.full(size, concentration))
    if not np.isfinite(probabilities).all():  # all weights underflowed
        probabilities = np.full(size, 1.0 / size)
    return rng.choice(size, size=length, p=probabilities).astype(np.int64)


def _neighbour(store: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([store[:1], store[2:]])


def _change(statistic: Callable[[NDArray[np.int64]], float], store: NDArray[np.int64]) -> float:
    here, there = float(statistic(store[1:])), float(statistic(_neighbour(store)))
    if math.isnan(here) and math.isnan(there):
        return 0.0
    return math.inf if math.isnan(here) or math.isnan(there) else abs(here - there)


def epsilon_lower_bound(
    counts_a: ArrayLike, counts_b: ArrayLike, n: int, *, confidence: float = 0.95
) -> float:
    r"""Return a lower confidence bound on the pure epsilon of a mechanism from its runs on two
    neighbouring data sets.

    max over events, in both directions, of log(lower bound of P[E] / upper bound of P'[E]), with
    Clopper-Pearson bounds that hold for all events at once (Bonferroni); 0 where nothing is shown.
    If the mechanism is epsilon-DP the result exceeds epsilon with probability at most
    1 - confidence.

    Args:
        counts_a: how often each event happened in ``n`` runs on one data set; a number or a
            sequence.
        counts_b: the same for its neighbour.
        n: number of independent runs on each.
        confidence: in (0, 1), for all events together; the events must be fixed before the runs.

    Returns:
        The lower bound, at least 0.

    Raises:
        OptionError: counts are not whole numbers between 0 and n, or differ in number.

    Source:
        Clopper and Pearson 1934; Jagielski, Ullman, Oprea 2020 for its use in audits.

    Example:
        >>> from jaxcd.privacy import epsilon_lower_bound
        >>> round(epsilon_lower_bound([900, 100], [100, 900], 1_000), 2)
        1.94
    """
    check_count("n", n, minimum=1)
    check_share("confidence", confidence, cure="give 0.95 or 0.99")
    first, second = np.atleast_1d(np.asarray(counts_a)), np.atleast_1d(np.asarray(counts_b))
    for name, counts in (("counts_a", first), ("counts_b", second)):
        if (
            counts.dtype.kind not in "iu"
            or counts.ndim != 1
            or counts.size == 0
            or (counts < 0).any()
            or (counts > n).any()
        ):
            raise OptionError(
                f"{name} must be whole numbers between 0 and n={n}, got {counts!r}: count events "
                "over n runs"
            )
    if first.shape != second.shape:
        raise OptionError(
            f"counts_b must be as many as counts_a, got {second.size} and {first.size}: count the "
            "same events"
        )
    tail = (1 - confidence) / (4 * len(first))
    best = 0.0
    for here, there in ((first, second), (second, first)):
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(here > 0, special.betaincinv(here, n - here + 1, tail), 0.0)
            high = np.where(there < n, special.betaincinv(there + 1, n - there, 1 - tail), 1.0)
            best = max(best, float(np.max(np.log(low) - np.log(high))))
    return best
