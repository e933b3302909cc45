"""Cause or effect of two columns to be replayed: every score, with either half of the rows or both
protected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jaxcd
from jaxcd.audit.judging import Case
from jaxcd.audit.neighbours import line, pair_of_columns, run_key
from jaxcd.audit.table import Facts
from jaxcd.pairwise import Protect, ScoreRelease
from jaxcd.pairwise.anm_scores import IQRMechanism
from jaxcd.privacy import NoiseSource

__all__ = ["pairwise_cases"]

_UNIT = ((-1.0, 1.0), (-1.0, 1.0))
_N_PAIR = 40
_PAIR = {
    "method",
    "score",
    "release",
    "protect",
    "bounds",
    "domain",
    "n_samples",
    "n_test",
    "n_training",
    "joint",
    "noise_scale",
    "ledger",
    "sensitivity",
    "mechanism",
    "answered",
    "quartile_epsilon",
    "regressor",
}


def pairwise_cases() -> Iterator[Case]:
    """Additive noise with every score, and RECI."""
    n = _N_PAIR

    def anm(score: Any, budget: jaxcd.Budget, **options: Any) -> Callable[[Any, NoiseSource], Any]:
        def run(columns: Any, noise: NoiseSource) -> Any:
            return jaxcd.anm(
                *columns,
                budget=budget,
                noise=noise,
                key=run_key(),
                bounds=_UNIT,
                score=score,
                **options,
            )

        return run

    def facts(record: float) -> Callable[[Any], Facts]:
        return lambda columns: Facts(n, record=record)

    def case(
        name: str,
        score: Any,
        record: float,
        *,
        budget: jaxcd.Budget = jaxcd.Budget(1.0),  # noqa: B008 - frozen
        **options: Any,
    ) -> Case:
        pairs = pair_of_columns(n, options.get("protect", Protect.BOTH))
        return Case(
            f"anm, {name}",
            (type(score).__name__,),
            anm(score, budget, **options),
            pairs,
            facts(record),
            frozenset(_PAIR),
        )

    hsic, both = jaxcd.pairwise.HSICScore(), ScoreRelease.SCORES
    yield case("HSIC, both halves", hsic, _hsic_record(Protect.BOTH, True))
    yield case("HSIC, both halves, scores", hsic, _hsic_record(Protect.BOTH, True), release=both)
    yield case("HSIC, split", hsic, _hsic_record(Protect.BOTH, False), test_share=0.5)
    wide = jaxcd.pairwise.HSICScore(residual_bandwidth=1.0)
    large = _hsic_record(Protect.BOTH, False, penalty=1.0, bandwidth=1.0)
    yield case(
        "HSIC, split, large penalty", wide, large, test_share=0.5, penalty=1.0, norm_bound=1.0
    )
    yield case("HSIC, test half", hsic, _hsic_record(Protect.TEST, False), protect=Protect.TEST)
    yield case(
        "HSIC, training half", hsic, _hsic_record(Protect.TRAIN, False), protect=Protect.TRAIN
    )
    half = n // 2
    yield case(
        "Spearman, test half", jaxcd.pairwise.SpearmanScore(), 6 / (half + 1), protect=Protect.TEST
    )
    yield case("Kendall, test half", jaxcd.pairwise.KendallScore(), 4 / half, protect=Protect.TEST)
    delta = jaxcd.Budget(2.0, 1e-3)
    yield case(
        "Spearman, training half",
        jaxcd.pairwise.SpearmanScore(stability_release=True),
        1.0,
        budget=delta,
        protect=Protect.TRAIN,
    )
    iqr = jaxcd.pairwise.LogIQRScore()
    for protect in (Protect.BOTH, Protect.TEST, Protect.TRAIN):
        yield case(f"IQR, flip distance, {protect.value}", iqr, 0.0, protect=protect)
        stable = jaxcd.pairwise.LogIQRScore(mechanism=IQRMechanism.PROPOSE_TEST_RELEASE)
        yield case(
            f"IQR, propose-test-release, {protect.value}",
            stable,
            stable.width,
            budget=delta,
            protect=protect,
        )
    yield case(
        "IQR, quartiles",
        jaxcd.pairwise.LogIQRScore(mechanism=IQRMechanism.EXPONENTIAL),
        0.0,
        protect=Protect.TEST,
        release=both,
    )

    def reci(columns: Any, noise: NoiseSource) -> Any:
        return jaxcd.reci(*columns, budget=jaxcd.Budget(1.0), bounds=_UNIT, noise=noise)

    # A residual beyond 1/2 counts as 1/2: in steps of 1 / (2 R), R = 64, its square is 64^2.
    yield Case(
        "reci", ("BoundedPolynomial",), reci, line(400), facts(64.0**2), frozenset(_PAIR), least=0.7
    )


def _hsic_record(
    protect: Protect, joint: bool, penalty: float = 0.03, bandwidth: float = 0.25
) -> float:
    """Delta of the kernel score of 40 rows by PRIVACY.md D1, E1 to E4, for the norm bound 1."""
    n_test = n_training = _N_PAIR if joint else _N_PAIR // 2
    w = min(1.0, 1 / math.sqrt(2 * penalty))
    c = (math.sqrt(1 + 8 * w * w) - 1) / (4 * w)
    limacon = 2 * (1 + w * c) * math.sqrt(1 - c * c)
    record = math.sqrt(6) * (n_test - 1) / n_test**2
    at_most = 0.5
    if protect is Protect.TEST:
        return min(record, at_most)
    everywhere = min(2 * limacon / (penalty * n_training), 2.0) / bandwidth
    if joint:
        return min(
            record + min(limacon / math.sqrt(2 * penalty) / n_training, 2.0) / bandwidth, at_most
        )
    training = min(everywhere, at_most)
    return training if protect is Protect.TRAIN else max(record, training)
