"""Releases of chosen pairs on neighbouring tables: one row, or one person, is another.

A release is bought of a table, and again of its neighbour with the noise that gives the same noisy
numbers and the same choices (:mod:`jaxcd.audit.replaying`).  Then everything that can be seen must
be the same to the last bit, and what the numbers and scores moved by must be within what was
charged.  Tables are as unkind as they may be: two rows, constant columns, levels that nobody has,
missing cells, values far beyond the bounds, a person who comes back with many rows.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxcd
from jaxcd.audit import replaying
from jaxcd.audit.replaying import Tapping
from jaxcd.privacy import Accountant, Budget, Ledger, Unit
from jaxcd.privacy.sensitive import exact_values
from jaxcd.queries import Door
from jaxcd.releases import LogLinear, Marginals, Tetrachoric
from jaxcd.releases.tables import pair_selection
from jaxcd.releases.tables.pair_selection import PairChoice
from tests.helpers import Quick, coded, levelled, numbers

CHOICE = "choice of a pair"
GAUSSIAN, LAPLACE = Budget(30.0, 1e-3), Budget(300.0)
LEVELS = (2, 3, 1, 2)
Pair = tuple[Any, Any]


@pytest.fixture
def tap() -> Iterator[Tapping]:
    with replaying.tapping() as found:
        yield found


def shares(
    tap: Tapping, kind: Any, budget: Budget, here: Any, there: Any, folder: Path, *, seed: int = 0
) -> Mapping[str, float]:
    """What was moved as a share of what was charged, the largest by the words of a charge; after a
    look at all that can be seen.
    """

    def bought(data: Any, noise: Any) -> Any:
        release = kind.release(data, budget=budget, noise=noise)
        file = release.save(folder / f"{len(list(folder.iterdir()))}.npz")
        print(hashlib.sha256(file.read_bytes()).hexdigest())
        return release

    twice = replaying.replay(tap, bought, here, there, seed=seed, shift=lambda tape: 0)
    assert not twice.different
    spent, cost = twice.result.spent, twice.result.cost
    assert spent.epsilon <= cost.epsilon == budget.epsilon and spent.delta <= budget.delta
    largest: defaultdict[str, float] = defaultdict(float)
    of_events = replaying.costs(twice.rows, twice.first, twice.second, shift=0)
    for row in twice.rows:
        words = row["label"].split(": ")[-1]
        largest[words] = max(largest[words], of_events[row["index"]])
        for law, scale, steps, _ in twice.second.calls[row["index"]]:
            if law == "gumbel":  # every score by itself, also where all move alike
                most = scale * row["epsilon"] / row.get("n_choices", 1) / 2
                assert np.abs(steps).max() <= most * (1 + 1e-9)
    assert max(largest.values()) <= 1 + 1e-9, largest
    return largest


def people(domain: jaxcd.Domain, rows: np.ndarray, ids: np.ndarray) -> jaxcd.Dataset:
    """Rows of people: codes, or values where they are floats."""
    none = np.empty((len(ids), 0))
    codes, values = (none, rows) if rows.dtype.kind == "f" else (rows, none)
    return jaxcd.Dataset(domain, codes.astype(np.int32), values, people=ids)


# ---- unkind tables of levels


def chained(seed: int, n: int, levels: Sequence[int]) -> np.ndarray:
    """Each column mostly the one before."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, k, n) for k in levels], axis=1)
    for j in range(1, len(levels)):
        rows[:, j] = np.where(rng.random(n) < 0.8, rows[:, j - 1] % levels[j], rows[:, j])
    return rows


def with_another_row(rows: np.ndarray, levels: Sequence[int]) -> np.ndarray:
    """The first row has the next level in every column."""
    other = rows.copy()
    other[0] = (rows[0] + 1) % np.array(levels)
    return other


def plain(rows: np.ndarray) -> Pair:
    return coded(rows, *LEVELS), coded(with_another_row(rows, LEVELS), *LEVELS)


def with_missing_cells() -> Pair:
    """The row that is replaced misses everything."""
    options: dict[str, Any] = {"missing": True}
    domain = jaxcd.Domain(
        {f"v{j}": jaxcd.Ordinal(tuple(range(k)), **options) for j, k in enumerate(LEVELS)}
    )
    rows = chained(1, 40, LEVELS)
    other = rows.copy()
    other[0] = LEVELS  # the code of a missing cell
    return coded(rows, domain), coded(other, domain)


def with_interventions() -> Pair:
    set_at: dict[Any, tuple[str, ...]] = {1: ("v1",)}
    domain = jaxcd.Domain(dict(levelled(*LEVELS).columns), interventions={"v0": set_at})
    rows = chained(2, 40, LEVELS)
    return coded(rows, domain), coded(with_another_row(rows, LEVELS), domain)


def of_people() -> Pair:
    """A person of one row is replaced by one of 50, all alike."""
    rows = chained(3, 60, LEVELS)
    ids = np.arange(60) // 2
    ids[1:3] = 1, 1  # the first person has one row
    other = with_another_row(rows, LEVELS)[:1].repeat(50, axis=0)
    domain = levelled(*LEVELS)
    return people(domain, rows, ids), people(
        domain, np.concatenate([other, rows[1:]]), np.concatenate([np.zeros(50, int), ids[1:]])
    )


TABLES: dict[str, Callable[[], Pair]] = {
    "rows": lambda: plain(chained(0, 40, LEVELS)),
    "two rows": lambda: plain(chained(1, 2, LEVELS)),
    "every cell of a pair once": lambda: plain(
        np.array([[a, b, 0, (a + b) % 2] for a in range(2) for b in range(3)])
    ),
    "all rows equal": lambda: plain(np.tile([1, 2, 0, 1], (25, 1))),
    "levels that nobody has": lambda: plain(np.zeros((25, len(LEVELS)), dtype=int)),
    "missing cells": with_missing_cells,
    "interventions": with_interventions,
    "people": of_people,
}
KNOWN = jaxcd.Knowledge(forbidden=[("v0", "v1"), ("v1", "v0")], required=[("v1", "v3")])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("budget", [GAUSSIAN, LAPLACE], ids=["Gaussian", "Laplace"])
@pytest.mark.parametrize("kind", [LogLinear(selected=2), Marginals(selected=1)])
def test_neighbours_look_alike(
    kind: Any, budget: Budget, table: str, tap: Tapping, tmp_path: Path
) -> None:
    here, there = TABLES[table]()
    if table == "people":
        budget = dataclasses.replace(budget, unit=Unit.PERSON)
    assert CHOICE in shares(tap, kind, budget, here, there, tmp_path)


@pytest.mark.parametrize("kind", [LogLinear, Marginals])
def test_neighbours_look_alike_where_something_is_known(
    kind: Any, tap: Tapping, tmp_path: Path
) -> None:
    found = shares(tap, kind(selected=1, knowledge=KNOWN), GAUSSIAN, *TABLES["rows"](), tmp_path)
    assert CHOICE in found


@pytest.mark.parametrize("budget", [GAUSSIAN, LAPLACE], ids=["Gaussian", "Laplace"])
@pytest.mark.parametrize("kind", [LogLinear(selected=1), Marginals(selected=2)])
def test_no_row_of_a_small_table_moves_more_than_is_charged(
    kind: Any, budget: Budget, tap: Tapping, tmp_path: Path
) -> None:
    """Every row that there can be; and some reach the bound of a choice."""
    levels = (2, 2, 2)
    rows = chained(4, 8, levels)
    largest = 0.0
    for record in itertools.product(*map(range, levels)):
        other = rows.copy()
        other[2] = record
        here, there = coded(rows, *levels), coded(other, *levels)
        largest = max(largest, shares(tap, kind, budget, here, there, tmp_path)[CHOICE])
    assert largest > 0.95


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(5.0)], ids=["Gaussian", "Laplace"])
@pytest.mark.parametrize(
    ("kind", "d"), [(Marginals(), 62), (LogLinear(), 12)], ids=["Marginals", "LogLinear"]
)
def test_neighbours_of_many_columns_look_alike(
    kind: Any, d: int, budget: Budget, tap: Tapping, tmp_path: Path
) -> None:
    """Where pairs are chosen because there are many."""
    levels = [2, 3] * (d // 2)
    rows = chained(5, 150, levels)
    here, there = coded(rows, *levels), coded(with_another_row(rows, levels), *levels)
    assert kind.n_selected(here.domain, 150, budget=budget) > 0
    assert shares(tap, kind, budget, here, there, tmp_path)[CHOICE] > 0.3


@pytest.mark.parametrize("budget", [Budget(1e-6, 1e-6), Budget(1e6, 1e-6), Budget(1e6)])
@pytest.mark.parametrize("kind", [LogLinear(selected=1), Marginals(selected=2)])
def test_neighbours_look_alike_at_any_price(
    kind: Any, budget: Budget, tap: Tapping, tmp_path: Path
) -> None:
    assert CHOICE in shares(tap, kind, budget, *TABLES["rows"](), tmp_path)


@pytest.mark.parametrize("n", [2, 50, 100_000])
def test_scores_are_computed_as_exactly_as_is_said(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    levels = (2, 30, 40)
    rows = np.stack([rng.integers(0, k, n) for k in levels], axis=1)
    pairs = list(itertools.combinations(range(3), 2))
    seen: dict[str, Any] = {}

    def kept(accountant: Any, scores: Any, *, size: int, pad: float, **options: Any) -> list[int]:
        seen.update(scores=exact_values(scores), pad=pad, sensitivity=options["sensitivity"])
        return list(range(size))

    monkeypatch.setattr(pair_selection, "select_top", kept)
    account = Accountant(Ledger(GAUSSIAN), Quick(0))
    choice = PairChoice(Door(coded(rows, *levels), GAUSSIAN), account, pairs, epsilon=0.1)
    expected = {(i, j): n * rng.dirichlet(np.full(levels[i] * levels[j], 0.1)) for i, j in pairs}
    choice.compare(
        [([(i, j)], e.reshape(1, levels[i], levels[j])) for (i, j), e in expected.items()]
    )
    choice.take(1, label=CHOICE)
    assert seen["sensitivity"] == 2
    for (i, j), score in zip(pairs, seen["scores"], strict=True):
        cells = np.bincount(rows[:, i] * levels[j] + rows[:, j], minlength=levels[i] * levels[j])
        terms = [
            abs(count - mean) - math.sqrt(2 * mean * (1 - mean / n) / math.pi)
            for count, mean in zip(cells.tolist(), expected[i, j].tolist(), strict=True)
        ]
        assert abs(math.fsum(terms) - score) <= seen["pad"] < 1e-4


# ---- tables of numbers


def signs_of(values: np.ndarray, row: np.ndarray, domain: jaxcd.Domain) -> Pair:
    """The first row is replaced; values beyond the bounds are the bounds."""
    other = values.copy()
    other[0] = row
    here, there = (
        jaxcd.Dataset.from_array(part, names=list(domain.names), domain=domain, clip=True)
        for part in (values, other)
    )
    return here, there


def of_numbers(seed: int, n: int, d: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(n, d))
    values[:, 1::3] += 2 * values[:, ::3][:, : values[:, 1::3].shape[1]]
    return values


FAR = np.array([1e300, -1e300, 1e300, np.inf, 0.0])
NUMBERS: dict[str, Callable[[], Pair]] = {
    "bounds": lambda: signs_of(of_numbers(0, 40, 5), -FAR, numbers(5, -1, 1)),
    "no bounds": lambda: signs_of(of_numbers(1, 40, 5), FAR, numbers(5)),
    "two rows": lambda: signs_of(of_numbers(2, 2, 5), FAR, numbers(5, -1, 1)),
    "constant columns": lambda: signs_of(np.zeros((30, 5)), -FAR, numbers(5, -1, 1)),
    "bounds without room": lambda: signs_of(np.zeros((30, 5)), FAR, numbers(5, 0, 5e-324)),
    "no number": lambda: signs_of(of_numbers(3, 30, 5), np.full(5, np.nan), numbers(5, -1, 1)),
}


@pytest.mark.parametrize("table", NUMBERS)
@pytest.mark.parametrize("selected", [1, 8])
def test_neighbours_of_numbers_look_alike(
    selected: int, table: str, tap: Tapping, tmp_path: Path
) -> None:
    here, there = NUMBERS[table]()
    kind = Tetrachoric(selected=selected)
    assert CHOICE in shares(tap, kind, GAUSSIAN, here, there, tmp_path)


def test_no_row_of_numbers_moves_more_than_is_charged(tap: Tapping, tmp_path: Path) -> None:
    """Every row on one of the two sides of each column; medians, signs, choices and products all
    reach their bounds.
    """
    values, domain = of_numbers(5, 6, 3), numbers(3, -3, 3)
    values[0] = [3, 3, 3]
    largest: defaultdict[str, float] = defaultdict(float)
    for row in itertools.product((-3.0, 3.0), repeat=3):
        pair = signs_of(values, np.array(row), domain)
        found = shares(tap, Tetrachoric(selected=2), GAUSSIAN, *pair, tmp_path)
        for words, share in found.items():
            largest[words] = max(largest[words], share)
    assert min(largest[words] for words in (CHOICE, "signs of chosen pairs")) > 0.9
    assert largest["signs of all columns"] > 0.9 and max(largest.values()) <= 1 + 1e-9


def test_a_person_of_numbers_moves_no_more_than_one_row(tap: Tapping, tmp_path: Path) -> None:
    domain, values = numbers(5, -3, 3), of_numbers(6, 30, 5).clip(-3, 3)
    ids = np.arange(30)
    values[0] = 3
    more = np.full((50, 5), -3.0)
    here = people(domain, values, ids)
    there = people(
        domain, np.concatenate([more, values[1:]]), np.concatenate([np.zeros(50, int), ids[1:]])
    )
    budget = dataclasses.replace(GAUSSIAN, unit=Unit.PERSON)
    found = shares(tap, Tetrachoric(selected=3), budget, here, there, tmp_path)
    assert CHOICE in found and found["signs of all columns"] > 0.9


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(1e6, marks=pytest.mark.slow)])
def test_neighbours_of_many_numbers_look_alike(
    epsilon: float, tap: Tapping, tmp_path: Path
) -> None:
    """Where pairs are chosen because there are many."""
    budget, kind = Budget(epsilon, 1e-6), Tetrachoric()
    values = of_numbers(7, 150, 88)
    here, there = signs_of(values, -values[0], numbers(88, -3, 3))
    assert kind.n_selected(here.domain, 150, budget=budget) > 0
    assert CHOICE in shares(tap, kind, budget, here, there, tmp_path)
