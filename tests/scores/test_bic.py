"""BIC against loops over records, and its score equivalence."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import jaxcd
from jaxcd.errors import DataError, DomainError, GraphError, OptionError
from jaxcd.scores import BICScore
from tests.helpers import coded, refused
from tests.scores.rows import CARDINALITIES, DATA, RNG, ROWS

TABLE = np.zeros(CARDINALITIES)
np.add.at(TABLE, tuple(ROWS.T), 1)


def by_records(node: int, parents: tuple[int, ...], penalty: float) -> float:
    families = Counter((tuple(row[list(parents)]), row[node]) for row in ROWS)
    rows = Counter(tuple(row[list(parents)]) for row in ROWS)
    fit = sum(
        count * math.log(count / rows[configuration])
        for (configuration, _), count in families.items()
    )
    free = (CARDINALITIES[node] - 1) * math.prod(CARDINALITIES[parent] for parent in parents)
    return fit - penalty / 2 * math.log(300) * free


@pytest.mark.parametrize("penalty", [1.0, 0.0, 3.0])
def test_it_is_the_formula(penalty: float):
    scores = [
        BICScore.of_data(DATA, penalty=penalty),
        BICScore.of_table(TABLE, names="abcd", n_samples=300, penalty=penalty),
        BICScore.of_data(DATA).with_penalty(penalty),
    ]
    for node in range(4):
        others = [v for v in range(4) if v != node]
        for parents in itertools.chain.from_iterable(
            itertools.combinations(others, k) for k in range(4)
        ):
            for score in scores:
                assert score.local(node, parents) == pytest.approx(
                    by_records(node, parents, penalty), rel=1e-12
                )


def test_totals_and_tables_are_sums_of_locals():
    score = BICScore.of_data(DATA, max_parents=2)
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 2] = graph[1, 3] = graph[2, 3] = graph[0, 3] = (
        True  # three parents: more than the table holds
    )
    expected = (
        by_records(0, (), 1)
        + by_records(1, (), 1)
        + by_records(2, (0,), 1)
        + by_records(3, (0, 1, 2), 1)
    )
    assert score.total(graph) == pytest.approx(expected, rel=1e-12)
    table = score.table(3)
    assert table.families[0] == () and len(table.families) == 1 + 3 + 3 and score.table(3) is table
    assert table.scores == pytest.approx([by_records(3, family, 1) for family in table.families])


def test_equivalent_dags_score_equally():
    score = BICScore.of_data(DATA)
    chain, turned, collider = np.zeros((3, 4, 4), dtype=bool)
    chain[0, 2] = chain[2, 1] = True
    turned[2, 0] = turned[2, 1] = True
    collider[0, 2] = collider[1, 2] = True
    totals = score.totals(np.array([chain, turned, collider]))
    assert totals[0] == pytest.approx(totals[1], rel=1e-13) and abs(totals[2] - totals[0]) > 1e-3
    assert score.best(np.array([collider, chain]))[0] == int(totals[0] > totals[2])


def test_wide_families_are_counted_without_their_empty_cells():
    rows = RNG.integers(0, 40, (50, 3)).astype(np.int32)
    domain = jaxcd.Domain([(name, jaxcd.Categorical(tuple(range(40)))) for name in "abc"])
    score = BICScore.of_data(coded(rows, domain), penalty=0.0)
    counts = Counter(map(tuple, rows)).values()
    rows_of_two = Counter(map(tuple, rows[:, :2])).values()
    expected = sum(c * math.log(c) for c in counts) - sum(c * math.log(c) for c in rows_of_two)
    assert score.local(2, (0, 1)) == pytest.approx(expected, abs=1e-9)


def test_refusals():
    numeric = jaxcd.Domain([("a", jaxcd.Categorical((0, 1))), ("h", jaxcd.Numeric(0.0, 2.0))])
    with pytest.raises(DomainError, match="'h' is numeric"):
        BICScore.of_data(jaxcd.Dataset.from_array([[0, 1.0], [1, 1.5]], domain=numeric))
    for wrong in (-1.0, math.nan, math.inf):
        refused(OptionError, "penalty", BICScore.of_data, DATA, penalty=wrong)
    for wrong in (-1, 1.5, True):
        refused(OptionError, "max_parents", BICScore.of_data, DATA, max_parents=wrong)
    for table in (TABLE - 1, np.full(CARDINALITIES, np.nan)):
        refused(DataError, "table", BICScore.of_table, table, names="abcd", n_samples=300)
    refused(GraphError, r"\(4, 4\)", BICScore.of_data(DATA).total, np.zeros((3, 3), dtype=bool))


@pytest.mark.parametrize("missing", [False, True])
def test_levels_that_nobody_holds_hide_nothing(missing: bool):
    """60 declared levels, of which 4 occur: at the price of 60 there was no edge."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 3_000)
    second = np.where(rng.random(3_000) < 0.3, first, rng.integers(0, 4, 3_000))
    codes = np.stack([first, second], axis=1)
    unknown = rng.random(3_000) < 0.2

    def score_of(k: int, place: np.ndarray) -> jaxcd.scores.LocalScore:
        column = jaxcd.Categorical(tuple(range(k)), missing=() if missing else None)
        held = place[codes]
        held[unknown & missing, 1] = k
        domain = jaxcd.Domain({"x": column, "y": column})
        data = jaxcd.Dataset.from_codes(held.astype(np.int32), domain=domain)
        return jaxcd.BIC().prepare(data)

    bare = score_of(4, np.arange(4))
    declared = score_of(60, np.array([3, 17, 40, 59]))
    assert bare.local(1, (0,)) > bare.local(1, ())
    for node, parents in ((0, ()), (1, ()), (0, (1,)), (1, (0,))):
        assert declared.local(node, parents) == pytest.approx(bare.local(node, parents), rel=1e-12)
    nothing = score_of(60, np.full(4, 7))
    assert nothing.candidates(0) == nothing.candidates(1) == ()
