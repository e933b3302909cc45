"""Kusner et al. 2016, table 2: how often an additive noise model finds the right direction, without
privacy and with it.

``python -m benchmarks.kusner_table2 [--quick] [--data FOLDER] [--pairs K] [--splits S] [--rows N]
[--out FILE]``

The paper's ten pairs are not public; here are the K largest scalar pairs of the Tuebingen
collection.  Each pair is split into a training and a test half S times; the guarantee is about the
test half, as in the paper's table.  For each of the four scores: the share of (pair, split) whose
exact scores point the right way, and the probability of the right private direction at epsilon 0.1,
1 and 2, for the direction alone (one noisy difference) and for both scores (twice the noise; the
log IQR counts records, and has no scores to release).

The probability is exact given the scores: from the difference g = score(wrong) - score(right) and
the noise's scale s it is 1 - P[wrong | abs(g)] where g > 0, else P[wrong | abs(g)]
(:func:`jaxcd.pairwise.anm_release.error_probability`). The pair's own range rounded outwards stands
in for public bounds: this measures the noise only.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import experiment as ex
from benchmarks.pairs import PAIRS, SCORES, exact_anm, thinned
from jaxcd.pairwise import CausePair, tuebingen
from jaxcd.pairwise.anm_release import error_probability
from jaxcd.pairwise.anm_scores import AnmScore, Protect

EPSILONS = (0.1, 1.0, 2.0)
RELEASES = {"direction": 1, "both scores": 2}  # noises in the difference
WITHOUT_SCORES = ("log IQR",)


@dataclass(frozen=True)
class Differences:
    """signed: score(wrong direction) - score(right direction), positive where the exact answer is
    right; (pairs, splits).

    scales: of the Laplace noise at epsilon 1, likewise.
    """

    signed: np.ndarray
    scales: np.ndarray

    @property
    def accuracy(self) -> np.ndarray:
        """The share of splits that are right without noise, a tie one half: (pairs,)."""
        return ((self.signed > 0) + 0.5 * (self.signed == 0)).mean(axis=1)

    def probability(self, epsilon: float, *, n_noises: int = 1) -> np.ndarray:
        """The probability of the right private direction, mean over splits: (pairs,)."""
        ratios = np.abs(self.signed) * epsilon / self.scales
        wrong = np.vectorize(
            lambda ratio: error_probability(float(ratio), n_noises=n_noises), otypes=[float]
        )(ratios)
        return np.where(self.signed > 0, 1 - wrong, wrong).mean(axis=1)


def differences(
    pairs: Sequence[CausePair],
    *,
    score: AnmScore,
    n_splits: int,
    protect: Protect = Protect.TEST,
    penalty: float | None = None,
) -> Differences:
    """The exact differences of ``n_splits`` random splits of each pair."""
    signed, scales = np.zeros((len(pairs), n_splits)), np.zeros((len(pairs), n_splits))
    for split in range(n_splits):
        results, noise = exact_anm(pairs, score=score, protect=protect, seed=split, penalty=penalty)
        assert noise is not None
        for i, (result, pair) in enumerate(zip(results, pairs, strict=True)):
            signed[i, split] = (
                result.margin if result.direction is pair.direction else -result.margin
            )
        scales[:, split] = noise
    return Differences(signed, scales)


def pairs_of(chosen: Namespace) -> list[CausePair]:
    """The scalar Tuebingen pairs with the most records, the largest first; with ``--rows`` a random
    part of each.
    """
    ordered = sorted(tuebingen(chosen.data).pairs, key=lambda pair: -pair.n)
    return [thinned(pair, chosen.rows) for pair in ordered[: chosen.pairs]]


def measure(pairs: Sequence[CausePair], name: str, n_splits: int) -> list[dict[str, Any]]:
    """The rows of one score: without privacy, then each release and epsilon."""
    with ex.Clock() as clock:
        found = differences(pairs, score=SCORES[name], n_splits=n_splits)
    shares: dict[tuple[str | None, float | None], np.ndarray] = {(None, None): found.accuracy}
    for release, n_noises in RELEASES.items():
        if release == "direction" or name not in WITHOUT_SCORES:
            for epsilon in EPSILONS:
                shares[release, epsilon] = found.probability(epsilon, n_noises=n_noises)
    return [
        {
            "release": release,
            "epsilon": epsilon,
            "n_pairs": len(pairs),
            "n_splits": n_splits,
            "seconds": clock.seconds,
            "right": float(share.mean()),
            "by_pair": share.tolist(),
        }
        for (release, epsilon), share in shares.items()
    ]


def jobs(chosen: Namespace, record: ex.Record) -> Iterator[ex.Job]:
    """The rows of every score."""
    pairs = pairs_of(chosen)
    for name in SCORES:
        yield (name,), measure, pairs, name, chosen.splits


def settings(chosen: Namespace) -> dict[str, Any]:
    """What the rows have in common, also those of the figures."""
    pairs = pairs_of(chosen)
    return {
        "pairs": [pair.name for pair in pairs],
        "records": [pair.n for pair in pairs],
        "n_splits": chosen.splits,
        "bounds": "the pair's own range rounded outwards: measures the noise only",
    }


def options(splits: int) -> tuple[ex.Option, ...]:
    """The options of this table and of the figures; ``splits`` is the usual number."""
    return (
        PAIRS,
        ex.one_count("--pairs", "the largest pairs", 10, 2),
        ex.one_count("--splits", "random splits", splits, 2),
        ex.one_count("--rows", "most records of a pair", quick=300),
    )


EXPERIMENT = ex.Experiment(
    "kusner_table2",
    __doc__,
    ("score", "release", "epsilon"),
    jobs,
    columns=ex.columns_of("score; release|no privacy; epsilon:g; P[right]=right:.3f"),
    options=options(10),
    settings=settings,
)
main = EXPERIMENT.main


if __name__ == "__main__":
    main()
