"""Searches and single tests to be replayed: every decider, and every test that may be asked in
private.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jaxcd
from jaxcd.audit.judging import Case
from jaxcd.audit.neighbours import (
    LEVELS,
    deciding_pairs,
    discrete_pairs,
    moved_between_cells,
    numeric_pairs,
    run_key,
    turned_product,
)
from jaxcd.audit.table import Facts
from jaxcd.decisions import Noise
from jaxcd.privacy import NoiseSource

__all__ = ["search_cases"]

# What a private run may say of itself beside its ledger; counts of tests or batches are not among
# it.
_ALWAYS = {"n_samples", "n_variables", "domain", "budget", "secure_noise", "ledger", "warnings"}
_BY_TESTS = _ALWAYS | {
    "test",
    "decider",
    "levels",
    "stable",
    "max_level",
    "colliders",
    "algorithm",
    "ambiguous_triples",
    "knowledge_conflicts",
    "released_margins",
    "conflicts",
    "background",
    "knowledge",
    "possible_d_sep",
    "max_path_length",
    "rule_counts",
    "selection_bias",
}
_TREE = _ALWAYS | {"algorithm", "test", "options", "forest", "released_margins"}


def search_cases() -> Iterator[Case]:
    """Every decider on discrete columns, every private test, FCI and the tree."""
    tests = {
        "CovarianceNorm": jaxcd.CovarianceNorm(),
        "PooledCovariance": jaxcd.PooledCovariance(),
        "KendallTau": jaxcd.KendallTau(),
        "Spearman": jaxcd.Spearman(),
    }
    budget, wide = jaxcd.Budget(4.0, 1e-3), jaxcd.Budget(60.0, 1e-3)
    deciders: tuple[tuple[Any, dict[str, Any]], ...] = (
        (jaxcd.SparseVector(), {}),
        (jaxcd.SparseVector(n_rounds=2), {"stable": False}),
        (jaxcd.SieveAndExamine(), {}),
        (jaxcd.SieveAndExamine(rate=0.5), {"stable": False}),
        (jaxcd.NoisyThreshold(), {"colliders": jaxcd.discovery.ColliderRule.MAJORITY}),
        (jaxcd.NoisyThreshold(noise=Noise.GAUSSIAN, n_queries=7), {}),
        (jaxcd.ExponentialSelect(), {}),
        (jaxcd.LevelwiseGaussian(), {}),
        (jaxcd.Scheduled(jaxcd.SparseVector(), split=(1.0, 5.0)), {}),
        (jaxcd.Scheduled(jaxcd.NoisyThreshold(n_queries=4)), {"max_level": 1}),
    )
    names = itertools.cycle(tests)
    for place, (decider, options) in enumerate(deciders):
        test = next(names)
        kind = type(decider).__name__
        inner = getattr(decider, "decider", None)
        entries = (kind, *(() if inner is None else (type(inner).__name__,)), test)
        run = _search(
            jaxcd.pc, wide if place % 2 else budget, test=tests[test], decider=decider, **options
        )
        # the coupling of a sparse vector is the same for all pairs
        least = 0.3 if hasattr(decider, "n_rounds") else 0.02
        pairs = deciding_pairs(tests[test])
        yield Case(
            f"pc, {decider.name} {place}, {test}",
            entries,
            run,
            pairs,
            _discrete_facts(test),
            frozenset(_BY_TESTS),
            trials=12,
            least=least,
        )
    run = _search(
        jaxcd.pc,
        dataclasses.replace(budget, accounting=jaxcd.privacy.Accounting.ZCDP),
        test=tests["Spearman"],
        decider=jaxcd.LevelwiseGaussian(),
    )
    yield Case(
        "pc, zCDP, Spearman",
        ("LevelwiseGaussian", "Spearman"),
        run,
        deciding_pairs(tests["Spearman"]),
        _discrete_facts("Spearman"),
        frozenset(_BY_TESTS),
        trials=12,
        least=0.02,
    )
    run = _search(jaxcd.fci, wide, test=tests["CovarianceNorm"], decider=jaxcd.SparseVector())
    yield Case(
        "fci, SparseVector, CovarianceNorm",
        ("SparseVector", "CovarianceNorm"),
        run,
        discrete_pairs(),
        _discrete_facts("CovarianceNorm"),
        frozenset(_BY_TESTS),
    )
    run = _search(jaxcd.tree_pc, wide, test=tests["CovarianceNorm"])
    yield Case(
        "tree_pc, CovarianceNorm",
        ("TreeOptions", "CovarianceNorm"),
        run,
        discrete_pairs((200,)),
        _discrete_facts("CovarianceNorm"),
        frozenset(_TREE),
    )
    for test in tests:
        run = functools.partial(_one_test, test=tests[test], names=("v0", "v3", ("v1",)))
        yield Case(
            f"ci_test, {test}",
            (test,),
            run,
            discrete_pairs((60,)),
            _discrete_facts(test),
            frozenset(_ALWAYS),
        )
    ranks = jaxcd.StratifiedRanks(strata=(6, 3), map_levels=5)
    run = _search(jaxcd.pc, wide, test=ranks, decider=jaxcd.SparseVector())
    yield Case(
        "pc, StratifiedRanks",
        ("StratifiedRanks", "SparseVector"),
        run,
        numeric_pairs(300),
        _numeric_facts("StratifiedRanks", 5),
        frozenset(_BY_TESTS),
        trials=4,
    )
    run = _search(jaxcd.tree_pc, wide, test=ranks)
    yield Case(
        "tree_pc, StratifiedRanks",
        ("StratifiedRanks", "TreeOptions"),
        run,
        numeric_pairs(300),
        _numeric_facts("StratifiedRanks", 5),
        frozenset(_TREE),
        trials=3,
    )
    tau = jaxcd.StratifiedTau()
    run = _search(jaxcd.pc, wide, test=tau, decider=jaxcd.SparseVector(), max_level=2)
    yield Case(
        "pc, StratifiedTau",
        ("StratifiedTau", "SparseVector"),
        run,
        numeric_pairs(300),
        _numeric_facts("StratifiedTau"),
        frozenset(_BY_TESTS),
        trials=4,
    )
    # Nine tenths of the price are for the score, which one and two columns of Z move by 3 and 5.
    for given, record in ((("c",), 10 / 3), (("c", "d"), 50 / 9)):
        yield Case(
            f"ci_test, StratifiedTau, {len(given)}",
            ("StratifiedTau",),
            functools.partial(_one_test, test=tau, names=("a", "b", given)),
            moved_between_cells,
            _released_facts(record),
            frozenset(_ALWAYS),
            least=0.4,
        )
    yield Case(
        "ci_test, PrivGCM",
        ("PrivGCM",),
        functools.partial(
            _one_test, test=jaxcd.published.PrivGCM(n_features=20), names=("a", "b", ("c",))
        ),
        turned_product,
        _released_facts(_privgcm_record(1.0)),
        frozenset(_ALWAYS),
        least=0.3,
    )
    kernel = jaxcd.BoundedRCIT(
        n_features=20, n_permutations=19, scales=jaxcd.citests.BoughtBandwidths()
    )
    run = _search(jaxcd.pc, wide, test=kernel, decider=jaxcd.SparseVector(), max_level=1)
    yield Case(
        "pc, BoundedRCIT, bought bandwidths",
        ("BoundedRCIT", "BoughtBandwidths", "SparseVector"),
        run,
        numeric_pairs(60),
        _numeric_facts("BoundedRCIT"),
        frozenset(_BY_TESTS),
        trials=3,
    )
    kernel = jaxcd.BoundedRCIT(n_features=20, n_permutations=19)
    run = _search(jaxcd.pc, wide, test=kernel, decider=jaxcd.NoisyRank(n_queries=6), max_level=1)
    yield Case(
        "pc, NoisyRank, BoundedRCIT",
        ("NoisyRank", "BoundedRCIT"),
        run,
        numeric_pairs(60),
        _numeric_facts("BoundedRCIT"),
        frozenset(_BY_TESTS),
        trials=3,
    )


def _search(
    door: Callable[..., Any], budget: jaxcd.Budget, **options: Any
) -> Callable[[Any, NoiseSource], Any]:
    return lambda data, noise: door(data, budget=budget, noise=noise, key=run_key(), **options)


def _one_test(
    data: Any, noise: NoiseSource, *, test: Any, names: tuple[str, str, tuple[str, ...]]
) -> Any:
    x, y, given = names
    return jaxcd.ci_test(
        data, x, y, given=given, test=test, budget=jaxcd.Budget(1.0), key=run_key(), noise=noise
    )


def _discrete_facts(test: str) -> Callable[[Any], Facts]:
    return lambda data: Facts(data.n_samples, LEVELS, test)


def _numeric_facts(test: str, map_levels: int = 11) -> Callable[[Any], Facts]:
    return lambda data: Facts(data.n_samples, (None,) * 4, test, map_levels=map_levels)


def _released_facts(record: float) -> Callable[[Any], Facts]:
    return lambda data: Facts(data.n_samples, (None,) * 4, record=record)


def _privgcm_record(penalty: float) -> float:
    """L1 of the products of residuals by PRIVACY.md E1, E3, E4, without a norm bound."""
    w = 1 / math.sqrt(2 * penalty)
    c = (math.sqrt(1 + 8 * w * w) - 1) / (4 * w)
    limacon = 2 * (1 + w * c) * math.sqrt(1 - c * c)
    return 2 * (1 + w) ** 2 + 2 * limacon / math.sqrt(2 * penalty)
