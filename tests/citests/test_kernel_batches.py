"""Batches of kernel tests: one read a batch, and the same answers one by one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from scipy import stats

import jaxcd
from jaxcd.citests import Query, kernel_batches
from jaxcd.ops import double_precision, features, hsic_batch, units
from jaxcd.ops.standardising import near_one

RCIT = jaxcd.RCIT(n_permutations=19, rank=40)


def dataset(columns: np.ndarray) -> jaxcd.Dataset:
    names = [f"x{j}" for j in range(columns.shape[1])]
    domain = jaxcd.Domain(dict.fromkeys(names, jaxcd.Numeric()))
    return jaxcd.Dataset.from_array(columns, names=names, domain=domain)


def additive(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n, d))
    for j in range(2, d):
        columns[:, j] += np.sin(columns[:, j - 1]) + columns[:, j - 2]
    columns[:, 0] = rng.standard_cauchy(n)  # 16 components do not hold its features
    return columns


@pytest.fixture
def reads(monkeypatch):
    """How often the host read something of a batch."""
    found = []
    read = jax.device_get
    monkeypatch.setattr(jax, "device_get", lambda tree: found.append(1) or read(tree))
    return found


def test_a_batch_over_sets_is_what_its_queries_are_alone(reads):
    data = dataset(additive(150, 5))
    queries = [
        Query.of(a, b, (c,))
        for a in range(5)
        for b in range(a)
        for c in range(5)
        if c not in (a, b)
    ]
    together = RCIT.prepare(data, key=jax.random.key(0)).evaluate(1, queries, alpha=0.1)
    # The answers, and those of the pairs of which 16 components lose too much.
    assert len(reads) <= 2
    alone = RCIT.prepare(data, key=jax.random.key(0))
    for i, query in enumerate(queries[::3]):
        one = alone.evaluate(1, [query], alpha=0.1)
        assert one.statistic[0] == pytest.approx(together.statistic[3 * i], rel=1e-4)
        assert one.log_pvalue[0] == together.log_pvalue[3 * i]


def test_a_pool_that_is_too_small_gives_the_same_answers(monkeypatch):
    data = dataset(additive(150, 6))
    queries = [Query.of(a, b) for a in range(6) for b in range(a)]
    test = jaxcd.HSIC(n_permutations=19)
    wanted = test.prepare(data, key=jax.random.key(0)).evaluate(0, queries, alpha=0.1)
    monkeypatch.setattr(kernel_batches, "POOL_BYTES", 1)
    got = test.prepare(data, key=jax.random.key(0)).evaluate(0, queries, alpha=0.1)
    np.testing.assert_array_equal(got.log_pvalue, wanted.log_pvalue)


def test_several_sets_at_once_are_each_alone(monkeypatch):
    """What a GPU does: sets, targets and pairs side by side."""
    data = dataset(additive(150, 5))
    queries = [Query.of(0, 1, (2, 3)), Query.of(0, 1, (2, 4)), Query.of(0, 2, (3, 4))]
    wanted = RCIT.prepare(data, key=jax.random.key(0)).evaluate(2, queries, alpha=0.1)
    monkeypatch.setattr(kernel_batches, "block_of", lambda sizes: sizes["gpu"])
    got = RCIT.prepare(data, key=jax.random.key(0)).evaluate(2, queries, alpha=0.1)
    np.testing.assert_allclose(got.statistic, wanted.statistic, rtol=1e-4)
    np.testing.assert_array_equal(got.log_pvalue, wanted.log_pvalue)


def test_a_level_transfers_nothing_unasked(monkeypatch, reads):
    """Of a batch that is on the device: without conditioning sets, whose regressions are chosen on
    the host.
    """
    asked = []
    ask = kernel_batches.FeaturePool.ask

    def guarded(*arguments, **options):
        asked.append(1)
        with jax.transfer_guard("disallow"):
            return ask(*arguments, **options)

    monkeypatch.setattr(kernel_batches.FeaturePool, "ask", guarded)
    options = dict(decider=jaxcd.Threshold(), budget=jaxcd.NO_PRIVACY, key=jax.random.key(0))
    run = jaxcd.pc(dataset(additive(150, 4)), test=RCIT, max_level=0, **options)
    assert run.info["n_tests"] > len(asked) and 0 < len(reads) <= 2 * len(asked)


def test_compiled_calls_ask_the_host_nothing():
    """Tracing fails where a number decides what is done next; callbacks would stand in the text."""
    n, d = 64, 4
    kernel = features.fourier_kernel(length=10.0, bandwidth=1.0)
    shape = jax.ShapeDtypeStruct
    with double_precision():
        columns, pairs = shape((d, n), jnp.float64), shape((2, 2), jnp.int32)
        pool = jax.eval_shape(
            lambda: hsic_batch.empty_pool(4, n, kernel, dtype="float32", leading=True)
        )
        first = shape((), jnp.int32)
        options = dict(rank=2, count=20, ties=1e-5, block=16, batch=1)
        texts = [
            jax.make_jaxpr(lambda x: units.normal_scores(x[0]))(columns),
            jax.make_jaxpr(lambda p, c, w: hsic_batch.put(p, c, w, kernel, True, 1))(
                pool, columns, shape((2, 1), jnp.int32)
            ),
            jax.make_jaxpr(lambda p, q, f: hsic_batch.answers(p, q, f, **options))(
                pool, pairs, first
            ),
            jax.make_jaxpr(
                lambda p, q, f: hsic_batch.wide_answers(p, q, f, kernel=kernel, **options)
            )(pool, pairs, first),
        ]
    for text in map(str, texts):
        assert "callback" not in text and "debug" not in text


@pytest.mark.parametrize("levels", [0, 1, 2, 3])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_units_are_those_of_numpy(levels, scale):
    rng = np.random.default_rng(levels)
    values = rng.integers(0, levels, 101) * 1.0 if levels else rng.standard_cauchy(101)
    if levels == 3:
        values[:90] = 1.0  # the middle half is one value
    values = values * scale + (levels == 1) * scale / 3
    with double_precision():
        scores = np.asarray(units.normal_scores(jnp.asarray(values)))
        values = near_one(values)
        got = np.asarray(units.robust_unit(jnp.asarray(values)))
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    if levels == 1:
        wanted = np.zeros(101)
    elif high > low:
        wanted = np.clip((values - middle) / ((high - low) / 1.349), -5, 5)
    else:
        standard = (values - values.mean()) / values.std()
        wanted = np.clip(standard - standard[np.argmin(np.abs(values - middle))], -5, 5)
    np.testing.assert_allclose(got, wanted, atol=1e-9)
    ranks = stats.rankdata(values)
    np.testing.assert_allclose(scores, stats.norm.ppf((ranks - 0.5) / 101), atol=1e-9)


@pytest.mark.slow
def test_the_skeleton_of_a_chain_is_found():
    rng = np.random.default_rng(5)
    n = 400
    a = rng.uniform(-2, 2, n)
    b = np.sin(2 * a) + 0.3 * rng.normal(size=n)
    c = b**2 + 0.3 * rng.normal(size=n)
    run = jaxcd.pc(
        dataset(np.column_stack([a, b, c])),
        test=jaxcd.RCIT(n_permutations=99),
        decider=jaxcd.Threshold(),
        budget=jaxcd.NO_PRIVACY,
        key=jax.random.key(0),
    )
    found = nx.Graph(run.graph.to_networkx()).edges()
    assert {frozenset(edge) for edge in found} == {frozenset(("x0", "x1")), frozenset(("x1", "x2"))}
