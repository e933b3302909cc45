"""The score behind a channel: BIC without noise, equal for equivalent graphs, the truth in the
limit, total everywhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import jaxcd
from jaxcd.data import Categorical, Dataset, Domain, Numeric
from jaxcd.errors import DomainError, OptionError, PrivacyError
from jaxcd.graphs import dag_to_cpdag
from jaxcd.local import (
    BoundedGeometric,
    ChannelAwareBIC,
    ChannelAwareChiSquare,
    CombinedGeometric,
    CombinedKaryResponse,
    Distance,
    KaryResponse,
    channels,
    joint_channel,
    randomise,
)
from jaxcd.local.base import ColumnwiseMechanism, LocalGuarantee, checked_cardinalities
from jaxcd.local.channel_scores import MAX_FAMILY_CELLS, ChannelScore, continued_xlogx
from jaxcd.local.uniforms import Uniforms
from jaxcd.scores import BICScore
from tests.brute_force import all_dags, class_totals
from tests.helpers import SEEDS, coded, levelled, refused, simulated

NONE = jaxcd.NO_PRIVACY


@dataclass(frozen=True)
class Honest(ColumnwiseMechanism):
    """Everybody tells the truth: the channel of no noise."""

    def check(self, domain: Domain) -> tuple[int, ...]:
        return checked_cardinalities(domain)

    def guarantee(self, domain: Domain) -> LocalGuarantee:
        raise NotImplementedError

    def attribute_channels(self, cardinalities: Sequence[int]) -> tuple[NDArray[np.float64], ...]:
        return tuple(np.eye(k) for k in cardinalities)

    def randomised_codes(
        self, codes: NDArray[np.int32], cardinalities: Sequence[int], uniforms: Uniforms
    ) -> NDArray[np.int32]:
        return codes


domain = functools.partial(levelled, name="c", kind=Categorical)


def drawn(n: int, *cardinalities: int, seed: int = 0) -> Dataset:
    """Dependent columns: each copies an earlier one, or is uniform; some cells stay empty."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(cardinalities[0], size=n)]
    for k in cardinalities[1:]:
        columns.append(
            np.where(
                rng.random(n) < 0.7, columns[rng.integers(len(columns))], rng.integers(k, size=n)
            )
            % k
        )
    return Dataset.from_codes(
        np.column_stack(columns).astype(np.int32), domain=domain(*cardinalities)
    )


@pytest.mark.parametrize("n", [40, 200, 5000])
def test_without_noise_it_is_bic_empty_cells_and_all(n: int):
    """Where every level is held: of rows those that nobody holds count for nothing."""
    data = drawn(n, 2, 3, 2, 4)
    score, expected = (
        ChannelScore(data, Honest(), max_parents=3),
        BICScore.of_data(data, max_parents=3),
    )
    for node in range(4):
        table = expected.table(node)
        np.testing.assert_allclose(
            score.locals(node, table.families), table.scores, rtol=1e-12, atol=1e-9
        )
    heavier, expected = (
        ChannelScore(data, Honest(), penalty=3.0),
        BICScore.of_data(data, penalty=3.0),
    )
    assert heavier.local(0, (1, 3)) == pytest.approx(expected.local(0, (1, 3)))


def test_equivalent_dags_have_equal_totals_and_others_have_not():
    data = randomise(drawn(3000, 2, 3, 2), KaryResponse(4.0), noise=simulated())
    score = ChannelAwareBIC(KaryResponse(4.0)).prepare(data)
    totals = class_totals(score, all_dags(3), tolerance=1e-8)
    assert len(totals) == 11 and np.diff(sorted(totals)).min() > 1e-3


@settings(max_examples=30)
@given(seed=SEEDS, epsilon=st.floats(0.1, 20.0), n=st.integers(2, 300))
def test_reversing_a_covered_edge_changes_nothing(seed: int, epsilon: float, n: int):
    """For any reports: x -> y and y -> x with the same other parents."""
    rng = np.random.default_rng(seed)
    cardinalities = tuple(rng.integers(1, 4, size=4).tolist())
    codes = np.column_stack([rng.integers(k, size=n) for k in cardinalities]).astype(np.int32)
    score = ChannelAwareBIC(KaryResponse(epsilon)).prepare(coded(codes, domain(*cardinalities)))
    forward = score.local(0, (2, 3)) + score.local(1, (0, 2, 3))
    backward = score.local(1, (2, 3)) + score.local(0, (1, 2, 3))
    assert math.isfinite(forward) and forward == pytest.approx(backward, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [KaryResponse(5.0), BoundedGeometric(0.7), CombinedKaryResponse(4.0)],
    ids=lambda m: type(m).__name__,
)
def test_the_corrected_table_is_unbiased_and_its_variance_is_right(mechanism):
    """Against the whole joint channel: A q is the truth, and each inflation the variance of one
    report's correction.
    """
    rng, n = np.random.default_rng(1), 10**9
    declared = domain(2, 3, 2)
    truth = rng.dirichlet(np.full(12, 20.0))
    reports = truth @ joint_channel(mechanism, declared)
    score = ChannelScore(drawn(50, 2, 3, 2), mechanism)
    counts = (n * reports).reshape(2, 3, 2)
    score._joint, score._n = counts, n
    for columns in ((0, 1, 2), (0, 2), (1,)):
        axes = tuple(v for v in range(3) if v not in columns)
        p, reported = (table.reshape(2, 3, 2).sum(axis=axes).ravel() for table in (truth, reports))
        if isinstance(mechanism, CombinedKaryResponse):
            whole = joint_channel(mechanism, declared)
            keep = whole[0, 0] - whole[0, 1]
            matrix = keep * np.eye(p.size) + (1 - keep) / p.size
        else:
            matrix = np.ones((1, 1))
            for v in columns:
                matrix = np.kron(matrix, channels(mechanism, declared)[v])
        inverse = np.linalg.inv(matrix)  # what a report y adds to cell c is inverse[y, c]
        variance = (reported[:, None] * (inverse - reported @ inverse) ** 2).sum(axis=0)
        table, inflation, threshold = score.corrected(columns)
        np.testing.assert_allclose(table.ravel(), p, atol=1e-9)
        np.testing.assert_allclose(inflation.ravel(), 1 + (variance - p * (1 - p)) / p, rtol=1e-6)
        np.testing.assert_allclose(
            threshold.ravel(), 2 * np.sqrt((variance - p * (1 - p)) / n), rtol=1e-6
        )


def test_the_inflation_is_the_bias_of_the_entropy():
    """Simulated: on average n sum r log r is too large by half of sum i - 1."""
    rng, n = np.random.default_rng(2), 200_000
    mechanism, truth = KaryResponse(3.0), np.array([[0.3, 0.25], [0.2, 0.25]])
    reports = truth.ravel() @ joint_channel(mechanism, domain(2, 2))
    score = ChannelScore(drawn(50, 2, 2), mechanism)
    score._n = n
    excess, half = [], []
    for _ in range(2000):
        score._joint = rng.multinomial(n, reports).reshape(2, 2).astype(float)
        table, inflation, threshold = score.corrected((0, 1))
        # The part of first order has mean zero, and is most of the variance.
        first = ((table - truth) * (1 + np.log(truth))).sum()
        excess.append(
            n
            * (
                float(continued_xlogx(table, threshold).sum())
                - float((truth * np.log(truth)).sum())
                - first
            )
        )
        half.append((inflation.sum() - 1) / 2)
    assert np.mean(excess) == pytest.approx(np.mean(half), rel=0.1)
    assert np.mean(half) > 4  # where sampling alone has 1.5


def test_the_tangent():
    """Convex and smooth; x log x above."""
    x, t = np.linspace(-0.5, 1.0, 3001), np.full(3001, 0.1)
    values = continued_xlogx(x, t)
    above = x >= 0.1
    np.testing.assert_allclose(values[above], x[above] * np.log(x[above]), atol=1e-15)
    slopes = np.diff(values) / np.diff(x)
    assert (np.diff(slopes) > -1e-9).all() and slopes[0] == pytest.approx(1 + math.log(0.1))
    assert continued_xlogx(np.zeros(1), np.zeros(1))[0] == pytest.approx(0.0, abs=1e-290)


@pytest.mark.parametrize(
    ("epsilon", "n", "share"), [(2.0, 1000, 0.4), (0.2, 100, 0.46), (1.0, 400, 0.25)]
)
def test_a_single_column_by_hand(epsilon: float, n: int, share: float):
    """Warner's response: all cells seen; all hidden and at the least price; one hidden, with a
    negative estimate.
    """
    # the second has one level
    codes = np.column_stack([np.arange(n) >= round(share * n), np.zeros(n)]).astype(np.int32)
    score = ChannelAwareBIC(KaryResponse(epsilon), penalty_discount=1.5).prepare(
        coded(codes, domain(2, 1))
    )
    keep = math.tanh(epsilon / 2)
    estimate = (share - (1 - keep) / 2) / keep
    assert (estimate < 0) == (n == 400)
    fit, price = 0.0, -math.log(n)
    for r in (estimate, 1 - estimate):
        p = min(max(r, 0.0), 1.0)
        reported = keep * p + (1 - keep) / 2
        noise = reported * (1 - reported) / keep**2 - p * (1 - p)
        t = 2 * math.sqrt(noise / n)
        fit += r * math.log(r) if r >= t else r * (1 + math.log(t)) - t
        inflation = 1 + noise / max(p, t)
        price += inflation * max(math.log(n / inflation), 2.0)
    assert score.local(0, ()) == pytest.approx(n * fit - 1.5 / 2 * price, rel=1e-9)


def limit_of(mechanism, dag: nx.DiGraph, n: int) -> ChannelScore:
    """The score of the expected reports of n records of a model on the DAG, three levels a
    column.
    """
    names, rng = list(dag), np.random.default_rng(3)
    joint = np.ones((3,) * len(names))
    grid = np.indices(joint.shape)
    for v, name in enumerate(names):
        parents = [names.index(u) for u in dag.predecessors(name)]
        tables = rng.dirichlet(np.full(3, 2.0), size=(3,) * len(parents))
        joint = joint * tables[(*(grid[u] for u in parents), grid[v])]
    declared = domain(*joint.shape)
    score = ChannelScore(drawn(50, *joint.shape), mechanism, max_parents=3)
    score._joint, score._n = (
        n * (joint.ravel() @ joint_channel(mechanism, declared)).reshape(joint.shape),
        n,
    )
    return score


@pytest.mark.parametrize(
    "mechanism", [KaryResponse(8.0), CombinedKaryResponse(3.0)], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize(
    "arcs", [["ab", "bc", "cd"], ["ac", "bc", "cd"], ["ab", "ac", "bd", "cd"]], ids="-".join
)
def test_with_enough_records_the_best_class_is_the_true_one(mechanism, arcs):
    """On expected reports, where the usual BIC adds edges."""
    dag = nx.DiGraph()
    dag.add_nodes_from("abcd")
    dag.add_edges_from(tuple(arc) for arc in arcs)
    score, n = limit_of(mechanism, dag, 10**8), 10**8
    best = jaxcd.exact_search(score)
    truth = nx.to_numpy_array(dag) > 0
    as_class = [dag_to_cpdag(jaxcd.MixedGraph.from_arcs(tuple("abcd"), a)) for a in (best, truth)]
    assert as_class[0] == as_class[1]
    naive = jaxcd.exact_search(BICScore.of_table(score._joint, names=list("abcd"), n_samples=n))
    assert naive.sum() > truth.sum()


def test_searches_take_it_as_any_score():
    network = jaxcd.networks.load("cancer")
    mechanism = KaryResponse(30.0)
    data = randomise(network.sample(300_000, key=jax.random.key(0)), mechanism, noise=simulated(1))
    score = ChannelAwareBIC(mechanism)
    runs = [
        jaxcd.exact_search(data, score=score, budget=NONE),
        jaxcd.ges(data, score=score, budget=NONE),
        jaxcd.mmhc(
            data, score=score, test=ChannelAwareChiSquare(mechanism), alpha=0.001, budget=NONE
        ),
        jaxcd.order_mcmc(
            data, score=score, budget=NONE, key=jax.random.key(2), n_steps=300, burn_in=300
        ),
    ]
    for run in runs:
        assert run.graph == network.cpdag()
        assert run.info["score"] == pytest.approx(runs[0].info["score"])
        assert (
            run.info["score_function"]
            == "ChannelAwareBIC(mechanism=KaryResponse(epsilon=30.0), penalty_discount=1.0)"
        )


def test_tables_counted_one_by_one_are_the_sums_of_the_joint_table():
    wide = drawn(400, *[3] * 11)  # 3^11 cells: more than are kept as one table
    narrow = wide.select(list(wide.names[:5]))
    scores = [ChannelScore(data, BoundedGeometric(0.6)) for data in (wide, narrow)]
    assert scores[0]._joint is None and scores[1]._joint is not None
    for columns in ((), (0,), (1, 3), (0, 2, 4)):
        assert scores[0].value(columns) == pytest.approx(scores[1].value(columns))


def test_degenerate_reports_have_a_score():
    for epsilon in (0.001, 1.0, 700.0):
        mechanism = KaryResponse(epsilon)
        for codes in (np.zeros((10, 3)), np.eye(3)[[0, 1, 1]], np.ones((2, 3)) * [1, 0, 2]):
            data = coded(codes, domain(2, 2, 3))
            score = ChannelAwareBIC(mechanism).prepare(data)
            assert all(np.isfinite(score.table(v).scores).all() for v in range(3))
    constant = Dataset.from_codes(np.zeros((10, 3), dtype=np.int32), domain=domain(2, 1, 3))
    score = ChannelAwareBIC(KaryResponse(1.0)).prepare(constant)
    assert score.candidates(1) == () and score.candidates(0) == (2,)
    assert (
        jaxcd.ges(
            constant, score=ChannelAwareBIC(KaryResponse(1.0)), budget=NONE
        ).graph.adjacency.sum()
        == 0
    )


def test_families_with_too_many_cells_are_never_chosen():
    data = drawn(30, *[40] * 4)
    score = ChannelAwareBIC(KaryResponse(20.0)).prepare(data)
    assert 40**4 > MAX_FAMILY_CELLS
    assert score.local(0, (1, 2, 3)) == -math.inf
    assert math.isfinite(score.local(0, (1,)))
    refused(DomainError, "columns", score.value, (0, 1, 2, 3))


def test_refusals():
    refused(OptionError, "mechanism", ChannelAwareBIC, "k-rr")
    with pytest.raises(DomainError, match="CombinedGeometric"):
        ChannelAwareBIC(CombinedGeometric(0.4, distance=Distance.EUCLIDEAN))
    for wrong in (0.0, -1.0, math.nan, math.inf, True):
        with pytest.raises(OptionError, match="penalty_discount"):
            ChannelAwareBIC(KaryResponse(1.0), penalty_discount=wrong)
    config = ChannelAwareBIC(KaryResponse(1.0))
    numeric = Dataset.from_array(
        np.zeros((5, 2)), domain=Domain({"a": Numeric(0, 1), "b": Numeric(0, 1)})
    )
    refused(DomainError, "'a'", config.prepare, numeric)
    codes = np.zeros((5, 2), dtype=np.int32)
    with pytest.raises(PrivacyError, match="domain"):
        config.prepare(
            Dataset.from_codes(codes, domain=Domain(domain(2, 2).columns, declared=False))
        )
    declared = coded(codes, domain(2, 2))
    refused(OptionError, "max_parents", config.prepare, declared, max_parents=-1)
    bought = jaxcd.release(declared, jaxcd.Histogram(), budget=jaxcd.Budget(1.0), noise=simulated())
    refused(OptionError, "randomise", jaxcd.exact_search, bought, score=config)
