"""The number of compilations of a whole run is bounded by public shapes, and a second run compiles
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.monitoring
import numpy as np
import pytest

import jaxcd
from tests.catalogue import PRIVATE_DECIDERS, DeciderRow, discrete
from tests.helpers import PLAIN, coded, dependent, simulated

_COMPILED: list[str] = []


def _listen(event: str, duration_secs: float, **_: str | int) -> None:
    if event == "/jax/core/compile/backend_compile_duration":
        _COMPILED.append(event)


jax.monitoring.register_event_duration_secs_listener(_listen)


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The programs handed to the compiler inside the context."""
    start = len(_COMPILED)
    counted: list[str] = []
    yield counted
    counted.extend(_COMPILED[start:])


D = 10
LEVELS = (2, 2, 3, 2, 4, 2, 3, 2, 2, 3)


def dataset(seed: int, n: int = 3000) -> jaxcd.Dataset:
    """Every column a noisy function of two earlier ones, so that several levels are reached."""
    return dependent(seed, n, *LEVELS, share=lambda rng: 0.6)


def run(data: jaxcd.Dataset, test: jaxcd.citests.CITest, **options) -> jaxcd.DiscoveryResult:
    return jaxcd.pc(data, test=test, **PLAIN, **options)


def test_the_counter_counts():
    with compilations() as counted:
        jax.jit(lambda x: x * 1.25 + 17)(np.ones(37, dtype=np.float32)).block_until_ready()
    assert len(counted) >= 1
    with compilations() as counted:
        pass
    assert len(counted) == 0


def test_tables_of_other_levels_compile_nothing():
    """Nor are masks filled up or put on a device by programs of their shape."""

    def tables(*levels: int) -> None:
        codes = np.random.default_rng(0).integers(0, levels, (400, len(levels)))
        coded(codes, *levels).counts([(0, 1), (1, 2), (0, 1, 2)])

    tables(2, 3, 4)
    with compilations() as counted:
        tables(3, 5, 2)
        tables(6, 2, 3, 7)
    assert len(counted) == 0


@pytest.mark.parametrize(
    "test",
    [jaxcd.CovarianceNorm(), jaxcd.KendallTau(), jaxcd.Spearman()],
    ids=lambda test: test.name,
)
def test_a_run_compiles_a_bounded_number_of_programs_and_then_none(test: jaxcd.citests.CITest):
    jax.clear_caches()
    with compilations() as first:
        result = run(dataset(0), test)
    assert max(record.level for record in result.info["levels"]) >= 2
    with compilations() as second:
        run(dataset(0), test)
    assert len(second) == 0
    # other rows of the same domain and size, and other orders of the columns, stay within the same
    # bound together
    with compilations() as others:
        results = [result] + [run(dataset(seed), test) for seed in (1, 2)]
        results.append(run(dataset(0).permuted(np.arange(D)[::-1]), test))
    deepest = max(record.level for r in results for record in r.info["levels"])
    # for every level one counting program; for every power of 4 up to the largest number of strata
    # one statistic; and a handful of small conversions
    sizes = 1 + math.ceil(math.log(math.prod(sorted(LEVELS)[-deepest:]), 4))
    assert 1 <= len(first) <= len(first) + len(others) <= (deepest + 1) + sizes + 4


@pytest.mark.parametrize("row", [row for row in PRIVATE_DECIDERS if row.data is discrete], ids=str)
def test_a_second_private_run_compiles_nothing(row: DeciderRow):
    def private(seed: int) -> None:
        jaxcd.pc(
            dataset(seed, n=600),
            test=row.test,
            decider=row.decider,
            budget=jaxcd.Budget(1.0, 1e-6),
            key=None,
            noise=simulated(seed),
            max_level=1,
        )

    private(0)
    with compilations() as again:
        private(0)
    assert len(again) == 0
    # programs are bounded by the domain and n, not by the rows: a few runs on other rows reach the
    # end of them
    for seed in range(1, 4):
        private(seed)
    with compilations() as other:
        private(4)
    assert len(other) <= 2
