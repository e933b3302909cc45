"""Neighbouring data sets for replays, which differ in one record, or in one person: random ones,
extreme ones, and ones between which a decision turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxcd
from jaxcd.citests import Query
from jaxcd.pairwise import Protect
from jaxcd.pairwise.anm_columns import split_rows
from jaxcd.queries import Queue

__all__ = [
    "DISCRETE",
    "LEVELS",
    "MIXED",
    "OPEN",
    "ROWS",
    "Pairs",
    "deciding_pairs",
    "dependent_pairs",
    "discrete_pairs",
    "every_record",
    "line",
    "mixed_pairs",
    "moment_pairs",
    "moved_between_cells",
    "numeric_pairs",
    "pair_of_columns",
    "people_pairs",
    "random_codes",
    "run_key",
    "turned_product",
]

Pairs = Callable[[np.random.Generator, int], tuple[Any, Any]]
"""Two neighbours, of a generator and the number of the trial."""

LEVELS = (2, 3, 2, 4)
DISCRETE = jaxcd.Domain({f"v{j}": jaxcd.Ordinal(tuple(range(k))) for j, k in enumerate(LEVELS)})
_NUMERIC = jaxcd.Domain({name: jaxcd.Numeric(-4, 4) for name in "abcd"})
OPEN = jaxcd.Domain({name: jaxcd.Numeric() for name in "abc"})
MIXED = jaxcd.Domain(
    {
        "a": jaxcd.Numeric(-4, 4),
        "b": jaxcd.Categorical((0, 1)),
        "c": jaxcd.Numeric(),
        "d": jaxcd.Ordinal((0, 1, 2)),
    }
)
ROWS = list(itertools.product(*map(range, LEVELS)))
"""Every record of the discrete domain."""
_KEY_SEED = 4


def run_key() -> jax.Array:
    """The key of every run: what it splits or permutes is the same for both neighbours."""
    return jax.random.key(_KEY_SEED)


def random_codes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Columns that depend on each other, or are constant, or nearly so."""
    codes = np.zeros((n, len(LEVELS)), dtype=np.int64)
    for j, k in enumerate(LEVELS):
        kind = rng.random()
        if kind < 0.4 and j:
            codes[:, j] = np.where(
                rng.random(n) < 0.15, rng.integers(0, k, n), codes[:, rng.integers(j)] % k
            )
        elif kind < 0.9:
            codes[:, j] = rng.choice(k, n, p=rng.dirichlet(np.full(k, rng.choice([0.05, 1.0]))))
    return codes


def _dataset(codes: np.ndarray) -> jaxcd.Dataset:
    return jaxcd.Dataset.from_codes(codes.astype(np.int32), domain=DISCRETE)


def discrete_pairs(sizes: tuple[int, ...] = (26, 200)) -> Pairs:
    """Discrete columns, and any record replaced by any other."""

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        codes = random_codes(rng, sizes[trial % len(sizes)])
        other = codes.copy()
        other[int(rng.integers(len(codes)))] = [rng.integers(k) for k in LEVELS]
        return _dataset(codes), _dataset(other)

    return pairs


def _between(
    test: Any, here: np.ndarray, there: np.ndarray, decides: Callable[[Any], bool]
) -> tuple[Any, Any]:
    """Neighbours on the way from one data set to another, between which what ``decides`` says of
    the margins changes.
    """

    def rows(k: int) -> np.ndarray:
        return np.vstack([there[:k], here[k:]])

    low, high = 0, len(here)
    at = decides(rows(low))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if decides(rows(middle)) == at else (low, middle)
    return _dataset(rows(low)), _dataset(rows(high))


def deciding_pairs(test: Any) -> Pairs:
    """Random neighbours, and in turn neighbours between which an exact margin changes its sign, or
    the best separating set changes.
    """
    random = discrete_pairs()

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        if trial % 3 == 0:
            return random(rng, trial // 3)
        n = 400
        noise = rng.random((n, 4))

        def margins(codes: np.ndarray) -> np.ndarray:
            queries = [Query(0, 1, ()), Query(0, 1, (2,)), Query(0, 1, (3,))]
            return Queue(test.prepare(_dataset(codes)), alpha=0.05).evaluate(queries).margin

        cause = rng.integers(0, 2, n)
        free = np.column_stack([rng.integers(0, k, n) for k in LEVELS])
        if trial % 3 == 1:  # v0, v1 go from independent to dependent
            tied = free.copy()
            tied[:, 1] = tied[:, 0] * 2
            return _between(test, free, tied, lambda codes: bool(margins(codes)[0] <= 0))
        # v0 and v1 have a common cause, of which first v2 and then v3 is the better copy.
        free[:, 0], free[:, 1] = (
            np.where(noise[:, 0] < 0.1, 1 - cause, cause),
            np.where(noise[:, 1] < 0.1, 1, 2 * cause),
        )
        first, second = free.copy(), free.copy()
        first[:, 2], first[:, 3] = cause, np.where(noise[:, 2] < 0.1, 1 - cause, cause)
        second[:, 2], second[:, 3] = np.where(noise[:, 3] < 0.1, 1 - cause, cause), cause
        return _between(test, first, second, lambda codes: bool(np.argmin(margins(codes)[1:]) == 0))

    return pairs


def every_record(n: int) -> Pairs:
    """One record replaced by any other: all 48 in turn, against each corner."""

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        codes = random_codes(np.random.default_rng(1), n)
        codes[0] = ROWS[(trial // len(ROWS)) * 7 % len(ROWS)]
        other = codes.copy()
        other[0] = ROWS[trial % len(ROWS)]
        return _dataset(codes), _dataset(other)

    return pairs


def dependent_pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """A chain of strong dependences, one record replaced by any other in turn."""
    fixed, n = np.random.default_rng(2), 2_000
    codes = np.zeros((n, len(LEVELS)), dtype=np.int64)
    codes[:, 0] = fixed.integers(0, 2, n)
    for j in range(1, len(LEVELS)):
        sure = (codes[:, j - 1] * (LEVELS[j] - 1)) // max(LEVELS[j - 1] - 1, 1)
        codes[:, j] = np.where(fixed.random(n) < 0.1, fixed.integers(0, LEVELS[j], n), sure)
    codes[0] = ROWS[(trial // len(ROWS)) * 11 % len(ROWS)]
    other = codes.copy()
    other[0] = ROWS[trial % len(ROWS)]
    return _dataset(codes), _dataset(other)


def _columns(rng: np.random.Generator, n: int, p: int = 4) -> np.ndarray:
    """Numeric columns, some of them functions of others, constant, or full of ties."""
    columns = rng.normal(size=(n, p))
    for j in range(1, p):
        kind = rng.integers(4)
        if kind == 0:
            columns[:, j] = np.sin(2 * columns[:, rng.integers(j)]) + 0.1 * columns[:, j]
        elif kind == 1:
            columns[:, j] = np.round(columns[:, j])
        elif kind == 2 and rng.random() < 0.5:
            columns[:, j] = 1.5
    return np.clip(columns, -4, 4)


def _tables(domain: jaxcd.Domain, columns: np.ndarray, other: np.ndarray) -> tuple[Any, Any]:
    here, there = (
        jaxcd.Dataset.from_array(part, names=list(domain.names), domain=domain)
        for part in (columns, other)
    )
    return here, there


def numeric_pairs(n: int) -> Pairs:
    """Numeric columns, and any record replaced by one of ends and middles."""

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        columns = _columns(rng, n)
        other = columns.copy()
        other[int(rng.integers(n))] = rng.choice([-4.0, 0.0, 4.0], 4)
        return _tables(_NUMERIC, columns, other)

    return pairs


def moved_between_cells(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """Rows that agree in order in one cell, and disagree in another; the record leaves the first,
    where it disagrees, and enters the second, where it agrees."""
    if trial % 2:
        return numeric_pairs(300)(rng, trial)
    n = 61
    columns = np.full((n, 4), -3.9)
    columns[:, 0] = np.linspace(-3, 3, n)
    columns[:, 1] = columns[:, 0]
    second = np.arange(n) > n // 2
    columns[second, 1] *= -1
    columns[second, 2:] = 3.9
    other = columns.copy()
    columns[0], other[0] = [4, -4, -3.9, -3.9], [4, 4, 3.9, 3.9]
    return _tables(_NUMERIC, columns, other)


def turned_product(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """Z constant, all others at one end, and a record whose product of residuals turns."""
    if trial % 2:
        return numeric_pairs(60)(rng, trial)
    columns = np.full((40, 4), -4.0)
    other = columns.copy()
    columns[0, :2], other[0, :2] = [4, 4], [4, -4]
    return _tables(_NUMERIC, columns, other)


def moment_pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """Rows near 0, and one record that goes from far out on one axis to as far out on another: the
    worst case of tilted moments; far outliers, which would move exact means."""
    columns = rng.normal(scale=0.3, size=(60, 3))
    other = columns.copy()
    size = np.geomspace(0.2, 30, 12)[trial % 12] if trial % 4 else 1e6
    first, second = rng.permutation(3)[:2]
    columns[0], other[0] = np.eye(3)[first] * size, np.eye(3)[second] * size * rng.choice([-1, 1])
    return _tables(OPEN, columns, other)


def mixed_pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
    """Columns of all types, and one record that goes from one end to the other."""
    n = 80
    columns = np.column_stack(
        [rng.uniform(-4, 4, n), rng.integers(0, 2, n), rng.normal(size=n), rng.integers(0, 3, n)]
    )
    # everyone else agrees in b and d: a rank that followed the record would move them all
    if trial % 4 == 0:
        columns[:, 1], columns[:, 3] = 1, 2
        other = columns.copy()
        columns[0], other[0] = [-4, 0, -1e4, 0], [4, 0, 1e4, 0]
        return _tables(MIXED, columns, other)
    other = columns.copy()
    columns[0] = [-4, 0, rng.choice([-1e4, 0.0]), rng.integers(3)]
    other[0] = [rng.choice([0.0, 4.0]), 1, rng.choice([1e4, 1.0]), rng.integers(3)]
    return _tables(MIXED, columns, other)


def people_pairs(domain: jaxcd.Domain, step: int, rows: Any) -> Pairs:
    """40 people with 1 to 4 rows, and one who has one row in the first table and 50 in the other:
    50 times the same one, each in turn, and then any ones.
    """

    def table(parts: list[np.ndarray]) -> jaxcd.Dataset:
        people = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        # anywhere in the table; everybody's own rows stay in their order
        order = np.argsort(np.random.default_rng(3).random(len(people)))
        named = dict(zip(domain.names, np.concatenate(parts)[order].T, strict=True))
        read = jaxcd.Dataset.from_array(
            np.column_stack(list(named.values())), names=list(domain.names), domain=domain
        )
        return jaxcd.Dataset(domain, read.discrete, read.numeric, people=people[order])

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        each = np.asarray(rows, dtype=np.float64)
        others = [each[rng.integers(len(each), size=rng.integers(1, 5))] for _ in range(40)]
        one = each[[trial // len(each) * step % len(each)]]
        same = np.repeat(each[[trial % len(each)]], 50, axis=0)
        many = same if trial < len(each) else each[rng.integers(len(each), size=50)]
        return table([*others, one]), table([*others, many])

    return pairs


def pair_of_columns(n: int, protect: Protect = Protect.BOTH) -> Pairs:
    """Two columns, and one record replaced: of the half that is protected."""
    training, test = split_rows(run_key(), n, n_test=n // 2, joint=False)
    rows = {
        Protect.BOTH: np.arange(n),
        Protect.TEST: np.flatnonzero(test),
        Protect.TRAIN: np.flatnonzero(training),
    }[protect]

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        x = rng.choice([-1.0, -0.2, 0.3, 1.0], n) if trial % 2 else rng.uniform(-1, 1, n)
        y = np.clip(x**3 + rng.normal(scale=0.2, size=n), -1, 1)
        other = np.stack([x, y])
        other[:, int(rng.choice(rows))] = rng.choice([-1.0, 1.0, np.nan], 2)
        return (x, y), tuple(other)

    return pairs


def line(n: int) -> Pairs:
    """Two columns in which one record decides a difference of regression errors."""

    def pairs(rng: np.random.Generator, trial: int) -> tuple[Any, Any]:
        x, y = -np.ones((2, n))
        other = np.stack([x, y])
        x[0], other[1, 0] = 1.0, 1.0
        if trial % 2:
            return pair_of_columns(n)(rng, trial)
        return (x, y), tuple(other)

    return pairs
